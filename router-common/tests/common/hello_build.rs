//! Builds ClientHellos, well-formed and malformed, and splits messages into TLS records.

use std::vec;
use std::vec::Vec;

/// Extension numbers (IANA, TLS ExtensionType Values).
pub const SERVER_NAME: u16 = 0;
/// See [`SERVER_NAME`].
pub const ALPN: u16 = 16;
/// See [`SERVER_NAME`].
pub const PADDING: u16 = 21;

/// The fields of a ClientHello (RFC 8446 §4.1.2); [`HelloBuild::new`] is one that a TLS 1.3 server accepts.
#[derive(Clone, Debug)]
pub struct HelloBuild {
    /// `legacy_version`.
    pub version: [u8; 2],
    /// `legacy_session_id`.
    pub session_id: Vec<u8>,
    /// `cipher_suites`, two bytes each.
    pub suites: Vec<u8>,
    /// `legacy_compression_methods`.
    pub compression: Vec<u8>,
    /// Extensions in order; `None`: without the extensions' length.
    pub extensions: Option<Vec<(u16, Vec<u8>)>>,
}

impl HelloBuild {
    /// A hello without a server name.
    pub fn new() -> Self {
        HelloBuild {
            version: [3, 3],
            session_id: vec![0x5e; 32],
            suites: vec![0x13, 0x01, 0x13, 0x02, 0xc0, 0x2f],
            compression: vec![0],
            extensions: Some(vec![
                (10, vec![0, 2, 0, 29]),
                (13, vec![0, 4, 4, 3, 8, 4]),
                (43, vec![4, 3, 4, 3, 3]),
                (51, [&[0, 36, 0, 29, 0, 32][..], &[7; 32]].concat()),
            ]),
        }
    }

    /// A hello for `name`.
    pub fn named(name: &str) -> Self {
        Self::new().with(SERVER_NAME, host_name(name.as_bytes()))
    }

    /// Appends an extension.
    pub fn with(mut self, number: u16, body: Vec<u8>) -> Self {
        self.extensions.get_or_insert_default().push((number, body));
        self
    }

    /// Prepends an extension.
    pub fn with_first(mut self, number: u16, body: Vec<u8>) -> Self {
        self.extensions.get_or_insert_default().insert(0, (number, body));
        self
    }

    /// Pads the message to `size` bytes.
    pub fn padded_to(self, size: usize) -> Self {
        let missing = size - self.message().len() - 4;
        self.with(PADDING, vec![0; missing])
    }

    /// The handshake message.
    pub fn message(&self) -> Vec<u8> {
        let mut body = self.version.to_vec();
        body.extend([0x42; 32]);
        body.extend(vector8(&self.session_id));
        body.extend(vector16(&self.suites));
        body.extend(vector8(&self.compression));
        if let Some(extensions) = &self.extensions {
            let all: Vec<u8> = extensions
                .iter()
                .flat_map(|(number, body)| [number.to_be_bytes().to_vec(), vector16(body)].concat())
                .collect();
            body.extend(vector16(&all));
        }
        handshake(1, &body)
    }

    /// The message in one record.
    pub fn bytes(&self) -> Vec<u8> {
        record(&self.message())
    }
}

/// A handshake message of a type.
pub fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[kind, length[1], length[2], length[3]][..], body].concat()
}

/// A handshake record with the version of a client's first record.
pub fn record(payload: &[u8]) -> Vec<u8> {
    record_of(22, [3, 1], payload)
}

/// A record of any type and version.
pub fn record_of(kind: u8, version: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    [&[kind, version[0], version[1], length[0], length[1]][..], payload].concat()
}

/// The message in records of at most `size` bytes.
pub fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(record).collect()
}

/// The handshake bytes of the records in `bytes`.
pub fn unframed(mut bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let (payload, next) = rest.split_at(rest.len().min(u16::from_be_bytes([*high, *low]) as usize));
        message.extend(payload);
        bytes = next;
    }
    message
}

/// Body of a server_name extension with one host name.
pub fn host_name(name: &[u8]) -> Vec<u8> {
    server_names(&[(0, name)])
}

/// Body of a server_name extension.
pub fn server_names(entries: &[(u8, &[u8])]) -> Vec<u8> {
    let list: Vec<u8> = entries.iter().flat_map(|(kind, name)| [vec![*kind], vector16(name)].concat()).collect();
    vector16(&list)
}

/// Body of an ALPN extension.
pub fn protocols(names: &[&[u8]]) -> Vec<u8> {
    let list: Vec<u8> = names.iter().flat_map(|name| vector8(name)).collect();
    vector16(&list)
}

fn vector8(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

fn vector16(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

//! Well-formed and malformed ClientHellos, derived from those of a real client.

use std::sync::Arc;

use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, SupportedProtocolVersion};
use rustls_pki_types::ServerName;

use crate::client;

/// Maximum size of a record (RFC 8446 §5.1).
pub const RECORD: usize = 1 << 14;

/// The handshake message of a TLS 1.2 client, without server_name: servers send such a client their certificate
/// unencrypted.
pub fn bare() -> Vec<u8> {
    message(&TLS12, None)
}

/// The handshake message of a TLS 1.3 client with a post-quantum key share: 1.7 KB.
pub fn post_quantum(name: &str) -> Vec<u8> {
    message(&TLS13, Some(name))
}

fn message(version: &'static SupportedProtocolVersion, name: Option<&str>) -> Vec<u8> {
    let mut config = ClientConfig::builder_with_provider(crate::pki::provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(client::any_certificate())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.enable_sni = name.is_some();
    let name = ServerName::try_from(name.unwrap_or("unnamed.test").to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut record = Vec::new();
    connection.write_tls(&mut record).unwrap();
    record.split_off(5)
}

/// The bare message with these extensions in front of its own.
pub fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut message = bare();
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(message[at]);
    at += 2 + usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
    at += 1 + usize::from(message[at]);
    let old = usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
    let added = extensions.concat();
    message.splice(at..at + 2, u16::try_from(old + added.len()).unwrap().to_be_bytes());
    message.splice(at + 2..at + 2, added);
    let length = u32::try_from(message.len() - 4).unwrap().to_be_bytes();
    message.splice(1..4, length[1..].iter().copied());
    message
}

/// A message with this server name.
pub fn named(name: &[u8]) -> Vec<u8> {
    hello(&[sni(&[(0, name)])])
}

/// An extension.
pub fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes(), &u16::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
}

/// A padding extension of this length (RFC 7685).
pub fn padding(length: usize) -> Vec<u8> {
    extension(21, &vec![0; length])
}

/// server_name with these entries of (type, name).
pub fn sni(entries: &[(u8, &[u8])]) -> Vec<u8> {
    let entry =
        |(kind, name): &(u8, &[u8])| [&[*kind][..], &u16::try_from(name.len()).unwrap().to_be_bytes(), name].concat();
    let list = entries.iter().map(entry).collect::<Vec<_>>().concat();
    extension(0, &[&u16::try_from(list.len()).unwrap().to_be_bytes(), &list[..]].concat())
}

/// Records of at most `size` bytes of the message.
pub fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).map(record).collect::<Vec<_>>().concat()
}

/// A handshake record.
pub fn record(part: &[u8]) -> Vec<u8> {
    [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat()
}

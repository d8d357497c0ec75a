//! TLS ClientHello → SNI and ALPN, as bytes arrive (RFC 8446 §4.1.2, §5.1; RFC 6066 §3; RFC 7301 §3.1).
//!
//! [`HelloParser`] works in *steps*: a step reads a field of at most four bytes, and skips the bytes after it that do
//! not matter. It stores no input, so a ClientHello may be split at any byte, over any number of segments and TLS
//! records. A ClientHello of 1.7 KB takes about 30 steps.

mod hello;

use crate::hostname::{HostBuilder, HostError, HostKind};

pub use hello::{AlpnSet, ClientHello, HelloError, HelloStep, Progress, Sni};

/// Most bytes of a ClientHello message, its 4-byte header included (rustls has the same limit).
pub const MAX_HELLO: u32 = 64 * 1024;
/// Most bytes in one plaintext record (RFC 8446 §5.1).
pub const MAX_RECORD: u16 = 1 << 14;

// The next field. Constants instead of an enum, because the value is stored in map memory.
const MESSAGE_TYPE: u8 = 0;
const MESSAGE_LENGTH: u8 = 1;
const SESSION_ID: u8 = 3;
const CIPHER_SUITES: u8 = 4;
const COMPRESSION: u8 = 5;
const EXTENSIONS: u8 = 6;
const EXTENSION: u8 = 7; // type and length
const SNI_LIST: u8 = 9;
const SNI_TYPE: u8 = 10;
const SNI_LENGTH: u8 = 11;
const SNI_BYTES: u8 = 12;
const ALPN_LIST: u8 = 13;
const ALPN_LENGTH: u8 = 14;
const ALPN_BYTES: u8 = 15;

const FLAG_SNI_EXTENSION: u8 = 1; // a server_name extension was seen
const FLAG_SNI_NAME: u8 = 2; // with a host_name in it
const FLAG_SNI_LITERAL: u8 = 4; // which is an IP literal

const EXT_SERVER_NAME: u32 = 0;
const EXT_ALPN: u32 = 16;
const H2: u64 = u64::from_be_bytes(*b"\0\0\0\0\0\0h2");
const HTTP11: u64 = u64::from_be_bytes(*b"http/1.1");
const LEGACY_VERSION_AND_RANDOM: u32 = 2 + 32;

/// Reads one ClientHello. `repr(C)` without padding, because it is stored in map values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct HelloParser {
    alpn_bytes: u64,
    offset: u32, // bytes of the handshake message so far, its header included
    skip: u32,   // bytes to pass over before the next field
    acc: u32,    // the big-endian field being read
    hello_end: u32,
    extensions_end: u32,
    extension_end: u32,
    item_end: u32,
    part: u32, // bytes of the item that are read as one field
    record_left: u16,
    record_seen: u8, // bytes of the record header so far, 5 when inside a record
    more: u8,        // bytes of `acc` still to come after the next one
    field: u8,
    flags: u8,
    alpn: u8,
    item: u8, // type of the server name, or length of the protocol, that is being read
}

impl Default for HelloParser {
    fn default() -> Self {
        Self::new()
    }
}

impl HelloParser {
    /// A parser at the first byte of a connection; all zero, so zeroed map memory is a valid parser.
    pub const fn new() -> Self {
        HelloParser {
            alpn_bytes: 0,
            offset: 0,
            skip: 0,
            acc: 0,
            hello_end: 0,
            extensions_end: 0,
            extension_end: 0,
            item_end: 0,
            part: 0,
            record_left: 0,
            record_seen: 0,
            more: 0,
            field: MESSAGE_TYPE,
            flags: 0,
            alpn: 0,
            item: 0,
        }
    }

    /// The result; valid after [`Progress::Complete`].
    #[inline(always)]
    pub fn hello(&self) -> ClientHello {
        let sni = if self.flags & FLAG_SNI_NAME == 0 {
            Sni::None
        } else if self.flags & FLAG_SNI_LITERAL != 0 {
            Sni::IpLiteral
        } else {
            Sni::Name
        };
        ClientHello { sni, alpn: AlpnSet(self.alpn) }
    }

    /// Consumes all of `bytes`, or as many as the ClientHello needs.
    pub fn feed(&mut self, host: &mut HostBuilder, bytes: &[u8]) -> Progress {
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = self.step(host, next_of(rest), rest.len() as u32);
            if step.progress != Progress::Incomplete {
                return step.progress;
            }
            rest = rest.get(step.consumed as usize..).unwrap_or_default();
        }
        Progress::Incomplete
    }

    /// Performs one step, starting at the first of the `next` bytes. `available`: number of bytes available from there,
    /// at least one; bytes of `next` beyond it are ignored.
    #[inline(always)]
    pub fn step(&mut self, host: &mut HostBuilder, next: [u8; 4], available: u32) -> HelloStep {
        let [byte, second, third, fourth] = next;
        if self.record_seen < 5 {
            if self.record_seen != 0 || available < 4 {
                return HelloStep { consumed: 1, progress: self.record_header(byte) };
            }
            for byte in [byte, second, third, fourth] {
                if let Progress::Invalid(error) = self.record_header(byte) {
                    return HelloStep { consumed: 4, progress: Progress::Invalid(error) };
                }
            }
            return HelloStep { consumed: 4, progress: Progress::Incomplete };
        }
        let mut consumed = 0;
        if self.skip == 0 {
            // The rest of a field is at most four bytes. It is read at once, unless the record or the packet ends
            // within it.
            let left = self.more as u32 + 1;
            if left > available || left > self.record_left as u32 {
                self.consume(1);
                self.acc = self.acc << 8 | byte as u32;
                self.more -= 1;
                return HelloStep { consumed: 1, progress: Progress::Incomplete };
            }
            self.consume(left);
            let bits = (left & 7) * 8;
            let value = ((self.acc as u64) << bits
                | (u32::from_be_bytes(next) as u64) >> (32_u32.wrapping_sub(bits) & 63)) as u32;
            (self.acc, self.more) = (0, 0);
            consumed = left;
            let progress = self.field_read(host, value);
            if progress != Progress::Incomplete || self.skip == 0 {
                return HelloStep { consumed, progress };
            }
        }
        // Skips as many available bytes as possible after the field, or continues an earlier skip. At the end of a
        // record `record_left` is 0, and the next record's header is read first.
        let mut n = self.skip;
        if n > self.record_left as u32 {
            n = self.record_left as u32;
        }
        if n > available - consumed {
            n = available - consumed;
        }
        if n == 0 {
            return HelloStep { consumed, progress: Progress::Incomplete };
        }
        self.skip -= n;
        self.consume(n);
        let progress = if self.skip == 0 { self.after_skip() } else { Progress::Incomplete };
        HelloStep { consumed: consumed + n, progress }
    }

    #[inline(always)]
    fn consume(&mut self, n: u32) {
        self.offset += n;
        self.record_left = self.record_left.wrapping_sub(n as u16);
        if self.record_left == 0 {
            self.record_seen = 0;
        }
    }

    #[inline(always)]
    fn record_header(&mut self, byte: u8) -> Progress {
        let seen = self.record_seen;
        self.record_seen = seen + 1;
        match seen {
            0 if byte == 22 => {}
            // 20 change_cipher_spec, 21 alert, 23 application_data: valid records, but not first and not within a
            // ClientHello.
            0 if matches!(byte, 20..=23) => return Progress::Invalid(HelloError::NotHandshake),
            0 if self.offset > 0 => return Progress::Invalid(HelloError::NotHandshake),
            0 => return Progress::Invalid(HelloError::NotTls),
            1 if byte != 3 => return Progress::Invalid(HelloError::RecordVersion),
            3 => self.record_left = (byte as u16) << 8,
            4 => {
                self.record_left |= byte as u16;
                if self.record_left == 0 {
                    return Progress::Invalid(HelloError::EmptyRecord);
                }
                if self.record_left > MAX_RECORD {
                    return Progress::Invalid(HelloError::RecordOverflow);
                }
            }
            _ => {}
        }
        Progress::Incomplete
    }

    #[inline(always)]
    fn next_field(&mut self, field: u8, bytes: u8) -> Progress {
        self.field = field;
        self.more = bytes - 1;
        Progress::Incomplete
    }

    /// The next bytes of an item, as many as a field holds.
    #[inline(always)]
    fn next_part(&mut self, field: u8) -> Progress {
        let left = self.item_end - self.offset;
        self.part = if left < 4 { left } else { 4 };
        self.next_field(field, self.part as u8)
    }

    /// Skips `n` bytes; `after_skip` then continues according to `field`.
    #[inline(always)]
    fn pass_over(&mut self, n: u32, field: u8) -> Progress {
        self.field = field;
        self.skip = n;
        if n == 0 { self.after_skip() } else { Progress::Incomplete }
    }

    #[inline(always)]
    fn after_skip(&mut self) -> Progress {
        match self.field {
            SESSION_ID | COMPRESSION => self.next_field(self.field, 1),
            EXTENSIONS if self.offset == self.hello_end => Progress::Complete,
            // Without room for the field, the parser would wait for bytes after the ClientHello.
            EXTENSIONS if !self.fits(2, self.hello_end) => Progress::Invalid(HelloError::Length),
            EXTENSION => self.next_extension(),
            _ => self.next_field(self.field, 2),
        }
    }

    #[inline(always)]
    fn next_extension(&mut self) -> Progress {
        if self.offset == self.extensions_end {
            return Progress::Complete;
        }
        if !self.fits(4, self.extensions_end) {
            return Progress::Invalid(HelloError::Length);
        }
        self.next_field(EXTENSION, 4)
    }

    #[inline(always)]
    fn fits(&self, n: u32, end: u32) -> bool {
        self.offset + n <= end
    }

    #[inline(always)]
    fn field_read(&mut self, host: &mut HostBuilder, value: u32) -> Progress {
        let length = Progress::Invalid(HelloError::Length);
        match self.field {
            MESSAGE_TYPE => {
                if value != 1 {
                    return Progress::Invalid(HelloError::NotClientHello);
                }
                self.next_field(MESSAGE_LENGTH, 3)
            }
            MESSAGE_LENGTH => {
                if value > MAX_HELLO - 4 {
                    return Progress::Invalid(HelloError::TooLarge);
                }
                self.hello_end = self.offset + value;
                if !self.fits(LEGACY_VERSION_AND_RANDOM + 1, self.hello_end) {
                    return length;
                }
                self.pass_over(LEGACY_VERSION_AND_RANDOM, SESSION_ID)
            }
            SESSION_ID => {
                // legacy_session_id<0..32>, then the length of the cipher suites.
                if value > 32 || !self.fits(value + 2, self.hello_end) {
                    return length;
                }
                self.pass_over(value, CIPHER_SUITES)
            }
            CIPHER_SUITES => {
                if value < 2 || value & 1 != 0 || !self.fits(value + 1, self.hello_end) {
                    return length;
                }
                self.pass_over(value, COMPRESSION)
            }
            COMPRESSION => {
                if value < 1 || !self.fits(value, self.hello_end) {
                    return length;
                }
                self.pass_over(value, EXTENSIONS)
            }
            EXTENSIONS => {
                self.extensions_end = self.offset + value;
                if self.extensions_end != self.hello_end {
                    return length;
                }
                self.next_extension()
            }
            EXTENSION => self.extension(value >> 16, value & 0xffff),
            SNI_LIST => {
                // The shortest entry has a type, a length and one byte.
                if value < 4 || self.offset + value != self.extension_end {
                    return length;
                }
                self.next_field(SNI_TYPE, 1)
            }
            SNI_TYPE => {
                self.item = value as u8;
                self.next_field(SNI_LENGTH, 2)
            }
            SNI_LENGTH => self.server_name(value),
            SNI_BYTES => {
                let mut byte = 0;
                while byte < 4 {
                    byte += 1;
                    // The high bytes of `value` were not read.
                    if byte + self.part > 4
                        && let Err(error) = host.push((value >> (32 - 8 * byte)) as u8)
                    {
                        return Progress::Invalid(bad_name(error));
                    }
                }
                if self.offset < self.item_end {
                    return self.next_part(SNI_BYTES);
                }
                match host.finish() {
                    Ok(HostKind::Name) => {}
                    Ok(HostKind::IpLiteral) => self.flags |= FLAG_SNI_LITERAL,
                    Err(error) => return Progress::Invalid(bad_name(error)),
                }
                self.next_server_name()
            }
            ALPN_LIST => {
                if value < 2 || self.offset + value != self.extension_end {
                    return length;
                }
                self.next_field(ALPN_LENGTH, 1)
            }
            ALPN_LENGTH => {
                if value == 0 || !self.fits(value, self.extension_end) {
                    return length;
                }
                self.item_end = self.offset + value;
                self.item = value as u8;
                self.alpn_bytes = 0;
                self.next_part(ALPN_BYTES)
            }
            ALPN_BYTES => self.protocol_bytes(value),
            _ => length,
        }
    }

    #[inline(always)]
    fn extension(&mut self, kind: u32, size: u32) -> Progress {
        if !self.fits(size, self.extensions_end) {
            return Progress::Invalid(HelloError::Length);
        }
        self.extension_end = self.offset + size;
        if kind == EXT_SERVER_NAME {
            if self.flags & FLAG_SNI_EXTENSION != 0 {
                return Progress::Invalid(HelloError::DuplicateSni);
            }
            self.flags |= FLAG_SNI_EXTENSION;
            if size < 2 {
                return Progress::Invalid(HelloError::Length);
            }
            return self.next_field(SNI_LIST, 2);
        }
        if kind == EXT_ALPN {
            if size < 2 {
                return Progress::Invalid(HelloError::Length);
            }
            return self.next_field(ALPN_LIST, 2);
        }
        self.pass_over(size, EXTENSION)
    }

    #[inline(always)]
    fn server_name(&mut self, size: u32) -> Progress {
        if size == 0 || !self.fits(size, self.extension_end) {
            return Progress::Invalid(HelloError::Length);
        }
        if self.item != 0 {
            // An undefined name type: its length field may have another meaning, so the rest of the list is skipped.
            return self.pass_over(self.extension_end - self.offset, EXTENSION);
        }
        if self.flags & FLAG_SNI_NAME != 0 {
            return Progress::Invalid(HelloError::DuplicateSni);
        }
        self.flags |= FLAG_SNI_NAME;
        self.item_end = self.offset + size;
        self.next_part(SNI_BYTES)
    }

    #[inline(always)]
    fn next_server_name(&mut self) -> Progress {
        if self.offset == self.extension_end {
            return self.next_extension();
        }
        if !self.fits(4, self.extension_end) {
            return Progress::Invalid(HelloError::Length);
        }
        self.next_field(SNI_TYPE, 1)
    }

    #[inline(always)]
    fn protocol_bytes(&mut self, bytes: u32) -> Progress {
        // The last eight bytes and the length together identify the protocols that matter.
        self.alpn_bytes = self.alpn_bytes << ((self.part & 7) * 8) | bytes as u64;
        if self.offset < self.item_end {
            return self.next_part(ALPN_BYTES);
        }
        self.alpn |= match (self.item, self.alpn_bytes) {
            (2, H2) => AlpnSet::H2,
            (8, HTTP11) => AlpnSet::HTTP11,
            _ => AlpnSet::OTHER,
        };
        if self.offset == self.extension_end {
            return self.next_extension();
        }
        self.next_field(ALPN_LENGTH, 1)
    }
}

/// The first four bytes of these, padded with zeros, for [`HelloParser::step`].
pub fn next_of(bytes: &[u8]) -> [u8; 4] {
    let mut next = [0; 4];
    next.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    next
}

#[inline(always)]
fn bad_name(_: HostError) -> HelloError {
    HelloError::BadName
}

#[cfg(test)]
mod tests;

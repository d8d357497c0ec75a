//! The hellos, and the order to the backend that they carry in their random.

use clap::ValueEnum;

use super::protocol::Load;

/// The server name in both.
pub const NAME: &str = "www.a.test";

/// curl's with OpenSSL, 517 bytes.
const CAPTURED_SMALL: &[u8] = include_bytes!("../../../../../router-common/corpus/hello/captured-curl-h2.bin");
/// rustls' with an X25519MLKEM768 key share, 1,485 bytes.
const CAPTURED_LARGE: &[u8] =
    include_bytes!("../../../../../router-common/corpus/hello/captured-rustls-x25519mlkem768.bin");

/// Size of browsers' hellos with that key share, to which the captured one is padded.
const LARGE: usize = 1800;
/// Where the large one is cut: each part is one write without delay, so one segment.
const CUT: usize = 1400;

/// Where the random begins: record header, handshake header, legacy_version (RFC 8446 §4.1.2, §5.1).
const RANDOM: usize = 5 + 4 + 2;
/// Record header.
pub const HEADER: usize = 5;
/// Longest that a backend takes.
pub const LONGEST: usize = 4096;

/// How a client begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hello {
    /// In one segment.
    One,
    /// Of post-quantum size, in two.
    Two,
}

/// Order for the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// What.
    pub load: Load,
    /// For how long, where a time applies.
    pub milliseconds: u32,
}

impl Hello {
    /// The record, with an order.
    pub fn bytes(self, order: Order) -> Vec<u8> {
        let mut hello = match self {
            Hello::One => CAPTURED_SMALL.to_vec(),
            Hello::Two => padded(CAPTURED_LARGE, LARGE),
        };
        hello[RANDOM] = order.load.code();
        hello[RANDOM + 1..][..4].copy_from_slice(&order.milliseconds.to_be_bytes());
        hello
    }

    /// Its bytes as they are to be written.
    pub fn segments(self, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        let (first, second) = bytes.split_at(if self == Hello::One { bytes.len() } else { CUT });
        [first, second].into_iter().filter(|segment| !segment.is_empty())
    }
}

/// Bytes of the record that begins with these [`HEADER`] bytes.
pub fn record_length(header: &[u8]) -> usize {
    HEADER + usize::from(u16::from_be_bytes([header[3], header[4]]))
}

/// The order in a hello; `None` for other bytes.
pub fn order(hello: &[u8]) -> Option<Order> {
    let load = Load::from_code(*hello.get(RANDOM)?)?;
    let milliseconds = u32::from_be_bytes(hello.get(RANDOM + 1..RANDOM + 5)?.try_into().ok()?);
    Some(Order { load, milliseconds })
}

/// A padding extension (RFC 7685) makes the hello `size` bytes long.
fn padded(hello: &[u8], size: usize) -> Vec<u8> {
    let session = RANDOM + 32;
    let suites = session + 1 + usize::from(hello[session]);
    let compressions = suites + 2 + usize::from(u16::from_be_bytes([hello[suites], hello[suites + 1]]));
    let extensions = compressions + 1 + usize::from(hello[compressions]);
    let more = size - hello.len();
    let mut padded = hello.to_vec();
    // Record, handshake and extensions: the last two bytes of the length field of each.
    for field in [3, 7, extensions] {
        let length = usize::from(u16::from_be_bytes([padded[field], padded[field + 1]])) + more;
        padded[field] = (length >> 8) as u8;
        padded[field + 1] = length as u8;
    }
    let padding = more - 4;
    padded.extend([0, 21, (padding >> 8) as u8, padding as u8]);
    padded.resize(size, 0);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_have_their_size_name_lengths_and_order() {
        for (hello, size, parts) in [(Hello::One, 517, 1), (Hello::Two, LARGE, 2)] {
            let sent = Order { load: Load::Echo, milliseconds: 70_000 };
            let bytes = hello.bytes(sent);
            assert_eq!(bytes.len(), size);
            assert_eq!(record_length(&bytes[..HEADER]), size);
            assert_eq!(usize::from(u16::from_be_bytes([bytes[7], bytes[8]])) + HEADER + 4, size, "handshake length");
            assert!(bytes.windows(NAME.len()).any(|part| part == NAME.as_bytes()));
            assert_eq!(order(&bytes), Some(sent));
            assert_eq!(hello.segments(&bytes).count(), parts);
        }
    }
}

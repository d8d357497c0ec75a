//! HTTP/2 frame by frame (RFC 9113 §4.1, §6), with HPACK without a dynamic table (RFC 7541).

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::tables::PATIENCE;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;

/// A frame's type, flags, stream and payload.
pub type Frame = (u8, u8, u32, Vec<u8>);

/// A frame's bytes.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The next frame; `None` if the connection ends in any way.
pub async fn next_or_end(stream: &mut (impl AsyncRead + Unpin)) -> Option<Frame> {
    timeout(PATIENCE, async {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, flags, id @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).await.ok()?;
        Some((kind, flags, u32::from_be_bytes(id), payload))
    })
    .await
    .expect("a frame, or the end")
}

/// The next frame.
pub async fn next(stream: &mut (impl AsyncRead + Unpin)) -> Frame {
    next_or_end(stream).await.expect("the connection goes on")
}

/// A field as a literal without indexing, with name and value uncompressed (RFC 7541 §6.2.2).
pub fn field(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    [&[0][..], &string(name.as_ref()), &string(value.as_ref())].concat()
}

/// RFC 7541 §5.1, §5.2.
fn string(bytes: &[u8]) -> Vec<u8> {
    let Some(mut rest) = bytes.len().checked_sub(127) else {
        return [&[u8::try_from(bytes.len()).unwrap()][..], bytes].concat();
    };
    let mut text = vec![127];
    while rest >= 128 {
        text.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    text.push(u8::try_from(rest).unwrap());
    text.extend_from_slice(bytes);
    text
}

/// The status at the beginning of a response's fields, from a sender without a dynamic table (RFC 7541 §5.2, §6, A, B).
pub fn status(fields: &[u8]) -> u16 {
    let fields = if fields[0] >> 5 == 1 { &fields[1..] } else { fields };
    match fields {
        [index @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(index - 0x88)],
        [0x08 | 0x18, 3, digits @ ..] => std::str::from_utf8(&digits[..3]).unwrap().parse().unwrap(),
        [0x08 | 0x18, length, bytes @ ..] if length & 0x80 != 0 => digits(&bytes[..usize::from(length & 0x7f)]),
        _ => panic!("no status: {fields:02x?}"),
    }
}

/// Three digits in Huffman code: those of the first group have five bits and begin with 0, the others have six.
fn digits(bytes: &[u8]) -> u16 {
    let mut bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| u16::from(byte >> bit & 1)));
    (0..3).fold(0, |number, _| {
        let mut code = bits.by_ref().take(5).fold(0, |code, bit| code << 1 | bit);
        if code > 2 {
            code = (code << 1 | bits.next().unwrap()) - 0b01_1001 + 3;
        }
        number * 10 + code
    })
}

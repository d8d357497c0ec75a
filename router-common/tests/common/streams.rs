//! Random streams of a clear-text client on one connection: requests for its host with content of every framing, which
//! itself contains requests for another host, and sometimes bytes that must end the connection.

use std::format;
use std::string::String;
use std::vec::Vec;

/// The host of the connection.
pub const OWN: &str = "own.test";
/// Another host.
pub const OTHER: &str = "other.test";

/// xorshift64*.
pub struct Random(pub u64);

impl Random {
    /// A number below a limit.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end.max(1)
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A client's stream.
pub struct Stream {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Length of the first head.
    pub first: usize,
    /// Number of bytes after which the connection must end, if it must.
    pub end: Option<usize>,
}

/// A stream of up to eight requests.
pub fn stream(seed: u64) -> Stream {
    let mut random = Random(seed | 1);
    let mut bytes = Vec::new();
    let (head, content) = request(&mut random);
    bytes.extend(head.bytes());
    let first = bytes.len();
    bytes.extend(content);
    for _ in 0..random.below(8) {
        bytes.extend("\r\n".repeat(random.below(8).saturating_sub(5)).bytes());
        if random.below(6) == 0 {
            let (head, end) = offence(&mut random);
            let end = bytes.len() + end;
            bytes.extend(head.bytes());
            // Arbitrary bytes may follow it.
            bytes.extend(tempting(random.below(300)));
            return Stream { bytes, first, end: Some(end) };
        }
        let (head, content) = request(&mut random);
        bytes.extend(head.bytes());
        bytes.extend(content);
    }
    Stream { bytes, first, end: None }
}

/// Bytes that are a request for another host from whatever position they are parsed.
pub fn tempting(len: usize) -> Vec<u8> {
    let request = format!("GET / HTTP/1.1\r\nHost: {OTHER}\r\n\r\n");
    request.bytes().cycle().take(len).collect()
}

/// A request for the host of the connection: head and content.
fn request(random: &mut Random) -> (String, Vec<u8>) {
    let target = "x".repeat(random.below(60));
    let fields =
        random.of(&["", "Accept: */*\r\n", "Cookie: content-length=5; a\r\n", "Content-Type: a\r\nTE: trailers\r\n"]);
    let long =
        if random.below(12) == 0 { format!("X-Long: {}\r\n", "y".repeat(random.below(6000))) } else { String::new() };
    let host = random.of(&[OWN, "OWN.test", "own.test:8080", "own.test."]);
    let (method, framing, content) = match random.below(3) {
        0 => (random.of(&["GET", "POST", "OPTIONS", "HEAD"]), String::new(), Vec::new()),
        1 => {
            let len = random.of(&[0, 1, 5, 100, 1_400, 5_000, 20_000]);
            let len = random.below(len + 1);
            let name = random.of(&["Content-Length", "content-length", "CONTENT-LENGTH"]);
            let blanks = random.of(&["", " ", "\t "]);
            (random.of(&["POST", "PUT", "DELETE"]), format!("{name}:{blanks}{len}{blanks}\r\n"), tempting(len))
        }
        _ => {
            let value = random.of(&["chunked", "Chunked", "\tchunked "]);
            (random.of(&["POST", "PUT"]), format!("Transfer-Encoding:{value}\r\n"), chunks(random))
        }
    };
    let upgrade = if random.below(10) == 0 { "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" } else { "" };
    let head = format!("{method} /{target} HTTP/1.1\r\n{fields}{framing}Host: {host}\r\n{long}{upgrade}\r\n");
    (head, content)
}

fn chunks(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.below(6) {
        let most = random.of(&[1, 3, 20, 600, 4_200, 9_000]);
        let len = 1 + random.below(most);
        let size = if random.below(2) == 0 { format!("{len:x}") } else { format!("00{len:X}") };
        let extension = random.of(&["", "", ";a=b", ";name=\"GET / HTTP/1.1\""]);
        bytes.extend(format!("{size}{extension}\r\n").bytes());
        bytes.extend(tempting(len));
        bytes.extend(b"\r\n");
    }
    bytes.extend(
        random.of(&["0\r\n\r\n", "000\r\n\r\n", "0;last\r\n\r\n", "0\r\nHost: other.test\r\nX: y\r\n\r\n"]).bytes(),
    );
    bytes
}

/// Bytes that must end the connection, and the number of bytes after which that is certain.
fn offence(random: &mut Random) -> (String, usize) {
    let with = |line: &str, fields: &str| {
        let head = format!("{line}\r\nHost: {OWN}\r\n{fields}\r\n");
        let end = head.len();
        (head, end)
    };
    let (post, get) = ("POST / HTTP/1.1", "GET / HTTP/1.1");
    match random.below(26) {
        0..8 => {
            let head = format!("GET /other HTTP/1.1\r\nX: y\r\nHost: {OTHER}\r\n\r\n");
            let end = head.len();
            (head, end)
        }
        8 => with(post, "Content-Length: 5\r\nContent-Length: 5\r\n"),
        9 => with(post, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        10 => with(post, "Content-Length: +5\r\n"),
        11 => with(post, "Content-Length: 05\r\n"),
        12 => with(post, "Content-Length: 5, 5\r\n"),
        13 => with(post, "Transfer-Encoding: gzip, chunked\r\n"),
        14 => with(post, "Transfer-Encoding: xchunked\r\n"),
        15 => with(post, "Content_Length: 5\r\n"),
        16 => with("POST / HTTP/1.0", "Transfer-Encoding: chunked\r\n"),
        17 => with(get, "Content-Length: 5\r\n"),
        18 => with(post, "Expect: 100-continue\r\nContent-Length: 5\r\n"),
        19 => with(get, "Connection: upgrade\r\nUpgrade: websocket\r\n"),
        20 => with("GET http://own.test/ HTTP/1.1", ""),
        21 => with("CONNECT /x HTTP/1.1", ""),
        // At the first byte that violates the grammar.
        22 => (String::from("\0\0\0"), 1),
        23 => (String::from("GET / HTTP/1.1\nHost: other.test\n\n"), 15),
        24 => (String::from("\nGET / HTTP/1.1\r\nHost: own.test\r\n\r\n"), 1),
        _ => {
            let (head, end) = with(post, "Transfer-Encoding: chunked\r\n");
            let broken =
                random.of(&["5\r\nhelloX", "5 ", "0x", "\r", "5;a\n", "0\r\n ", "0000000000000000", "0\r\n\n"]);
            (format!("{head}{broken}"), end + broken.len())
        }
    }
}

/// Positions at which the stream is split, so that no segment exceeds the given size.
pub fn cuts(random: &mut Random, len: usize, most: usize) -> Vec<(usize, usize)> {
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < len {
        let most = random.of(&[1, 7, 100, most, most, most]).min(most);
        let to = len.min(from + 1 + random.below(most));
        parts.push((from, to));
        from = to;
    }
    parts
}

/// Outcome of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentOutcome {
    /// It is forwarded to the endpoint.
    Passes,
    /// It is dropped, and will be retransmitted.
    Early,
    /// The connection ends.
    Reset,
}

/// Handles a segment at a sequence number, when the endpoint has acknowledged everything before another one.
pub trait Connection {
    /// Handles the segment.
    fn segment(&mut self, seq: u32, bytes: &[u8], acked: u32) -> SegmentOutcome;
}

/// Sends a stream in order, in segments up to the given size, with occasional acknowledgements of the endpoint.
/// `connect` makes a connection whose first head ends before a sequence number. The connection must end with the
/// segment that makes its end certain, and not earlier.
pub fn in_order<C: Connection>(seed: u64, most: usize, connect: impl FnOnce(&Stream, u32) -> C) {
    let (stream, mut random) = (stream(seed), Random(seed | 1));
    let begin = random.below(usize::MAX) as u32;
    let at = |byte: usize| begin.wrapping_add((byte - stream.first) as u32);
    let mut connection = connect(&stream, begin);
    let mut acked = begin;
    for (from, to) in cuts(&mut random, stream.bytes.len() - stream.first, most) {
        let (from, to) = (stream.first + from, stream.first + to);
        let fate = connection.segment(at(from), &stream.bytes[from..to], acked);
        if stream.end.is_some_and(|end| end <= to) {
            assert_eq!(fate, SegmentOutcome::Reset, "seed {seed}: {from}..{to} of {:?}", stream.end);
            return;
        }
        assert_eq!(fate, SegmentOutcome::Passes, "seed {seed}: {from}..{to} of {:?}", stream.end);
        if random.below(3) == 0 {
            acked = at(to);
        }
    }
    assert_eq!(stream.end, None, "seed {seed}");
}

/// Sends a stream in any order, with segments that are lost on the way to the endpoint and retransmitted with other
/// boundaries. The endpoint must never receive bytes that must end the connection, and must receive all of a stream
/// without such bytes.
pub fn in_any_order<C: Connection>(seed: u64, most: usize, connect: impl FnOnce(&Stream, u32) -> C) {
    let (stream, mut random) = (stream(seed), Random(seed | 1));
    let begin = random.below(usize::MAX) as u32;
    let at = |byte: usize| begin.wrapping_add((byte - stream.first) as u32);
    let mut connection = connect(&stream, begin);
    let len = stream.bytes.len();
    let mut has: Vec<bool> = (0..len).map(|_| false).collect();
    let mut next = stream.first;
    for _ in 0..10_000 {
        if next == len {
            assert_eq!(stream.end, None, "seed {seed}: all of it has arrived");
            return;
        }
        let window = (len - next).min(8000);
        // Mostly missing data; otherwise any data of the window, including retransmissions.
        let from = if random.below(3) == 0 { next } else { next + random.below(window) };
        let from = if random.below(4) == 0 { from.saturating_sub(random.below(500)).max(stream.first) } else { from };
        let to = len.min(from + 1 + random.below(most));
        match connection.segment(at(from), &stream.bytes[from..to], at(next)) {
            SegmentOutcome::Reset => {
                assert!(stream.end.is_some_and(|end| end <= to), "seed {seed}: {from}..{to} of {:?}", stream.end);
                return;
            }
            SegmentOutcome::Early => assert!(from > next, "seed {seed}: nothing was missing before {from}"),
            SegmentOutcome::Passes if random.below(5) != 0 => has[from..to].fill(true),
            SegmentOutcome::Passes => {}
        }
        while next < len && has[next] {
            next += 1;
        }
        assert!(stream.end.is_none_or(|end| next < end), "seed {seed}: the endpoint has what must not reach it");
    }
    panic!("seed {seed}: it comes to no end");
}

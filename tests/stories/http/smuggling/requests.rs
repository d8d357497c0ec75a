//! Odd requests, deterministic for a number.

/// xorshift64*.
pub struct Random(u64);

impl Random {
    /// The random numbers for one request.
    pub fn new(seed: u64, number: usize) -> Random {
        let mut random = Random((seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        for _ in 0..4 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next()).unwrap_or_default() % end.max(1)
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// True with a probability of one in `times`.
    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Framing fields of a head; `LEN` is the true length.
const FRAMINGS: [&str; 40] = [
    "Content-Length: LEN\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: +LEN\r\n",
    "Content-Length: 0LEN\r\n",
    "Content-Length: LEN, LEN\r\n",
    "Content-Length: LEN\r\nContent-Length: LEN\r\n",
    "Content-Length: 0\r\nContent-Length: LEN\r\n",
    "Content-Length: LEN\r\nContent-Length: 0\r\n",
    "Content-Length: 0x5\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 18446744073709551621\r\n",
    "Content-Length:\r\n",
    "Content-Length: \t LEN \r\n",
    "Content-Length : 5\r\n",
    "Content_Length: LEN\r\n",
    "X: y\nContent-Length: LEN\r\n",
    "Content-Length: 5 5\r\n",
    "Content-Length\0: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: Chunked\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: LEN\r\n",
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: xchunked\r\n",
    "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: identity, chunked\r\nContent-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: identity\r\nContent-Length: LEN\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Transfer-Encoding:\x0bchunked\r\n",
    "Transfer-Encoding: \x0cchunked\r\nContent-Length: 5\r\n",
    "Transfer-Encoding: \"chunked\"\r\nContent-Length: LEN\r\n",
    "Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n\tContent-Length: 5\r\n",
    "X: y\rTransfer-Encoding: chunked\r\nContent-Length: LEN\r\n",
    "X: y\nTransfer-Encoding: chunked\r\nContent-Length: LEN\r\n",
    "Transfer_Encoding: chunked\r\nContent-Length: LEN\r\n",
    "Connection: close, Content-Length\r\nContent-Length: LEN\r\n",
    "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n",
    "",
];

/// Other odd lines of a head.
const LINES: [&str; 20] = [
    "",
    "Host: HIDDEN\r\n",
    " Host: HIDDEN\r\n",
    "X-Host: a\r\n Host: HIDDEN\r\n",
    "Connection: host\r\n",
    "Connection: keep-alive, X-Forwarded-For\r\n",
    "X-Forwarded-Host: HIDDEN\r\n",
    "Upgrade: websocket\r\nConnection: Upgrade\r\n",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n",
    "Expect: 100-continue\r\n",
    "Expect: nothing\r\n",
    "no colon here\r\n",
    ": no name\r\n",
    "X\0Y: z\r\n",
    "X: a\0b\r\n",
    "X: a\rb\r\n",
    "X-Long: LONG\r\n",
    "TE: trailers, chunked\r\n",
    "Host\t: HIDDEN\r\n",
    "Trailer: Content-Length, Host\r\n",
];

/// Chunked bodies, complete or nearly; the hidden request comes after them.
const CHUNKS: [&str; 14] = [
    "0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\n",
    "5;ext=1\r\nhello\r\n0\r\n\r\n",
    "5;ext=\"\n\"\r\nhello\r\n0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhelloXX0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "00000000000000005\r\nhello\r\n0\r\n\r\n",
    "ffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
    "0\r\nHost: HIDDEN\r\nContent-Length: 9\r\n\r\n",
    "0\n\n",
    " 5\r\nhello\r\n0\r\n\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
];

/// A request for `host`, `/odd-NUMBER-NUMBER`, with one for `hidden`, `/hidden-NUMBER-NUMBER`, somewhere after its
/// head.
pub fn odd(random: &mut Random, number: usize, host: &str, hidden: &str) -> Vec<u8> {
    let (host, hidden) = (format!("{host}.apps.test"), format!("{hidden}.apps.test"));
    // One property is odd, seldom two: otherwise nothing would get through.
    let odd = random.below(8);
    let mut is = |what| odd == what || random.one_in(16);
    let (odd_method, odd_target, odd_version, odd_authority) = (is(0), is(1), is(2), is(3));
    let (odd_framing, odd_line, odd_chunks, damaged) = (is(4), is(5), is(6), is(7));
    let method =
        if odd_method { random.of(&["OPTIONS", "HEAD", "G\tET", "get", "GET"]) } else { random.of(&["POST", "PUT"]) };
    let target = match random.below(4) {
        0 if odd_target => format!("http://{hidden}/odd-{number}-{number}"),
        1 if odd_target => format!("//{hidden}/odd-{number}-{number}"),
        2 if odd_target => format!("/odd-{number}-{number} HTTP/1.1 "),
        3 if odd_target => format!("/odd-{number}-{number}?/../x#y"),
        _ => format!("/odd-{number}-{number}"),
    };
    let versions = ["HTTP/1.0", "HTTP/1.1 ", "HTTP/1.10", "http/1.1", "HTTP/2.0"];
    let version = if odd_version { random.of(&versions) } else { "HTTP/1.1" };
    let authority = match random.below(6) {
        0 if odd_authority => host.to_ascii_uppercase(),
        1 if odd_authority => format!("{host}:8080"),
        2 if odd_authority => format!("{host}."),
        3 if odd_authority => format!("{host},{hidden}"),
        4 if odd_authority => format!("{host}@{hidden}"),
        5 if odd_authority => format!("{host} {hidden}"),
        _ => host,
    };
    let smuggled = format!("GET /hidden-{number}-{number} HTTP/1.1\r\nHost: {hidden}\r\nX-Rest: ");
    let in_chunks = odd_chunks || random.one_in(2);
    let framing = match (odd_framing, in_chunks) {
        (true, _) => random.of(&FRAMINGS),
        (false, true) => "Transfer-Encoding: chunked\r\n",
        (false, false) => "Content-Length: LEN\r\n",
    };
    let chunks = if odd_chunks { random.of(&CHUNKS) } else { CHUNKS[1] };
    let body = match random.below(3) {
        _ if in_chunks => format!("{chunks}{smuggled}"),
        0 => smuggled,
        _ => format!("hello{smuggled}"),
    };
    let mut lines = [framing, if odd_line { random.of(&LINES) } else { "" }, "X-Other: other\r\n"];
    lines.rotate_left(random.below(3));
    let mut head = format!("{method} {target} {version}\r\nHost: {authority}\r\n{}\r\n", lines.concat())
        .replace("LEN", &body.len().to_string())
        .replace("LONG", &"y".repeat(9000))
        .replace("HIDDEN", &hidden)
        .into_bytes();
    if damaged {
        damage(random, &mut head);
    }
    head.extend(body.replace("HIDDEN", &hidden).into_bytes());
    head.extend(b"\r\n\r\n");
    head
}

/// Changes, removes or inserts up to three bytes.
fn damage(random: &mut Random, head: &mut Vec<u8>) {
    const BYTES: [u8; 12] = [b'\r', b'\n', b' ', b'\t', b':', 0, 0xff, b',', b';', 0x0b, b'1', b'/'];
    for _ in 0..=random.below(3) {
        let (place, byte) = (random.below(head.len()), BYTES[random.below(BYTES.len())]);
        match random.below(3) {
            0 => head[place] = byte,
            1 => drop(head.remove(place)),
            _ => head.insert(place, byte),
        }
    }
}

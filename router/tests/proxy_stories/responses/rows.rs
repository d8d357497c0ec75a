//! The rows.

/// A response of an endpoint.
pub struct Row {
    pub name: &'static str,
    /// Method of the request.
    pub method: &'static str,
    pub bytes: Vec<u8>,
    pub then: Then,
    /// True if the endpoint closes its connection after it.
    pub closes: bool,
}

/// Expected outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The client gets this status line and this content.
    Passes(&'static str, &'static str),
    /// The client gets 502 with this cause.
    Refused(&'static str),
    /// The client gets the head and the valid part of the content; then its connection ends, with this cause.
    BreaksOff(&'static str),
}

use Then::{BreaksOff, Passes, Refused};

fn row(name: &'static str, bytes: impl Into<Vec<u8>>, then: Then) -> Row {
    Row { name, method: "GET", bytes: bytes.into(), then, closes: false }
}

/// A response to HEAD.
fn head(name: &'static str, bytes: impl Into<Vec<u8>>, then: Then) -> Row {
    Row { method: "HEAD", ..row(name, bytes, then) }
}

fn closing(name: &'static str, bytes: impl Into<Vec<u8>>, then: Then) -> Row {
    Row { closes: true, ..row(name, bytes, then) }
}

/// 200 with these fields and this content.
fn ok(fields: impl AsRef<[u8]>, content: &str) -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\n", fields.as_ref(), b"\r\n", content.as_bytes()].concat()
}

/// A complete response with this status line.
fn line(line: impl AsRef<[u8]>) -> Vec<u8> {
    [line.as_ref(), b"\r\nContent-Length: 2\r\n\r\nhi"].concat()
}

/// 200 with this transfer coding and one chunk.
fn coded(field: &str) -> Vec<u8> {
    ok(format!("{field}\r\n"), CHUNKS)
}

const CHUNKS: &str = "2\r\nhi\r\n0\r\n\r\n";
const HI: Then = Passes("HTTP/1.1 200 OK", "hi");
const EMPTY: Then = Passes("HTTP/1.1 200 OK", "");
const CODING: Then = Refused("backend-transfer-coding");
const INVALID: Then = Refused("backend-invalid");
const TOO_LARGE: Then = Refused("backend-head-too-large");
const CLOSED: Then = Refused("backend-closed");
const INVALID_CONTENT: Then = BreaksOff("backend-invalid-content");
const BROKE_OFF: Then = BreaksOff("backend-broke-off");

fn fields(number: usize) -> String {
    (0..number).map(|number| format!("X-{number}: 1\r\n")).collect()
}

pub fn rows() -> Vec<Row> {
    [codings(), phrases(), heads(), contents()].into_iter().flatten().collect()
}

fn codings() -> Vec<Row> {
    vec![
        row("chunked", coded("Transfer-Encoding: chunked"), HI),
        row("Chunked, with blanks", coded("Transfer-Encoding: \t Chunked \t"), HI),
        row("gzip, chunked", coded("Transfer-Encoding: gzip, chunked"), CODING),
        row("deflate, chunked", coded("Transfer-Encoding: deflate, chunked"), CODING),
        row("gzip in a field of its own", coded("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked"), CODING),
        row("chunked, chunked", coded("Transfer-Encoding: chunked, chunked"), CODING),
        row("chunked in two fields", coded("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), CODING),
        row("chunked, gzip", coded("Transfer-Encoding: chunked, gzip"), CODING),
        row("chunked, identity", coded("Transfer-Encoding: chunked, identity"), CODING),
        row("identity", ok("Transfer-Encoding: identity\r\nContent-Length: 2\r\n", "hi"), CODING),
        closing("gzip", ok("Transfer-Encoding: gzip\r\n", "hi"), CODING),
        row("chunked with a parameter", coded("Transfer-Encoding: chunked;q=1"), CODING),
        row("chunked in quotes", coded("Transfer-Encoding: \"chunked\""), CODING),
        row("chunked and an empty element", coded("Transfer-Encoding: chunked,"), CODING),
        row("no coding", coded("Transfer-Encoding:"), CODING),
        row("xchunked", coded("Transfer-Encoding: xchunked"), CODING),
        row(
            "a coding of a 500",
            [b"HTTP/1.1 500 x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", CHUNKS.as_bytes()].concat(),
            CODING,
        ),
        row(
            "HTTP/1.0 and chunked",
            ["HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNKS].concat(),
            INVALID,
        ),
        row("HTTP/1.0 and gzip", ["HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "hi"].concat(), INVALID),
        head("chunked to a HEAD", ok("Transfer-Encoding: chunked\r\n", ""), EMPTY),
        head("gzip, chunked to a HEAD", ok("Transfer-Encoding: gzip, chunked\r\n", ""), CODING),
        row(
            "chunked of a 204",
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
            Passes("HTTP/1.1 204 No Content", ""),
        ),
        row("gzip, chunked of a 204", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", CODING),
        row(
            "chunked of a 304",
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
            Passes("HTTP/1.1 304 Not Modified", ""),
        ),
        row("gzip, chunked of a 304", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", CODING),
        row("a length beside chunked", coded("Content-Length: 5\r\nTransfer-Encoding: chunked"), HI),
    ]
}

fn phrases() -> Vec<Row> {
    vec![
        row("a phrase of its own", line("HTTP/1.1 200 Fine, thanks"), Passes("HTTP/1.1 200 Fine, thanks", "hi")),
        row(
            "a phrase of its own of a 404",
            line("HTTP/1.1 404 Nothing Here"),
            Passes("HTTP/1.1 404 Nothing Here", "hi"),
        ),
        row(
            "a phrase of an unknown status",
            line("HTTP/1.1 440 Login Time-out"),
            Passes("HTTP/1.1 440 Login Time-out", "hi"),
        ),
        row("no phrase of an unknown status", line("HTTP/1.1 440 "), Passes("HTTP/1.1 440 ", "hi")),
        row("no phrase and no blank", line("HTTP/1.1 440"), Passes("HTTP/1.1 440 ", "hi")),
        row("no phrase of a known status", line("HTTP/1.1 200 "), Passes("HTTP/1.1 200 ", "hi")),
        row("a phrase with a tab", line("HTTP/1.1 200 a\tb"), Passes("HTTP/1.1 200 a\tb", "hi")),
        row(
            "a phrase of HTTP/1.0",
            "HTTP/1.0 200 Good\r\nContent-Length: 2\r\n\r\nhi",
            Passes("HTTP/1.1 200 Good", "hi"),
        ),
        row("a phrase beyond ASCII", line("HTTP/1.1 200 gr\u{fc}n"), Passes("HTTP/1.1 200 ", "hi")),
        row("status 999", line("HTTP/1.1 999 Odd"), Passes("HTTP/1.1 999 Odd", "hi")),
        row("status 600 without a phrase", line("HTTP/1.1 600 "), Passes("HTTP/1.1 600 ", "hi")),
        row("a phrase with a control character", line("HTTP/1.1 200 a\x01b"), INVALID),
        row("a phrase with NUL", line("HTTP/1.1 200 a\0b"), INVALID),
        row("a phrase with DEL", line("HTTP/1.1 200 a\x7fb"), INVALID),
        row("a phrase with CR", line("HTTP/1.1 200 a\rSet-Cookie: b"), INVALID),
        row("a phrase with ESC", line("HTTP/1.1 200 \x1b[2J"), INVALID),
    ]
}

fn heads() -> Vec<Row> {
    vec![
        row("a blank before the colon of a response", ok("X-A : 1\r\nContent-Length: 2\r\n", "hi"), INVALID),
        row("a folded field", ok("X-A: 1\r\n 2\r\nContent-Length: 2\r\n", "hi"), INVALID),
        row("a control character in a field", ok("X-A: 1\x012\r\nContent-Length: 2\r\n", "hi"), INVALID),
        row("NUL in a field", ok("X-A: 1\x002\r\nContent-Length: 2\r\n", "hi"), INVALID),
        row("CR in a field", ok("X-A: 1\r2\r\nContent-Length: 2\r\n", "hi"), INVALID),
        row("a control character in a name", ok("X\x01A: 1\r\nContent-Length: 2\r\n", "hi"), INVALID),
        row("a field without a name", ok(": 1\r\nContent-Length: 2\r\n", "hi"), INVALID),
        row("a field without a colon", ok("X-A\r\nContent-Length: 2\r\n", "hi"), INVALID),
        row("HTTP/2.0 in a status line", line("HTTP/2.0 200 OK"), INVALID),
        row("HTTP/1.2 in a status line", line("HTTP/1.2 200 OK"), INVALID),
        row("a status of two digits", line("HTTP/1.1 20 OK"), INVALID),
        row("a status of four digits", line("HTTP/1.1 2000 OK"), INVALID),
        row("status 099", line("HTTP/1.1 099 OK"), INVALID),
        row("no status line", "<html>hi</html>\r\n\r\n", INVALID),
        row("a banner of another protocol", "SSH-2.0-OpenSSH_9.2\r\n", INVALID),
        row("an alert of TLS from an endpoint", b"\x15\x03\x01\x00\x02\x02\x46", INVALID),
        row("lengths that differ", ok("Content-Length: 2\r\nContent-Length: 3\r\n", "hi"), INVALID),
        row("length +2", ok("Content-Length: +2\r\n", "hi"), INVALID),
        row("length 2^64", ok("Content-Length: 18446744073709551616\r\n", "hi"), INVALID),
        row("the same length twice", ok("Content-Length: 2\r\nContent-Length: 2\r\n", "hi"), HI),
        row("100 fields", ok(fields(99) + "Content-Length: 2\r\n", "hi"), HI),
        row("101 fields", ok(fields(100) + "Content-Length: 2\r\n", "hi"), TOO_LARGE),
        row("a head of 60 KB", ok(format!("X-A: {}\r\nContent-Length: 2\r\n", "a".repeat(60_000)), "hi"), HI),
        row("a head of 140 KB", ok(format!("X-A: {}\r\nContent-Length: 2\r\n", "a".repeat(140_000)), "hi"), TOO_LARGE),
        closing("nothing", "", CLOSED),
        closing("half a head", "HTTP/1.1 200 OK\r\nX-A: 1\r\n", CLOSED),
        closing("half a status line", "HTTP/1.1 2", CLOSED),
        closing("an interim response alone", "HTTP/1.1 103 Early Hints\r\n\r\n", CLOSED),
    ]
}

fn contents() -> Vec<Row> {
    let chunks = |chunks: &str| ok("Transfer-Encoding: chunked\r\n", chunks);
    vec![
        row("a chunk size that is none", chunks("2\r\nhi\r\nzz\r\n"), INVALID_CONTENT),
        row("a chunk size beyond 64 bits", chunks("2\r\nhi\r\n10000000000000000\r\n"), INVALID_CONTENT),
        row("a chunk without line end", chunks("2\r\nhiXX0\r\n\r\n"), INVALID_CONTENT),
        row("a trailer with a control character", chunks("2\r\nhi\r\n0\r\nX\x01: 1\r\n\r\n"), INVALID_CONTENT),
        closing("chunks without an end", chunks("2\r\nhi\r\n"), BROKE_OFF),
        closing("less content than a response's length", ok("Content-Length: 5\r\n", "hi"), BROKE_OFF),
    ]
}

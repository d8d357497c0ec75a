//! The rows.

/// A request that parsers interpret differently.
pub struct Row {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// Status of each response, in order.
    pub statuses: &'static [u16],
    /// Requests that reach the backends, e.g. `A GET /`.
    pub reached: &'static [&'static str],
    pub then: Then,
}

/// Fate of the request after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is served.
    GoesOn,
    /// The connection is closed; the request is not read.
    Closes,
    /// As `Closes`; the content is rejected, after its head may have been forwarded.
    BreaksOff,
    /// There is no such request: the client waits and sends nothing more.
    Silence,
}

use Then::{BreaksOff, Closes, GoesOn, Silence};

fn row(name: &'static str, bytes: impl Into<Vec<u8>>, statuses: &'static [u16], then: Then) -> Row {
    Row { name, bytes: bytes.into(), statuses, reached: &[], then }
}

fn served(name: &'static str, bytes: impl Into<Vec<u8>>, reached: &'static [&'static str]) -> Row {
    let statuses = if reached.len() == 1 { &[200][..] } else { &[200, 200] };
    Row { name, bytes: bytes.into(), statuses, reached, then: GoesOn }
}

/// It is served, and no request after it.
fn last(name: &'static str, bytes: impl Into<Vec<u8>>, reached: &'static [&'static str]) -> Row {
    Row { reached, ..row(name, bytes, &[200], Closes) }
}

/// `GET /` for a.test with these fields.
fn get(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n")
}

/// `POST /` for a.test with these fields and this content.
fn post(fields: &str, content: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n{content}")
}

fn chunked(content: &str) -> String {
    post("Transfer-Encoding: chunked\r\n", content)
}

/// `GET /` with this value of Host.
fn host(value: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {value}\r\n\r\n")
}

/// All rows.
pub fn all() -> Vec<Row> {
    [framing(), chunks(), lengths(), hosts(), fields(), lines(), sizes(), others()].into_iter().flatten().collect()
}

fn framing() -> Vec<Row> {
    let te = |value: &str| post(&format!("Transfer-Encoding: {value}\r\n"), "0\r\n\r\n");
    vec![
        row("CL and TE", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), &[400], Closes),
        row("TE and CL", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), &[400], Closes),
        row("TE and CL 0", post("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", "0\r\n\r\n"), &[400], Closes),
        row("TE xchunked", te("xchunked"), &[501], Closes),
        row("TE chunked, identity", te("chunked, identity"), &[501], Closes),
        row("TE identity", te("identity"), &[501], Closes),
        row("TE gzip, chunked", te("gzip, chunked"), &[501], Closes),
        row("TE chunked, chunked", te("chunked, chunked"), &[501], Closes),
        row("TE quoted", te("\"chunked\""), &[501], Closes),
        row("TE chunked;q", te("chunked;a=b"), &[501], Closes),
        row("TE empty", te(""), &[501], Closes),
        row("TE VT chunked", te("\x0bchunked"), &[400], Closes),
        row(
            "TE twice",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            &[400],
            Closes,
        ),
        row(
            "TE twice, one identity",
            post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            &[400],
            Closes,
        ),
        row("TE with a space before the colon", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), &[400], Closes),
        row("TE with a tab before the colon", post("Transfer-Encoding\t: chunked\r\n", "0\r\n\r\n"), &[400], Closes),
        row("obs-fold", get("X: a\r\n b\r\n"), &[400], Closes),
        row("obs-fold with a tab", get("X: a\r\n\tb\r\n"), &[400], Closes),
        row("obs-fold on TE", post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"), &[400], Closes),
        row("obs-fold in the first line", "GET / HTTP/1.1\r\n Host: a.test\r\n\r\n", &[400], Closes),
        row(
            "HTTP/1.0 and TE",
            "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            &[400],
            Closes,
        ),
        served("TE Chunked", post("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n"), &["A POST /"]),
    ]
}

fn chunks() -> Vec<Row> {
    let extension = |length: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(length));
    vec![
        row("bare LF behind a chunk size", chunked("1\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("bare CR behind a chunk size", chunked("1\rx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("bare LF behind chunk data", chunked("1\r\nx\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk size 0x1", chunked("0x1\r\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk size of 17 digits", chunked("00000000000000001\r\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk size beyond 64 bits", chunked("10000000000000001\r\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk size -1", chunked("-1\r\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk size +1", chunked("+1\r\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk size with a space", chunked("1 \r\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk size empty", chunked("\r\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk data without CRLF", chunked("1\r\nx0\r\n\r\n"), &[400], BreaksOff),
        row("chunk data too long", chunked("1\r\nxy\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk extension with bare LF", chunked("1;e\nx\r\n0\r\n\r\n"), &[400], BreaksOff),
        row("chunk extension of 64 KiB", chunked(&extension(65_536)), &[400], BreaksOff),
        served("chunk extension", chunked(&extension(16)), &["A POST /"]),
        row("trailer line with bare LF", chunked("0\r\nX: y\n\r\n"), &[400], BreaksOff),
        row("trailer line without name", chunked("0\r\n: y\r\n\r\n"), &[400], BreaksOff),
        row("folded trailer", chunked("0\r\nX: y\r\n z\r\n\r\n"), &[400], BreaksOff),
    ]
}

fn lengths() -> Vec<Row> {
    let length = |value: &str| post(&format!("Content-Length: {value}\r\n"), "x");
    vec![
        row("CL twice the same", post("Content-Length: 1\r\nContent-Length: 1\r\n", "x"), &[400], Closes),
        row("CL twice, differing", post("Content-Length: 1\r\nContent-Length: 2\r\n", "x"), &[400], Closes),
        row("CL 1, 1", length("1, 1"), &[400], Closes),
        row("CL +1", length("+1"), &[400], Closes),
        row("CL -1", length("-1"), &[400], Closes),
        row("CL 0x1", length("0x1"), &[400], Closes),
        row("CL empty", length(""), &[400], Closes),
        row("CL 1 1", length("1 1"), &[400], Closes),
        row("CL 1.0", length("1.0"), &[400], Closes),
        row("CL 2^64+1", length("18446744073709551617"), &[400], Closes),
        row("CL 2^63", length("9223372036854775808"), &[400], Closes),
        served("CL 01", length("01"), &["A POST /"]),
        last("content of a GET", get("Content-Length: 1\r\n") + "x", &["A GET /"]),
        last("chunked content of a GET", get("Transfer-Encoding: chunked\r\n") + "1\r\nx\r\n0\r\n\r\n", &["A GET /"]),
        last("empty chunked content of a GET", get("Transfer-Encoding: chunked\r\n") + "0\r\n\r\n", &["A GET /"]),
        last("content of a HEAD", get("Content-Length: 1\r\n").replace("GET", "HEAD") + "x", &["A HEAD /"]),
        row("content of a GET that nobody serves", host("c.test\r\nContent-Length: 1") + "x", &[503], Closes),
        served("CL 0 of a GET", get("Content-Length: 0\r\n"), &["A GET /"]),
        served("content of a DELETE", post("Content-Length: 1\r\n", "x").replace("POST", "DELETE"), &["A DELETE /"]),
        row("Content_Length", post("Content_Length: 1\r\n", ""), &[400], Closes),
        row("ContentLength", post("ContentLength: 1\r\n", ""), &[400], Closes),
        row("Transfer_Encoding", post("Transfer_Encoding: chunked\r\n", ""), &[400], Closes),
        row("Transfer--Encoding", post("transfer--encoding: chunked\r\n", ""), &[400], Closes),
        row("Content_Length beside CL", post("Content-Length: 1\r\nContent_Length: 1\r\n", "x"), &[400], Closes),
        served("X-Content-Length", get("X-Content-Length: 1\r\n"), &["A GET /"]),
    ]
}

fn hosts() -> Vec<Row> {
    let absolute = |uri: &str, host: &str| format!("GET {uri} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    vec![
        row("Host twice the same", get("Host: a.test\r\n"), &[400], Closes),
        row("Host twice, differing", get("Host: b.test\r\n"), &[400], Closes),
        row("no Host", "GET / HTTP/1.1\r\n\r\n", &[400], Closes),
        row("no Host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", &[400], Closes),
        row("Host empty", host(""), &[400], Closes),
        row("absolute form and another Host", absolute("http://b.test/", "a.test"), &[400], Closes),
        row("absolute form with userinfo", absolute("http://u@b.test/", "b.test"), &[400], Closes),
        row("absolute form with another port", absolute("http://a.test:81/", "a.test:80"), &[400], Closes),
        row("absolute form with an empty host", absolute("http:///", "a.test"), &[400], Closes),
        served("absolute form", absolute("http://b.test/x", "b.test"), &["B GET /x"]),
        served("absolute form without path", absolute("http://a.test", "a.test"), &["A GET /"]),
        row("Host u@a", host("u@a.test"), &[400], Closes),
        row("Host a/x", host("a.test/x"), &[400], Closes),
        row("Host a b", host("a.test b.test"), &[400], Closes),
        row("Host a,b", host("a.test,b.test"), &[400], Closes),
        row("Host a, b", host("a.test, b.test"), &[400], Closes),
        row("Host with port 99999", host("a.test:99999"), &[400], Closes),
        row("Host with port x", host("a.test:x"), &[400], Closes),
        row("Host with two ports", host("a.test:80:80"), &[400], Closes),
        row("Host *.test", host("*.test"), &[400], Closes),
        row("Host a..test", host("a..test"), &[400], Closes),
        row("Host .a.test", host(".a.test"), &[400], Closes),
        row("Host a.test#", host("a.test#"), &[400], Closes),
        row("Host a.test?", host("a.test?"), &[400], Closes),
        row("Host with NUL", host("a.test\0b.test"), &[400], Closes),
        row("Host with non-ASCII", host("ä.test"), &[400], Closes),
        row("Host in brackets", host("[a.test]"), &[400], Closes),
        row("Host with an open bracket", host("[::1"), &[400], Closes),
        served("Host a.", host("a.test."), &["A GET /"]),
        served("Host in capitals", host("A.TEST"), &["A GET /"]),
        served("Host with a port", host("a.test:8080"), &["A GET /"]),
        served("Host with an empty port", host("a.test:"), &["A GET /"]),
        row("Host that is an address", host("127.0.0.1"), &[503], GoesOn),
        row("Host that is an IPv6 address", host("[::1]:80"), &[503], GoesOn),
        row("Host that nobody has", host("c.test"), &[503], GoesOn),
        row("Host with an underscore", host("a_b.test"), &[503], GoesOn),
    ]
}

fn fields() -> Vec<Row> {
    vec![
        row("NUL in a value", get("X: a\0b\r\n"), &[400], Closes),
        row("DEL in a value", get("X: a\x7fb\r\n"), &[400], Closes),
        row("CR in a value", get("X: a\rb\r\n"), &[400], Closes),
        row("no colon", get("no colon\r\n"), &[400], Closes),
        row("no name", get(": x\r\n"), &[400], Closes),
        row("space in a name", get("X Y: z\r\n"), &[400], Closes),
        row("NUL in a name", get("X\0: z\r\n"), &[400], Closes),
        row("non-ASCII name", get("Ä: z\r\n"), &[400], Closes),
        row("quotes in a name", get("\"X\": z\r\n"), &[400], Closes),
        served("an empty value", get("X:\r\n"), &["A GET /"]),
        served("non-ASCII value", get("X: ä\r\n"), &["A GET /"]),
        served("underscore name", get("X_Real_IP: 192.0.2.1\r\n"), &["A GET /"]),
        served("Connection: host", get("Connection: host\r\n"), &["A GET /"]),
        served("Connection: X-Forwarded-For", get("Connection: X-Forwarded-For\r\n"), &["A GET /"]),
        served(
            "Connection: content-length",
            post("Connection: content-length\r\nContent-Length: 1\r\n", "x"),
            &["A POST /"],
        ),
        served("Proxy", get("Proxy: http://evil.test\r\n"), &["A GET /"]),
    ]
}

fn lines() -> Vec<Row> {
    let line = |line: &str| format!("{line}\r\nHost: a.test\r\n\r\n");
    vec![
        row("bare LF line ends", "GET / HTTP/1.1\nHost: a.test\n\n", &[400], Closes),
        row("bare LF behind the request line", "GET / HTTP/1.1\nHost: a.test\r\n\r\n", &[400], Closes),
        row("bare LF behind a field", "GET / HTTP/1.1\r\nHost: a.test\n\r\n", &[400], Closes),
        row("bare LF at the end", "GET / HTTP/1.1\r\nHost: a.test\r\n\n", &[400], Closes),
        row("HTTP/1.10", line("GET / HTTP/1.10"), &[505], Closes),
        served("HTTP/1.2", line("GET / HTTP/1.2"), &["A GET /"]),
        served("HTTP/1.9", line("GET /?HTTP/1.2 HTTP/1.9"), &["A GET /?HTTP/1.2"]),
        row("HTTP/1.2 without Host", "GET / HTTP/1.2\r\n\r\n", &[400], Closes),
        row("HTTP/1.:", line("GET / HTTP/1.:"), &[505], Closes),
        row("HTTP/3.2", line("GET / HTTP/3.2"), &[505], Closes),
        row("HTTP/2.0", line("GET / HTTP/2.0"), &[505], Closes),
        row("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[505], Closes),
        row("http/1.1", line("GET / http/1.1"), &[505], Closes),
        row("HTTP/0.9", "GET /\r\n", &[400], Closes),
        row("no target", "GET  HTTP/1.1\r\nHost: a.test\r\n\r\n", &[400], Closes),
        row("two spaces", line("GET  / HTTP/1.1"), &[400], Closes),
        row("a tab", line("GET\t/ HTTP/1.1"), &[400], Closes),
        row("a space behind the version", line("GET / HTTP/1.1 "), &[505], Closes),
        row("a target without slash", line("GET x HTTP/1.1"), &[400], Closes),
        row("%00 in the path", line("GET /%00 HTTP/1.1"), &[400], Closes),
        row("0xff in the path", b"GET /\xff HTTP/1.1\r\nHost: a.test\r\n\r\n".as_slice(), &[400], Closes),
        served("quotes in the query", line("GET /?q={\"a\":1} HTTP/1.1"), &["A GET /?q={%22a%22:1}"]),
        served("brackets in the query", line("GET /?<a> HTTP/1.1"), &["A GET /?%3Ca%3E"]),
        served("a backtick and brackets in the path", line("GET /`<a> HTTP/1.1"), &["A GET /%60%3Ca%3E"]),
        served("what a query may have", line("GET /?`{|}^\\[] HTTP/1.1"), &["A GET /?`{|}^\\[]"]),
        served("quotes and a later minor", line("GET /?\" HTTP/1.2"), &["A GET /?%22"]),
        served("quotes and content", post("Content-Length: 1\r\n", "x").replace("/ ", "/?\" "), &["A POST /?%22"]),
        row("a target of host and path", line("GET a.test/x HTTP/1.1"), &[400], Closes),
        row("a target with two ports", line("GET a.test:1:2 HTTP/1.1"), &[400], Closes),
        row("a fragment", line("GET /#frag HTTP/1.1"), &[400], Closes),
        row("NUL in the path", line("GET /\0 HTTP/1.1"), &[400], Closes),
        row("* of a GET", line("GET * HTTP/1.1"), &[400], Closes),
        row("TRACE", line("TRACE / HTTP/1.1"), &[405], GoesOn),
        row("CONNECT", "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n", &[405], GoesOn),
        row("CONNECT elsewhere", "CONNECT b.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n", &[405], GoesOn),
        row("OPTIONS *", line("OPTIONS * HTTP/1.1"), &[200], GoesOn),
        served("an unknown method", line("BREW / HTTP/1.1"), &["A BREW /"]),
        served("a method in small letters", line("get / HTTP/1.1"), &["A get /"]),
        served("empty lines in front", format!("\r\n\r\n{}", line("GET / HTTP/1.1")), &["A GET /"]),
    ]
}

fn sizes() -> Vec<Row> {
    let target = |length: usize| format!("GET /{} HTTP/1.1\r\nHost: a.test\r\n\r\n", "x".repeat(length));
    vec![
        row("150 fields", get(&"X: y\r\n".repeat(150)), &[431], Closes),
        row("a field of 70 KB", get(&format!("X: {}\r\n", "x".repeat(70_000))), &[431], Closes),
        row("a target of 20 KB", target(20_000), &[414], Closes),
        row("a target of 18 KB when it is escaped", target(6_000).replace('x', "<"), &[414], Closes),
        row("a target of 70 KB", target(70_000), &[414], Closes),
        row("a method of 100 bytes", format!("{} / HTTP/1.1\r\nHost: a.test\r\n\r\n", "X".repeat(100)), &[400], Closes),
    ]
}

fn others() -> Vec<Row> {
    let upgrade = "GET /a HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\
                   GET /b HTTP/1.1\r\nHost: b.test\r\n\r\n";
    vec![
        served("an upgrade and a request behind it", upgrade, &["A GET /a", "B GET /b"]),
        row("a hello of TLS", [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3], &[], Closes),
        row("an alert of TLS", [21, 3, 1, 0, 2, 2, 40], &[], Closes),
        row("zeroes", [0; 16], &[], Closes),
        row("a head that stalls", "GET / HTTP/1.1\r\nHost: a", &[408], Silence),
        row("silence", "", &[408], Silence),
        served("Expect of something", get("Expect: 200-ok\r\n"), &["A GET /"]),
    ]
}

//! The rows.

use super::field;

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response with this status.
    Answered(u16),
    /// A reset of its stream with this code.
    Reset(u32),
    /// The end of the connection.
    Ended,
}

use Outcome::{Answered, Ended, Reset};

/// PROTOCOL_ERROR (RFC 9113 §7), the response to a malformed request (§8.1.1).
const MALFORMED: Outcome = Reset(1);

/// A request.
pub struct Row {
    pub name: &'static str,
    pub fields: Vec<u8>,
    pub content: &'static [u8],
    pub trailers: Vec<u8>,
    pub outcome: Outcome,
    /// The request that reaches a backend: `A GET /`.
    pub reached: Option<&'static str>,
    /// Texts that its fields must not contain.
    pub gone: &'static [&'static str],
}

/// A request's fields.
pub fn request(method: &str, authority: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)];
    listed(&[&pseudo, fields].concat())
}

fn listed(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

fn row(name: &'static str, fields: Vec<u8>, outcome: Outcome) -> Row {
    Row { name, fields, content: b"", trailers: Vec::new(), outcome, reached: None, gone: &[] }
}

fn served(name: &'static str, fields: Vec<u8>, reached: &'static str) -> Row {
    Row { reached: Some(reached), ..row(name, fields, Answered(200)) }
}

/// `GET /` for a.test with this field.
fn get(name: &str, value: &str) -> Vec<u8> {
    request("GET", "a.test", "/", &[(name, value)])
}

/// `POST /` for a.test with this Content-Length.
fn post(length: &str) -> Vec<u8> {
    request("POST", "a.test", "/", &[("content-length", length)])
}

fn with_content(row: Row) -> Row {
    Row { content: b"hello", ..row }
}

/// All rows.
pub fn all() -> Vec<Row> {
    [connection(), lengths(), names_and_values(), pseudo(), targets(), hosts(), trailers()]
        .into_iter()
        .flatten()
        .collect()
}

/// Connection-specific fields of HTTP/1.1 have no meaning here (RFC 9113 §8.2.2).
fn connection() -> Vec<Row> {
    vec![
        with_content(row(
            "transfer-encoding",
            request("POST", "a.test", "/", &[("transfer-encoding", "chunked")]),
            MALFORMED,
        )),
        row("connection", get("connection", "close"), MALFORMED),
        row("connection that lists host", get("connection", "host"), MALFORMED),
        row("keep-alive", get("keep-alive", "timeout=5"), MALFORMED),
        row("proxy-connection", get("proxy-connection", "keep-alive"), MALFORMED),
        row("upgrade", get("upgrade", "websocket"), MALFORMED),
        row("te: chunked", get("te", "chunked"), MALFORMED),
        served("te: trailers", get("te", "trailers"), "A GET /"),
    ]
}

/// RFC 9113 §8.1.1.
fn lengths() -> Vec<Row> {
    let twice = |a, b| request("POST", "a.test", "/", &[("content-length", a), ("content-length", b)]);
    vec![
        with_content(served("length", post("5"), "A POST /")),
        with_content(served("no length", request("POST", "a.test", "/", &[]), "A POST /")),
        with_content(row("more content than length", post("3"), MALFORMED)),
        with_content(row("less content than length", post("7"), MALFORMED)),
        row("length without content", post("5"), MALFORMED),
        with_content(row("length +5", post("+5"), MALFORMED)),
        with_content(row("length 0x5", post("0x5"), MALFORMED)),
        with_content(row("length empty", post(""), MALFORMED)),
        with_content(row("length 5, 5", post("5, 5"), MALFORMED)),
        with_content(row("length 2^64+5", post("18446744073709551621"), MALFORMED)),
        with_content(row("length twice", twice("5", "5"), Answered(400))),
        with_content(row("length twice, differing", twice("5", "0"), MALFORMED)),
        with_content(row("length twice, differing, the other way", twice("0", "5"), MALFORMED)),
    ]
}

/// Content of a method that usually has none.
pub fn content_of_a_get() -> Row {
    with_content(served("content of a GET", request("GET", "a.test", "/", &[]), "A GET /"))
}

/// h2 ends the entire connection for characters that no field may contain, as RFC 9113 §5.4.2 allows.
fn names_and_values() -> Vec<Row> {
    let hidden = "x\r\n\r\nGET /hidden HTTP/1.1\r\nHost: b.test\r\n\r\n";
    vec![
        row("name in capitals", get("X-Odd", "1"), Ended),
        row("transfer-encoding in capitals", get("Transfer-Encoding", "chunked"), Ended),
        row("empty name", get("", "1"), Ended),
        row("space in a name", get("x odd", "1"), Ended),
        row("colon in a name", get("x:odd", "1"), Ended),
        row("CRLF in a name", get("x: y\r\ntransfer-encoding", "chunked"), Ended),
        row("NUL in a name", get("x\0", "1"), Ended),
        row("non-ASCII name", get("ä", "1"), Ended),
        row("CRLF in a value", get("x", hidden), Ended),
        row("LF in a value", get("x", "a\nb: c"), Ended),
        row("CR in a value", get("x", "a\rb: c"), Ended),
        row("NUL in a value", get("x", "a\0b"), Ended),
        row("blank before a value", get("x", " a"), Answered(400)),
        row("tab behind a value", get("x", "a\t"), Answered(400)),
        served("empty value", get("x", ""), "A GET /"),
        Row { gone: &["192.0.2.1"], ..served("underscores", get("x_real_ip", "192.0.2.1"), "A GET /") },
        row("content_length", get("content_length", "5"), Answered(400)),
        row("transfer--encoding", get("transfer--encoding", "chunked"), Answered(400)),
        Row { gone: &["evil"], ..served("proxy", get("proxy", "evil"), "A GET /") },
    ]
}

/// RFC 9113 §8.3.
fn pseudo() -> Vec<Row> {
    let with = |fields: &[(&str, &str)]| listed(fields);
    let (method, scheme, authority, path) =
        ((":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/"));
    vec![
        row("no :method", with(&[scheme, authority, path]), MALFORMED),
        row("no :scheme", with(&[method, authority, path]), MALFORMED),
        row("no :path", with(&[method, scheme, authority]), MALFORMED),
        row("empty :path", request("GET", "a.test", "", &[]), MALFORMED),
        row("two :method", with(&[method, (":method", "POST"), scheme, authority, path]), MALFORMED),
        row("two :path", with(&[method, scheme, authority, path, (":path", "/x")]), MALFORMED),
        row("two :authority", with(&[method, scheme, authority, (":authority", "b.test"), path]), MALFORMED),
        row("unknown pseudo-header", with(&[method, scheme, authority, path, (":x", "1")]), Ended),
        row(":status", with(&[method, scheme, authority, path, (":status", "200")]), MALFORMED),
        row("pseudo-header behind a field", with(&[method, scheme, path, ("x", "1"), authority]), MALFORMED),
        row(":method with a space", request("GET /hidden HTTP/1.1", "a.test", "/", &[]), Ended),
        row(":method with CRLF", request("GET\r\nx: y", "a.test", "/", &[]), Ended),
        row("empty :method", request("", "a.test", "/", &[]), Ended),
        row(":scheme with a host", with(&[method, (":scheme", "https://b.test/?"), authority, path]), MALFORMED),
        row("TRACE", request("TRACE", "a.test", "/", &[]), Answered(405)),
        row("CONNECT", with(&[(":method", "CONNECT"), (":authority", "b.test:80")]), Answered(405)),
    ]
}

fn targets() -> Vec<Row> {
    let target = |path| request("GET", "a.test", path, &[]);
    vec![
        row("CRLF in :path", target("/ HTTP/1.1\r\nHost: b.test\r\n\r\nGET /hidden"), MALFORMED),
        row("space in :path", target("/ HTTP/1.1"), MALFORMED),
        row("NUL in :path", target("/\0"), MALFORMED),
        row("%00 in :path", target("/%00"), Answered(400)),
        // The URI parser drops it before the path is read.
        served("fragment in :path", target("/#x"), "A GET /"),
        row(":path without slash", target("x"), MALFORMED),
        row("absolute :path", target("http://b.test/"), MALFORMED),
        row("* of a GET", target("*"), Answered(400)),
        row("non-ASCII :path", target("/ä"), Answered(400)),
        row("non-ASCII query in :path", target("/?ä"), Answered(400)),
        row("quotes in the query of :path", target("/?\""), MALFORMED),
        served("two slashes in :path", target("//b.test/"), "A GET //b.test/"),
    ]
}

fn hosts() -> Vec<Row> {
    let authority = |authority| request("GET", authority, "/", &[]);
    let none = |fields: &[(&str, &str)]| {
        listed(&[&[(":method", "GET"), (":scheme", "https"), (":path", "/")], fields].concat())
    };
    let host = |host| request("GET", "a.test", "/", &[("host", host)]);
    vec![
        served(":authority in capitals", authority("B.TEST"), "B GET /"),
        served(":authority with a trailing dot", authority("b.test."), "B GET /"),
        served(":authority with a port", authority("b.test:443"), "B GET /"),
        row(":authority with userinfo", authority("a.test@b.test"), Answered(400)),
        row(":authority with a comma", authority("a.test,b.test"), Answered(400)),
        row(":authority with a path", authority("a.test/b.test"), MALFORMED),
        row(":authority with a space", authority("a.test b.test"), MALFORMED),
        row(":authority with CRLF", authority("a.test\r\nhost: b.test"), MALFORMED),
        row(":authority with port 99999", authority("a.test:99999"), Answered(400)),
        row(":authority empty", authority(""), MALFORMED),
        row("wildcard as :authority", authority("*.test"), Answered(400)),
        row("neither :authority nor host", none(&[]), Answered(400)),
        served("host alone", none(&[("host", "b.test")]), "B GET /"),
        row("host twice", none(&[("host", "a.test"), ("host", "b.test")]), Answered(400)),
        served("host as :authority", host("a.test"), "A GET /"),
        row("host that differs", host("b.test"), Answered(400)),
        row("host that is empty", host(""), Answered(400)),
        row("host a,b", host("a.test,b.test"), Answered(400)),
        row(":authority that nobody has", authority("c.test"), Answered(503)),
    ]
}

/// Another story covers which trailers are forwarded; none changes the meaning of the message.
fn trailers() -> Vec<Row> {
    let trailing = |name, trailer: (&str, &str), outcome| {
        let row = row(name, request("POST", "a.test", "/", &[("trailer", "x, host")]), outcome);
        Row { content: b"hello", trailers: field(trailer.0, trailer.1), ..row }
    };
    let passed = |row| Row { reached: Some("A POST /"), ..row };
    vec![
        passed(trailing("trailer", ("x", "1"), Answered(200))),
        Row { gone: &["b.test"], ..passed(trailing("host as a trailer", ("host", "b.test"), Answered(200))) },
        // h2 skips it.
        passed(trailing("pseudo-header as a trailer", (":path", "/x"), Answered(200))),
        trailing("CRLF in a trailer", ("x", "1\r\n\r\nGET /hidden HTTP/1.1\r\n"), Ended),
    ]
}

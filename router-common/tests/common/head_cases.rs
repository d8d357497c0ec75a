//! Unusual request heads and their expected outcomes. The corpus has a file for each.
//!
//! Body framing (Content-Length, Transfer-Encoding) does not affect the outcome: the proxy evaluates it, and a
//! connection that the kernel steers is forwarded unmodified to one origin.

use std::borrow::Cow;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

use super::{Case, Outcome};

const BAD_HOST: Outcome = Cow::Borrowed("invalid BadHost status=400");
const BAD_TARGET: Outcome = Cow::Borrowed("invalid Target status=400");
const BAD_NAME: Outcome = Cow::Borrowed("invalid HeaderName status=400");
const BAD_VALUE: Outcome = Cow::Borrowed("invalid HeaderValue status=400");
const BAD_END: Outcome = Cow::Borrowed("invalid LineEnd status=400");
const BAD_METHOD: Outcome = Cow::Borrowed("invalid Method status=400");
const BAD_VERSION: Outcome = Cow::Borrowed("invalid Version status=505");
const FOLD: Outcome = Cow::Borrowed("invalid Fold status=400");
const TWO_HOSTS: Outcome = Cow::Borrowed("invalid DuplicateHost status=400");
const NO_HOST: Outcome = Cow::Borrowed("invalid NoHost status=400");
const NO_HTTP: Outcome = Cow::Borrowed("invalid NotHttp status=-");
const TOO_LARGE: Outcome = Cow::Borrowed("invalid TooLarge status=431");

/// All of them.
pub fn all() -> Vec<Case> {
    [clients(), hosts(), targets(), lines(), framing(), sizes()].into_iter().flatten().collect()
}

fn clients() -> Vec<Case> {
    vec![
        case(
            "wrk",
            "GET /wrk HTTP/1.1\r\nHost: a.test:8080\r\n\r\n",
            complete("a.test", "1.1", "origin", (0, 3), (4, 4), 40),
        ),
        case(
            "ab",
            "GET / HTTP/1.0\r\nHost: a.test\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n",
            complete("a.test", "1.0", "origin", (0, 3), (4, 1), 74),
        ),
        case("firefox", FIREFOX, complete("www.a.test", "1.1", "origin", (0, 3), (4, 20), 441)),
        case("chromium", CHROMIUM, complete("www.a.test", "1.1", "origin", (0, 4), (5, 6), 537)),
        case("websocket", WEBSOCKET, complete("a.test", "1.1", "origin", (0, 3), (4, 3), 147)),
        case("h2-preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", BAD_VERSION),
        case(
            "pipelined",
            "GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: b.test\r\n\r\n",
            complete("a.test", "1.1", "origin", (0, 3), (4, 2), 33),
        ),
        case("stalled", "GET / HTTP/1.1\r\nHost: a.te", "incomplete"),
        case("stalled-before-last-lf", "GET / HTTP/1.1\r\nHost: a.test\r\n\r", "incomplete"),
        bytes("tls-hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", NO_HTTP),
        bytes("noise", b"\xde\xad\xbe\xef\r\n\r\n", NO_HTTP),
    ]
}

fn hosts() -> Vec<Case> {
    let host =
        |name, value: &str, outcome: Outcome| case(name, &format!("GET / HTTP/1.1\r\nHost:{value}\r\n\r\n"), outcome);
    let fields =
        |name, fields: &str, outcome: Outcome| case(name, &format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n"), outcome);
    vec![
        host("host", " a.test", get(32)),
        host("host-upper-case", " A.TEST", get(32)),
        host("host-port", " a.test:80", get(35)),
        host("host-empty-port", " a.test:", get(33)),
        host("host-port-65535", " a.test:65535", get(38)),
        host("host-port-65536", " a.test:65536", BAD_HOST),
        host("host-port-99999", " a.test:99999", BAD_HOST),
        host("host-port-of-ten-zeros", " a.test:0000000000", BAD_HOST),
        host("host-port-signed", " a.test:+80", BAD_HOST),
        host("host-two-ports", " a.test:80:80", BAD_HOST),
        host("host-only-port", " :80", BAD_HOST),
        host("host-trailing-dot", " a.test.", get(33)),
        host("host-trailing-dot-port", " a.test.:80", get(36)),
        host("host-two-trailing-dots", " a.test..", BAD_HOST),
        host("host-no-blank", "a.test", get(31)),
        host("host-blanks", " \t a.test\t ", get(36)),
        host("host-ipv4", " 192.0.2.1:80", complete("(address)", "1.1", "origin", (0, 3), (4, 1), 38)),
        host("host-ipv6", " [2001:DB8::1]:80", complete("(address)", "1.1", "origin", (0, 3), (4, 1), 42)),
        host("host-ipv6-no-brackets", " 2001:db8::1", BAD_HOST),
        host("host-open-bracket", " [2001:db8::1", BAD_HOST),
        host("host-empty-brackets", " []", BAD_HOST),
        host("host-after-bracket", " [::1]a.test", BAD_HOST),
        host("host-userinfo", " u@a.test", BAD_HOST),
        host("host-slash", " a.test/x", BAD_HOST),
        host("host-space", " a test", BAD_HOST),
        host("host-comma", " a.test,b.test", BAD_HOST),
        host("host-wildcard", " *.w.test", BAD_HOST),
        host("host-percent", " a%2etest", BAD_HOST),
        host("host-underscore", " _a.test", complete("_a.test", "1.1", "origin", (0, 3), (4, 1), 33)),
        host("host-non-ascii", " b\u{fc}cher.test", BAD_HOST),
        host("host-nul", " a.test\0", BAD_HOST),
        host("host-nul-inside", " a.te\0st", BAD_HOST),
        host("host-empty", "", complete("-", "1.1", "origin", (0, 3), (4, 1), 25)),
        host("host-only-blanks", " \t", complete("-", "1.1", "origin", (0, 3), (4, 1), 27)),
        fields("host-twice-same", "Host: a.test\r\nHost: a.test", TWO_HOSTS),
        fields("host-twice", "Host: a.test\r\nhOST: b.test", TWO_HOSTS),
        fields("host-empty-then-host", "Host:\r\nHost: a.test", TWO_HOSTS),
        fields("host-name-upper-case", "HOST: a.test", get(32)),
        fields("host-space-before-colon", "Host : a.test", BAD_NAME),
        fields("host-fold", "Host:\r\n a.test", FOLD),
        fields("host-last", "X: 1\r\nHost2: b.test\r\nHos: c.test\r\nXHost: d.test\r\nHost: a.test", get(81)),
        fields("no-host", "X: 1", NO_HOST),
        fields("no-host-but-alike", "Hos\u{54}s: a.test\r\nH\u{4f}st1: b", NO_HOST),
        case("no-host-http10", "GET / HTTP/1.0\r\n\r\n", complete("-", "1.0", "origin", (0, 3), (4, 1), 18)),
    ]
}

fn targets() -> Vec<Case> {
    let line = |name, line: &str, outcome: Outcome| case(name, &format!("{line}\r\nHost: a.test\r\n\r\n"), outcome);
    vec![
        line(
            "absolute-form",
            "GET http://b.test/x HTTP/1.1",
            complete("a.test", "1.1", "absolute", (0, 3), (4, 15), 46),
        ),
        line(
            "absolute-form-upper-case",
            "GET HTTP://B.TEST HTTP/1.1",
            complete("a.test", "1.1", "absolute", (0, 3), (4, 13), 44),
        ),
        line("connect", "CONNECT b.test:443 HTTP/1.1", complete("a.test", "1.1", "authority", (0, 7), (8, 10), 45)),
        line("connect-ipv6", "CONNECT [::1]:443 HTTP/1.1", complete("a.test", "1.1", "authority", (0, 7), (8, 9), 44)),
        line("options-asterisk", "OPTIONS * HTTP/1.1", complete("a.test", "1.1", "asterisk", (0, 7), (8, 1), 36)),
        line("asterisk-and-more", "OPTIONS *x HTTP/1.1", BAD_TARGET),
        line("trace", "TRACE / HTTP/1.1", complete("a.test", "1.1", "origin", (0, 5), (6, 1), 34)),
        line(
            "url-in-query",
            "GET /?u=http://b.test HTTP/1.1",
            complete("a.test", "1.1", "origin", (0, 3), (4, 17), 48),
        ),
        line("percent-nul", "GET /%00 HTTP/1.1", complete("a.test", "1.1", "origin", (0, 3), (4, 4), 35)),
        line("fragment", "GET /#frag HTTP/1.1", BAD_TARGET),
        bytes("raw-0xff", b"GET /\xff HTTP/1.1\r\nHost: a.test\r\n\r\n", BAD_TARGET),
        line("tab-in-target", "GET /\tx HTTP/1.1", BAD_TARGET),
        line("delete-in-target", "GET /\u{7f} HTTP/1.1", BAD_TARGET),
        line("target-odd-start", "GET ?q HTTP/1.1", BAD_TARGET),
        line("two-spaces-after-method", "GET  / HTTP/1.1", BAD_TARGET),
        line("two-spaces-after-target", "GET /  HTTP/1.1", BAD_VERSION),
        line("space-in-target", "GET /a b HTTP/1.1", BAD_VERSION),
        line("space-after-version", "GET / HTTP/1.1 ", BAD_VERSION),
        line("tab-after-method", "GET\t/ HTTP/1.1", BAD_METHOD),
        line("http-09", "GET /", BAD_TARGET),
        line("no-version", "GET / ", BAD_VERSION),
        line("http-20", "GET / HTTP/2.0", BAD_VERSION),
        line("http-110", "GET / HTTP/1.10", BAD_VERSION),
        line("http-12", "GET / HTTP/1.2", BAD_VERSION),
        line("http-lower-case", "GET / http/1.1", BAD_VERSION),
        line("nul-before-version", "GET / \0HTTP/1.1", BAD_VERSION),
        line("lower-case-method", "get / HTTP/1.1", get(32)),
        line("odd-method", "M-SEARCH!#$ / HTTP/1.1", complete("a.test", "1.1", "origin", (0, 11), (12, 1), 40)),
        line(
            "method-of-32-bytes",
            &format!("{} / HTTP/1.1", "M".repeat(32)),
            complete("a.test", "1.1", "origin", (0, 32), (33, 1), 61),
        ),
        line("method-of-33-bytes", &format!("{} / HTTP/1.1", "M".repeat(33)), BAD_METHOD),
        line("bracket-in-method", "GE[T / HTTP/1.1", BAD_METHOD),
        line("no-method", " / HTTP/1.1", NO_HTTP),
        line("empty-lines-first", "\r\n\r\nGET / HTTP/1.1", complete("a.test", "1.1", "origin", (4, 3), (8, 1), 36)),
        line("bare-lf-first", "\nGET / HTTP/1.1", NO_HTTP),
        line("bare-cr-first", "\rGET / HTTP/1.1", BAD_END),
    ]
}

fn lines() -> Vec<Case> {
    let field = |name, field: &[u8], outcome: Outcome| {
        bytes(name, &[b"GET / HTTP/1.1\r\nHost: a.test\r\n", field, b"\r\n\r\n"].concat(), outcome)
    };
    vec![
        case("bare-lf", "GET / HTTP/1.1\nHost: a.test\n\n", BAD_END),
        case("bare-lf-after-field", "GET / HTTP/1.1\r\nX: 1\nHost: a.test\r\n\r\n", BAD_END),
        case("bare-lf-after-host", "GET / HTTP/1.1\r\nHost: a.test\n\r\n", BAD_END),
        case("bare-lf-at-end", "GET / HTTP/1.1\r\nHost: a.test\r\n\n", BAD_END),
        case("bare-cr-in-version", "GET / HTTP/1.1\rHost: a.test\r\n\r\n", BAD_END),
        case("bare-cr-after-host", "GET / HTTP/1.1\r\nHost: a.test\rX: 1\r\n\r\n", BAD_END),
        case("bare-cr-at-end", "GET / HTTP/1.1\r\nHost: a.test\r\n\rX", BAD_END),
        field("bare-cr-in-value", b"X: a\rb", BAD_END),
        field("fold", b"X: a\r\n b", FOLD),
        field("fold-tab", b"X: a\r\n\tb", FOLD),
        field("fold-transfer-encoding", b"Transfer-Encoding:\r\n chunked", FOLD),
        case("fold-first", "GET / HTTP/1.1\r\n Host: a.test\r\n\r\n", FOLD),
        field("no-colon", b"nocolon", BAD_NAME),
        field("no-name", b": value", BAD_NAME),
        field("space-before-colon", b"Transfer-Encoding : chunked", BAD_NAME),
        field("space-in-name", b"X Y: 1", BAD_NAME),
        field("nul-in-name", b"X\0: 1", BAD_NAME),
        field("non-ascii-name", b"X\xff: 1", BAD_NAME),
        field("quote-in-name", b"\"X\": 1", BAD_NAME),
        field("nul-in-value", b"X: a\0b", BAD_VALUE),
        field("escape-in-value", b"X: \x1b[0m", BAD_VALUE),
        field("delete-in-value", b"X: \x7f", BAD_VALUE),
        field("latin-1-value", b"X: \xfc\xff", get(39)),
        field("empty-value", b"X:", get(36)),
        field("underscore-name", b"X_Real_IP: 1", get(46)),
        field("connection-host", b"Connection: host", get(50)),
    ]
}

fn framing() -> Vec<Case> {
    let post = |name, fields: &str, outcome: Outcome| {
        case(name, &format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n\r\n"), outcome)
    };
    vec![
        post(
            "length-and-chunked",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            complete("a.test", "1.1", "origin", (0, 4), (5, 1), 80),
        ),
        post(
            "length-twice",
            "Content-Length: 5\r\nContent-Length: 6",
            complete("a.test", "1.1", "origin", (0, 4), (5, 1), 71),
        ),
        post(
            "length-beyond-64-bits",
            "Content-Length: 18446744073709551617",
            complete("a.test", "1.1", "origin", (0, 4), (5, 1), 71),
        ),
    ]
}

fn sizes() -> Vec<Case> {
    let head = |size: usize| {
        let start = "GET / HTTP/1.1\r\nHost: a.test\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(size - start.len() - 4))
    };
    let many: String = (100..250).map(|n| format!("X-{n}: {n}\r\n")).collect();
    vec![
        case("150-fields", &format!("GET / HTTP/1.1\r\nHost: a.test\r\n{many}\r\n"), get(1832)),
        case("32-kb", &head(32 * 1024), get(32768)),
        case("over-32-kb", &head(32 * 1024 + 1), TOO_LARGE),
        case("70-kb-field", &head(70 * 1024), TOO_LARGE),
        case(
            "20-kb-target",
            &format!("GET /{} HTTP/1.1\r\nHost: a.test\r\n\r\n", "t".repeat(20_479)),
            complete("a.test", "1.1", "origin", (0, 3), (4, 20480), 20511),
        ),
        case("empty-lines-without-end", &"\r\n".repeat(20_000), TOO_LARGE),
        case("name-without-end", &format!("GET / HTTP/1.1\r\n{}", "n".repeat(70_000)), TOO_LARGE),
    ]
}

const FIREFOX: &str = "GET /shop/list?q=a+b&p=2 HTTP/1.1\r\nHost: www.a.test\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-GB,en;q=0.5\r\n\
Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nReferer: http://www.a.test/shop/\r\n\
Cookie: session=0123456789abcdef; theme=dark\r\nUpgrade-Insecure-Requests: 1\r\nSec-GPC: 1\r\nPriority: u=0, i\r\n\r\n";
const CHROMIUM: &str = "POST /login HTTP/1.1\r\nHost: www.a.test:8080\r\nConnection: keep-alive\r\nContent-Length: 27\r\n\
Cache-Control: max-age=0\r\nOrigin: http://www.a.test:8080\r\nContent-Type: application/x-www-form-urlencoded\r\n\
Upgrade-Insecure-Requests: 1\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
Referer: http://www.a.test:8080/\r\nAccept-Encoding: gzip, deflate\r\nAccept-Language: en-GB,en;q=0.9\r\n\r\n\
user=someone&password=guess";
const WEBSOCKET: &str = "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nHost: a.test\r\n\r\n";

/// Outcome of a complete head: Host, version, form, start and length of the method and of the target, length.
fn complete(
    host: &str,
    version: &str,
    form: &str,
    method: (usize, usize),
    target: (usize, usize),
    len: usize,
) -> Outcome {
    let (method, target) = (format!("{}+{}", method.0, method.1), format!("{}+{}", target.0, target.1));
    format!("complete host={host} version={version} form={form} method={method} target={target} len={len}").into()
}

/// `GET / HTTP/1.1` for a.test.
fn get(len: usize) -> Outcome {
    complete("a.test", "1.1", "origin", (0, 3), (4, 1), len)
}

fn case(name: &'static str, text: &str, outcome: impl Into<Outcome>) -> Case {
    bytes(name, text.as_bytes(), outcome)
}

fn bytes(name: &'static str, bytes: &[u8], outcome: impl Into<Outcome>) -> Case {
    Case { name, bytes: bytes.to_vec(), outcome: outcome.into() }
}

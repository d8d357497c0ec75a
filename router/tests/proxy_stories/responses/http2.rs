//! Responses of HTTP/2 endpoints, frame by frame.

use std::net::SocketAddr;

use router_proxy::ProxyConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ask;
use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, field, frame,
    next_or_end,
};
use crate::tables::{Rig, Route, table};
use crate::{backends, log};

/// Reasons (RFC 9113 §7).
const NO_ERROR: u32 = 0;
const PROTOCOL_ERROR: u32 = 1;
const CANCEL: u32 = 8;

/// The response on the first stream with these fields and this content, and the end of the stream.
fn answer(fields: &[(&str, &str)], content: &str) -> Vec<u8> {
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    let head = frame(HEADERS, END_HEADERS, 1, &block);
    [head, frame(DATA, END_STREAM, 1, content.as_bytes())].concat()
}

/// A head of more than 64 KiB, in frames of 16 KB.
fn long() -> Vec<u8> {
    let fields = (0..6).map(|number| field(format!("x-{number}"), "a".repeat(16_000)));
    let last = fields.clone().count();
    let first = frame(HEADERS, 0, 1, &field(":status", "200"));
    let rest = fields
        .enumerate()
        .map(|(at, block)| frame(CONTINUATION, if at + 1 == last { END_HEADERS } else { 0 }, 1, &block));
    [first].into_iter().chain(rest).flatten().collect()
}

fn reset(reason: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, 1, &reason.to_be_bytes())
}

fn go_away(reason: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[1_u32.to_be_bytes(), reason.to_be_bytes()].concat())
}

/// An endpoint that responds to the first request of every connection with these bytes.
async fn endpoint(bytes: Vec<u8>, ends: bool) -> SocketAddr {
    backends::serve(move |mut stream: TcpStream| {
        let bytes = bytes.clone();
        async move {
            let mut preface = [0; PREFACE.len()];
            if stream.read_exact(&mut preface).await.is_err() {
                return;
            }
            stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
            while next_or_end(&mut stream).await.is_some_and(|(kind, ..)| kind != HEADERS) {}
            let _ = stream.write_all(&bytes).await;
            if !ends {
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        }
    })
    .await
}

const OK: (&str, &str) = (":status", "200");
const INVALID: (&str, &str) = ("HTTP/1.1 502 Bad Gateway", "backend-invalid");
/// No response, or an incomplete one.
const CUT: &str = "";
const CLOSED: (&str, &str) = ("HTTP/1.1 502 Bad Gateway", "backend-closed");

/// The endpoint's behaviour, its bytes, whether it closes the connection, and the response's first line and cause.
type Row<'a> = (&'a str, Vec<u8>, bool, (&'a str, &'a str));

#[tokio::test]
async fn errors_of_http2_responses_are_reported() {
    let head = || frame(HEADERS, END_HEADERS, 1, &field(":status", "200"));
    let part = || [head(), frame(DATA, 0, 1, b"hi")].concat();
    let rows: Vec<Row<'_>> = vec![
        ("a status without a phrase", answer(&[(":status", "440")], "hi"), false, ("HTTP/1.1 440 ", "")),
        ("a status with one", answer(&[(":status", "404")], "hi"), false, ("HTTP/1.1 404 Not Found", "")),
        ("transfer-encoding", answer(&[OK, ("transfer-encoding", "chunked")], "hi"), false, INVALID),
        ("gzip, chunked", answer(&[OK, ("transfer-encoding", "gzip, chunked")], "hi"), false, INVALID),
        ("connection", answer(&[OK, ("connection", "close")], "hi"), false, INVALID),
        ("a name in capitals", answer(&[OK, ("X-A", "1")], "hi"), false, INVALID),
        ("a line end in a value", answer(&[OK, ("x-a", "1\r\nx-b: 2")], "hi"), false, INVALID),
        ("no status", answer(&[("x-a", "1")], "hi"), false, INVALID),
        ("content before the head", frame(DATA, 0, 1, b"hi"), false, INVALID),
        ("HTTP/1.1", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), true, INVALID),
        ("a head of 96 KB", long(), false, INVALID),
        ("a reset", reset(CANCEL), false, CLOSED),
        ("an end", Vec::new(), true, CLOSED),
        ("an end that is told", go_away(NO_ERROR), true, CLOSED),
        ("an end for the router's fault", go_away(PROTOCOL_ERROR), true, CLOSED),
        ("a reset within the content", [part(), reset(CANCEL)].concat(), false, (CUT, "backend-broke-off")),
        ("an end within the content", part(), true, (CUT, "backend-broke-off")),
        (
            "less content than its length",
            answer(&[OK, ("content-length", "5")], "hi"),
            false,
            (CUT, "backend-invalid-content"),
        ),
    ];
    let mut routes = Vec::new();
    for (number, (_, bytes, ends, _)) in rows.iter().enumerate() {
        let to = endpoint(bytes.clone(), *ends).await;
        routes.push(Route::new(&format!("f{number}.answers.test"), "").to(to).h2c());
    }
    let rig = Rig::start(ProxyConfig { show_cause: true, ..ProxyConfig::default() }, table(&routes, None)).await;
    let mut faults = Vec::new();
    for (number, (name, _, _, (line, cause))) in rows.iter().enumerate() {
        let host = format!("f{number}.answers.test");
        let text = ask(rig.http, "GET", &host).await;
        let logged = log::line("host", &host).await;
        let told = text.lines().find_map(|line| line.strip_prefix("x-sluice-cause: "));
        let is_told = told.is_none_or(|told| told == *cause) && told.is_some() == line.contains("502");
        let is_right = match *line {
            CUT => !text.ends_with("0\r\n\r\n"),
            line => text.lines().next() == Some(line),
        };
        if !is_right || logged["cause"].as_str().unwrap_or_default() != *cause || !is_told {
            faults.push(format!("{name}: {:?}, told {told:?}, logged {}", text.lines().next(), logged["cause"]));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

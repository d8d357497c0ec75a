//! HTTP/2 clients that cause work without end: each is disconnected, and a well-behaved client is still served.

use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use router_proxy::ProxyConfig;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PREFACE, PRIORITY, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, frame, next, next_or_end,
};
use crate::host_rules::{self, rule, rules_for};
use crate::tables::{PATIENCE, Rig, Route};
use crate::{backends, client, grpc, log};

/// Frames of one flood, each as its bytes.
type Frames = Box<dyn Iterator<Item = Vec<u8>>>;

/// `GET https://flood.apps.test/`, in HPACK without a dynamic table.
fn get() -> Vec<u8> {
    let authority = b"flood.apps.test";
    [&[0x82, 0x87, 0x84, 0x01, authority.len() as u8][..], authority].concat()
}

fn headers(stream: u32, flags: u8) -> Vec<u8> {
    frame(HEADERS, flags, stream, &get())
}

/// Stream ids of a client: 1, 3, 5 …
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|index| 2 * index + 1)
}

/// How the proxy treated a client that sends frames.
struct Treated {
    /// The client's address, as the log writes it.
    client: String,
    /// Error code of the GOAWAY, if there was one.
    goaway: Option<u32>,
    /// True if the connection was ended.
    ended: bool,
}

/// `ENHANCE_YOUR_CALM` (RFC 9113 §7).
const CALM: u32 = 11;

/// Error code of the first GOAWAY, by the end of the stream.
async fn goaway(mut read: impl AsyncRead + Unpin) -> Option<u32> {
    while let Some((kind, _, _, payload)) = next_or_end(&mut read).await {
        if kind == GOAWAY {
            // An end without close_notify counts as well.
            let _ = read.read_to_end(&mut Vec::new()).await;
            return Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
    None
}

/// Sends frames until all are sent or the proxy takes no more.
async fn treat(rig: &Rig, frames: impl Iterator<Item = Vec<u8>>) -> Treated {
    let stream = client::tls(rig.https, Some("flood.apps.test"), &["h2"]).await;
    let client = stream.get_ref().0.local_addr().unwrap().to_string();
    treat_on(stream, client, frames).await
}

/// The same on an existing connection.
async fn treat_on(
    mut stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    client: String,
    frames: impl Iterator<Item = Vec<u8>>,
) -> Treated {
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let (read, mut write) = tokio::io::split(stream);
    let mut reading = tokio::spawn(goaway(read));
    let sending = async {
        let mut batch = Vec::new();
        for frame in frames {
            batch.extend(frame);
            if batch.len() > 2048 {
                write.write_all(&batch).await?;
                write.flush().await?;
                batch.clear();
            }
        }
        write.write_all(&batch).await?;
        // A well-behaved client sends a PING to check that the peer is alive.
        write.write_all(&frame(PING, 0, 0, b"are you?")).await?;
        write.flush().await
    };
    let sent = timeout(PATIENCE, sending).await.expect("the proxy takes the frames, or ends the connection");
    let read = timeout(if sent.is_err() { PATIENCE } else { Duration::from_secs(2) }, &mut reading).await;
    let (ended, goaway) = read.map_or((false, None), |goaway| (true, goaway.unwrap()));
    Treated { client, goaway, ended: ended || sent.is_err() }
}

async fn rig() -> Rig {
    Rig::serve(&[Route::new("flood.apps.test", "").edge(None).to(backends::http("app").await)]).await
}

/// Each flood, with the number of frames that make up one unit of abuse.
fn floods() -> [(&'static str, usize, Frames); 10] {
    let open = || std::iter::once(headers(1, END_HEADERS));
    let repeated = |count: usize, frame: Vec<u8>| std::iter::repeat_n(frame, count);
    let rapid_reset = streams(2000)
        .flat_map(|stream| [headers(stream, END_HEADERS | END_STREAM), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])]);
    let made_reset = streams(1500)
        .flat_map(|stream| [headers(stream, END_HEADERS), frame(WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff])]);
    let continuation =
        std::iter::once(headers(1, 0)).chain(repeated(3000, frame(CONTINUATION, 0, 1, &[0x00, 1, b'x', 1, b'y'])));
    let empty_continuation = std::iter::once(headers(1, 0)).chain(repeated(20_000, frame(CONTINUATION, 0, 1, &[])));
    let settings = repeated(5000, frame(SETTINGS, 0, 0, &[]));
    let ping = repeated(10_000, frame(PING, 0, 0, &[0; 8]));
    let priority = repeated(10_000, frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]));
    let window = open().chain(repeated(10_000, frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])));
    let padding = open().chain(repeated(10_000, frame(DATA, PADDED, 1, &[0])));
    let empty_data = open().chain(repeated(10_000, frame(DATA, 0, 1, &[])));
    [
        ("rapid reset", 2, Box::new(rapid_reset)),
        ("made reset", 2, Box::new(made_reset)),
        ("CONTINUATION", 1, Box::new(continuation)),
        ("empty CONTINUATION", 1, Box::new(empty_continuation)),
        ("SETTINGS", 1, Box::new(settings)),
        ("PING", 1, Box::new(ping)),
        ("PRIORITY", 1, Box::new(priority)),
        ("WINDOW_UPDATE", 1, Box::new(window)),
        ("empty DATA", 1, Box::new(empty_data)),
        ("DATA of padding", 1, Box::new(padding)),
    ]
}

#[tokio::test]
async fn floods_are_cut_off() {
    cut_off(usize::MAX).await;
}

#[tokio::test]
async fn floods_are_cut_off_within_a_thousand_frames() {
    cut_off(1000).await;
}

async fn cut_off(most: usize) {
    let rig = rig().await;
    let mut open = Vec::new();
    for (name, frames, flood) in floods() {
        // One more frame, which opens the stream.
        let treated = treat(&rig, flood.take(most.saturating_mul(frames).saturating_add(1))).await;
        if treated.ended {
            assert_eq!(treated.goaway, Some(CALM), "{name}");
            // This line is in addition to those of the requests.
            let is_it = |line: &Value| line["client"] == treated.client && line["flags"] == "CF";
            let line = log::line_where(&format!("the line of a flood of {name}"), is_it).await;
            assert_eq!((&line["host"], &line["status"]), (&"flood.apps.test".into(), &0.into()), "{name}: {line}");
        } else {
            open.push(name);
        }
        let polite = client::get_h2(rig.https, "flood.apps.test", &[("flood.apps.test", "/")]).await;
        assert_eq!(polite[0].0, StatusCode::OK, "after {name}");
    }
    assert!(open.is_empty(), "not cut off: {open:?}");
}

#[tokio::test]
async fn a_flood_in_clear_text_is_cut_off_as_well() {
    let host_rules = rules_for("flood.rules.test").cleartext(&[rule("app", "/").to(backends::http("app").await)]);
    let rig = Rig::start(ProxyConfig::default(), host_rules::table(vec![host_rules], &[])).await;
    let stream = TcpStream::connect(rig.http).await.unwrap();
    let client = stream.local_addr().unwrap().to_string();
    let treated = treat_on(stream, client, std::iter::repeat_n(frame(PING, 0, 0, &[0; 8]), 1000)).await;
    assert_eq!((treated.ended, treated.goaway), (true, Some(CALM)));
    // A client of another story may have had the same port.
    let is_it = |line: &Value| line["client"] == treated.client && line["flags"] == "CF";
    let line = log::line_where("the line of the flood", is_it).await;
    assert_eq!(line["cause"], "client-floods", "{line}");
}

/// Messages of a gRPC stream, small as most are.
const MESSAGES: usize = 3000;
const MESSAGE: &[u8] = b"\0\0\0\0\x01x";

/// A proxy before an endpoint that responds with many messages, or to `/large` with as many bytes at once.
async fn talkative() -> Rig {
    let endpoint = grpc::server(async |request, mut respond: h2::server::SendResponse<Bytes>| {
        let mut out = respond.send_response(http::Response::new(()), false).unwrap();
        match request.uri().path() {
            "/large" => out.send_data(vec![b'x'; MESSAGES].into(), false).unwrap(),
            _ => (0..MESSAGES).for_each(|_| out.send_data(Bytes::from_static(MESSAGE), false).unwrap()),
        }
        out.send_data(Bytes::new(), true).unwrap();
    })
    .await;
    Rig::serve(&[Route::new("flood.apps.test", "").edge(None).to(endpoint).h2c()]).await
}

/// A client that has requested this path, with this window for its streams.
async fn requesting_client(rig: &Rig, path: &str, window: u32) -> TlsStream<TcpStream> {
    let mut stream = client::tls(rig.https, Some("flood.apps.test"), &["h2"]).await;
    let setting = [&[0, 4][..], &window.to_be_bytes()].concat();
    let fields = [&[0x82, 0x87, 0x04, path.len() as u8][..], path.as_bytes(), &get()[3..]].concat();
    let request = frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields);
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &setting), &request].concat()).await.unwrap();
    stream
}

#[tokio::test]
async fn what_answers_small_messages_is_no_flood() {
    let rig = talkative().await;
    let mut stream = requesting_client(&rig, "/", 170 * MESSAGE.len() as u32).await;
    let (mut messages, mut answers) = (0, 0);
    loop {
        let (kind, flags, _, payload) = next(&mut stream).await;
        match kind {
            DATA if !payload.is_empty() => {
                assert_eq!(payload, MESSAGE);
                messages += 1;
                let increment = (payload.len() as u32).to_be_bytes();
                let windows = [1, 0].map(|of| frame(WINDOW_UPDATE, 0, of, &increment)).concat();
                let answer = [windows, frame(PING, 0, 0, &[0; 8])].concat();
                stream.write_all(&answer).await.unwrap();
                // Without a flush, the rest would wait for the next write, which the window may never allow.
                stream.flush().await.unwrap();
            }
            DATA => assert_eq!(flags & END_STREAM, END_STREAM),
            PING => answers += 1,
            GOAWAY => panic!("cut off after {messages} messages: {payload:?}"),
            _ => {}
        }
        if (messages, answers) == (MESSAGES, MESSAGES) {
            break;
        }
    }
}

#[tokio::test]
async fn no_flood_is_bought_with_a_response() {
    let rig = talkative().await;
    for path in ["/", "/large"] {
        let mut stream = requesting_client(&rig, path, 1 << 20).await;
        // The entire response arrives before the flood begins.
        while !matches!(next(&mut stream).await, (DATA, END_STREAM, ..)) {}
        let flood = frame(PING, 0, 0, &[0; 8]).repeat(1000);
        stream.write_all(&flood).await.unwrap();
        assert_eq!(timeout(PATIENCE, goaway(stream)).await.expect("an end"), Some(CALM), "{path}");
    }
    // A window opened byte by byte; each byte is a frame.
    let mut stream = requesting_client(&rig, "/large", 0).await;
    let mut bytes = 0;
    let code = loop {
        match next_or_end(&mut stream).await.expect("a GOAWAY before the end") {
            (HEADERS, ..) => {}
            (DATA, _, _, payload) => bytes += payload.len(),
            (GOAWAY, _, _, payload) => break payload[7],
            _ => continue,
        }
        stream.write_all(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])).await.unwrap();
        stream.flush().await.unwrap();
    };
    assert_eq!(u32::from(code), CALM);
    assert!((800..1000).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn fields_that_grow_when_they_are_read_are_too_large() {
    let rig = rig().await;
    let mut stream = client::tls(rig.https, Some("flood.apps.test"), &["h2"]).await;
    // 4 KB enter the table once; then each byte refers to them.
    let entry = [&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'y'; 4000]].concat();
    let fields = [get(), entry, vec![0xbe; 8_000]].concat();
    let begun = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&[begun, frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields)].concat()).await.unwrap();
    let mut bytes = Vec::new();
    // A response with 431, which HPACK writes as a literal, or the end of stream or connection.
    let refused = |bytes: &[u8]| {
        bytes.windows(3).any(|part| part == b"431")
            || bytes.windows(9).any(|frame| frame[3] == RST_STREAM && frame[8] == 1)
    };
    while !refused(&bytes) {
        let read = timeout(PATIENCE, stream.read_buf(&mut bytes)).await.expect("an answer");
        if !matches!(read, Ok(1..)) {
            break;
        }
    }
    assert!(bytes.len() < 4096, "32 MB are not echoed: {}", bytes.len());
    let polite = client::get_h2(rig.https, "flood.apps.test", &[("flood.apps.test", "/")]).await;
    assert_eq!(polite[0].0, StatusCode::OK);
}

//! HTTP/2 clients that ask for work without end: each is cut off, and a polite client goes on being served.

use std::time::Duration;

use hyper::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE,
    frame,
};
use crate::tables::{PATIENCE, Rig, Route};
use crate::{backends, client};

/// Frames of one flood, each as its bytes.
type Frames = Box<dyn Iterator<Item = Vec<u8>>>;

/// `GET https://flood.apps.test/`, in HPACK without a table of its own.
fn get() -> Vec<u8> {
    let authority = b"flood.apps.test";
    [&[0x82, 0x87, 0x84, 0x01, authority.len() as u8][..], authority].concat()
}

fn headers(stream: u32, flags: u8) -> Vec<u8> {
    frame(HEADERS, flags, stream, &get())
}

/// Streams of a client: 1, 3, 5 …
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|index| 2 * index + 1)
}

/// Sends frames until they have all gone or the proxy takes no more; whether it has ended the connection.
async fn is_cut_off(rig: &Rig, frames: impl Iterator<Item = Vec<u8>>) -> bool {
    let mut stream = client::tls(rig.https, Some("flood.apps.test"), &["h2"]).await;
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let (mut read, mut write) = tokio::io::split(stream);
    let reading = tokio::spawn(async move {
        // An end without TLS's own close is one too.
        let _ = read.read_to_end(&mut Vec::new()).await;
    });
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
        // What an orderly client asks when it wants to know whether the other side is there.
        write.write_all(&frame(PING, 0, 0, b"are you?")).await?;
        write.flush().await
    };
    let sent = timeout(PATIENCE, sending).await.expect("the proxy takes the frames, or ends the connection");
    sent.is_err() || timeout(Duration::from_secs(2), reading).await.is_ok()
}

async fn rig() -> Rig {
    Rig::serve(&[Route::new("flood.apps.test", "").edge(None).to(backends::http("app").await)]).await
}

/// Each flood, with how many frames of it are one abuse.
fn floods() -> [(&'static str, usize, Frames); 9] {
    let open = || std::iter::once(headers(1, END_HEADERS));
    let repeated = |count: usize, frame: Vec<u8>| std::iter::repeat_n(frame, count);
    let rapid_reset = streams(2000)
        .flat_map(|stream| [headers(stream, END_HEADERS | END_STREAM), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])]);
    let made_reset =
        streams(1500).flat_map(|stream| [headers(stream, END_HEADERS), frame(WINDOW_UPDATE, 0, stream, &[0; 4])]);
    let continuation =
        std::iter::once(headers(1, 0)).chain(repeated(3000, frame(CONTINUATION, 0, 1, &[0x00, 1, b'x', 1, b'y'])));
    let empty_continuation = std::iter::once(headers(1, 0)).chain(repeated(20_000, frame(CONTINUATION, 0, 1, &[])));
    let settings = repeated(5000, frame(SETTINGS, 0, 0, &[]));
    let ping = repeated(10_000, frame(PING, 0, 0, &[0; 8]));
    let priority = repeated(10_000, frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]));
    let window = open().chain(repeated(10_000, frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])));
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
        // And one that opens the stream.
        if !is_cut_off(&rig, flood.take(most.saturating_mul(frames).saturating_add(1))).await {
            open.push(name);
        }
        let polite = client::get_h2(rig.https, "flood.apps.test", &[("flood.apps.test", "/")]).await;
        assert_eq!(polite[0].0, StatusCode::OK, "after {name}");
    }
    assert!(open.is_empty(), "not cut off: {open:?}");
}

#[tokio::test]
async fn fields_that_grow_when_they_are_read_are_too_large() {
    let rig = rig().await;
    let mut stream = client::tls(rig.https, Some("flood.apps.test"), &["h2"]).await;
    // 4 KB go into the table once; then each byte stands for them.
    let entry = [&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'y'; 4000]].concat();
    let fields = [get(), entry, vec![0xbe; 8_000]].concat();
    let begun = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&[begun, frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields)].concat()).await.unwrap();
    let mut bytes = Vec::new();
    // A response of 431, which HPACK writes as a literal, or the end of stream or connection.
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

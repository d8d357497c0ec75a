//! Flow control of HTTP/2 (RFC 9113 §5.2): who opens no window is not waited for without end.

use std::net::SocketAddr;
use std::time::Duration;

use router::proxy::ProxyConfig;
use router_core::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::frames::{
    DATA, END_HEADERS, END_STREAM, Frame, HEADERS, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, next,
};
use crate::tables::{Rig, Route, table, under};
use crate::{backends, client, log, pki};

/// The code that a stream is reset with whose content nobody takes (RFC 9113 §7).
const CANCEL: [u8; 4] = [0, 0, 0, 8];
const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 4;

/// Answers every request with this much content.
async fn large(length: usize) -> SocketAddr {
    backends::serve(move |mut stream| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let content = [answer.as_bytes(), &vec![b'x'; length]].concat();
        let _ = stream.write_all(&content).await;
        let _ = stream.read_u8().await;
    })
    .await
}

/// A proxy that gives its clients this long to take something, and waits for endpoints for long.
async fn patient_for(client: Duration, host: &str, backend: SocketAddr) -> Rig {
    let timeouts = Timeouts { client, ..Timeouts::default() };
    let default = pki::ca().leaf(&["*.apps.test"]);
    let routes = [Route::new(host, "").edge(None).to(backend)];
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    Rig::start(ProxyConfig::default(), under(policy, table(&routes, Some(&default)))).await
}

/// A connection whose streams have this window at first.
async fn with_window(rig: &Rig, host: &str, window: u32) -> impl AsyncRead + AsyncWrite + Unpin {
    let mut stream = client::tls(rig.https, Some(host), &["h2"]).await;
    let setting = [&SETTINGS_INITIAL_WINDOW_SIZE.to_be_bytes()[..], &window.to_be_bytes()].concat();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &setting)].concat()).await.unwrap();
    stream
}

/// `GET https://host/`, in HPACK without a table of its own.
fn get(host: &str, stream: u32) -> Vec<u8> {
    let authority = [&[0x82, 0x87, 0x84, 0x01, u8::try_from(host.len()).unwrap()][..], host.as_bytes()].concat();
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &authority)
}

/// The next frame that is about a stream.
async fn next_of_stream(stream: &mut (impl AsyncRead + Unpin)) -> Frame {
    loop {
        let frame = next(stream).await;
        if frame.2 != 0 {
            return frame;
        }
    }
}

#[tokio::test]
async fn a_client_that_opens_no_window_is_given_up_stream_by_stream() {
    const HOST: &str = "shut.apps.test";
    const STREAMS: u32 = 20;
    let rig = patient_for(Duration::from_millis(200), HOST, large(100_000).await).await;
    // None at all, and one that is used up in the middle of the answer.
    for window in [0, 50_000] {
        let mut stream = with_window(&rig, HOST, window).await;
        let ids = || (0..STREAMS).map(|index| 2 * index + 1);
        stream.write_all(&ids().flat_map(|id| get(HOST, id)).collect::<Vec<u8>>()).await.unwrap();
        // The connection has room for all of it.
        stream.write_all(&frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes())).await.unwrap();
        let (mut answered, mut content, mut reset) = (0, 0, Vec::new());
        while reset.len() < STREAMS as usize {
            let (kind, _, id, payload) = next_of_stream(&mut stream).await;
            match kind {
                HEADERS => answered += 1,
                DATA => content += payload.len(),
                RST_STREAM => {
                    assert_eq!(payload, CANCEL);
                    reset.push(id);
                }
                _ => {}
            }
        }
        reset.sort_unstable();
        assert_eq!((answered, content), (STREAMS, (STREAMS * window) as usize));
        assert_eq!(reset, ids().collect::<Vec<_>>());
        assert_eq!(log::line("host", HOST).await["flags"], "DC");
        // The connection itself has done no harm.
        let id = 2 * STREAMS + 1;
        let wide = [get(HOST, id), frame(WINDOW_UPDATE, 0, id, &(1_u32 << 20).to_be_bytes())].concat();
        stream.write_all(&wide).await.unwrap();
        let mut content = 0;
        loop {
            let (kind, flags, of, payload) = next_of_stream(&mut stream).await;
            assert!(of == id && kind != RST_STREAM);
            content += if kind == DATA { payload.len() } else { 0 };
            if flags & END_STREAM != 0 {
                break;
            }
        }
        assert_eq!(content, 100_000);
    }
}

#[tokio::test]
async fn a_client_that_takes_a_little_now_and_then_is_not_given_up() {
    const HOST: &str = "thin.apps.test";
    const LENGTH: usize = 200_000;
    let patience = Duration::from_millis(500);
    let rig = patient_for(patience, HOST, large(LENGTH).await).await;
    let mut stream = with_window(&rig, HOST, 0).await;
    stream.write_all(&frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes())).await.unwrap();
    stream.write_all(&get(HOST, 1)).await.unwrap();
    assert_eq!(next_of_stream(&mut stream).await.0, HEADERS);
    // A part of what it is given each time, and longer in all than a client may take nothing.
    const STEP: usize = 10_000;
    let mut pace = tokio::time::interval(patience / 8);
    let begun = tokio::time::Instant::now();
    for _ in 0..LENGTH / STEP {
        pace.tick().await;
        stream.write_all(&frame(WINDOW_UPDATE, 0, 1, &(STEP as u32).to_be_bytes())).await.unwrap();
        let mut content = 0;
        while content < STEP {
            let (kind, _, _, payload) = next_of_stream(&mut stream).await;
            assert_eq!(kind, DATA);
            content += payload.len();
        }
    }
    assert!(begun.elapsed() > 2 * patience);
}

//! What is written, and in which order.

use bytes::Bytes;
use futures_util::task::noop_waker_ref;
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\n\r\n";

/// A stream whose client takes five bytes at a time, with one interim response that waits.
fn with_hints() -> (ClientIo<DuplexStream>, DuplexStream) {
    let clock = Arc::new(ClientClock::default());
    let turn = clock.interim.begin();
    turn.listener().hear(StatusCode::EARLY_HINTS, &HeaderMap::new());
    let mut cx = Context::from_waker(noop_waker_ref());
    assert!(clock.interim.poll_with(&mut cx, |_| Poll::<()>::Pending, |_| HINTS.to_vec()).is_pending());
    let (stream, client) = duplex(5);
    let limits = ClientLimits::of(&RouterPolicy::default());
    (ClientIo::new(stream, true, clock, limits), client)
}

async fn read_all(mut client: DuplexStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_flush_writes_interim_responses_and_says_so() {
    let (mut io, client) = with_hints();
    let reading = tokio::spawn(read_all(client));
    io.flush().await.unwrap();
    assert!(!io.clock.interim.is_unwritten());
    io.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
    drop(io);
    assert_eq!(reading.await.unwrap(), "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n");
}

#[tokio::test]
async fn nothing_comes_between_the_bytes_of_an_interim_response() {
    let (mut io, client) = with_hints();
    let mut cx = Context::from_waker(noop_waker_ref());
    // What hyper had before goes first.
    assert!(matches!(Pin::new(&mut io).poll_write(&mut cx, b"0\r"), Poll::Ready(Ok(2))));
    assert!(Pin::new(&mut io).poll_flush(&mut cx).is_pending());
    assert!(io.clock.interim.is_unwritten() && io.interim == Bytes::from_static(&HINTS[3..]));
    // It has begun now.
    assert!(Pin::new(&mut io).poll_write(&mut cx, b"HTTP/1.1 100").is_pending());
    assert!(Pin::new(&mut io).poll_write_vectored(&mut cx, &[io::IoSlice::new(b"HTTP/1.1 100")]).is_pending());
    let reading = tokio::spawn(read_all(client));
    io.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
    assert!(!io.clock.interim.is_unwritten());
    drop(io);
    assert_eq!(reading.await.unwrap(), "0\rHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
}

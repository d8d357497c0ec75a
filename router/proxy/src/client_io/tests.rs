//! Written bytes, and their order.

use bytes::Bytes;
use futures_util::task::noop_waker_ref;
use http::{Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\n\r\n";

/// A stream whose client takes five bytes at a time, with one pending interim response.
fn with_hints() -> (ClientIo<DuplexStream>, DuplexStream) {
    let clock = Arc::new(ConnectionState::default());
    let turn = clock.interim.begin();
    turn.listener().send(Response::builder().status(StatusCode::EARLY_HINTS).body(()).unwrap());
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
    // Earlier bytes of hyper go first.
    assert!(matches!(Pin::new(&mut io).poll_write(&mut cx, b"0\r"), Poll::Ready(Ok(2))));
    assert!(Pin::new(&mut io).poll_flush(&mut cx).is_pending());
    assert!(io.clock.interim.is_unwritten() && io.interim == Bytes::from_static(&HINTS[3..]));
    // The interim response has begun.
    assert!(Pin::new(&mut io).poll_write(&mut cx, b"HTTP/1.1 100").is_pending());
    assert!(Pin::new(&mut io).poll_write_vectored(&mut cx, &[io::IoSlice::new(b"HTTP/1.1 100")]).is_pending());
    let reading = tokio::spawn(read_all(client));
    io.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
    assert!(!io.clock.interim.is_unwritten());
    drop(io);
    assert_eq!(reading.await.unwrap(), "0\rHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
}

#[tokio::test]
async fn a_flooding_client_gets_goaway_behind_the_current_frame() {
    let (stream, client) = duplex(5);
    let clock = Arc::new(ConnectionState::default());
    let mut io = ClientIo::new(stream, false, Arc::clone(&clock), ClientLimits::of(&RouterPolicy::default()));
    let frame = b"\0\0\x03\0\0\0\0\0\x01abc";
    let mut cx = Context::from_waker(noop_waker_ref());
    assert!(matches!(Pin::new(&mut io).poll_write(&mut cx, frame), Poll::Ready(Ok(5))));
    let (mut reader, mut writer) = tokio::io::split(client);
    let flood = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &b"\0\0\x08\x06\0\0\0\0\0zeroes!!".repeat(1000)].concat();
    let flooding = tokio::spawn(async move { writer.write_all(&flood).await });
    let mut bytes = [0; 64];
    let mut rest = &frame[5..];
    // As in hyper: it reads as long as there is data, then it writes.
    let poll = |cx: &mut Context<'_>| {
        while let Poll::Ready(read) = Pin::new(&mut io).poll_read(cx, &mut ReadBuf::new(&mut bytes)) {
            if let Err(error) = read {
                return Poll::Ready(error);
            }
        }
        if io.goaway.is_none() {
            return Poll::Pending;
        }
        while !rest.is_empty() {
            match Pin::new(&mut io).poll_write(cx, rest) {
                Poll::Ready(Ok(written)) => rest = &rest[written..],
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Pending => return Poll::Pending,
            }
        }
        // There is nothing more to write, but hyper does not know that the connection is over.
        Pin::new(&mut io).poll_write(cx, b"\0").map(Result::unwrap_err)
    };
    let poll = std::future::poll_fn(poll);
    let reading = async move {
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        received
    };
    let (error, received) = tokio::join!(poll, reading);
    assert_eq!(error.to_string(), "too many frames unrelated to requests");
    assert!(clock.is_cut_off());
    assert_eq!(received, [&frame[..], &cut_off::goaway(0)].concat());
    // The client's further bytes were read: closing with unread bytes would lose the frame.
    flooding.await.unwrap().unwrap();
}

//! HTTP/2 connections, with an endpoint under the test's control.

use h2::server::{Handshake, SendResponse};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::connection_view::SMALL;
use super::*;
use crate::http::tee::{self, Tee};
use crate::rt::task_waker::Count;

type Server = h2::server::Connection<DuplexStream, Bytes>;

/// A connection, and the endpoint's end of it.
async fn connection() -> (Http2Connection, Server) {
    connection_with(1 << 20).await
}

/// A connection that allows this many bytes in flight.
async fn connection_with(bytes: usize) -> (Http2Connection, Server) {
    let (near, far) = tokio::io::duplex(bytes);
    let handshake: Handshake<_, Bytes> = h2::server::Builder::new().max_header_list_size(5_000).handshake(far);
    let (shared, server) = tokio::join!(open(near, 65_536), handshake);
    (shared.unwrap(), server.unwrap())
}

fn get() -> Request<RequestBody> {
    let mut request = Request::get("http://shared.test/").body(RequestBody::default()).unwrap();
    request.headers_mut().insert("connection", "x".parse().unwrap());
    request
}

/// Serves until the future is ready.
async fn beside<T>(server: &mut Server, work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        other = async { server.accept().await.map(|request| request.map(drop)) } => panic!("{other:?}"),
    }
}

/// The endpoint responds to a request.
async fn answer(server: &mut Server) -> (SendResponse<Bytes>, h2::SendStream<Bytes>) {
    let (request, mut respond) = server.accept().await.unwrap().unwrap();
    assert_eq!((request.method(), request.headers().get("connection")), (&http::Method::GET, None));
    let body = respond.send_response(Response::new(()), false).unwrap();
    (respond, body)
}

#[tokio::test]
async fn small_unconsumed_frames_are_coalesced_in_order() {
    const TIMES: usize = 6_000;
    let (shared, mut server) = connection().await;
    let mut stream = shared.stream(false).unwrap();
    let exchange = stream.send(get());
    let (_respond, mut body) = answer(&mut server).await;
    let response = beside(&mut server, exchange).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut content = response.into_body();
    let mut expected = Vec::new();
    for number in 0..TIMES {
        let part = format!("{number},");
        expected.extend_from_slice(part.as_bytes());
        body.send_data(part.into(), false).unwrap();
    }
    body.send_data(Bytes::from(vec![b'x'; 40_000]), false).unwrap();
    expected.extend_from_slice(&[b'x'; 40_000]);
    let mut trailers = http::HeaderMap::new();
    trailers.insert("done", "yes".parse().unwrap());
    body.send_trailers(trailers.clone()).unwrap();
    // The frames are not read until enough wait to be gathered.
    let seen = Arc::clone(&shared.all.seen);
    let gathered = async {
        while lock(&content.waiting().upgrade().unwrap()).pieces() == 0 {
            tokio::task::yield_now().await;
        }
    };
    beside(&mut server, gathered).await;
    assert!(seen.small() <= MAX_SMALL && !content.is_end_stream());
    let collected = beside(&mut server, (&mut content).collect()).await.unwrap();
    assert_eq!(collected.trailers(), Some(&trailers));
    assert_eq!(collected.to_bytes(), expected);
    stream.end(content.take_upload());
    assert!(shared.is_idle() && shared.is_usable());
}

#[tokio::test]
async fn a_response_that_is_reset_has_not_come_to_its_end() {
    for reason in [h2::Reason::CANCEL, h2::Reason::NO_ERROR, h2::Reason::INTERNAL_ERROR] {
        let (shared, mut server) = connection().await;
        let mut stream = shared.stream(false).unwrap();
        let exchange = stream.send(get());
        let (_respond, mut body) = answer(&mut server).await;
        body.send_data(Bytes::from_static(b"half"), false).unwrap();
        let response = beside(&mut server, exchange).await.unwrap();
        let mut content = response.into_body();
        let first = beside(&mut server, content.frame()).await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "half");
        body.send_reset(reason);
        let end = beside(&mut server, content.frame()).await.unwrap();
        assert_eq!(end.unwrap_err().reason(), Some(reason));
    }
}

#[tokio::test]
async fn interim_responses_are_passed_over_and_a_head_may_be_all() {
    let (shared, mut server) = connection().await;
    let mut stream = shared.stream(false).unwrap();
    let mut request = get();
    *request.method_mut() = http::Method::HEAD;
    let exchange = stream.send(request);
    let (_, mut respond) = server.accept().await.unwrap().unwrap();
    respond.send_informational(Response::builder().status(103).body(()).unwrap()).unwrap();
    respond.send_response(Response::builder().header("content-length", 5).body(()).unwrap(), true).unwrap();
    let response = beside(&mut server, exchange).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut content = response.into_body();
    assert_eq!((content.is_end_stream(), content.size_hint().exact()), (true, Some(5)));
    assert!(beside(&mut server, content.frame()).await.is_none());
}

#[tokio::test]
async fn a_waiter_gets_what_was_coalesced_meanwhile() {
    let (shared, mut server) = connection().await;
    let mut stream = shared.stream(false).unwrap();
    let exchange = stream.send(get());
    let (_respond, mut body) = answer(&mut server).await;
    let mut content = beside(&mut server, exchange).await.unwrap().into_body();
    let woken = Arc::<Count>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    assert!(Pin::new(&mut content).poll_frame(&mut cx).is_pending());
    for _ in 0..2 {
        // No data has arrived.
        shared.all.gather();
    }
    assert_eq!(woken.take(), 0);
    body.send_data(Bytes::from_static(b"x"), false).unwrap();
    beside(&mut server, async {
        while woken.take() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    shared.all.gather();
    assert_eq!(lock(&content.waiting().upgrade().unwrap()).pieces(), 1);
    let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut content).poll_frame(&mut cx) else { panic!("no frame") };
    assert_eq!(frame.into_data().unwrap(), "x");
}

#[tokio::test]
async fn an_unreferenced_connection_ends_with_its_last_stream() {
    let (shared, mut server) = connection().await;
    let mut stream = shared.stream(false).unwrap();
    let exchange = stream.send(get());
    let (_respond, mut body) = answer(&mut server).await;
    let content = beside(&mut server, exchange).await.unwrap().into_body();
    drop(shared);
    body.send_data(Bytes::from_static(b"x"), true).unwrap();
    assert_eq!(beside(&mut server, content.collect()).await.unwrap().to_bytes(), "x");
    stream.end(None);
    assert!(server.accept().await.is_none());
}

#[tokio::test]
async fn a_connection_that_has_ended_gives_the_request_back() {
    let (shared, server) = connection().await;
    let mut stream = shared.stream(false).unwrap();
    drop(server);
    while shared.is_usable() {
        tokio::task::yield_now().await;
    }
    let Unanswered { unsent, .. } = stream.send(get()).await.unwrap_err();
    assert_eq!(unsent.unwrap().uri(), "http://shared.test/");
}

#[tokio::test]
async fn a_connection_that_cannot_say_that_it_ends_gives_the_next_request_back_and_has_no_more() {
    let (near, mut far) = tokio::io::duplex(32);
    let mut preface = [0; 24];
    let (shared, _) = tokio::join!(open(near, 65_536), far.read_exact(&mut preface));
    let shared = shared.unwrap();
    let mut stream = shared.stream(false).unwrap();
    let exchange = stream.send(get());
    // SETTINGS, and a second one on a stream, where it is invalid: h2 has a GOAWAY to send, which the endpoint does not
    // read.
    far.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 1]).await.unwrap();
    assert!(exchange.await.unwrap_err().unsent.is_none());
    drop(stream);
    let next = shared.stream(false).expect("nobody knows");
    assert!({ next }.send(get()).await.unwrap_err().unsent.is_some());
    assert!(!shared.is_usable());
}

#[tokio::test]
async fn small_parts_that_an_endpoint_does_not_take_off_the_wire_wait_in_few_frames() {
    const PARTS: usize = 20_000;
    const ON_THE_WIRE: usize = 1024;
    let (shared, mut server) = connection_with(ON_THE_WIRE).await;
    let mut stream = shared.stream(true).unwrap();
    let (writer, copy) = tee::copy();
    let mut tee = Tee::default();
    tee.add(writer);
    let request = Request::post("http://shared.test/").body(RequestBody::of_copy(copy)).unwrap();
    let exchange = tokio::spawn(async move { stream.send(request).await.map(|response| response.status()) });
    for _ in 0..PARTS {
        tee.pass(&Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x"))))), false);
        tokio::task::yield_now().await;
    }
    let (request, mut respond) = server.accept().await.unwrap().unwrap();
    let mut body = request.into_body();
    let (mut frames, mut bytes) = (0, 0);
    while bytes < PARTS {
        let data = beside(&mut server, body.data()).await.unwrap().unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        (frames, bytes) = (frames + 1, bytes + data.len());
    }
    // Frames that were on the wire before it was full keep their sizes.
    assert!(bytes == PARTS && frames < ON_THE_WIRE / 10 + PARTS / SMALL + 10, "{frames}");
    tee.pass(&Poll::Ready(None), true);
    assert!(beside(&mut server, body.data()).await.is_none_or(|data| data.unwrap().is_empty()));
    respond.send_response(Response::new(()), true).unwrap();
    assert_eq!(beside(&mut server, exchange).await.unwrap().unwrap(), StatusCode::OK);
}

#[tokio::test]
async fn what_an_endpoint_takes_of_fields_is_known_from_its_settings() {
    let (shared, mut server) = connection().await;
    let mut stream = shared.stream(false).unwrap();
    let exchange = stream.send(get());
    let (_respond, _body) = answer(&mut server).await;
    beside(&mut server, exchange).await.unwrap();
    assert_eq!(stream.max_fields(), Some(5_000));
    // Names, values and 32 for each field (RFC 9113 §6.5.2): of the target's four, and of `connection: x`.
    let size = ":method".len() + 3 + ":scheme".len() + 4 + ":authority".len() + 11 + ":path".len() + 1 + 11 + 5 * 32;
    assert_eq!(request::size(&get()), size);
}

//! Clients that share a connection to an endpoint: one client's behaviour does not affect the others.

mod endpoint;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use h2::SendStream;
use h2::client::SendRequest;
use h2::server::Builder;
use http::Request;
use hyper::body::Bytes;
use router_table::table::InsecurePolicy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::backends_h2::one_worker;
use crate::tables::{PATIENCE, Rig, Route};
use crate::{client, log};
use endpoint::Endpoint;

async fn rig(host: &str, endpoint: SocketAddr) -> Rig {
    one_worker(&[Route::new(host, "").edge(None).insecure(InsecurePolicy::Allow).to(endpoint).h2c()]).await
}

fn text(host: &str, path: &str, length: usize) -> String {
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    head + &"x".repeat(length)
}

/// Another client's request with content; returns the status, if there is a response soon.
async fn polite(rig: &Rig, host: &str, path: &str, length: usize) -> Option<u16> {
    let request = text(host, path, length);
    let answer = client::request(rig.http, &request);
    timeout(Duration::from_secs(10), answer).await.ok().map(|answer| answer.status)
}

/// Another client's request that cannot be repeated, and whose response is held until its release.
struct Held {
    endpoint: Endpoint,
    answer: JoinHandle<u16>,
}

impl Held {
    async fn by(endpoint: &Endpoint, rig: &Rig, host: &str) -> Self {
        let (http, request) = (rig.http, text(host, "/held", 2));
        let answer = tokio::spawn(async move { client::request(http, &request).await.status });
        endpoint.until_requests(1).await;
        Held { endpoint: endpoint.clone(), answer }
    }

    async fn status(self) -> u16 {
        self.endpoint.released.send_replace(true);
        timeout(PATIENCE, self.answer).await.expect("an answer").unwrap()
    }
}

/// A client that opens no window, and the end of its connection.
async fn connect(rig: &Rig, host: &str) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let stream = client::tls(rig.https, Some(host), &["h2"]).await;
    let (sender, connection) = h2::client::Builder::new().initial_window_size(0).handshake(stream).await.unwrap();
    (sender, tokio::spawn(connection))
}

async fn post(
    sender: &mut SendRequest<Bytes>,
    host: &str,
    path: &str,
) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
    let request = Request::post(format!("https://{host}{path}")).body(()).unwrap();
    *sender = timeout(PATIENCE, sender.clone().ready()).await.expect("room").unwrap();
    sender.send_request(request, false).unwrap()
}

/// Sends this many one-byte frames, or until they are no longer taken.
async fn drip(upload: &mut SendStream<Bytes>, frames: usize) {
    for _ in 0..frames {
        upload.reserve_capacity(1);
        let Some(Ok(1..)) = poll_fn(|cx| upload.poll_capacity(cx)).await else { break };
        let Ok(()) = upload.send_data(Bytes::from_static(b"x"), false) else { break };
    }
}

#[tokio::test]
async fn uploads_behind_an_answer_keep_no_stream_from_others() {
    const HOST: &str = "early.shared.apps.test";
    let few = || {
        let mut builder = Builder::new();
        builder.max_concurrent_streams(50);
        builder
    };
    let endpoint = Endpoint::default();
    let rig = rig(HOST, endpoint.serve(few).await).await;
    let (mut sender, _) = connect(&rig, HOST).await;
    let mut uploads = Vec::new();
    for _ in 0..100 {
        let (response, upload) = post(&mut sender, HOST, "/early").await;
        assert_eq!(timeout(PATIENCE, response).await.expect("an answer").unwrap().status(), 200);
        uploads.push(upload);
    }
    assert_eq!(join_all((0..20).map(|_| polite(&rig, HOST, "/", 2))).await, [Some(200); 20]);
    // Their content is not forwarded for long: the endpoint's streams become free.
    for mut upload in uploads {
        let reset = timeout(PATIENCE, poll_fn(|cx| upload.poll_reset(cx))).await.expect("a reset").unwrap();
        assert_eq!(reset, h2::Reason::NO_ERROR);
    }
    assert_eq!(join_all((0..20).map(|_| polite(&rig, HOST, "/", 2))).await, [Some(200); 20]);
}

#[tokio::test]
async fn small_frames_that_a_client_does_not_take_end_no_connection_of_others() {
    const HOST: &str = "ticks.shared.apps.test";
    const STREAMS: usize = 30;
    let endpoint = Endpoint::default();
    let rig = rig(HOST, endpoint.serve(Builder::new).await).await;
    let held = Held::by(&endpoint, &rig, HOST).await;
    let (mut sender, _) = connect(&rig, HOST).await;
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        open.push(post(&mut sender, HOST, "/ticks").await);
    }
    // As many as the windows of the streams allow: 30 MiB of memory if each frame were stored separately.
    let mut ticks = endpoint.ticks.subscribe();
    timeout(PATIENCE, ticks.wait_for(|ticks| *ticks >= STREAMS * 6_000)).await.expect("they wait").unwrap();
    assert_eq!(polite(&rig, HOST, "/", 2).await, Some(200));
    assert_eq!(held.status().await, 200);
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn frames_without_content_end_no_connection_of_others() {
    const HOST: &str = "nothing.shared.apps.test";
    let endpoint = Endpoint::default();
    let rig = rig(HOST, endpoint.serve(Builder::new).await).await;
    let held = Held::by(&endpoint, &rig, HOST).await;
    let answer = client::request(rig.http, &text(HOST, "/nothing", 0)).await;
    assert!(answer.status == 200 && answer.body.contains("something"), "{answer:?}");
    assert_eq!(held.status().await, 200);
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn small_frames_that_a_client_sends_at_once_end_no_connection_of_others() {
    const HOST: &str = "drips.shared.apps.test";
    let endpoint = Endpoint::default();
    // With its smallest budget, h2 allows 128 unread one-byte frames.
    let rig = rig(HOST, endpoint.serve(Builder::new).await).await;
    let held = Held::by(&endpoint, &rig, HOST).await;
    let (mut sender, _) = connect(&rig, HOST).await;
    let (response, mut upload) = post(&mut sender, HOST, "/").await;
    timeout(PATIENCE, drip(&mut upload, 20_000)).await.expect("room");
    upload.send_data(Bytes::new(), true).unwrap();
    assert_eq!(timeout(PATIENCE, response).await.expect("an answer").unwrap().status(), 200);
    assert_eq!(held.status().await, 200);
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn small_frames_that_an_endpoint_does_not_take_end_their_clients_connection_alone() {
    const HOST: &str = "drops.shared.apps.test";
    // h2 charges each content frame the bytes that it lacks to 256; the budget of a connection is half of its window,
    // 16 MiB.
    const MOST: usize = 16 * 1024 * 1024 / 255;
    // The router removes as many at a time, to send them as one.
    const GATHERED: usize = 4096;
    let shut = || {
        let mut builder = Builder::new();
        builder.initial_window_size(0);
        builder
    };
    let endpoint = Endpoint::default();
    let rig = rig(HOST, endpoint.serve(shut).await).await;
    let held = Held::by(&endpoint, &rig, HOST).await;
    for (frames, ends) in [(MOST - 100, false), (MOST + GATHERED + 100, true)] {
        let (mut sender, end) = connect(&rig, HOST).await;
        let (_response, mut upload) = post(&mut sender, HOST, "/unread").await;
        timeout(PATIENCE, drip(&mut upload, frames)).await.expect("room");
        if ends {
            let error = timeout(PATIENCE, end).await.expect("an end").unwrap().unwrap_err();
            assert_eq!((error.is_go_away(), error.reason()), (true, Some(h2::Reason::ENHANCE_YOUR_CALM)));
        } else {
            // The connection stays usable.
            let (other, _upload) = post(&mut sender, HOST, "/early").await;
            assert_eq!(timeout(PATIENCE, other).await.expect("an answer").unwrap().status(), 200);
        }
    }
    assert_eq!(log::line_where("it", |line| line["host"] == HOST && line["flags"] == "CF").await["flags"], "CF");
    assert_eq!(polite(&rig, HOST, "/", 0).await, Some(200));
    assert_eq!(held.status().await, 200);
}

#[tokio::test]
async fn fields_beyond_what_an_endpoint_takes_end_no_connection_of_others() {
    const HOST: &str = "fields.shared.apps.test";
    let narrow = || {
        let mut builder = Builder::new();
        builder.max_header_list_size(4096);
        builder
    };
    let endpoint = Endpoint::default();
    let rig = rig(HOST, endpoint.serve(narrow).await).await;
    let held = Held::by(&endpoint, &rig, HOST).await;
    for length in [20_000, 5_000] {
        let cookie = "x".repeat(length);
        let large = format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
        assert_eq!(client::request(rig.http, &large).await.status, 431, "{length}");
    }
    assert_eq!(log::line_where("it", |line| line["host"] == HOST && line["status"] == 431).await["flags"], "BR");
    assert_eq!(polite(&rig, HOST, "/", 2).await, Some(200));
    assert_eq!(held.status().await, 200);
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn answers_that_are_too_large_end_no_connection_of_others() {
    const HOST: &str = "heads.shared.apps.test";
    let endpoint = Endpoint::default();
    let rig = rig(HOST, endpoint.serve(Builder::new).await).await;
    let held = Held::by(&endpoint, &rig, HOST).await;
    // Concurrently: the held request has a time-out of 30 s.
    for _ in 0..60 {
        assert_eq!(join_all((0..20).map(|_| polite(&rig, HOST, "/large-head", 2))).await, [Some(502); 20]);
    }
    assert_eq!(held.status().await, 200);
}

#[tokio::test]
async fn content_that_an_endpoint_does_not_take_stops_no_content_of_others() {
    const HOST: &str = "unread.shared.apps.test";
    let endpoint = Endpoint::default();
    let rig = rig(HOST, endpoint.serve(Builder::new).await).await;
    let (mut sender, _) = connect(&rig, HOST).await;
    let (_response, mut upload) = post(&mut sender, HOST, "/unread").await;
    upload.send_data(Bytes::from(vec![0; 100_000]), false).unwrap();
    // The endpoint's windows are exhausted, and some time has passed.
    let mut came = endpoint.unread.subscribe();
    timeout(PATIENCE, came.wait_for(|came| *came == 65_535)).await.expect("it stands").unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(join_all((0..10).map(|_| polite(&rig, HOST, "/", 10_000))).await, [Some(200); 10]);
    // A request without content does not wait, and uses the shared connection.
    let (before, none) = (endpoint.connections.load(Ordering::SeqCst), text(HOST, "/", 0));
    assert_eq!((before, client::request(rig.http, &none).await.status), (2, 200));
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_answer_that_is_reset_is_no_whole_answer() {
    const HOST: &str = "half.shared.apps.test";
    let endpoint = Endpoint::default();
    let rig = rig(HOST, endpoint.serve(Builder::new).await).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(text(HOST, "/half", 0).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Over HTTP/1.1 the content is chunked; a last chunk would mark it as complete.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an end");
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("half") && !answer.ends_with("0\r\n\r\n"), "{answer:?}");
    assert_eq!(log::line("host", HOST).await["flags"], "UC");
}

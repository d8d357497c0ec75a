//! Flow control of HTTP/2 (RFC 9113 §5.2): a client that opens no window affects no other, and the router does not wait
//! for it forever.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, poll_fn};
use h2::SendStream;
use http::{Request, Response, StatusCode};
use hyper::body::Bytes;
use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::backends_h2::one_worker;
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, Frame, HEADERS, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, next,
};
use crate::tables::{PATIENCE, Rig, Route, table, under};
use crate::{backends, client, log, pki};

/// Error code of the reset for a stream whose content is not taken (RFC 9113 §7).
const CANCEL: [u8; 4] = [0, 0, 0, 8];
const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 4;

/// Responds to every request with this much content.
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

/// A proxy with this time-out for clients to take data, and a long one for endpoints.
async fn patient_for(client: Duration, host: &str, backend: SocketAddr) -> Rig {
    let timeouts = Timeouts { client, ..Timeouts::default() };
    let default = pki::ca().leaf(&["*.apps.test"]);
    let routes = [Route::new(host, "").edge(None).to(backend)];
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    Rig::start(ProxyConfig::default(), under(policy, table(&routes, Some(&default)))).await
}

/// A connection whose streams have this initial window.
async fn with_window(rig: &Rig, host: &str, window: u32) -> impl AsyncRead + AsyncWrite + Unpin {
    let mut stream = client::tls(rig.https, Some(host), &["h2"]).await;
    let setting = [&SETTINGS_INITIAL_WINDOW_SIZE.to_be_bytes()[..], &window.to_be_bytes()].concat();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &setting)].concat()).await.unwrap();
    stream
}

/// `GET https://host/`, in HPACK without a dynamic table.
fn get(host: &str, stream: u32) -> Vec<u8> {
    let authority = [&[0x82, 0x87, 0x84, 0x01, u8::try_from(host.len()).unwrap()][..], host.as_bytes()].concat();
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &authority)
}

/// The next frame of a stream.
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
    // No window at all, and one that is exhausted in the middle of the response.
    for window in [0, 50_000] {
        let mut stream = with_window(&rig, HOST, window).await;
        let ids = || (0..STREAMS).map(|index| 2 * index + 1);
        stream.write_all(&ids().flat_map(|id| get(HOST, id)).collect::<Vec<u8>>()).await.unwrap();
        // The window of the connection is large enough for everything.
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
        // The connection itself stays usable.
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
    // Small steps, each within the client's time-out, but longer in total.
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

/// Sends zeros as long as the window allows it, and counts those of all senders.
async fn pour(mut stream: SendStream<Bytes>, length: usize, poured: Arc<watch::Sender<usize>>) {
    let mut left = length;
    while left > 0 {
        stream.reserve_capacity(left.min(16 * 1024));
        let Some(Ok(room)) = poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
        let part = room.min(left);
        left -= part;
        if stream.send_data(Bytes::from(vec![0; part]), left == 0).is_err() {
            return;
        }
        poured.send_modify(|all| *all += part);
    }
}

/// Waits until this much has been poured.
async fn until_poured(poured: &watch::Sender<usize>, much: usize) {
    let mut poured = poured.subscribe();
    let reached = poured.wait_for(|all| *all >= much);
    timeout(PATIENCE, reached).await.expect("they pour").unwrap();
}

const MIB: usize = 1 << 20;

/// Responds over HTTP/2 with 1 MiB; to `/live` once the other responses have sent as much as formerly blocked a
/// connection.
async fn pouring(connections: Arc<AtomicUsize>) -> SocketAddr {
    let poured = Arc::new(watch::Sender::new(0));
    backends::serve(move |stream| {
        connections.fetch_add(1, Ordering::SeqCst);
        let poured = Arc::clone(&poured);
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let poured = Arc::clone(&poured);
                tokio::spawn(async move {
                    let body = respond.send_response(Response::new(()), false).unwrap();
                    if request.uri().path() == "/live" {
                        until_poured(&poured, 2 * MIB).await;
                    }
                    pour(body, MIB, poured).await;
                });
            }
        }
    })
    .await
}

#[tokio::test]
async fn readers_that_stand_still_do_not_stop_others_on_the_same_endpoint_connection() {
    const HOST: &str = "still.apps.test";
    let connections = Arc::new(AtomicUsize::new(0));
    let backend = pouring(Arc::clone(&connections)).await;
    let rig = one_worker(&[Route::new(HOST, "").edge(None).to(backend).h2c()]).await;
    let mut still = with_window(&rig, HOST, 0).await;
    still.write_all(&(0..100).flat_map(|index| get(HOST, 2 * index + 1)).collect::<Vec<u8>>()).await.unwrap();
    // Another client, whatever protocol it speaks.
    let live = timeout(PATIENCE / 2, client::get_tls(rig.https, Some(HOST), HOST, "/live")).await;
    let live = live.expect("it is not stopped by the others");
    assert_eq!((live.status, live.body.len()), (200, MIB));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

/// Takes no content over HTTP/2, except for `/live`, to which it responds at the end of the content.
async fn taking_nothing() -> SocketAddr {
    backends::serve(move |stream| async move {
        let mut server = h2::server::Builder::new();
        // A large window of the endpoint, which this test does not examine.
        let mut connection =
            server.initial_connection_window_size(16 << 20).handshake::<_, Bytes>(stream).await.unwrap();
        let mut kept = Vec::new();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            if request.uri().path() != "/live" {
                kept.push((request, respond));
                continue;
            }
            tokio::spawn(async move {
                let mut body = request.into_body();
                while let Some(Ok(data)) = body.data().await {
                    let _ = body.flow_control().release_capacity(data.len());
                }
                respond.send_response(Response::new(()), true).unwrap();
            });
        }
    })
    .await
}

#[tokio::test]
async fn uploads_that_stand_still_do_not_stop_others_of_their_connection() {
    const HOST: &str = "uploads.apps.test";
    let rig = one_worker(&[Route::new(HOST, "").edge(None).to(taking_nothing().await).h2c()]).await;
    let stream = client::tls(rig.https, Some(HOST), &["h2"]).await;
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let poured = Arc::new(watch::Sender::new(0));
    let mut upload = async |path: &str| {
        let request = Request::post(format!("https://{HOST}{path}")).body(()).unwrap();
        sender = sender.clone().ready().await.unwrap();
        sender.send_request(request, false).unwrap()
    };
    let mut waiting = Vec::new();
    for _ in 0..100 {
        let (answer, body) = upload("/still").await;
        tokio::spawn(pour(body, 8 * MIB, Arc::clone(&poured)));
        waiting.push(answer);
    }
    // As much as formerly blocked a connection.
    until_poured(&poured, MIB).await;
    let (answer, body) = upload("/live").await;
    tokio::spawn(pour(body, 2 * MIB, Arc::new(watch::Sender::new(0))));
    let answer = timeout(PATIENCE / 2, answer).await.expect("it is not stopped by the others").unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    // The others still wait.
    assert!(poll_fn(|cx| std::task::Poll::Ready(pin!(join_all(&mut waiting)).poll(cx))).await.is_pending());
}

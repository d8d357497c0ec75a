//! Clients that cancel requests: one client's cancellations do not affect others.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use h2::Reason;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::backends_h2::one_worker;
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, frame, next_or_end,
};
use crate::tables::{PATIENCE, Rig, Route};
use crate::{backends, client};

const HOST: &str = "cancel.apps.test";
/// `:status: 200` (RFC 7541 A).
const OK: &[u8] = &[0x88];

/// Traffic received by an endpoint.
#[derive(Debug, Default)]
struct Came {
    connections: usize,
    requests: usize,
    cancelled: usize,
    /// GOAWAYs of the router.
    goodbyes: Vec<(u32, String)>,
}

/// An endpoint that speaks HTTP/2 and delays each response; it also responds to a request cancelled meanwhile, as if
/// the response had been in flight.
struct Endpoint {
    address: SocketAddr,
    came: watch::Receiver<Came>,
}

/// An endpoint's defence: the maximum number of cancelled requests on a connection.
async fn endpoint(most: usize) -> Endpoint {
    let (tell, came) = watch::channel(Came::default());
    let address = backends::serve(move |stream| {
        let tell = tell.clone();
        async move {
            tell.send_modify(|came| came.connections += 1);
            serve(stream, most, &tell).await;
        }
    })
    .await;
    Endpoint { address, came }
}

async fn serve(stream: TcpStream, most: usize, tell: &watch::Sender<Came>) {
    let (mut read, write) = stream.into_split();
    let mut preface = [0; PREFACE.len()];
    if read.read_exact(&mut preface).await.is_err() {
        return;
    }
    let write = Arc::new(tokio::sync::Mutex::new(write));
    let send = async |bytes: &[u8]| drop(write.lock().await.write_all(bytes).await);
    send(&frame(SETTINGS, 0, 0, &[])).await;
    let answered = Arc::<Mutex<std::collections::HashSet<u32>>>::default();
    let answer =
        |id| [frame(HEADERS, END_HEADERS, id, OK), frame(DATA, 0, id, b"o"), frame(DATA, END_STREAM, id, b"k")];
    let mut cancelled = 0;
    while let Some((kind, flags, id, payload)) = next_or_end(&mut read).await {
        match kind {
            SETTINGS if flags == 0 => send(&frame(SETTINGS, 1, 0, &[])).await,
            PING if flags == 0 => send(&frame(PING, 1, 0, &payload)).await,
            HEADERS => {
                tell.send_modify(|came| came.requests += 1);
                let (write, answered, bytes) = (Arc::clone(&write), Arc::clone(&answered), answer(id).concat());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    if answered.lock().unwrap().insert(id) {
                        let _ = write.lock().await.write_all(&bytes).await;
                    }
                });
            }
            RST_STREAM => {
                cancelled += 1;
                tell.send_modify(|came| came.cancelled += 1);
                if cancelled > most {
                    send(&frame(GOAWAY, 0, 0, &[&id.to_be_bytes()[..], &11_u32.to_be_bytes()].concat())).await;
                    return;
                }
                if answered.lock().unwrap().insert(id) {
                    send(&answer(id).concat()).await;
                }
            }
            GOAWAY => {
                let code = u32::from_be_bytes(payload[4..8].try_into().unwrap());
                let said = String::from_utf8_lossy(&payload[8..]).into_owned();
                tell.send_modify(|came| came.goodbyes.push((code, said)));
            }
            _ => {}
        }
    }
}

impl Endpoint {
    async fn until(&self, what: &str, holds: impl FnMut(&Came) -> bool) {
        let mut came = self.came.clone();
        timeout(PATIENCE, came.wait_for(holds)).await.unwrap_or_else(|_| panic!("{what} does not come")).unwrap();
    }

    fn requests(&self) -> usize {
        self.came.borrow().requests
    }
}

/// Sends and cancels requests over HTTP/2, a few at a time, each once the endpoint has seen it.
async fn cancel_over_http2(rig: &Rig, endpoint: &Endpoint, times: usize) {
    const AT_ONCE: usize = 40;
    let stream = client::tls(rig.https, Some(HOST), &["h2"]).await;
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..times / AT_ONCE {
        let before = endpoint.requests();
        let mut open = Vec::new();
        for _ in 0..AT_ONCE {
            sender = match timeout(PATIENCE, sender.ready()).await.expect("room") {
                Ok(ready) => ready,
                // The client's library mistakes many short responses to cancelled requests for a flood.
                Err(_) => {
                    let stream = client::tls(rig.https, Some(HOST), &["h2"]).await;
                    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
                    tokio::spawn(connection);
                    sender
                }
            };
            let request = Request::get(format!("https://{HOST}/")).body(()).unwrap();
            open.push(sender.send_request(request, true).unwrap());
        }
        endpoint.until("a request", |came| came.requests >= before + AT_ONCE / 2).await;
        for (_, mut stream) in open {
            stream.send_reset(Reason::CANCEL);
        }
    }
}

/// The same over HTTP/1.1: the client disconnects.
async fn cancel_over_http1(rig: &Rig, endpoint: &Endpoint, times: usize) {
    for _ in 0..times {
        let before = endpoint.requests();
        let mut stream = TcpStream::connect(rig.http).await.unwrap();
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes()).await.unwrap();
        endpoint.until("a request", |came| came.requests > before).await;
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

/// Well-behaved clients send requests with content, one after another, while `meanwhile` runs; returns the number of
/// requests served, and the statuses of the others.
async fn polite(rig: &Rig, meanwhile: impl Future<Output = ()>) -> (usize, Vec<u16>) {
    let (stop, stopped) = watch::channel(false);
    let ask = |_| {
        let (http, stopped) = (rig.http, stopped.clone());
        tokio::spawn(async move {
            let (mut served, mut failed) = (0, Vec::new());
            let post = format!("POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
            while !*stopped.borrow() {
                match client::request(http, &post).await {
                    answer if answer.status == 200 && answer.body == "ok" => served += 1,
                    answer => failed.push(answer.status),
                }
            }
            (served, failed)
        })
    };
    let asking: Vec<_> = (0..8).map(ask).collect();
    meanwhile.await;
    stop.send_replace(true);
    let (mut served, mut failed) = (0, Vec::new());
    for ended in futures_util::future::join_all(asking).await {
        let (of_one, failed_of_one) = ended.unwrap();
        served += of_one;
        failed.extend(failed_of_one);
    }
    (served, failed)
}

async fn rig(endpoint: &Endpoint) -> Rig {
    let insecure = router_table::table::InsecurePolicy::Allow;
    one_worker(&[Route::new(HOST, "").edge(None).insecure(insecure).to(endpoint.address).h2c()]).await
}

#[tokio::test]
async fn thousands_of_cancelled_requests_fail_no_other_request() {
    let endpoint = endpoint(usize::MAX).await;
    let rig = rig(&endpoint).await;
    let (served, failed) = polite(&rig, cancel_over_http2(&rig, &endpoint, 4_000)).await;
    let came = endpoint.came.borrow();
    assert!(failed.is_empty() && came.goodbyes.iter().all(|bye| bye.0 == 0), "{served} served, {failed:?}, {came:?}");
    assert!(served > 10 && came.cancelled > 1_000, "{served} served, {came:?}");
}

#[tokio::test]
async fn thousands_of_closed_clients_fail_no_other_request() {
    let endpoint = endpoint(usize::MAX).await;
    let rig = rig(&endpoint).await;
    let (served, failed) = polite(&rig, cancel_over_http1(&rig, &endpoint, 2_000)).await;
    let came = endpoint.came.borrow();
    assert!(failed.is_empty() && came.goodbyes.iter().all(|bye| bye.0 == 0), "{served} served, {failed:?}, {came:?}");
    assert!(served > 10 && came.cancelled > 1_000, "{served} served, {came:?}");
}

#[tokio::test]
async fn an_endpoint_that_ends_connections_with_many_cancels_ends_none_that_others_share() {
    let endpoint = endpoint(200).await;
    let rig = rig(&endpoint).await;
    let (served, failed) = polite(&rig, cancel_over_http2(&rig, &endpoint, 2_000)).await;
    let came = endpoint.came.borrow();
    assert!(failed.is_empty(), "{served} served, {failed:?}, {came:?}");
    assert!(served > 10 && came.cancelled > 500, "{served} served, {came:?}");
}

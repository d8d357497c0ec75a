//! Limits by client address and by endpoint.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::{Affinity, RoutePolicy, RouterPolicy, SourceLimits, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::{self, Answer};
use crate::tables::{Rig, Route, eventually, table, under};
use crate::{backends, log, pki};

fn sources(limits: SourceLimits) -> RoutePolicy {
    RoutePolicy { source_limits: limits, ..RoutePolicy::default() }
}

async fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

fn get(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn requests_beyond_the_rate_get_429_and_others_are_served() {
    let limits = SourceLimits { requests: NonZeroU32::new(5), ..SourceLimits::default() };
    let backend = backends::http("app").await;
    let config = ProxyConfig { show_cause: true, ..ProxyConfig::default() };
    let routes =
        [Route::new("rate.test", "").to(backend).policy(sources(limits)), Route::new("free.test", "").to(backend)];
    let rig = Rig::start(config, table(&routes, None)).await;
    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(client::get(rig.http, "rate.test", "/").await.status);
    }
    // All within much less than ten seconds, wherever in a window the sixth request falls.
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
    let refused = client::get(rig.http, "rate.test", "/").await;
    assert_eq!((refused.status, refused.field("x-sluice-cause")), (429, Some("rate-limited")));
    assert_eq!(client::exchange(from(2, rig.http).await, &get("rate.test")).await.status, 200, "another address");
    assert_eq!(client::get(rig.http, "free.test", "/").await.status, 200, "another route");
    let is_it = |line: &serde_json::Value| line["host"] == "rate.test" && line["flags"] == "RL";
    assert_eq!(log::line_where("a refused request", is_it).await["status"], 429);
    // The limit is removed with the annotation; the counters are kept when the route is edited.
    let mut edited = routes.clone();
    edited[0] = edited[0].clone().allow(&["127.0.0.0/8"]);
    rig.tables.send_replace(table(&edited, None));
    assert_eq!(client::get(rig.http, "rate.test", "/").await.status, 429);
    edited[0] = edited[0].clone().policy(RoutePolicy::default());
    rig.tables.send_replace(table(&edited, None));
    eventually("the new table", async || client::get(rig.http, "rate.test", "/").await.status == 200).await;
}

/// A relayed connection; `None` if it is reset.
async fn relayed(rig: &Rig, last: u8, host: &str) -> Option<TcpStream> {
    let mut stream = from(last, rig.https).await;
    stream.write_all(&client::hello(host)).await.unwrap();
    let mut name = [0; 4];
    match stream.read_exact(&mut name).await {
        Ok(_) => Some(stream),
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            None
        }
    }
}

#[tokio::test]
async fn relayed_connections_beyond_a_limit_are_reset() {
    let backend = backends::named_echo("pass").await;
    let concurrent = SourceLimits { concurrent: NonZeroU32::new(2), ..SourceLimits::default() };
    let rate = SourceLimits { connections: NonZeroU32::new(3), ..SourceLimits::default() };
    let route = |host: &str, limits| Route::new(host, "").passthrough().to(backend).policy(sources(limits));
    let rig = Rig::serve(&[route("two.limit.test", concurrent), route("rate.limit.test", rate)]).await;
    let first = relayed(&rig, 1, "two.limit.test").await.unwrap();
    let _second = relayed(&rig, 1, "two.limit.test").await.unwrap();
    assert!(relayed(&rig, 1, "two.limit.test").await.is_none());
    assert!(relayed(&rig, 2, "two.limit.test").await.is_some());
    let is_it = |line: &serde_json::Value| line["host"] == "two.limit.test" && line["flags"] == "RL";
    log::line_where("a refused connection", is_it).await;
    drop(first);
    eventually("room for another", async || relayed(&rig, 1, "two.limit.test").await.is_some()).await;

    let mut made = 0;
    for _ in 0..6 {
        made += u32::from(relayed(&rig, 1, "rate.limit.test").await.is_some());
    }
    assert_eq!(made, 3);
}

/// A backend that holds its responses until they are released, with the number of its requests.
struct Held {
    address: SocketAddr,
    release: watch::Sender<usize>,
    asked: watch::Receiver<usize>,
}

async fn held() -> Held {
    let (release, released) = watch::channel(0);
    let (begun, asked) = watch::channel(0);
    let (begun, ended) = (Arc::new(begun), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let address = backends::serve(move |mut stream| {
        let (mut released, begun, ended) = (released.clone(), Arc::clone(&begun), Arc::clone(&ended));
        async move {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).await.unwrap_or(0) > 0 {
                begun.send_modify(|begun| *begun += 1);
                let turn = ended.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                released.wait_for(|released| *released > turn).await.unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        }
    })
    .await;
    Held { address, release, asked }
}

fn ask(to: SocketAddr, host: &'static str) -> JoinHandle<Answer> {
    tokio::spawn(async move { client::request(to, &get(host)).await })
}

fn one_each() -> RoutePolicy {
    let affinity = Affinity { disabled: true, ..Affinity::default() };
    RoutePolicy { endpoint_connections: NonZeroU32::new(1), affinity, ..RoutePolicy::default() }
}

#[tokio::test]
async fn an_endpoint_that_has_enough_lets_the_next_one_wait() {
    let mut one = held().await;
    let rig = Rig::serve(&[Route::new("pod.test", "").to(one.address).policy(one_each())]).await;
    let first = ask(rig.http, "pod.test");
    one.asked.wait_for(|asked| *asked == 1).await.unwrap();
    let others = [ask(rig.http, "pod.test"), ask(rig.http, "pod.test")];
    for released in 1..=3 {
        // The endpoint never has two requests at a time.
        assert_eq!(*one.asked.borrow(), released);
        one.release.send_replace(released);
        if released < 3 {
            one.asked.wait_for(|asked| *asked == released + 1).await.unwrap();
        }
    }
    assert_eq!(first.await.unwrap().status, 200);
    for other in others {
        assert_eq!(other.await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_request_that_waits_too_long_gets_a_busy_response() {
    let mut one = held().await;
    let timeouts = Timeouts { connect: Duration::from_millis(200), ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let config = ProxyConfig { show_cause: true, ..ProxyConfig::default() };
    let key = pki::ca().leaf(&["busy.test"]);
    let routes = [Route::new("busy.test", "").to(one.address).policy(one_each())];
    let rig = Rig::start(config, under(policy, table(&routes, Some(&key)))).await;
    let first = ask(rig.http, "busy.test");
    one.asked.wait_for(|asked| *asked == 1).await.unwrap();
    let second = client::get(rig.http, "busy.test", "/").await;
    assert_eq!((second.status, second.field("x-sluice-cause")), (503, Some("backends-busy")));
    let is_it = |line: &serde_json::Value| line["host"] == "busy.test" && line["flags"] == "UO";
    assert_eq!(log::line_where("a busy route", is_it).await["status"], 503);
    one.release.send_replace(9);
    assert_eq!(first.await.unwrap().status, 200);
    assert_eq!(client::get(rig.http, "busy.test", "/").await.status, 200);
}

#[tokio::test]
async fn relayed_connections_count_for_their_endpoint() {
    let backend = backends::named_echo("pass").await;
    let rig = Rig::serve(&[Route::new("pod-pass.test", "").passthrough().to(backend).policy(one_each())]).await;
    let first = relayed(&rig, 1, "pod-pass.test").await.unwrap();
    let mut second = from(2, rig.https).await;
    second.write_all(&client::hello("pod-pass.test")).await.unwrap();
    let mut name = [0; 4];
    assert!(
        tokio::time::timeout(Duration::from_millis(100), second.read_exact(&mut name)).await.is_err(),
        "there is one already"
    );
    drop(first);
    second.read_exact(&mut name).await.unwrap();
    assert_eq!(&name, b"pass");
}

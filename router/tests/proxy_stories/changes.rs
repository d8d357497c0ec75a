//! Tables that change while connections are open, listeners that are added and removed, and shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use router_listener::{BindState, Protocol};
use router_proxy::{Proxy, ProxyConfig};
use router_table::table::{Endpoint, RoutingTable};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, eventually, of_routers, router, table};
use crate::{backends, client, pki};

/// One request on a kept-alive connection: the first line of the body, or the status if it is not 200.
async fn ask(stream: &mut TcpStream, host: &str) -> String {
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    if !head.starts_with("http/1.1 200 ") {
        return head[9..12].to_owned();
    }
    String::from_utf8(body).unwrap().lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_new_table_is_effective_on_open_connections() {
    let (one, two) = (backends::http("one").await, backends::http("two").await);
    let still = Route::new("still.swap.test", "").to(one);
    let rig = Rig::serve(&[still.clone(), Route::new("moved.swap.test", "").to(one)]).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    assert_eq!(ask(&mut stream, "moved.swap.test").await, "one GET /");
    rig.tables.send_replace(table(&[still.clone(), Route::new("moved.swap.test", "").to(two)], None));
    eventually("the move", async || ask(&mut stream, "moved.swap.test").await == "two GET /").await;
    rig.tables.send_replace(table(&[still], None));
    eventually("the removal", async || ask(&mut stream, "moved.swap.test").await == "503").await;
    assert_eq!(ask(&mut stream, "still.swap.test").await, "one GET /");
}

#[tokio::test]
async fn a_route_that_stays_follows_its_endpoints() {
    let (one, two) = (backends::http("one").await, backends::http("two").await);
    let first = table(&[Route::new("late.swap.test", "").to(one)], None);
    let rig = Rig::start(ProxyConfig::default(), Arc::clone(&first)).await;
    let with = |address: Option<SocketAddr>| {
        let endpoint = |address| Endpoint { address, target: None, h2c: false };
        let mut endpoints = first.endpoints.clone();
        endpoints.renew("shop", "app", |_| address.into_iter().map(endpoint).collect());
        Arc::new(RoutingTable { revision: 2, routers: first.routers.clone(), endpoints })
    };
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    assert_eq!(ask(&mut stream, "late.swap.test").await, "one GET /");
    for (address, expected) in [(Some(two), "two GET /"), (None, "503"), (Some(one), "one GET /")] {
        rig.tables.send_replace(with(address));
        eventually("the other endpoint", async || ask(&mut stream, "late.swap.test").await == expected).await;
    }
}

#[tokio::test]
async fn relayed_connections_outlive_their_route() {
    let backend = backends::tls_echo("name", pki::server_config(pki::ca().leaf(&["gone.test"]))).await;
    let rig = Rig::serve(&[Route::new("gone.test", "").passthrough().to(backend)]).await;
    let mut stream = client::tls(rig.https, Some("gone.test"), &[]).await;
    rig.tables.send_replace(Arc::new(RoutingTable::default()));
    let mut listeners = rig.proxy.listeners();
    timeout(PATIENCE, listeners.wait_for(|states| states.is_empty())).await.expect("no listeners").unwrap();
    assert!(TcpStream::connect(rig.https).await.is_err(), "the listener is closed");
    stream.write_all(b" still here").await.unwrap();
    let mut text = [0; 15];
    stream.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"name still here");
}

fn two_routers(first: (u16, u16), second: Option<(u16, u16)>) -> Arc<RoutingTable> {
    let mut routers = vec![router("first", &[], None, first)];
    routers.extend(second.map(|ports| router("second", &[], None, ports)));
    of_routers(routers)
}

#[tokio::test]
async fn a_port_that_is_taken_is_reported_and_tried_again() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (tables, receiver) = watch::channel(two_routers((0, 0), Some((port, 0))));
    let config = ProxyConfig { listen: vec![[127, 0, 0, 1].into()], ..ProxyConfig::default() };
    let proxy = Proxy::start(config, receiver);
    let mut listeners = proxy.listeners();
    let states = Arc::clone(&*timeout(PATIENCE, listeners.wait_for(|s| s.len() == 4)).await.expect("states").unwrap());
    let failed: Vec<_> = states.iter().filter(|state| state.state != BindState::Bound).collect();
    assert_eq!(failed.len(), 1, "{states:?}");
    assert_eq!((failed[0].router.0.as_ref(), failed[0].protocol), ("second", Protocol::Http));
    assert_eq!(failed[0].address, SocketAddr::from(([127, 0, 0, 1], port)));
    assert!(matches!(&failed[0].state, BindState::Failed(why) if why.contains("in use")), "{failed:?}");
    let first: Vec<_> = states.iter().filter(|state| state.router.0.as_ref() == "first").cloned().collect();

    drop(taken);
    let bound = listeners.wait_for(|states| states.iter().all(|state| state.state == BindState::Bound));
    timeout(PATIENCE, bound).await.expect("the retry").unwrap();
    TcpStream::connect(("127.0.0.1", port)).await.unwrap();

    // The second router is removed; the listeners of the first one are not affected.
    tables.send_replace(two_routers((0, 0), None));
    let left = Arc::clone(&*timeout(PATIENCE, listeners.wait_for(|s| s.len() == 2)).await.expect("two").unwrap());
    assert_eq!(*left, first);
}

#[tokio::test]
async fn ports_move_between_routers() {
    let (tables, receiver) = watch::channel(two_routers((0, 0), None));
    let config = ProxyConfig { listen: vec![[127, 0, 0, 1].into()], ..ProxyConfig::default() };
    let proxy = Proxy::start(config, receiver);
    let mut listeners = proxy.listeners();
    let states = Arc::clone(&*timeout(PATIENCE, listeners.wait_for(|s| s.len() == 2)).await.expect("states").unwrap());
    let port = states[0].address.port();
    tables.send_replace(two_routers((port, 0), None));
    let moved = listeners.wait_for(|s| {
        s.len() == 2 && s[0].address.port() == port && s.iter().all(|state| state.state == BindState::Bound)
    });
    timeout(PATIENCE, moved).await.expect("the same port under another key").unwrap();
}

#[tokio::test]
async fn both_address_families_listen() {
    let (_tables, receiver) = watch::channel(two_routers((0, 0), None));
    let listen = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
    let proxy = Proxy::start(ProxyConfig { listen, ..ProxyConfig::default() }, receiver);
    let mut listeners = proxy.listeners();
    let states = Arc::clone(&*timeout(PATIENCE, listeners.wait_for(|s| s.len() == 4)).await.expect("states").unwrap());
    for state in states.iter() {
        assert_eq!(state.state, BindState::Bound);
        TcpStream::connect(state.address).await.unwrap();
    }
}

#[tokio::test]
async fn a_graceful_stop_lets_requests_finish() {
    let (release, released) = watch::channel(false);
    let (asked, mut was_asked) = watch::channel(false);
    let backend = backends::serve(move |mut stream| {
        let (mut released, asked) = (released.clone(), asked.clone());
        async move {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            asked.send_replace(true);
            released.wait_for(|released| *released).await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").await;
        }
    })
    .await;
    let rig = Rig::serve(&[Route::new("drain.test", "").to(backend)]).await;
    let (http, proxy) = (rig.http, rig.proxy);
    let mut idle = TcpStream::connect(http).await.unwrap();
    let mut waiting = TcpStream::connect(http).await.unwrap();
    waiting.write_all(b"GET / HTTP/1.1\r\nHost: drain.test\r\n\r\n").await.unwrap();
    was_asked.wait_for(|asked| *asked).await.unwrap();
    let stopped = tokio::spawn(proxy.shutdown(10 * PATIENCE));
    // The idle connection ends when the time-out for its next request expires; new connections are not accepted, and
    // the proxy waits for the request in progress.
    let mut told = String::new();
    idle.read_to_string(&mut told).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 408 "), "{told}");
    eventually("the listener's end", async || TcpStream::connect(http).await.is_err()).await;
    assert!(!stopped.is_finished());
    release.send_replace(true);
    let mut text = String::new();
    waiting.read_to_string(&mut text).await.unwrap();
    assert!(text.ends_with("done"), "{text}");
    timeout(PATIENCE, stopped).await.expect("the stop").unwrap();
}

#[tokio::test]
async fn the_deadline_ends_what_does_not_end_itself() {
    let backend = backends::tls_echo("name", pki::server_config(pki::ca().leaf(&["stuck.test"]))).await;
    let rig = Rig::serve(&[Route::new("stuck.test", "").passthrough().to(backend)]).await;
    let mut stream = client::tls(rig.https, Some("stuck.test"), &[]).await;
    timeout(PATIENCE, rig.proxy.shutdown(Duration::from_millis(50))).await.expect("the stop");
    let mut rest = Vec::new();
    // A connection that ends without close_notify is an error.
    assert!(timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("an end").is_err());
}

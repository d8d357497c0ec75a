//! `timeoutPolicy`: time-outs for responses and silence, and the lifetime of idle connections.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::log;
use crate::recorder::Recorder;
use crate::tables::{PATIENCE, eventually};

/// Less than the router's default time-outs.
const SOON: Duration = Duration::from_secs(10);

/// A router with this time-out for clients and endpoints.
fn router(patience: &str) -> Value {
    let tuning = json!({ "clientTimeout": patience, "serverTimeout": patience, "tunnelTimeout": patience });
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": { "namespace": "openshift-ingress-operator", "name": "default" },
        "spec": { "domain": "apps.test", "tuningOptions": tuning },
    })
}

fn with(policy: Value) -> Value {
    json!({ "services": to(&["app"]), "timeoutPolicy": policy })
}

/// Accepts requests and never responds.
async fn silent() -> SocketAddr {
    backends::serve(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await
}

/// Responds in parts, with this delay before each.
async fn slow(pause: Duration) -> SocketAddr {
    backends::serve(move |mut stream| async move {
        while stream.read(&mut [0; 1024]).await.unwrap_or(0) > 0 {
            for part in ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", "ab", "cd"] {
                tokio::time::sleep(pause).await;
                let _ = stream.write_all(part.as_bytes()).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_peer_silent_for_longer_than_idle_ends_the_request() {
    let objects = [vec![proxy("proxy-idle", with(json!({ "idle": "200ms" })))], service("app", &[silent().await])];
    let world = World::of(objects.concat()).await;
    let begun = Instant::now();
    assert_eq!(ask(&world, "proxy-idle.test", "/", &[]).await.status, 504);
    assert!((Duration::from_millis(200)..SOON).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(log::line("host", "proxy-idle.test").await["flags"], "UT");
    // A client that stops sending its content.
    let (begun, mut stream) = (Instant::now(), TcpStream::connect(world.rig.http).await.unwrap());
    let head = "POST / HTTP/1.1\r\nHost: proxy-idle.test\r\nContent-Length: 10\r\n\r\nabc";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an answer").unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 ") && begun.elapsed() < SOON, "{answer} {:?}", begun.elapsed());
    for what in ["idle timeout", "endpoint timeout", "tunnel timeout"] {
        assert_eq!(world.setting("http://proxy-idle.test/", what).unwrap(), "200ms", "{what}");
    }
}

#[tokio::test]
async fn idle_gives_more_time_than_the_router_does_and_infinity_all_of_it() {
    let slow = slow(Duration::from_millis(400)).await;
    let names =
        [("more", json!({ "idle": "1m" })), ("all", json!({ "idle": "infinity" })), ("proxy-untimed", json!({}))];
    let proxies = names.map(|(name, policy)| proxy(name, with(policy)));
    let world = World::of([proxies.to_vec(), vec![router("100ms")], service("app", &[slow])].concat()).await;
    for host in ["more.test", "all.test"] {
        let answer = ask(&world, host, "/", &[]).await;
        assert_eq!((answer.status, &*answer.body), (200, "abcd"), "{host}");
    }
    assert_eq!(ask(&world, "proxy-untimed.test", "/", &[]).await.status, 504);
    assert_eq!(world.setting("http://all.test/", "idle timeout").unwrap(), "none");
    // The client is not disconnected either.
    let mut stream = TcpStream::connect(world.rig.http).await.unwrap();
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: more.test\r\nContent-Length: 4\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    for part in ["ab", "cd"] {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stream.write_all(part.as_bytes()).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("abcd"), "{answer}");
}

#[tokio::test]
async fn what_moves_is_not_idle_and_the_response_timeout_stands_beside() {
    let endpoint = slow(Duration::from_millis(300)).await;
    let [busy, whole] = [json!({ "idle": "700ms" }), json!({ "idle": "700ms", "response": "500ms" })];
    let objects = [vec![proxy("proxy-busy", with(busy)), proxy("whole", with(whole))], service("app", &[endpoint])];
    let world = World::of(objects.concat()).await;
    assert_eq!(ask(&world, "proxy-busy.test", "/", &[]).await.body, "abcd");
    // The response has begun and is cut off.
    let mut stream = TcpStream::connect(world.rig.http).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: whole.test\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).ends_with("abcd"));
    assert_eq!(log::line("host", "whole.test").await["flags"], "UT");
}

#[tokio::test]
async fn a_timeout_of_zero_is_none_that_is_written() {
    let zero = json!({ "response": "0s", "idle": "0s", "idleConnection": "0s" });
    let objects = [vec![proxy("zero", with(zero)), router("300ms")], service("app", &[silent().await])];
    let world = World::of(objects.concat()).await;
    let begun = Instant::now();
    assert_eq!(ask(&world, "zero.test", "/", &[]).await.status, 504, "the router's own time holds");
    assert!(begun.elapsed() < SOON);
    for what in ["idle timeout", "request timeout", "idle connection timeout"] {
        assert_eq!(world.setting("http://zero.test/", what), None, "{what}");
    }
}

#[tokio::test]
async fn a_tunnel_may_be_silent_for_as_long_as_idle_says() {
    let endpoint = backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        let switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
        let _ = stream.write_all(switch).await;
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
    })
    .await;
    let [short, long] = [json!({ "idle": "200ms" }), json!({ "idle": "infinity" })];
    let objects = [
        vec![proxy("proxy-short", with(short)), proxy("long", with(long)), router("500ms")],
        service("app", &[endpoint]),
    ];
    let world = World::of(objects.concat()).await;
    let open = async |host: &str| {
        let mut stream = TcpStream::connect(world.rig.http).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "));
        stream
    };
    let (mut short, mut long) = (open("proxy-short.test").await, open("long.test").await);
    let begun = Instant::now();
    let end = tokio::time::timeout(PATIENCE, short.read(&mut [0; 16])).await.expect("the end of the tunnel");
    assert!(matches!(end, Ok(0) | Err(_)) && begun.elapsed() < SOON, "{end:?} {:?}", begun.elapsed());
    tokio::time::sleep(Duration::from_millis(700)).await;
    long.write_all(b"still here").await.unwrap();
    let mut echo = [0; 10];
    long.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"still here");
}

#[tokio::test]
async fn idle_connections_are_kept_for_as_long_as_the_route_says() {
    let recorder = Recorder::start("app").await;
    let [short, long] = [json!({ "idleConnection": "300ms" }), json!({ "idleConnection": "infinity" })];
    let objects =
        [vec![proxy("proxy-short", with(short)), proxy("long", with(long))], service("app", &[recorder.address])]
            .concat();
    let config = router_proxy::ProxyConfig { workers: std::num::NonZeroUsize::new(1), ..Default::default() };
    let world = World::with(config, objects).await;
    let over = async |host: &str| {
        assert_eq!(ask(&world, host, "/", &[]).await.status, 200);
        recorder.take().pop().unwrap().connection
    };
    let (first, kept) = (over("proxy-short.test").await, over("long.test").await);
    assert_ne!(first, kept, "what is kept for a different time is not mixed");
    assert_eq!((over("proxy-short.test").await, over("long.test").await), (first, kept));
    // Closed when its time expires, without any request,
    let begun = Instant::now();
    eventually("the end of the idle connection", async || recorder.has_ended(first)).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(over("proxy-short.test").await != first);
    // while the other one stays open.
    assert!(!recorder.has_ended(kept));
    assert_eq!(over("long.test").await, kept);
    assert_eq!(world.setting("http://proxy-short.test/", "idle connection timeout").unwrap(), "300ms");
    assert_eq!(world.setting("http://long.test/", "idle connection timeout").unwrap(), "none");
}

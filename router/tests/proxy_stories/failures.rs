//! Backends that fail in different ways.

use std::time::{Duration, Instant};

use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tables::{Rig, Route, eventually, table, under};
use crate::{backends, client, log};

/// A router with a time-out of 300 ms for endpoints and clients.
async fn impatient(routes: &[Route]) -> Rig {
    let short = Duration::from_millis(300);
    let timeouts = Timeouts { server: short, client: short, ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    Rig::start(ProxyConfig::default(), under(policy, table(routes, None))).await
}

#[tokio::test]
async fn a_refusing_endpoint_is_passed_over() {
    let endpoints = [backends::refusing(), backends::http("alive").await, backends::refusing()];
    let rig = Rig::serve(&[Route::new("over.test", "").service("app", &endpoints)]).await;
    for _ in 0..10 {
        let answer = client::get(rig.http, "over.test", "/").await;
        assert!(answer.body.starts_with("alive GET /\n"), "{answer:?}");
    }
}

/// A router with this connect time-out.
async fn connecting_within(connect: Duration, health_check: Duration, routes: &[Route]) -> Rig {
    let timeouts = Timeouts { connect, health_check, ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    Rig::start(ProxyConfig::default(), under(policy, table(routes, None))).await
}

/// The status of a response, and its duration.
async fn timed(rig: &Rig, host: &str) -> (u16, Duration) {
    let begun = Instant::now();
    let status = client::get(rig.http, host, "/").await.status;
    (status, begun.elapsed())
}

#[tokio::test]
async fn endpoints_that_do_not_answer_cost_the_time_to_connect_once_and_then_next_to_none() {
    let holes = [backends::black_hole(), backends::black_hole(), backends::black_hole(), backends::black_hole()];
    let addresses: Vec<_> = holes.iter().map(|(_, address)| *address).collect();
    let connect = Duration::from_secs(2);
    let never = Duration::from_secs(3600);
    let rig = connecting_within(connect, never, &[Route::new("holes.test", "").service("app", &addresses)]).await;
    let three = tokio::join!(timed(&rig, "holes.test"), timed(&rig, "holes.test"), timed(&rig, "holes.test"));
    for (status, took) in [three.0, three.1, three.2] {
        assert!(status == 504 && took < 2 * connect, "{status} after {took:?}");
    }
    // The fourth request may come so late that it probes the endpoint again.
    let mut last = (0, connect);
    for _ in 0..8 {
        last = timed(&rig, "holes.test").await;
        if last.1 < connect / 4 {
            break;
        }
    }
    assert!(last.0 == 503 && last.1 < connect / 4, "{last:?}");
}

#[tokio::test]
async fn an_endpoint_that_is_known_to_be_down_is_served_from_as_soon_as_it_is_back() {
    let (hole, address) = backends::black_hole();
    let connect = Duration::from_millis(500);
    let rig = connecting_within(connect, connect, &[Route::new("back.test", "").to(address)]).await;
    for _ in 0..3 {
        assert_eq!(timed(&rig, "back.test").await.0, 504);
    }
    eventually("the quick answer", async || timed(&rig, "back.test").await.0 == 503).await;
    let line = log::line_where("the refusal", |line| line["host"] == "back.test" && line["status"] == 503).await;
    assert_eq!(line["flags"], "UF");
    hole.listen(16).unwrap();
    hole.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(hole.into()).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            });
        }
    });
    eventually("the answer", async || timed(&rig, "back.test").await.0 == 200).await;
}

#[tokio::test]
async fn a_silent_backend_is_a_504() {
    let backend = backends::serve(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let rig = impatient(&[Route::new("silent.test", "").to(backend)]).await;
    assert_eq!(client::get(rig.http, "silent.test", "/").await.status, 504);
    assert_eq!(log::line("host", "silent.test").await["flags"], "UT");
}

#[tokio::test]
async fn a_backend_that_closes_without_a_response_is_a_502() {
    let backend = backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
    })
    .await;
    let rig = Rig::serve(&[Route::new("hangs.test", "").to(backend)]).await;
    assert_eq!(client::get(rig.http, "hangs.test", "/").await.status, 502);
    assert_eq!(log::line("host", "hangs.test").await["flags"], "UC");
}

/// Reads a chunked response until the connection ends; true if it includes the last chunk.
async fn read_broken(http: std::net::SocketAddr, host: &str) -> (String, bool) {
    let mut stream = TcpStream::connect(http).await.unwrap();
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // Here, a reset is as good an end as any.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let complete = text.ends_with("0\r\n\r\n");
    (text, complete)
}

#[tokio::test]
async fn a_body_that_breaks_off_never_looks_complete() {
    const START: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nstart\r\n";
    let broken = backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(START).await;
    })
    .await;
    let stalled = backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(START).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let routes = [Route::new("broken.test", "").to(broken), Route::new("stalled.test", "").to(stalled)];
    let rig = impatient(&routes).await;
    for (host, flag) in [("broken.test", "UC"), ("stalled.test", "UT")] {
        let (text, complete) = read_broken(rig.http, host).await;
        assert!(text.contains("start") && !complete, "{host}: {text}");
        assert_eq!(log::line("host", host).await["flags"], flag, "{host}");
    }
}

#[tokio::test]
async fn a_client_that_stalls_its_body_gets_408() {
    let rig = impatient(&[Route::new("stall.test", "").to(backends::http("app").await)]).await;
    let answer =
        client::request(rig.http, "POST / HTTP/1.1\r\nHost: stall.test\r\nContent-Length: 10\r\n\r\nhalf").await;
    assert_eq!(answer.status, 408);
    assert_eq!(log::line("host", "stall.test").await["flags"], "CT");
}

#[tokio::test]
async fn a_client_that_leaves_is_noted() {
    let backend = backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n").await;
        while stream.write_all(&[b'x'; 65536]).await.is_ok() {}
    })
    .await;
    let rig = Rig::serve(&[Route::new("leaves.test", "").to(backend)]).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: leaves.test\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 4096]).await.unwrap();
    drop(stream);
    let line = log::line("host", "leaves.test").await;
    assert_eq!((line["status"].as_u64(), line["flags"].as_str()), (Some(200), Some("DC")));
}

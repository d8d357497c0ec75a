//! `timeouts` of rules.

use std::time::{Duration, Instant};

use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use router_table::rule::{BackendPolicy, RulePolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tables::{Rig, Route, table, under};
use crate::{backends, client, log};

const SHORT: Duration = Duration::from_millis(200);
/// Less than the router's default time-out for endpoints.
const SOON: Duration = Duration::from_secs(10);

fn request_timeout(host: &str, timeout: Duration) -> Route {
    Route::new(host, "").rule(RulePolicy { request_timeout: Some(timeout), ..RulePolicy::default() })
}

fn backend_timeout(host: &str, timeout: Duration) -> Route {
    Route::new(host, "").rule(RulePolicy { backend_timeout: Some(timeout), ..RulePolicy::default() })
}

/// Accepts requests and never responds.
async fn silent() -> std::net::SocketAddr {
    backends::serve(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await
}

/// Begins a response at once and continues forever, one byte every 20 ms.
async fn trickling() -> std::net::SocketAddr {
    backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        while stream.write_all(b"1\r\nx\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// Responds after this time.
async fn slow(after: Duration) -> std::net::SocketAddr {
    backends::serve(move |mut stream| async move {
        while stream.read(&mut [0; 1024]).await.unwrap_or(0) > 0 {
            tokio::time::sleep(after).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
    })
    .await
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_in_time_is_a_504() {
    let silent = silent().await;
    let rig = Rig::serve(&[
        request_timeout("request.time.test", SHORT).to(silent),
        backend_timeout("backend.time.test", SHORT).to(silent),
        Route::new("both.time.test", "")
            .rule(RulePolicy {
                request_timeout: Some(SHORT),
                backend_timeout: Some(Duration::from_secs(60)),
                ..RulePolicy::default()
            })
            .to(silent),
    ])
    .await;
    for host in ["request.time.test", "backend.time.test", "both.time.test"] {
        let begun = Instant::now();
        assert_eq!(client::get(rig.http, host, "/").await.status, 504, "{host}");
        assert!((SHORT..SOON).contains(&begun.elapsed()), "{host}: {:?}", begun.elapsed());
        assert_eq!(log::line("host", host).await["flags"], "UT");
    }
}

#[tokio::test]
async fn an_upload_that_is_under_way_does_not_stop_the_clock() {
    let rig = Rig::serve(&[request_timeout("upload.time.test", SHORT).to(silent().await)]).await;
    let stream = TcpStream::connect(rig.http).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        let head = b"POST / HTTP/1.1\r\nHost: upload.time.test\r\nContent-Length: 1000000\r\n\r\n";
        let mut sent = write.write_all(head).await;
        while sent.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            sent = write.write_all(b"x").await;
        }
    });
    let begun = Instant::now();
    let mut status = [0; 12];
    read.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 504");
    assert!((SHORT..SOON).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    sending.abort();
}

#[tokio::test]
async fn an_answer_that_does_not_end_in_time_is_cut() {
    let trickling = trickling().await;
    let rig = Rig::serve(&[
        request_timeout("request.cut.test", SHORT).to(trickling),
        backend_timeout("backend.cut.test", SHORT).to(trickling),
    ])
    .await;
    for host in ["request.cut.test", "backend.cut.test"] {
        let mut stream = TcpStream::connect(rig.http).await.unwrap();
        let begun = Instant::now();
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        // Here, a reset is as good an end as any.
        let _ = stream.read_to_end(&mut bytes).await;
        assert!((SHORT..SOON).contains(&begun.elapsed()), "{host}: {:?}", begun.elapsed());
        assert!(bytes.starts_with(b"HTTP/1.1 200 ") && !bytes.ends_with(b"0\r\n\r\n"), "{host}");
        assert_eq!(log::line("host", host).await["flags"], "UT");
    }
}

#[tokio::test]
async fn zero_is_no_timeout_and_a_long_one_is_longer_than_the_routers() {
    let slow = slow(Duration::from_millis(400)).await;
    let routes = [
        request_timeout("zero.time.test", Duration::ZERO).to(slow),
        request_timeout("long.time.test", Duration::from_secs(60)).to(slow),
        backend_timeout("patient.time.test", Duration::from_secs(60)).to(slow),
        Route::new("default.time.test", "").rule(RulePolicy::default()).to(slow),
    ];
    let rig = Rig::serve(&routes).await;
    assert_eq!(client::get(rig.http, "zero.time.test", "/").await.status, 200);
    let timeouts = Timeouts { server: Duration::from_millis(100), ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let impatient = Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await;
    for (host, status) in [("long.time.test", 200), ("patient.time.test", 200), ("default.time.test", 504)] {
        assert_eq!(client::get(impatient.http, host, "/").await.status, status, "{host}");
    }
}

#[tokio::test]
async fn each_try_has_its_own_time() {
    // The first endpoint accepts no connections: its queue is full.
    let full = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let stuck = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&stuck, Duration::from_millis(200)) {
        waiting.push(stream);
    }
    let alive = backends::http("alive").await;
    let policy = BackendPolicy::default;
    let route = backend_timeout("tries.time.test", Duration::from_millis(500))
        .backend("stuck", 1, &[stuck], policy())
        .backend("alive", 1, &[alive], policy());
    let rig = Rig::serve(&[route]).await;
    for _ in 0..2 {
        assert_eq!(client::get(rig.http, "tries.time.test", "/").await.field("x-backend"), Some("alive"));
    }
}

//! Clients and routers that close connections: `closedClientConnectionPolicy` and `idleConnectionTerminationPolicy`.

use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, eventually, table, under};
use crate::{backends, log};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Everything until the connection ends.
async fn until_end(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("an end").unwrap();
    text
}

/// Reads one response [`OK`]; returns its head.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\nok") {
        text.push(timeout(PATIENCE, stream.read_u8()).await.expect("an answer").unwrap().into());
    }
    text
}

#[tokio::test]
async fn a_client_that_has_no_more_to_send_gets_its_answer() {
    let fin = Duration::from_millis(50);
    let timeouts = Timeouts { client_fin: fin, ..Timeouts::default() };
    let backend = backends::serve(move |mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        // Longer than the time-out of a half-closed connection.
        tokio::time::sleep(5 * fin).await;
        let _ = stream.write_all(OK).await;
    })
    .await;
    let routes = [Route::new("half.leave.test", "").to(backend)];
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await;
    for version in ["1.1", "1.0"] {
        let mut stream = TcpStream::connect(rig.http).await.unwrap();
        let request = format!("GET /{version} HTTP/{version}\r\nHost: half.leave.test\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let text = until_end(&mut stream).await;
        assert!(text.starts_with(&format!("HTTP/{version} 200 ")) && text.ends_with("\r\n\r\nok"), "{text}");
        assert_eq!(log::line("path", &format!("/{version}")).await["flags"], "-");
    }
}

#[tokio::test]
async fn where_it_says_abort_a_request_ends_with_its_client() {
    let (asked, mut was_asked) = watch::channel(0);
    let (left, mut was_left) = watch::channel(0);
    let backend = backends::serve(move |mut stream| {
        let (asked, left) = (asked.clone(), left.clone());
        async move {
            let _ = stream.read(&mut [0; 1024]).await;
            asked.send_modify(|count| *count += 1);
            // It never responds, and observes the end of the connection.
            let _ = stream.read_to_end(&mut Vec::new()).await;
            left.send_modify(|count| *count += 1);
        }
    })
    .await;
    let routes = [Route::new("abort.leave.test", "").to(backend)];
    let timeouts = Timeouts { client_fin: 10 * PATIENCE, server: 10 * PATIENCE, ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, abort_closed_clients: true, ..RouterPolicy::default() };
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: abort.leave.test\r\n\r\n").await.unwrap();
    timeout(PATIENCE, was_asked.wait_for(|count| *count == 1)).await.expect("the request").unwrap();
    stream.shutdown().await.unwrap();
    timeout(PATIENCE, was_left.wait_for(|count| *count == 1)).await.expect("its end").unwrap();
    assert_eq!(until_end(&mut stream).await, "");
    assert_eq!(log::line("host", "abort.leave.test").await["flags"], "DC");
}

#[tokio::test]
async fn idle_connections_end_with_the_router_or_after_one_more_request() {
    for defer_idle_termination in [false, true] {
        let backend = backends::serve(|mut stream| async move {
            while stream.read(&mut [0; 1024]).await.unwrap_or(0) > 0 {
                let _ = stream.write_all(OK).await;
            }
        })
        .await;
        let routes = [Route::new("idle.leave.test", "").to(backend)];
        let policy = RouterPolicy { defer_idle_termination, ..RouterPolicy::default() };
        let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await;
        let (http, proxy) = (rig.http, rig.proxy);
        let request = b"GET / HTTP/1.1\r\nHost: idle.leave.test\r\n\r\n";
        let mut idle = TcpStream::connect(http).await.unwrap();
        idle.write_all(request).await.unwrap();
        assert!(!answer(&mut idle).await.contains("connection: close"));
        let stopped = tokio::spawn(proxy.shutdown(10 * PATIENCE));
        eventually("the listener's end", async || TcpStream::connect(http).await.is_err()).await;
        if defer_idle_termination {
            assert!(!stopped.is_finished());
            idle.write_all(request).await.unwrap();
            assert!(answer(&mut idle).await.contains("connection: close\r\n"));
        }
        assert_eq!(until_end(&mut idle).await, "");
        timeout(PATIENCE, stopped).await.expect("the stop").unwrap();
    }
}

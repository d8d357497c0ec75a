//! Requests that are repeated, and requests that are not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::backends_h2::one_worker;
use crate::tables::{PATIENCE, Rig, Route, eventually, table, under};
use crate::{backends, client, log};

/// First lines of the requests that a backend received, in order.
type Seen = Arc<Mutex<Vec<String>>>;

/// Responds to the first request of each connection; reads the second one, responds with `half`, and closes the
/// connection.
async fn ends_at_the_second(seen: Seen, half: &'static [u8]) -> SocketAddr {
    backends::serve(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            for answer in [&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"[..], half] {
                let mut buffer = [0; 4096];
                let read = stream.read(&mut buffer).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
                let Some(line) = text.lines().next().filter(|line| !line.is_empty()) else { return };
                seen.lock().unwrap().push(line.to_owned());
                let _ = stream.write_all(answer).await;
            }
        }
    })
    .await
}

async fn ask(rig: &Rig, host: &str, method: &str, body: &str) -> u16 {
    let length = if method == "GET" { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let text = format!("{method} /{method} HTTP/1.1\r\nHost: {host}\r\n{length}Connection: close\r\n\r\n{body}");
    client::request(rig.http, &text).await.status
}

#[tokio::test]
async fn what_can_do_no_harm_is_sent_again_once_and_nothing_else() {
    let cases =
        [("GET", "", true), ("DELETE", "", true), ("PUT", "body", false), ("POST", "", false), ("POST", "body", false)];
    for (number, (method, body, again)) in cases.into_iter().enumerate() {
        let seen = Seen::default();
        let backend = ends_at_the_second(Arc::clone(&seen), b"").await;
        let host = format!("again{number}.test");
        let rig = one_worker(&[Route::new(&host, "").to(backend)]).await;
        assert_eq!(ask(&rig, &host, "GET", "").await, 200);
        let status = ask(&rig, &host, method, body).await;
        assert_eq!(status, if again { 200 } else { 502 }, "{method} {body:?}");
        let times = seen.lock().unwrap().iter().skip(1).filter(|line| line.starts_with(method)).count();
        assert_eq!(times, if again { 2 } else { 1 }, "{method} {body:?}");
    }
}

#[tokio::test]
async fn one_byte_of_an_answer_is_an_answer() {
    let seen = Seen::default();
    let backend = ends_at_the_second(Arc::clone(&seen), b"H").await;
    let rig = one_worker(&[Route::new("byte.test", "").to(backend)]).await;
    assert_eq!(ask(&rig, "byte.test", "GET", "").await, 200);
    assert_eq!(ask(&rig, "byte.test", "GET", "").await, 502);
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_connection_that_was_never_used_is_no_reason_to_ask_again() {
    let seen = Seen::default();
    let count = Arc::clone(&seen);
    let backend = backends::serve(move |mut stream| {
        let seen = Arc::clone(&count);
        async move {
            let _ = stream.read(&mut [0; 4096]).await;
            seen.lock().unwrap().push(String::new());
        }
    })
    .await;
    let rig = one_worker(&[Route::new("never.test", "").service("app", &[backend])]).await;
    assert_eq!(ask(&rig, "never.test", "GET", "").await, 502);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_that_waited_too_long_is_not_sent_again() {
    let seen = Seen::default();
    let mut endpoints = Vec::new();
    for _ in 0..3 {
        let count = Arc::clone(&seen);
        let silent = backends::serve(move |mut stream| {
            let seen = Arc::clone(&count);
            async move {
                let mut buffer = [0; 4096];
                while let Ok(1..) = stream.read(&mut buffer).await {
                    seen.lock().unwrap().push(String::new());
                }
            }
        });
        endpoints.push(silent.await);
    }
    let timeouts = Timeouts { server: Duration::from_millis(200), ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let table = table(&[Route::new("late.test", "").service("app", &endpoints)], None);
    let rig = Rig::start(ProxyConfig::default(), under(policy, table)).await;
    assert_eq!(ask(&rig, "late.test", "GET", "").await, 504);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_endpoint_that_leaves_ends_its_requests_and_keeps_no_connection() {
    let (release, released) = watch::channel(false);
    let (ended, mut ends) = mpsc::unbounded_channel();
    let leaving = backends::serve(move |mut stream| {
        let (mut released, ended) = (released.clone(), ended.clone());
        async move {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                if buffer[..read].starts_with(b"GET /slow") {
                    released.wait_for(|released| *released).await.unwrap();
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst").await;
            }
            ended.send(()).unwrap();
        }
    })
    .await;
    let staying = backends::http("second").await;
    let rig = one_worker(&[Route::new("leaves.app.test", "").to(leaving)]).await;
    let slow = tokio::spawn(client::get(rig.http, "leaves.app.test", "/slow"));
    eventually("two connections", async || {
        // The slow request uses one connection, so this one opens another, which is idle afterwards.
        client::get(rig.http, "leaves.app.test", "/").await.body == "first"
    })
    .await;
    rig.tables.send_replace(table(&[Route::new("leaves.app.test", "").to(staying)], None));
    // The idle connection is closed without any request.
    timeout(PATIENCE, ends.recv()).await.expect("the idle connection's end");
    eventually("the new endpoint", async || {
        client::get(rig.http, "leaves.app.test", "/").await.body.starts_with("second GET /\n")
    })
    .await;
    assert!(!slow.is_finished());
    release.send_replace(true);
    assert_eq!(slow.await.unwrap().body, "first");
    timeout(PATIENCE, ends.recv()).await.expect("the other one's end");
}

#[tokio::test]
async fn a_body_that_is_not_wanted_is_not_read() {
    // Responds after the head, and reports the bytes that follow.
    let (tell, mut told) = mpsc::unbounded_channel();
    let backend = backends::serve(move |mut stream| {
        let tell = tell.clone();
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let answer = b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno";
            stream.write_all(answer).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            tell.send(rest.len()).unwrap();
        }
    })
    .await;
    let rig = Rig::serve(&[Route::new("unwanted.test", "").to(backend)]).await;
    let head = "POST / HTTP/1.1\r\nHost: unwanted.test\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n";
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an end").unwrap();
    assert!(answer.starts_with("HTTP/1.1 417 ") && answer.ends_with("\r\n\r\nno"), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
    assert_eq!(timeout(PATIENCE, told.recv()).await.expect("the backend's end"), Some(0));
    assert_eq!(log::line("host", "unwanted.test").await["flags"], "-");
}

#[tokio::test]
async fn an_endpoint_that_never_says_continue_gets_the_body_all_the_same() {
    let backend = backends::serve(|mut stream| async move {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\nbody") {
            text.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
    })
    .await;
    let rig = Rig::serve(&[Route::new("mute.test", "").to(backend)]).await;
    let head =
        "POST / HTTP/1.1\r\nHost: mute.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    timeout(PATIENCE, stream.read_exact(&mut interim)).await.expect("100").unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client::exchange(stream, "body").await.body, "ok");
}

//! Requests that parsers could interpret differently, and slow clients.

use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tables::{Rig, Route, table, under};
use crate::{backends, client, log};

#[tokio::test]
async fn ambiguous_requests_are_refused() {
    let rig = Rig::serve(&[Route::new("a.strict.test", "").to(backends::http("app").await)]).await;
    let cases = [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.strict.test\r\nHost: a.strict.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.strict.test,b.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.strict.test:99999\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: u@a.strict.test\r\n\r\n", 400),
        ("GET http://b.test/ HTTP/1.1\r\nHost: a.strict.test\r\n\r\n", 400),
        ("GET /%00 HTTP/1.1\r\nHost: a.strict.test\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nHost: a.strict.test\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
        (
            "POST / HTTP/1.1\r\nHost: a.strict.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a.strict.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a.strict.test\n\n", 400),
        ("GET /#frag HTTP/1.1\r\nHost: a.strict.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.strict.test\r\nno colon\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\n\r\n", 400),
        ("GET / HTTP/1.10\r\nHost: a.strict.test\r\n\r\n", 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400),
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nContent-Length: +1\r\n\r\nx", 400),
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nContent-Length: 18446744073709551617\r\n\r\nx", 400),
        ("GET / HTTP/1.1\r\nHost: a.strict.test\r\nX: a\r\n b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.strict.test\r\nX : a\r\n\r\n", 400),
        ("TRACE / HTTP/1.1\r\nHost: a.strict.test\r\nConnection: close\r\n\r\n", 405),
        ("CONNECT a.strict.test:80 HTTP/1.1\r\nHost: a.strict.test:80\r\nConnection: close\r\n\r\n", 405),
        ("OPTIONS * HTTP/1.1\r\nHost: a.strict.test\r\nConnection: close\r\n\r\n", 200),
        ("GET http://a.strict.test/ HTTP/1.1\r\nHost: a.strict.test\r\nConnection: close\r\n\r\n", 200),
    ];
    for (text, status) in cases {
        assert_eq!(client::request(rig.http, text).await.status, status, "{text:?}");
    }
    let large = format!("GET / HTTP/1.1\r\nHost: a.strict.test\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    assert_eq!(client::request(rig.http, &large).await.status, 431);
    let many = format!("GET / HTTP/1.1\r\nHost: a.strict.test\r\n{}\r\n", "X: y\r\n".repeat(150));
    assert_eq!(client::request(rig.http, &many).await.status, 431);
}

#[tokio::test]
async fn what_is_no_http_is_closed_without_a_word() {
    let rig = Rig::serve(&[]).await;
    for bytes in [&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], b"\0\0\0\0", b"\n\n"] {
        let mut stream = TcpStream::connect(rig.http).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"", "{bytes:?}");
    }
}

#[tokio::test]
async fn each_refused_request_has_a_line_that_says_why() {
    let rig = Rig::serve(&[]).await;
    let cases = [
        (rig.http, "GET a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, "BR"),
        (rig.http, "GET a.test:1:2 HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, "BR"),
        (rig.http, "GET / HTTP/1.1\r\n\r\n", 400, "BR"),
        (rig.http, "", 400, "ER"),
        (rig.https, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", 0, "BH"),
    ];
    for (address, text, status, flag) in cases {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let client = stream.local_addr().unwrap().to_string();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
        let listener = address.to_string();
        let its = |line: &serde_json::Value| line["client"] == *client && line["listener"] == *listener;
        let line = log::line_where("the line", its).await;
        assert_eq!((line["status"].as_u64().unwrap_or(0), line["flags"].as_str()), (status, Some(flag)), "{text:?}");
    }
}

#[tokio::test]
async fn a_bad_request_does_not_overtake_a_good_one() {
    let rig = Rig::serve(&[Route::new("order.test", "").to(backends::http("app").await)]).await;
    let good = "GET /good HTTP/1.1\r\nHost: order.test\r\n\r\n";
    let body = "POST /body HTTP/1.1\r\nHost: order.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let bad = "GET /bad HTTP/1.1\r\nHost: order.test\r\nHost: order.test\r\n\r\n";
    let never = "GET /never HTTP/1.1\r\nHost: order.test\r\n\r\n";
    let all = [good, body, good, bad, never].concat();
    // In one write, and byte by byte.
    for step in [all.len(), 1] {
        let mut stream = TcpStream::connect(rig.http).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut read, mut write) = stream.split();
        let mut text = String::new();
        let sending = async {
            for piece in all.as_bytes().chunks(step) {
                // The response to the bad request ends the connection.
                if write.write_all(piece).await.is_err() {
                    break;
                }
            }
        };
        let (_, read) = tokio::join!(sending, read.read_to_string(&mut text));
        read.unwrap();
        let order: Vec<_> = ["app GET /good\n", "app POST /body\n", "HTTP/1.1 400 Bad Request"]
            .iter()
            .map(|part| text.find(part).unwrap_or_else(|| panic!("{part} in {text}")))
            .collect();
        assert!(order.is_sorted(), "{text}");
        assert_eq!((text.matches("200 OK").count(), text.matches("never").count()), (3, 0), "{text}");
    }
}

#[tokio::test]
async fn an_answer_is_not_lost_on_what_the_client_still_sends() {
    let rig = Rig::serve(&[]).await;
    for _ in 0..20 {
        let body = "x".repeat(200_000);
        let text = format!("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n{body}");
        assert_eq!(client::request(rig.http, &text).await.status, 503);
    }
}

#[tokio::test]
async fn a_slow_head_gets_408_and_an_idle_connection_an_end() {
    let timeouts =
        Timeouts { head: Duration::from_millis(300), keep_alive: Duration::from_millis(600), ..Timeouts::default() };
    let routes = table(&[Route::new("slow.test", "").to(backends::http("app").await)], None);
    let policy = RouterPolicy { timeouts, ignore_empty_requests: true, ..RouterPolicy::default() };
    let rig = Rig::start(ProxyConfig::default(), under(policy, routes)).await;
    let slow = client::request(rig.http, "GET / HTTP/1.1\r\nHost: slow").await;
    assert_eq!(slow.status, 408);

    let silent = TcpStream::connect(rig.http).await.unwrap().read_to_end(&mut Vec::new()).await;
    assert_eq!(silent.unwrap(), 0);

    let started = std::time::Instant::now();
    let kept = client::request(rig.http, "GET / HTTP/1.1\r\nHost: slow.test\r\n\r\n").await;
    assert_eq!(kept.status, 200);
    assert!(started.elapsed() >= Duration::from_millis(550), "kept for {:?}", started.elapsed());
}

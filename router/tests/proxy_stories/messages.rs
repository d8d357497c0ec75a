//! HTTP messages through the proxy: bodies, responses without a body, reused connections.

use router_table::table::InsecurePolicy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tables::{Rig, Route, eventually};
use crate::{backends, client, log};

#[tokio::test]
async fn bodies_stream_both_ways_on_one_connection() {
    let rig = Rig::serve(&[Route::new("body.test", "").to(backends::http("app").await)]).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    let body = "x".repeat(300_000);
    let sized = format!("POST /1 HTTP/1.1\r\nHost: body.test\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let chunked = format!(
        "POST /2 HTTP/1.1\r\nHost: body.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let (mut read, mut write) = stream.split();
    let mut answers = String::new();
    let sending = async {
        write.write_all(sized.as_bytes()).await.unwrap();
        write.write_all(chunked.as_bytes()).await.unwrap();
    };
    let (_, received) = tokio::join!(sending, read.read_to_string(&mut answers));
    received.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2);
    assert_eq!(answers.matches(&body).count(), 2);
    assert!(answers.contains("app POST /1\n") && answers.contains("app POST /2\n"));
    let line = log::line("path", "/2").await;
    assert_eq!(line["bytes_in"], 300_000);
}

#[tokio::test]
async fn connections_to_backends_are_reused() {
    let connections = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&connections);
    let backend = backends::serve(move |mut stream| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            // Three responses, then a close without notice, as with a backend's keep-alive limit.
            let mut buffer = [0; 4096];
            for _ in 0..3 {
                if stream.read(&mut buffer).await.unwrap_or(0) == 0 {
                    return;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            }
        }
    })
    .await;
    let rig = Rig::serve(&[Route::new("reuse.test", "").to(backend)]).await;
    for _ in 0..9 {
        let answer = client::get(rig.http, "reuse.test", "/").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    }
    let opened = connections.load(std::sync::atomic::Ordering::SeqCst);
    assert!((3..9).contains(&opened), "{opened} connections for 9 requests");
    eventually("the counters", async || rig.proxy.counters().iter().any(|c| c.served == 9 && c.failed == 0)).await;
}

#[tokio::test]
async fn continue_is_said_before_the_body() {
    let rig = Rig::serve(&[Route::new("continue.test", "").to(backends::http("app").await)]).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: continue.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\
                Connection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    let answer = client::exchange(stream, "body").await;
    assert_eq!(answer.status, 200);
    // The request reached the backend, and its response reached the client.
    assert!(answer.body.ends_with("\n\nbody") && answer.body.contains("expect: 100-continue\n"), "{}", answer.body);
}

#[tokio::test]
async fn answers_without_a_body_keep_their_fields() {
    let backend = backends::serve(|mut stream| async move {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            let answer = match &buffer[..read] {
                [b'H', ..] => &b"HTTP/1.1 200 OK\r\nContent-Length: 123\r\n\r\n"[..],
                [b'D', ..] => b"HTTP/1.1 204 No Content\r\nX-Done: yes\r\n\r\n",
                _ => b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
            };
            stream.write_all(answer).await.unwrap();
        }
    })
    .await;
    let rig = Rig::serve(&[Route::new("nobody.test", "").to(backend)]).await;
    let cases =
        [("HEAD", 200, "content-length", "123"), ("DELETE", 204, "x-done", "yes"), ("GET", 304, "etag", "\"x\"")];
    for (method, status, field, value) in cases {
        let text = format!("{method} / HTTP/1.1\r\nHost: nobody.test\r\nConnection: close\r\n\r\n");
        let answer = client::request(rig.http, &text).await;
        assert_eq!((answer.status, answer.field(field), answer.body.as_str()), (status, Some(value), ""), "{method}");
    }
    eventually("the counters", async || rig.proxy.counters().iter().any(|c| c.served == 3 && c.failed == 0)).await;
}

#[tokio::test]
async fn a_chunked_answer_with_a_length_beside_comes_whole() {
    let backend = backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 4096]).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(&[&head[..], b"a\r\nwhole text\r\n0\r\n\r\n"].concat()).await;
    })
    .await;
    let rig =
        Rig::serve(&[Route::new("both.apps.test", "").insecure(InsecurePolicy::Allow).edge(None).to(backend)]).await;
    let answer = client::get(rig.http, "both.apps.test", "/").await;
    assert_eq!((answer.field("content-length"), answer.body.as_str()), (None, "whole text"));
    let answers = client::get_h2(rig.https, "both.apps.test", &[("both.apps.test", "/")]).await;
    assert_eq!(answers, [(hyper::StatusCode::OK, "whole text".to_owned())]);
}

#[tokio::test]
async fn old_clients_get_answers_that_they_can_read() {
    let backend = backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 4096]).await;
        let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n0\r\n\r\n";
        let _ = stream.write_all(chunks).await;
    })
    .await;
    let rig = Rig::serve(&[Route::new("old.test", "").to(backend)]).await;
    let answer = client::request(rig.http, "GET / HTTP/1.0\r\nHost: old.test\r\n\r\n").await;
    assert_eq!((answer.status, answer.field("transfer-encoding"), answer.body.as_str()), (200, None, "part"));
}

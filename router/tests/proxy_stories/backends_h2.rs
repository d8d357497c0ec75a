//! Backends that speak HTTP/2: which requests use it, how connections are shared, and how they end.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use h2::Reason;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use router_proxy::ProxyConfig;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Barrier, watch};

use crate::tables::{Rig, Route, eventually, table};
use crate::{backends, client, log, pki};

/// One worker: all requests share one pool.
pub async fn one_worker(routes: &[Route]) -> Rig {
    let default = pki::ca().leaf(&["*.apps.test"]);
    let config = ProxyConfig { workers: NonZeroUsize::new(1), ..ProxyConfig::default() };
    Rig::start(config, table(routes, Some(&default))).await
}

#[tokio::test]
async fn an_h2c_endpoint_gets_http2_requests_with_an_authority() {
    let backend = backends::h2c("app").await;
    let key = pki::ca().leaf(&["both.h2c.test"]);
    let rig = Rig::serve(&[
        Route::new("plain.h2c.test", "").to(backend).h2c(),
        Route::new("both.h2c.test", "").edge(Some(&key)).to(backend).h2c(),
    ])
    .await;
    let answer = client::get(rig.http, "plain.h2c.test", "/x?y").await;
    assert_eq!(answer.status, 200);
    let start = "app GET /x?y\nHTTP/2.0\n:authority: plain.h2c.test\n";
    assert!(answer.body.starts_with(start) && !answer.body.contains("\nhost: "), "{}", answer.body);
    let post = "POST /p HTTP/1.1\r\nHost: plain.h2c.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                4\r\nbody\r\n0\r\n\r\n";
    assert!(client::request(rig.http, post).await.body.ends_with("\n\nbody"));
    let answer = client::get_tls(rig.https, Some("both.h2c.test"), "both.h2c.test", "/edge1").await;
    assert!(answer.body.starts_with("app GET /edge1\nHTTP/2.0\n:authority: both.h2c.test\n"), "{}", answer.body);
    let answers =
        client::get_h2(rig.https, "both.h2c.test", &[("both.h2c.test", "/edge2"), ("both.h2c.test", "/edge3")]).await;
    for ((status, body), path) in answers.iter().zip(["/edge2", "/edge3"]) {
        assert_eq!(*status, StatusCode::OK);
        assert!(body.starts_with(&format!("app GET {path}\nHTTP/2.0\n:authority: both.h2c.test\n")), "{body}");
    }
}

#[tokio::test]
async fn over_tls_the_endpoint_chooses() {
    let ca = pki::Ca::new("chosen");
    let config = |alpn: &[&str]| pki::server_config_for(ca.leaf(&["x.internal"]), alpn);
    let both = backends::https_any("app", config(&["h2", "http/1.1"])).await;
    let one = backends::https_any("app", config(&["http/1.1"])).await;
    let none = backends::https_any("app", config(&[])).await;
    let only_two = backends::https_any("app", config(&["h2"])).await;
    let route = |host: &str, to| Route::new(host, "").reencrypt(Some(ca.roots())).service("cart", &[to]);
    let rig = Rig::serve(&[
        route("both.alpn.test", both),
        route("one.alpn.test", one),
        route("none.alpn.test", none),
        route("two.alpn.test", only_two),
    ])
    .await;
    for (host, http2) in
        [("both.alpn.test", true), ("one.alpn.test", false), ("none.alpn.test", false), ("two.alpn.test", true)]
    {
        for _ in 0..2 {
            let answer = client::get_tls(rig.https, Some(host), host, "/x").await;
            assert!(answer.body.starts_with("app GET /x\n"), "{host}: {}", answer.body);
            assert_eq!(answer.body.contains(&format!("\nHTTP/2.0\n:authority: {host}\n")), http2, "{host}");
        }
        let answers = client::get_h2(rig.https, host, &[(host, "/y")]).await;
        assert_eq!(answers[0].1.contains("\nHTTP/2.0\n"), http2, "{host}");
    }
}

#[tokio::test]
async fn an_upgrade_goes_over_http1_even_where_http2_would_be_chosen() {
    let ca = pki::Ca::new("chosen");
    let config = pki::server_config_for(ca.leaf(&["x.internal"]), &["h2", "http/1.1"]);
    let backend = backends::https_any("app", config).await;
    let route = Route::new("ws.alpn.test", "").reencrypt(Some(ca.roots())).service("cart", &[backend]);
    let rig = Rig::serve(&[route]).await;
    let ask = |extra: &str| format!("GET /x HTTP/1.1\r\nHost: ws.alpn.test\r\nConnection: {extra}close\r\n\r\n");
    let stream = async || client::tls(rig.https, Some("ws.alpn.test"), &["http/1.1"]).await;
    let answer = client::exchange(stream().await, &ask("")).await;
    assert!(answer.body.contains("HTTP/2.0"), "{}", answer.body);
    let upgrade = ask("upgrade, ").replace("/x HTTP/1.1", "/x HTTP/1.1\r\nUpgrade: websocket");
    let answer = client::exchange(stream().await, &upgrade).await;
    assert!(answer.body.contains("upgrade: websocket\n") && !answer.body.contains("HTTP/2.0"), "{}", answer.body);
}

/// Responds over connections that carry `each` requests and then send GOAWAY.
async fn going_away(each: usize, connections: Arc<AtomicUsize>) -> std::net::SocketAddr {
    backends::serve(move |stream| {
        connections.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let mut served = 0;
            while let Some(request) = connection.accept().await {
                let Ok((_, mut respond)) = request else { return };
                let mut body = respond.send_response(Response::new(()), false).unwrap();
                body.send_data(Bytes::from("ok"), true).unwrap();
                served += 1;
                if served == each {
                    connection.graceful_shutdown();
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn an_endpoint_that_goes_away_costs_no_request() {
    let connections = Arc::new(AtomicUsize::new(0));
    let backend = going_away(3, Arc::clone(&connections)).await;
    let rig = one_worker(&[Route::new("away.test", "").to(backend).h2c()]).await;
    for _ in 0..20 {
        // Also requests that may not be repeated.
        let post = "POST / HTTP/1.1\r\nHost: away.test\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
        let answer = client::request(rig.http, post).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    }
    let opened = connections.load(Ordering::SeqCst);
    assert!((5..20).contains(&opened), "{opened} connections for 20 requests");
}

/// Refuses the first stream of every connection, and counts all streams.
async fn refusing_first(streams: Arc<AtomicUsize>) -> std::net::SocketAddr {
    backends::serve(move |stream| {
        let streams = Arc::clone(&streams);
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let mut first = true;
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                streams.fetch_add(1, Ordering::SeqCst);
                if std::mem::take(&mut first) {
                    respond.send_reset(Reason::REFUSED_STREAM);
                } else {
                    respond.send_response(Response::new(()), true).unwrap();
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_refused_stream_is_retried_unless_its_body_was_sent() {
    let streams = Arc::new(AtomicUsize::new(0));
    let backend = refusing_first(Arc::clone(&streams)).await;
    let rig = one_worker(&[Route::new("stream-refused.test", "").to(backend).h2c()]).await;
    assert_eq!(client::get(rig.http, "stream-refused.test", "/").await.status, 200);
    assert_eq!(streams.load(Ordering::SeqCst), 2);

    let streams = Arc::new(AtomicUsize::new(0));
    let backend = refusing_first(Arc::clone(&streams)).await;
    let rig = one_worker(&[Route::new("stream-refused-post.test", "").to(backend).h2c()]).await;
    let post = "POST / HTTP/1.1\r\nHost: stream-refused-post.test\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
    assert_eq!(client::request(rig.http, post).await.status, 502);
    assert_eq!(streams.load(Ordering::SeqCst), 1);
    assert_eq!(log::line("host", "stream-refused-post.test").await["flags"], "UC");
}

#[tokio::test]
async fn no_connection_gets_more_streams_than_it_allows() {
    const AT_ONCE: usize = 6;
    // Responds only when all requests have arrived, over any number of connections.
    let all = Arc::new(Barrier::new(AT_ONCE));
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let backend = backends::serve(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        let all = Arc::clone(&all);
        async move {
            let service = service_fn(move |_: Request<Incoming>| {
                let all = Arc::clone(&all);
                async move {
                    all.wait().await;
                    Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::default()))
                }
            });
            let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = server.max_concurrent_streams(2).serve_connection(TokioIo::new(stream), service).await;
        }
    })
    .await;
    let rig = one_worker(&[Route::new("cap.test", "").to(backend).h2c()]).await;
    let waiting = (0..AT_ONCE).map(|_| client::get(rig.http, "cap.test", "/wait"));
    for answer in futures_util::future::join_all(waiting).await {
        assert_eq!(answer.status, 200);
    }
    assert_eq!(connections.load(Ordering::SeqCst), AT_ONCE / 2);
}

#[tokio::test]
async fn a_slow_reader_slows_the_endpoint_down() {
    const MOST: usize = 16 * 1024 * 1024;
    let (sent, seen) = watch::channel(0);
    let backend = backends::serve(move |stream| {
        let sent = sent.clone();
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                let mut body = respond.send_response(Response::new(()), false).unwrap();
                let sent = sent.clone();
                tokio::spawn(async move {
                    while *sent.borrow() < 4 * MOST {
                        body.reserve_capacity(16_384);
                        let ready = std::future::poll_fn(|cx| body.poll_capacity(cx)).await;
                        let Some(Ok(capacity @ 1..)) = ready else { return };
                        let piece = capacity.min(16_384);
                        if body.send_data(Bytes::from(vec![b'x'; piece]), false).is_err() {
                            return;
                        }
                        sent.send_modify(|sent| *sent += piece);
                    }
                });
            }
        }
    })
    .await;
    let rig = one_worker(&[Route::new("slow-reader.test", "").to(backend).h2c()]).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"GET / HTTP/1.1\r\nHost: slow-reader.test\r\n\r\n")
        .await
        .unwrap();
    stream.read_exact(&mut [0; 16]).await.unwrap();
    let mut last = 0;
    eventually("a standstill", async || {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let now = *seen.borrow();
        std::mem::replace(&mut last, now) == now
    })
    .await;
    assert!(last < MOST, "{last} bytes for a client that does not read");
}

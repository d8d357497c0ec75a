//! Requests by host and path, and what the router answers itself.

use router::proxy::{ProxyConfig, Timeouts};
use router_core::table::InsecurePolicy;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tables::{Rig, Route, eventually, table};
use crate::{backends, client, log, pki};

#[tokio::test]
async fn host_and_longest_path_decide() {
    let [root, foo, foobar, wild, other] =
        [backends::http("root").await, backends::http("foo").await, backends::http("foobar").await,
         backends::http("wild").await, backends::http("other").await];
    let rig = Rig::serve(&[
        Route::new("path.test", "").to(root),
        Route::new("path.test", "/foo").to(foo),
        Route::new("path.test", "/foo/bar").to(foobar),
        Route::new("*.w.test", "").to(wild),
        Route::new("exact.w.test", "/only").to(other),
    ])
    .await;
    let cases = [
        ("path.test", "/", "root"),
        ("path.test", "/foobar", "root"),
        ("path.test", "/foo", "foo"),
        ("path.test", "/foo?x=/foo/bar", "foo"),
        ("PATH.test.:80", "/foo/x", "foo"),
        ("path.test", "/foo/bar", "foobar"),
        ("path.test", "/foo/bar/baz", "foobar"),
        ("path.test", "/FOO/bar", "root"),
        ("any.w.test", "/", "wild"),
        ("exact.w.test", "/only/this", "other"),
        ("exact.w.test", "/else", "wild"),
    ];
    for (host, path, name) in cases {
        let answer = client::get(rig.http, host, path).await;
        assert_eq!(answer.status, 200, "{host}{path}");
        assert!(answer.body.starts_with(&format!("{name} GET {path}\n")), "{host}{path}: {}", answer.body);
    }
    for host in ["deep.er.w.test", "w.test", "unknown.test", "127.0.0.1"] {
        assert_eq!(client::get(rig.http, host, "/").await.status, 503, "{host}");
    }
}

#[tokio::test]
async fn the_backend_sees_who_asked() {
    let rig = Rig::serve(&[Route::new("seen.test", "").to(backends::http("app").await)]).await;
    let fields = "Connection: close, X-Hop\r\nX-Hop: 1\r\nProxy: http://evil.test\r\nX-SSL-Client-CN: admin\r\n\
                  X-Forwarded-For: 198.51.100.1\r\nKeep-Alive: 9\r\n";
    let answer = client::request(rig.http, &format!("GET /x HTTP/1.1\r\nHost: Seen.test:80\r\n{fields}\r\n")).await;
    let port = rig.http.port();
    let expected = [
        "host: Seen.test:80",
        "x-forwarded-for: 198.51.100.1",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-host: Seen.test:80",
        &format!("x-forwarded-port: {port}"),
        "x-forwarded-proto: http",
        "forwarded: for=127.0.0.1;host=\"Seen.test:80\";proto=http",
    ];
    for line in expected {
        assert!(answer.body.lines().any(|l| l == line), "{line} in {}", answer.body);
    }
    for gone in ["x-hop", "proxy:", "x-ssl", "keep-alive", "connection"] {
        assert!(!answer.body.contains(&format!("\n{gone}")), "{gone} in {}", answer.body);
    }
    // The backend's hop-by-hop fields do not come back either.
    assert_eq!((answer.field("x-backend"), answer.field("keep-alive")), (Some("app"), None));
}

#[tokio::test]
async fn insecure_policies() {
    let backend = backends::http("app").await;
    let edge = |host, policy| Route::new(host, "").edge(None).to(backend).insecure(policy);
    let rig = Rig::serve(&[
        edge("none.ip.test", InsecurePolicy::None),
        edge("allow.ip.test", InsecurePolicy::Allow),
        edge("redirect.ip.test", InsecurePolicy::Redirect),
        Route::new("pass.ip.test", "").passthrough().to(backend).insecure(InsecurePolicy::Redirect),
        Route::new("closed.ip.test", "").passthrough().to(backend),
    ])
    .await;
    assert_eq!(client::get(rig.http, "none.ip.test", "/").await.status, 503);
    assert_eq!(client::get(rig.http, "closed.ip.test", "/").await.status, 503);
    assert_eq!(client::get(rig.http, "allow.ip.test", "/").await.status, 200);
    for host in ["redirect.ip.test", "pass.ip.test"] {
        let answer = client::get(rig.http, &format!("{host}:8080"), "/a%20b?c=d&e").await;
        assert_eq!(answer.status, 302);
        let location = format!("https://{host}:{}/a%20b?c=d&e", rig.https.port());
        // The table says port 0, for "any": that is what a redirect can know.
        let expected = location.replace(&format!(":{}", rig.https.port()), ":0");
        assert_eq!(answer.field("location"), Some(expected.as_str()));
    }
}

#[tokio::test]
async fn the_default_page_is_503() {
    let rig = Rig::serve(&[Route::new("empty.test", "")]).await;
    let page = client::get(rig.http, "nowhere-at-all.test", "/").await;
    assert_eq!((page.status, page.field("content-type")), (503, Some("text/html; charset=utf-8")));
    assert!(page.body.contains("<h1>Application is not available</h1>"), "{}", page.body);
    assert_eq!(page.field("x-sluice-cause"), None);
    assert_eq!(log::line("host", "nowhere-at-all.test").await["flags"], "NR");

    let asks = "GET / HTTP/1.1\r\nHost: nowhere.test\r\nAccept: application/json\r\nConnection: close\r\n\r\n";
    let text = client::request(rig.http, asks).await;
    assert_eq!(text.field("content-type"), Some("text/plain; charset=utf-8"));
    assert!(text.body.starts_with("Application is not available"), "{}", text.body);

    assert_eq!(client::get(rig.http, "empty.test", "/").await.status, 503);
    assert_eq!(log::line("host", "empty.test").await["flags"], "NE");
}

#[tokio::test]
async fn the_cause_is_told_when_asked_for() {
    let config = ProxyConfig { show_cause: true, ..ProxyConfig::default() };
    let backend = backends::http("app").await;
    let routes = [
        Route::new("bare.cause.test", ""),
        Route::new("refused.cause.test", "").to(backends::refusing()),
        Route::new("denied.cause.test", "").to(backend).allow(&["192.0.2.1/32"]),
        Route::new("nobody.cause.test", "").to(backend).allow(&[]),
    ];
    let rig = Rig::start(config, table(&routes, None)).await;
    let cases = [
        ("unknown.cause.test", 503, "no-route"),
        ("bare.cause.test", 503, "no-endpoints"),
        ("refused.cause.test", 503, "backend-unreachable"),
        ("denied.cause.test", 403, "source-not-allowed"),
        ("nobody.cause.test", 403, "source-not-allowed"),
    ];
    for (host, status, cause) in cases {
        let answer = client::get(rig.http, host, "/").await;
        assert_eq!((answer.status, answer.field("x-sluice-cause")), (status, Some(cause)), "{host}");
    }
}

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
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a.strict.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
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
async fn a_bad_request_does_not_overtake_a_good_one() {
    let rig = Rig::serve(&[Route::new("order.test", "").to(backends::http("app").await)]).await;
    let good = "GET /good HTTP/1.1\r\nHost: order.test\r\n\r\n";
    let body = "POST /body HTTP/1.1\r\nHost: order.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let bad = "GET /bad HTTP/1.1\r\nHost: order.test\r\nHost: order.test\r\n\r\n";
    let never = "GET /never HTTP/1.1\r\nHost: order.test\r\n\r\n";
    let all = [good, body, good, bad, never].concat();
    // Whole, and byte by byte.
    for step in [all.len(), 1] {
        let mut stream = TcpStream::connect(rig.http).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut read, mut write) = stream.split();
        let mut text = String::new();
        let sending = async {
            for piece in all.as_bytes().chunks(step) {
                // The answer to the bad request ends the connection.
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
async fn a_slow_head_gets_408_and_an_idle_connection_an_end() {
    let timeouts = Timeouts {
        head: Duration::from_millis(300),
        keep_alive: Duration::from_millis(600),
        ..Timeouts::default()
    };
    let config = ProxyConfig { timeouts, ..ProxyConfig::default() };
    let rig = Rig::start(config, table(&[Route::new("slow.test", "").to(backends::http("app").await)], None)).await;
    let slow = client::request(rig.http, "GET / HTTP/1.1\r\nHost: slow").await;
    assert_eq!(slow.status, 408);

    let silent = TcpStream::connect(rig.http).await.unwrap().read_to_end(&mut Vec::new()).await;
    assert_eq!(silent.unwrap(), 0);

    let started = std::time::Instant::now();
    let kept = client::request(rig.http, "GET / HTTP/1.1\r\nHost: slow.test\r\n\r\n").await;
    assert_eq!(kept.status, 200);
    assert!(started.elapsed() >= Duration::from_millis(550), "kept for {:?}", started.elapsed());
}

#[tokio::test]
async fn connections_to_backends_are_reused() {
    let connections = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&connections);
    let backend = backends::serve(move |mut stream| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            // Three answers, then an end without a word: what a backend's keep-alive limit looks like.
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
async fn edge_requests_say_https() {
    let key = pki::ca().leaf(&["proto.test"]);
    let rig = Rig::serve(&[Route::new("proto.test", "").edge(Some(&key)).to(backends::http("app").await)]).await;
    let answer = client::get_tls(rig.https, Some("proto.test"), "proto.test", "/").await;
    assert!(answer.body.contains("\nx-forwarded-proto: https\n"), "{}", answer.body);
    assert!(answer.body.contains(";proto=https\n"), "{}", answer.body);
}

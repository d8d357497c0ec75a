//! Routing of requests by host and path, the fields that backends receive, and the router's pages.

use router_proxy::ProxyConfig;
use router_table::table::InsecurePolicy;

use crate::tables::{Rig, Route, table};
use crate::{backends, client, log, pki};

#[tokio::test]
async fn host_and_longest_path_decide() {
    let [root, foo, foobar, wild, other] = [
        backends::http("root").await,
        backends::http("foo").await,
        backends::http("foobar").await,
        backends::http("wild").await,
        backends::http("other").await,
    ];
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
async fn the_backend_gets_the_clients_address() {
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
    // Hop-by-hop fields of the backend are not forwarded either.
    assert_eq!((answer.field("x-backend"), answer.field("keep-alive")), (Some("app"), None));
}

#[tokio::test]
async fn edge_requests_say_https() {
    let key = pki::ca().leaf(&["proto.test"]);
    let rig = Rig::serve(&[Route::new("proto.test", "").edge(Some(&key)).to(backends::http("app").await)]).await;
    let answer = client::get_tls(rig.https, Some("proto.test"), "proto.test", "/").await;
    assert!(answer.body.contains("\nx-forwarded-proto: https\n"), "{}", answer.body);
    assert!(answer.body.contains(";proto=https\n"), "{}", answer.body);
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
        // Without a port, or with one that an intermediary maps: the redirect has no port.
        for written in [host.to_owned(), format!("{host}:8080")] {
            let answer = client::get(rig.http, &written, "/a%20b?c=d&e").await;
            assert_eq!(answer.status, 302);
            assert_eq!(answer.field("location"), Some(format!("https://{host}/a%20b?c=d&e").as_str()));
        }
        // The listener's own port: the client also reaches the HTTPS port directly. (The table has 0, for "any".)
        let answer = client::get(rig.http, &format!("{host}:{}", rig.http.port()), "/").await;
        assert_eq!(answer.field("location"), Some(format!("https://{host}:0/").as_str()));
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
async fn the_cause_is_sent_when_enabled() {
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

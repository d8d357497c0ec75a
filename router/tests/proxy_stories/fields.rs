//! Settings of routers and routes that modify requests and responses: paths, fields, pages, compression.

use std::io::Read;
use std::sync::Arc;

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use router_proxy::ProxyConfig;
use router_table::policy::error_page::ErrorPage;
use router_table::policy::header_actions::{HeaderAction, HeaderActions, HeaderChange};
use router_table::policy::header_value::{HeaderValue, MessageDirection};
use router_table::policy::rewrite::RewriteTarget;
use router_table::policy::unique_id::{UniqueId, UniqueIdField, UniqueIdPart};
use router_table::policy::{ErrorPages, RoutePolicy, RouterPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::tables::{Rig, Route, table, under};
use crate::{backends, client, host_rules, pki};

fn set(name: &str, value: &str, direction: MessageDirection) -> HeaderAction {
    HeaderAction { name: name.into(), change: HeaderChange::Set(HeaderValue::parse(value, direction).unwrap()) }
}

fn actions(request: &[(&str, &str)], response: &[(&str, &str)]) -> Option<Arc<HeaderActions>> {
    let list = |fields: &[(&str, &str)], direction| {
        fields.iter().map(|(name, value)| set(name, value, direction)).collect::<Vec<_>>()
    };
    let (request, response) = (list(request, MessageDirection::Request), list(response, MessageDirection::Response));
    Some(Arc::new(HeaderActions { request, response }))
}

/// A proxy whose router has this policy.
async fn rig(policy: RouterPolicy, routes: &[Route]) -> Rig {
    let default = pki::ca().leaf(&["*.apps.test"]);
    Rig::start(ProxyConfig::default(), under(policy, table(routes, Some(&default)))).await
}

/// Responds to every request with these bytes, then ends the connection.
async fn fixed(answer: &'static str) -> std::net::SocketAddr {
    backends::serve(move |mut stream| async move {
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await
}

#[tokio::test]
async fn paths_are_rewritten_and_queries_stay() {
    let app = backends::http("app").await;
    let route = |path: &str, target: &str| {
        let rewrite_target = Some(RewriteTarget::parse(target).unwrap());
        Route::new("rewrite.test", path).to(app).policy(RoutePolicy { rewrite_target, ..RoutePolicy::default() })
    };
    let rig = Rig::serve(&[route("/old", "/new"), route("/gone", "/"), route("/one", "/only#")]).await;
    let cases = [
        ("/old", "/new"),
        ("/old/x?a=/old", "/new/x?a=/old"),
        ("/old?", "/new?"),
        ("/gone/x", "/x"),
        ("/gone", "/"),
        ("/one/x?q", "/only?q"),
        ("/old/../x", "/new/../x"),
    ];
    for (asked, forwarded) in cases {
        let answer = client::get(rig.http, "rewrite.test", asked).await;
        assert!(answer.body.starts_with(&format!("app GET {forwarded}\n")), "{asked}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_last_word_on_requests_is_the_routes_and_on_responses_the_routers() {
    let app = fixed("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Mine: Endpoint\r\nX-Gone: 1\r\n\r\n").await;
    let echo = backends::http("app").await;
    let of_route = RoutePolicy {
        actions: actions(
            &[("X-Both", "route"), ("X-Seen", "%[req.hdr(X-Forwarded-Proto)] %[req.hdr(x-router),lower]")],
            &[("X-Both", "route"), ("X-Route", "%{+Q}[res.hdr(X-Mine)]")],
        ),
        ..RoutePolicy::default()
    };
    let mut of_router = HeaderActions::clone(
        &actions(
            &[("X-Both", "router"), ("X-Router", "YES")],
            &[("X-Both", "router"), ("X-Copy", "%[res.hdr(x-route)]")],
        )
        .unwrap(),
    );
    of_router.response.push(HeaderAction { name: "X-Gone".into(), change: HeaderChange::Delete });
    let policy = RouterPolicy { actions: Some(Arc::new(of_router)), ..RouterPolicy::default() };
    let routes = [
        Route::new("acts.test", "").to(app).policy(of_route.clone()),
        Route::new("echo.test", "").to(echo).policy(of_route),
    ];
    let rig = rig(policy, &routes).await;
    let asked = client::get(rig.http, "echo.test", "/").await.body;
    assert!(asked.contains("x-both: route\n") && asked.contains("x-seen: http yes\n"), "{asked}");
    let answer = client::get(rig.http, "acts.test", "/").await;
    assert_eq!(answer.field("x-both"), Some("router"));
    assert_eq!(answer.field("x-copy"), Some("\"Endpoint\""));
    assert_eq!(answer.field("x-gone"), None);
}

#[tokio::test]
async fn hsts_is_said_over_tls_alone() {
    let app = backends::http("app").await;
    let policy = RoutePolicy { hsts: Some("max-age=31536000;preload".into()), ..RoutePolicy::default() };
    let edge = |host: &str| {
        Route::new(host, "").edge(None).insecure(router_table::table::InsecurePolicy::Allow).policy(policy.clone())
    };
    let rig = Rig::serve(&[edge("a.apps.test").to(app), edge("down.apps.test")]).await;
    let hsts = Some("max-age=31536000;preload");
    let served = client::get_tls(rig.https, Some("a.apps.test"), "a.apps.test", "/").await;
    assert_eq!((served.status, served.field("strict-transport-security")), (200, hsts));
    let clear = client::get(rig.http, "a.apps.test", "/").await;
    assert_eq!((clear.status, clear.field("strict-transport-security")), (200, None));
    let own = client::get_tls(rig.https, Some("down.apps.test"), "down.apps.test", "/").await;
    assert_eq!((own.status, own.field("strict-transport-security")), (503, hsts));
}

#[tokio::test]
async fn each_request_has_an_id_that_clients_do_not_choose() {
    let app = backends::http("app").await;
    let parts = [
        UniqueIdPart::Field { what: UniqueIdField::ClientAddress, hex: true },
        UniqueIdPart::Text("_".into()),
        UniqueIdPart::Field { what: UniqueIdField::Counter, hex: false },
    ];
    let unique_id = Some(UniqueId { name: "X-Id".into(), parts: parts.into() });
    let rig = rig(RouterPolicy { unique_id, ..RouterPolicy::default() }, &[Route::new("id.test", "").to(app)]).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let text = "GET / HTTP/1.1\r\nHost: id.test\r\nX-Id: mine\r\nConnection: close\r\n\r\n";
        let body = client::request(rig.http, text).await.body;
        let id: Vec<_> = body.lines().filter_map(|line| line.strip_prefix("x-id: ")).map(str::to_owned).collect();
        assert!(id.len() == 1 && id[0].starts_with("7F000001_"), "{id:?}");
        ids.extend(id);
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn names_have_the_case_that_the_route_sets() {
    let (sent, was_sent) = tokio::sync::mpsc::unbounded_channel();
    let app = backends::serve(move |mut stream| {
        let sent = sent.clone();
        async move {
            let mut bytes = vec![0; 4096];
            let read = stream.read(&mut bytes).await.unwrap();
            sent.send(String::from_utf8(bytes[..read].to_vec()).unwrap()).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-old: 1\r\nx-other: 2\r\nconnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    })
    .await;
    let mut was_sent = was_sent;
    let case_adjustments = ["Host", "X-OLD", "Content-Length"].map(Arc::from).into();
    let adjusting = RoutePolicy { adjust_case: true, ..RoutePolicy::default() };
    let routes = [Route::new("old.test", "").to(app).policy(adjusting), Route::new("new.test", "").to(app)];
    let rig = rig(RouterPolicy { case_adjustments, ..RouterPolicy::default() }, &routes).await;
    for (host, names) in [
        ("old.test", ["Host: ", "X-OLD: ", "Content-Length: "]),
        ("new.test", ["host: ", "x-old: ", "content-length: "]),
    ] {
        let mut stream = tokio::net::TcpStream::connect(rig.http).await.unwrap();
        let text = format!(
            "POST / HTTP/1.1\r\nHOST: {host}\r\nx-Old: 1\r\nx-Other: 1\r\ncontent-length: 1\r\nConnection: close\r\n\r\nx"
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let asked = was_sent.recv().await.unwrap();
        for name in names {
            assert!(asked.contains(&format!("\r\n{name}")), "{name} in {asked}");
        }
        // The spelling applies to the responses of all routes.
        assert!(answer.contains("\r\nX-OLD: ") && answer.contains("\r\nx-other: "), "{answer}");
    }
}

#[tokio::test]
async fn pages_of_the_router_stand_for_its_own() {
    let page = "HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/html\r\nX-Page: own\r\n\r\n<h1>Later</h1>\n";
    let unavailable = Some(Arc::new(ErrorPage::parse(page).unwrap()));
    let pages = ErrorPages { unavailable, ..ErrorPages::default() };
    let rig = rig(RouterPolicy { pages, ..RouterPolicy::default() }, &[Route::new("down.test", "")]).await;
    for host in ["nobody.test", "down.test"] {
        let answer = client::get(rig.http, host, "/").await;
        assert_eq!((answer.status, answer.field("x-page"), &*answer.body), (503, Some("own"), "<h1>Later</h1>\n"));
    }
    let bad = client::request(rig.http, "GET /%00 HTTP/1.1\r\nHost: down.test\r\n\r\n").await;
    assert_eq!((bad.status, bad.field("x-page")), (400, None));
}

#[tokio::test]
async fn a_page_for_404_is_the_routers_and_not_the_endpoints() {
    let page = "HTTP/1.0 404 Not Found\r\nContent-Type: text/html\r\nX-Page: own\r\n\r\n<h1>Nothing here</h1>\n";
    let pages = ErrorPages { not_found: Some(Arc::new(ErrorPage::parse(page).unwrap())), ..ErrorPages::default() };
    let app = fixed("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine").await;
    let shut = host_rules::rules_for("shut.pages.test").cleartext(&[host_rules::rule("deep", "/deep").to(app)]);
    let policy = RouterPolicy { pages, ..RouterPolicy::default() };
    let rig = Rig::start(ProxyConfig::default(), under(policy, host_rules::table(vec![shut], &[]))).await;
    let answer = client::get(rig.http, "shut.pages.test", "/").await;
    assert_eq!((answer.status, answer.field("x-page"), &*answer.body), (404, Some("own"), "<h1>Nothing here</h1>\n"));
    let of_endpoint = client::get(rig.http, "shut.pages.test", "/deep").await;
    assert_eq!((of_endpoint.status, of_endpoint.field("x-page"), &*of_endpoint.body), (404, None, "mine"));
}

#[tokio::test]
async fn bodies_are_compressed_for_those_who_take_it() {
    let echo = backends::http("app").await;
    let html = fixed(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"1\"\r\nConnection: close\r\n\r\n\
         <p>one two three one two three one two three one two three one two three</p>",
    )
    .await;
    let compress = [Arc::from("text/html")].into();
    let routes =
        [Route::new("zip.apps.test", "").to(html).edge(None), Route::new("plain.apps.test", "").to(echo).edge(None)];
    let rig = rig(RouterPolicy { compress, ..RouterPolicy::default() }, &routes).await;
    let ask = async |host: &str, accept: &str| {
        let stream = client::tls(rig.https, Some(host), &["h2"]).await;
        let (mut sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        let request = Request::get(format!("https://{host}/")).header("accept-encoding", accept);
        let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        (head.headers, body.collect().await.unwrap().to_bytes())
    };
    let (headers, body) = ask("zip.apps.test", "br, gzip").await;
    assert_eq!(
        (&headers["content-encoding"], &headers["etag"], &headers["vary"]),
        (&"gzip".parse().unwrap(), &"W/\"1\"".parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    let mut text = String::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("<p>one two") && text.ends_with("three</p>"), "{text}");
    let (headers, body) = ask("zip.apps.test", "br").await;
    assert!(!headers.contains_key("content-encoding") && headers["vary"] == "accept-encoding");
    assert!(body.starts_with(b"<p>one"));
    let (headers, _) = ask("plain.apps.test", "gzip").await;
    assert!(!headers.contains_key("content-encoding") && !headers.contains_key("vary"));
}

//! Rules over real sockets: matching, and actions other than forwarding.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use router_model::names::Hostname;
use router_proxy::ProxyConfig;
use router_table::cors::Cors;
use router_table::header_modifier::HeaderModifier;
use router_table::policy::{RouterPolicy, Timeouts};
use router_table::rule::{Action, PathChange, RedirectPort, RedirectTo, RulePolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{self, Answer};
use crate::host_rules::{HostRulesOf, RuleOf, rule, rules_for, table};
use crate::tables::{PATIENCE, Rig, Route, under};
use crate::{backends, log};

async fn rig(hosts: Vec<HostRulesOf>) -> Rig {
    Rig::start(ProxyConfig { show_cause: true, ..ProxyConfig::default() }, table(hosts, &[])).await
}

/// Sends a request with these fields.
async fn ask(rig: &Rig, start: &str, host: &str, fields: &[&str]) -> Answer {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    client::request(rig.http, &format!("{start} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n")).await
}

#[tokio::test]
async fn requests_go_where_the_first_rule_that_matches_says() {
    let [a, b, c] = [backends::http("a").await, backends::http("b").await, backends::http("c").await];
    let rules = [
        rule("exact", "/").exact("/only").to(a),
        rule("versioned", "/api").header("x-version", "2").to(b),
        rule("searching", "/api").query("q", "a b").to(b),
        rule("writing", "/api").method("POST").to(c),
        rule("api", "/api").to(a),
        rule("broken", "/broken").doing(Action::Answer(500)),
    ];
    let rig = rig(vec![rules_for("match.rules.test").cleartext(&rules)]).await;
    let cases: [(&str, &[&str], &str); 12] = [
        ("GET /only", &[], "a GET /only"),
        ("GET /only?x=1", &[], "a GET /only?x=1"),
        ("GET /only/", &[], "404"),
        ("GET /api", &["X-Version: 2"], "b GET /api"),
        ("GET /api/x", &["X-Version: 3"], "a GET /api/x"),
        ("GET /api/x", &["X-Version: 3", "X-Version: 2"], "a GET /api/x"),
        ("GET /api?p=1&q=a%20b", &[], "b GET /api?p=1&q=a%20b"),
        ("POST /api", &["Content-Length: 0"], "c POST /api"),
        ("GET /apis", &[], "404"),
        ("GET /API", &[], "404"),
        ("GET /", &[], "404"),
        ("GET /broken", &[], "500"),
    ];
    for (start, fields, expected) in cases {
        let answer = ask(&rig, start, "match.rules.test:8080", fields).await;
        let found = if answer.status == 200 { answer.body.lines().next().unwrap() } else { &answer.status.to_string() };
        assert_eq!(found, expected, "{start} {fields:?}");
    }
    let line = log::line("path", "/broken").await;
    assert_eq!((&line["flags"], &line["route"]), (&"RA".into(), &"HTTPRoute:shop/broken:0".into()));
    let line = log::line("path", "/apis").await;
    assert_eq!((&line["flags"], &line["status"], &line["route"]), (&"NM".into(), &404.into(), &"-".into()));
    let counted = rig.proxy.counters();
    let api = counted.iter().find(|count| &*count.route.name == "api").expect("counted");
    assert_eq!((api.route.kind, api.served), (router_model::kind::Kind::HttpRoute, 2));
}

#[tokio::test]
async fn a_host_with_rules_is_closed_and_an_unclaimed_host_is_not_found() {
    let [app, wild] = [backends::http("app").await, backends::http("wild").await];
    let hosts = || {
        vec![
            rules_for("shut.rules.test").cleartext(&[rule("deep", "/deep").to(app)]),
            rules_for("bare.rules.test").tls(&[], &[]),
        ]
    };
    let with_routes = table(hosts(), &[Route::new("*.rules.test", "").to(wild)]);
    let rig = Rig::start(ProxyConfig { show_cause: true, ..ProxyConfig::default() }, with_routes).await;
    let cases = [
        ("shut.rules.test", "/deep/er", 200, None),
        ("shut.rules.test", "/", 404, Some("no-match")),
        ("bare.rules.test", "/", 404, Some("no-match")),
        ("other.rules.test", "/", 200, None),
        ("unknown.test", "/", 503, Some("no-route")),
    ];
    for (host, path, status, cause) in cases {
        let answer = client::get(rig.http, host, path).await;
        assert_eq!((answer.status, answer.field("x-sluice-cause")), (status, cause), "{host}{path}");
    }
    // On a router without Routes, unknown hosts get 404: no Route can become available.
    let rig = self::rig(hosts()).await;
    for host in ["unknown.test", "192.0.2.1", "[2001:db8::1]:80"] {
        assert_eq!(client::get(rig.http, host, "/").await.status, 404, "{host}");
    }
}

#[tokio::test]
async fn rules_of_every_host_serve_addresses_too() {
    let app = backends::http("app").await;
    let rules = [rule("all", "/").to(app)];
    let key = crate::pki::ca().leaf(&["any.test"]);
    let hosts = vec![rules_for("*").cleartext(&rules).tls(&[&key], &rules), rules_for("*.deep.test").cleartext(&[])];
    let rig = rig(hosts).await;
    for (host, status) in [("whatever.test", 200), ("192.0.2.1:81", 200), ("[::1]", 200), ("a.b.deep.test", 404)] {
        assert_eq!(client::get(rig.http, host, "/").await.status, status, "{host}");
    }
    let stream = client::tls(rig.https, None, &[]).await;
    assert_eq!(client::shown(&stream), key.cert[0]);
    let request = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    assert_eq!(client::exchange(stream, request).await.status, 200);
}

fn redirecting(to: RedirectTo) -> RuleOf {
    rule("redirect", "/old").doing(Action::Redirect(to))
}

#[tokio::test]
async fn redirects_name_what_the_rule_says() {
    let nothing = || RedirectTo { scheme: None, hostname: None, port: None, path: None, status: 302 };
    let new = || Some(Hostname::parse("new.test").unwrap());
    let full = Some(PathChange::Full("/all".into()));
    let prefix = Some(PathChange::Prefix("/new".into()));
    let cases = [
        (nothing(), "http://go.rules.test:PORT/old/x?q=1"),
        (RedirectTo { scheme: Some("https".into()), status: 301, ..nothing() }, "https://go.rules.test/old/x?q=1"),
        (
            RedirectTo { hostname: new(), port: Some(RedirectPort::Number(8443)), status: 308, ..nothing() },
            "http://new.test:8443/old/x?q=1",
        ),
        (
            RedirectTo { port: Some(RedirectPort::Number(80)), path: prefix, ..nothing() },
            "http://go.rules.test/new/x?q=1",
        ),
        (RedirectTo { port: Some(RedirectPort::Number(80)), path: full, ..nothing() }, "http://go.rules.test/all?q=1"),
    ];
    for (to, location) in cases {
        let (said, status) = (format!("{to:?}"), to.status);
        let rig = rig(vec![rules_for("go.rules.test").cleartext(&[redirecting(to)])]).await;
        let answer = client::get(rig.http, "go.rules.test:1234", "/old/x?q=1").await;
        let location = location.replace("PORT", &rig.http.port().to_string());
        assert_eq!((answer.status, answer.field("location")), (status, Some(&*location)), "{said}");
        assert_eq!((answer.body.as_str(), answer.field("content-length")), ("", Some("0")), "{said}");
    }
    let line = log::line("host", "go.rules.test").await;
    assert_eq!((&line["flags"], &line["route"]), (&"-".into(), &"HTTPRoute:shop/redirect:0".into()));
}

#[tokio::test]
async fn paths_hosts_and_fields_are_rewritten_on_the_way() {
    let app = backends::http("app").await;
    let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let policy = RulePolicy {
        request_headers: vec![HeaderModifier {
            set: pairs(&[("x-set", "new"), ("content-length", "9")]),
            add: pairs(&[("x-add", "two")]),
            remove: vec!["x-gone".into()],
        }],
        response_headers: vec![HeaderModifier { set: pairs(&[("x-seen", "yes")]), ..HeaderModifier::default() }],
        rewrite_host: Some(Hostname::parse("inner.test").unwrap()),
        rewrite_path: Some(PathChange::Prefix("/in".into())),
        ..RulePolicy::default()
    };
    let full = RulePolicy { rewrite_path: Some(PathChange::Full("/one".into())), ..RulePolicy::default() };
    let rules = [rule("full", "/full").policy(full).to(app), rule("prefix", "/out").policy(policy).to(app)];
    let rig = rig(vec![rules_for("rewrite.rules.test").cleartext(&rules)]).await;
    let fields = ["X-Set: old", "X-Add: one", "X-Gone: 1", "X-Stays: 1"];
    let answer = ask(&rig, "GET /out/a%2Fb?q=/out", "rewrite.rules.test:81", &fields).await;
    let lines: Vec<&str> = answer.body.lines().collect();
    assert_eq!(lines[0], "app GET /in/a%2Fb?q=/out");
    for line in [
        "host: inner.test",
        "x-forwarded-host: rewrite.rules.test:81",
        "x-set: new",
        "x-add: one",
        "x-add: two",
        "x-stays: 1",
    ] {
        assert!(lines.contains(&line), "{line} in {answer:?}");
    }
    assert!(!answer.body.contains("x-gone") && !answer.body.contains("content-length: 9"), "{answer:?}");
    assert_eq!(answer.field("x-seen"), Some("yes"));
    let answer = ask(&rig, "GET /full/x?q=1", "rewrite.rules.test", &[]).await;
    assert!(answer.body.starts_with("app GET /one?q=1\n"), "{answer:?}");
    // The log has the requested path.
    assert_eq!(log::line("path", "/out/a%2Fb").await["host"], "rewrite.rules.test");
}

fn sharing(origins: &[&str]) -> RulePolicy {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
    let cors = Cors {
        origins: texts(origins),
        credentials: true,
        methods: texts(&["GET", "PUT"]),
        headers: texts(&["X-One"]),
        expose: texts(&["X-Two"]),
        max_age: 60,
        ..Cors::default()
    };
    RulePolicy { cors: Some(Arc::new(cors)), ..RulePolicy::default() }
}

#[tokio::test]
async fn browsers_get_the_cors_policy() {
    let app = backends::http("app").await;
    let redirect =
        RedirectTo { scheme: None, hostname: None, port: Some(RedirectPort::Number(80)), path: None, status: 302 };
    let rules = [
        rule("put", "/put").method("PUT").policy(sharing(&["https://*.a.test"])).to(app),
        rule("away", "/away").policy(sharing(&["https://x.a.test"])).doing(Action::Redirect(redirect)),
        rule("shared", "/shared").policy(sharing(&["https://x.a.test"])).to(app),
        rule("gone", "/gone").policy(sharing(&["https://x.a.test"])).to(backends::refusing()),
        rule("broken", "/broken").policy(sharing(&["https://x.a.test"])).doing(Action::Answer(500)),
        rule("plain", "/").to(app),
    ];
    let rig = rig(vec![rules_for("cors.rules.test").cleartext(&rules)]).await;
    let preflight = async |path: &str, origin: &str, method: &str| {
        let fields = [format!("Origin: {origin}"), format!("Access-Control-Request-Method: {method}")];
        ask(&rig, &format!("OPTIONS {path}"), "cors.rules.test", &fields.each_ref().map(String::as_str)).await
    };
    // The rule that would match the PUT responds, although it does not match OPTIONS.
    let answer = preflight("/put", "https://y.x.a.test", "PUT").await;
    assert_eq!(answer.status, 204);
    let told = [
        ("access-control-allow-origin", "https://y.x.a.test"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "GET, PUT"),
        ("access-control-allow-headers", "X-One"),
        ("access-control-max-age", "60"),
    ];
    for (name, value) in told {
        assert_eq!(answer.field(name), Some(value), "{answer:?}");
    }
    assert!(answer.body.is_empty());
    let answer = preflight("/put", "https://b.test", "PUT").await;
    assert_eq!((answer.status, answer.field("access-control-allow-origin")), (204, None));
    // If the rule has no such filter, the endpoint responds to the preflight.
    for (path, method) in [("/put", "GET"), ("/", "PUT")] {
        let answer = preflight(path, "https://x.a.test", method).await;
        assert!(answer.body.starts_with(&format!("app OPTIONS {path}\n")), "{answer:?}");
    }
    let line = log::line_where("the preflight", |line| line["path"] == "/put" && line["status"] == 204).await;
    assert_eq!((&line["method"], &line["route"]), (&"OPTIONS".into(), &"HTTPRoute:shop/put:0".into()));

    let origin = async |path: &str, origin: &str| {
        ask(&rig, &format!("GET {path}"), "cors.rules.test", &[&format!("Origin: {origin}")]).await
    };
    for (path, status) in [("/shared", 200), ("/away", 302), ("/gone", 503), ("/broken", 500)] {
        let answer = origin(path, "https://x.a.test").await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.field("access-control-allow-origin"), Some("https://x.a.test"), "{path}");
        assert_eq!(answer.field("access-control-expose-headers"), Some("X-Two"), "{path}");
        assert_eq!(answer.field("vary"), Some("Origin"), "{path}");
        let answer = origin(path, "https://x.a.test.b.test").await;
        assert_eq!((answer.status, answer.field("access-control-allow-origin")), (status, None), "{path}");
        assert_eq!(answer.field("vary"), Some("Origin"), "{path}");
    }
    // The endpoint receives the request with its origin, whether or not the client may read the response.
    assert!(origin("/shared", "https://b.test").await.body.contains("\norigin: https://b.test\n"));
    assert_eq!(origin("/", "https://x.a.test").await.field("access-control-allow-origin"), None);
}

#[tokio::test]
async fn grpc_without_a_rule_is_unimplemented() {
    let rules = [rule("cart", "/shop.Cart").doing(Action::Answer(500))];
    let rig = rig(vec![rules_for("grpc.rules.test").cleartext(&rules)]).await;
    for (path, code) in [("/shop.Till/Pay", "12"), ("/shop.Cart/Add", "14")] {
        let stream = TcpStream::connect(rig.http).await.unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: grpc.rules.test\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        let answer = client::exchange(stream, &request).await;
        assert_eq!((answer.status, answer.field("grpc-status")), (200, Some(code)), "{path}");
    }
}

/// A call over HTTP/2 in clear text with prior knowledge: its `grpc-status`, and the request that the endpoint
/// received.
async fn call(stream: TcpStream, host: &str, path: &str) -> (Option<String>, String) {
    let (mut sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let request = Request::post(format!("http://{host}{path}")).header("content-type", "application/grpc");
    let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    let status = response.headers().get("grpc-status").map(|status| status.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn clear_text_for_host_rules_may_be_http2_with_prior_knowledge() {
    let rules = [rule("cart", "/shop.Cart").method("POST").to(backends::http("app").await)];
    let hosts = || vec![rules_for("h2c.rules.test").cleartext(&rules)];
    let served = rig(hosts()).await;
    let connect = async |rig: &Rig| TcpStream::connect(rig.http).await.unwrap();
    let (status, body) = call(connect(&served).await, "h2c.rules.test", "/shop.Cart/Add").await;
    assert!(status.is_none() && body.starts_with("app POST /shop.Cart/Add\n"), "{body}");
    assert!(body.contains("\nx-forwarded-proto-version: h2\n") && body.contains("\nhost: h2c.rules.test\n"), "{body}");
    assert_eq!(call(connect(&served).await, "h2c.rules.test", "/shop.Till/Pay").await.0.as_deref(), Some("12"));

    // HTTP/1 with the same first bytes, sent byte by byte, is HTTP/1.
    for (start, status) in [("PUT /shop.Cart", 404), ("POST /shop.Cart", 200), ("PRI /shop.Cart", 404), ("P /x", 404)] {
        let mut stream = connect(&served).await;
        stream.set_nodelay(true).unwrap();
        for byte in start.bytes() {
            stream.write_all(&[byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        let rest = " HTTP/1.1\r\nHost: h2c.rules.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        assert_eq!(client::exchange(stream, rest).await.status, status, "{start}");
    }
    // An incomplete preface is no request.
    let mut stream = connect(&served).await;
    stream.write_all(b"PRI * HT").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("an end").unwrap();
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 400 "), "{text}");

    // Routes accept only HTTP/1 in clear text.
    let routes = Rig::serve(&[Route::new("h2c.rules.test", "").to(backends::http("app").await)]).await;
    let answer = client::exchange(connect(&routes).await, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(answer.status, 505);
}

#[tokio::test]
async fn a_silent_client_times_out_no_later_where_host_rules_are() {
    let head = Duration::from_millis(1500);
    let policy = RouterPolicy { timeouts: Timeouts { head, ..Timeouts::default() }, ..RouterPolicy::default() };
    let hosts = vec![rules_for("silent.rules.test").cleartext(&[])];
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(hosts, &[]))).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    let began = Instant::now();
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("an end").unwrap();
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    assert!((head..head * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
}

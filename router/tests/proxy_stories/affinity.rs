//! Affinity: cookies bind clients to their endpoints.

use std::net::SocketAddr;

use router_table::policy::{Affinity, RoutePolicy, SameSite};
use router_table::table::InsecurePolicy;

use crate::client::Answer;
use crate::tables::{Rig, Route, table};
use crate::{backends, client, pki};

async fn ask(to: SocketAddr, host: &str, cookie: &str) -> Answer {
    let cookie = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
    client::request(to, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n{cookie}Connection: close\r\n\r\n")).await
}

/// The backend that responded.
fn who(answer: &Answer) -> &str {
    answer.field("x-backend").unwrap_or_else(|| panic!("no backend answered: {answer:?}"))
}

/// `name=value` of the cookie that a response sets.
fn set(answer: &Answer) -> String {
    let cookie = answer.field("set-cookie").unwrap_or_else(|| panic!("no cookie in {}", answer.head));
    cookie.split(';').next().unwrap().to_owned()
}

async fn three() -> [SocketAddr; 3] {
    [backends::http("one").await, backends::http("two").await, backends::http("three").await]
}

#[tokio::test]
async fn a_client_stays_and_the_backend_does_not_see_why() {
    let route = Route::new("stay.test", "").service("app", &three().await);
    let rig = Rig::serve(&[route]).await;
    let first = ask(rig.http, "stay.test", "").await;
    let (home, cookie) = (who(&first).to_owned(), set(&first));
    assert_eq!(cookie.split('=').next(), Some(NAME));
    assert!(first.field("set-cookie").unwrap().ends_with("; path=/; HttpOnly"), "{}", first.head);
    assert_eq!(first.field("cache-control"), Some("private"));
    for _ in 0..20 {
        let again = ask(rig.http, "stay.test", &format!("a=1; {cookie}; b=2")).await;
        assert_eq!(who(&again), home);
        assert!(again.body.contains("\ncookie: a=1; b=2\n"), "{}", again.body);
        assert_eq!((again.field("set-cookie"), again.field("cache-control")), (None, None));
    }
    let alone = ask(rig.http, "stay.test", &cookie).await;
    assert!(who(&alone) == home && !alone.body.contains("\ncookie"), "{}", alone.body);
    // A cookie that names no endpoint is replaced and not forwarded.
    let lost = ask(rig.http, "stay.test", &format!("{NAME}=0123456789abcdef0123456789abcdef")).await;
    assert!(set(&lost).starts_with(NAME) && !lost.body.contains("\ncookie"), "{}", lost.body);
}

/// `printf shop/stay.test | sha256sum | cut -c -32`
const NAME: &str = "dff0e5e417d434c24349bb994dd3b1cb";

#[tokio::test]
async fn names_and_attributes_are_those_of_the_route() {
    let backend = backends::http("app").await;
    let key = pki::ca().leaf(&["lax.cookie.test", "allow.cookie.test", "none.cookie.test"]);
    let affinity = Affinity { cookie: Some("SESSION-1".into()), same_site: SameSite::Lax, ..Affinity::default() };
    let lax = RoutePolicy { affinity, ..RoutePolicy::default() };
    let off = Affinity { disabled: true, ..Affinity::default() };
    let off = RoutePolicy { affinity: off, ..RoutePolicy::default() };
    let edge = |host| Route::new(host, "").edge(Some(&key)).to(backend);
    let rig = Rig::serve(&[
        edge("lax.cookie.test").policy(lax.clone()),
        edge("allow.cookie.test").policy(lax).insecure(InsecurePolicy::Allow),
        edge("none.cookie.test"),
        Route::new("off.cookie.test", "").to(backend).policy(off),
    ])
    .await;
    let of = async |host: &str| {
        let answer = client::get_tls(rig.https, Some(host), host, "/").await;
        let cookie = answer.field("set-cookie").unwrap().to_owned();
        let (pair, attributes) = cookie.split_once("; ").unwrap();
        (pair.split_once('=').unwrap().0.to_owned(), attributes.to_owned())
    };
    assert_eq!(of("lax.cookie.test").await, ("SESSION-1".into(), "path=/; HttpOnly; Secure; SameSite=Lax".into()));
    assert_eq!(of("allow.cookie.test").await, ("SESSION-1".into(), "path=/; HttpOnly".into()));
    assert_eq!(of("none.cookie.test").await.1, "path=/; HttpOnly; Secure; SameSite=None");
    let none = ask(rig.http, "off.cookie.test", "a=1").await;
    assert_eq!((none.status, none.field("set-cookie")), (200, None));
}

#[tokio::test]
async fn an_endpoint_that_goes_or_fails_gives_its_clients_away() {
    let [one, two, _] = three().await;
    let with = |addresses: &[SocketAddr]| table(&[Route::new("move.test", "").service("app", addresses)], None);
    let rig = Rig::serve(&[Route::new("move.test", "").service("app", &[one, two])]).await;
    let first = ask(rig.http, "move.test", "").await;
    let (home, other) = if who(&first) == "one" { (one, two) } else { (two, one) };
    let cookie = set(&first);
    rig.tables.send_replace(with(&[other]));
    let moved = ask_until(&rig, &cookie, |answer| who(answer) != who(&first)).await;
    assert_ne!(set(&moved), cookie);
    rig.tables.send_replace(with(&[home, other]));
    ask_until(&rig, &cookie, |answer| who(answer) == who(&first) && answer.field("set-cookie").is_none()).await;
    // Clients also leave an endpoint that refuses connections, without an error.
    let refusing = backends::refusing();
    rig.tables.send_replace(with(&[refusing]));
    let failed = ask_until(&rig, "", |answer| answer.status == 503).await;
    assert_eq!(failed.field("set-cookie"), None, "an answer of the router's own says nothing of an endpoint");
    rig.tables.send_replace(with(&[refusing, other]));
    ask_until(&rig, "", |answer| answer.status == 200).await;
    for _ in 0..10 {
        assert_eq!(ask(rig.http, "move.test", "").await.status, 200);
    }
}

async fn ask_until(rig: &Rig, cookie: &str, holds: impl Fn(&Answer) -> bool) -> Answer {
    let mut found = None;
    crate::tables::eventually("the answer of the new table", async || {
        found = Some(ask(rig.http, "move.test", cookie).await);
        found.as_ref().is_some_and(&holds)
    })
    .await;
    found.unwrap()
}

#[tokio::test]
async fn a_service_without_weight_keeps_the_clients_that_it_has() {
    let [old, new, _] = three().await;
    let route =
        |weight| Route::new("drain.cookie.test", "").weighted("old", weight, &[old]).weighted("new", 100, &[new]);
    let rig = Rig::serve(&[route(100)]).await;
    let mut cookie = String::new();
    while cookie.is_empty() {
        let answer = ask(rig.http, "drain.cookie.test", "").await;
        if who(&answer) == "one" {
            cookie = set(&answer);
        }
    }
    rig.tables.send_replace(table(&[route(0)], None));
    // Under the old table, services take turns: several responses of the new service in a row show the new table.
    let mut in_a_row = 0;
    while in_a_row < 3 {
        in_a_row = if who(&ask(rig.http, "drain.cookie.test", "").await) == "two" { in_a_row + 1 } else { 0 };
    }
    for _ in 0..5 {
        assert_eq!(who(&ask(rig.http, "drain.cookie.test", &cookie).await), "one");
        assert_eq!(who(&ask(rig.http, "drain.cookie.test", "").await), "two");
    }
}

#[tokio::test]
async fn the_application_may_not_set_a_cookie_of_that_name() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let backend = backends::serve(|mut stream| async move {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await;
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\nSet-Cookie: SID=mine; path=/\r\n\
                      Set-Cookie: SIDE=other\r\nCache-Control: max-age=9\r\n\r\n";
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    let affinity = Affinity { cookie: Some("SID".into()), ..Affinity::default() };
    let policy = RoutePolicy { affinity, ..RoutePolicy::default() };
    let rig = Rig::serve(&[Route::new("own.cookie.test", "").to(backend).policy(policy)]).await;
    let answer = ask(rig.http, "own.cookie.test", "").await;
    let cookies: Vec<_> = answer.head.lines().filter_map(|line| line.strip_prefix("set-cookie: ")).collect();
    assert_eq!((cookies.len(), cookies[0]), (2, "SIDE=other"), "{}", answer.head);
    assert!(cookies[1].starts_with("SID=") && cookies[1].ends_with("; path=/; HttpOnly") && cookies[1].len() > 40);
    assert!(answer.head.contains("\ncache-control: max-age=9\n"), "{}", answer.head);
    assert!(answer.head.contains("\ncache-control: private"), "{}", answer.head);
}

#[tokio::test]
async fn http2_clients_may_send_their_cookies_in_pieces() {
    use http_body_util::{BodyExt, Empty};
    use hyper::body::Bytes;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let key = pki::ca().leaf(&["crumbs.test"]);
    let rig = Rig::serve(&[Route::new("crumbs.test", "").edge(Some(&key)).service("app", &three().await)]).await;
    let stream = client::tls(rig.https, Some("crumbs.test"), &["h2"]).await;
    let (mut sender, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let mut cookie = String::new();
    let mut home = None;
    for _ in 0..10 {
        let mut request = hyper::Request::get("https://crumbs.test/").header("cookie", "a=1");
        if !cookie.is_empty() {
            request = request.header("cookie", &cookie);
        }
        let request = request.header("cookie", "b=2").body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        if let Some(set) = response.headers().get("set-cookie") {
            assert!(cookie.is_empty(), "one cookie is enough");
            cookie = set.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
        let name = response.headers()["x-backend"].clone();
        assert_eq!(*home.get_or_insert(name.clone()), name);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains("\ncookie: a=1; b=2\n"), "{body}");
    }
}

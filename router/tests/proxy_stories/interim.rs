//! Interim responses (RFC 9110 §15.2), byte by byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use router_table::header_modifier::HeaderModifier;
use router_table::policy::RoutePolicy;
use router_table::policy::header_actions::{HeaderAction, HeaderActions, HeaderChange};
use router_table::rule::RulePolicy;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route};
use crate::{backends, client, log};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Responds to every request with these bytes, at once.
async fn answering(answer: impl Into<Bytes>) -> SocketAddr {
    let answer = answer.into();
    backends::serve(move |mut stream| {
        let answer = answer.clone();
        async move {
            while backends::read_head(&mut stream).await {
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

fn hints(link: &str) -> String {
    format!("HTTP/1.1 103 Early Hints\r\nLink: <{link}>\r\n\r\n")
}

/// The same as the router writes it.
fn forwarded(link: &str) -> String {
    format!("HTTP/1.1 103 Early Hints\r\nlink: <{link}>\r\n\r\n")
}

/// Reads exactly this text.
async fn expect(stream: &mut (impl AsyncRead + Unpin), expected: &str) {
    let mut bytes = vec![0; expected.len()];
    let read = timeout(PATIENCE, stream.read_exact(&mut bytes)).await;
    assert!(matches!(read, Ok(Ok(_))), "{read:?} instead of {expected:?}: {:?}", String::from_utf8_lossy(&bytes));
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

/// Everything that a client receives for a request, until its connection ends; without the date and the route's cookie.
async fn all(to: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("an end").unwrap();
    undated(&text)
}

fn undated(text: &str) -> String {
    let changing = ["date: ", "set-cookie: ", "cache-control: "];
    let lines = text.split_inclusive("\r\n");
    lines.filter(|line| !changing.iter().any(|name| line.starts_with(name))).collect()
}

fn get(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// The response of these endpoints, on a connection that ends, or is kept.
const LAST: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
const NEXT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn all_that_come_with_the_response_come_before_it() {
    let backend = answering(hints("/a") + "HTTP/1.1 102 Processing\r\n\r\n" + &hints("/b") + OK).await;
    let rig = Rig::serve(&[Route::new("two.early.test", "").to(backend)]).await;
    let expected = forwarded("/a") + "HTTP/1.1 102 Processing\r\n\r\n" + &forwarded("/b") + LAST;
    assert_eq!(all(rig.http, &get("two.early.test")).await, expected);
    let line = log::line("host", "two.early.test").await;
    assert_eq!((&line["status"], &line["interim_dropped"]), (&200.into(), &serde_json::Value::Null));
}

#[tokio::test]
async fn each_comes_when_the_endpoint_has_sent_it() {
    let read = Arc::new(Semaphore::new(0));
    let may_go_on = Arc::clone(&read);
    let backend = backends::serve(move |mut stream| {
        let may_go_on = Arc::clone(&may_go_on);
        async move {
            while backends::read_head(&mut stream).await {
                for part in [&hints("/a"), &hints("/b"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "ok"] {
                    may_go_on.acquire().await.unwrap().forget();
                    stream.write_all(part.as_bytes()).await.unwrap();
                }
            }
        }
    })
    .await;
    let clear = Route::new("each.early.test", "").to(backend);
    let rig = Rig::serve(&[clear, Route::new("tls.early.test", "").edge(None).to(backend)]).await;
    let mut clear = TcpStream::connect(rig.http).await.unwrap();
    each_in_turn(&mut clear, "each.early.test", &read).await;
    let mut tls = client::tls(rig.https, Some("tls.early.test"), &["http/1.1"]).await;
    each_in_turn(&mut tls, "tls.early.test", &read).await;
}

/// Two requests on one connection; the endpoint continues its response once the client has read the last part.
async fn each_in_turn(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), host: &str, may_go_on: &Semaphore) {
    for _ in 0..2 {
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap();
        for link in ["/a", "/b"] {
            may_go_on.add_permits(1);
            expect(stream, &forwarded(link)).await;
        }
        may_go_on.add_permits(2);
        expect(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n").await;
        assert!(backends::read_head(stream).await);
        expect(stream, "ok").await;
    }
}

#[tokio::test]
async fn pipelined_requests_have_each_their_own() {
    let backend = answering(hints("/a") + OK).await;
    let large = "x".repeat(200_000);
    let body = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{large}", large.len());
    let large_backend = answering(hints("/large") + &body).await;
    let rig = Rig::serve(&[
        Route::new("pipe.early.test", "").to(backend),
        Route::new("pipe.early.test", "/large").to(large_backend),
    ])
    .await;
    let small = "GET / HTTP/1.1\r\nHost: pipe.early.test\r\n\r\n";
    let request = format!("{small}{}{small}{}", small.replace("/ ", "/large "), get("pipe.early.test"));
    let large = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{large}", large.len());
    let expected =
        [&forwarded("/a"), NEXT, &forwarded("/large"), &large, &forwarded("/a"), NEXT, &forwarded("/a"), LAST].concat();
    let found = all(rig.http, &request).await;
    assert!(found == expected, "{}", found.replace(&"x".repeat(1000), ""));
}

#[tokio::test]
async fn clients_that_do_not_know_them_get_none() {
    let backend = answering(hints("/a") + OK).await;
    let rig = Rig::serve(&[
        Route::new("old.early.test", "").to(backend),
        Route::new("two.early2.test", "").edge(None).to(backend),
    ])
    .await;
    let old = all(rig.http, "GET / HTTP/1.0\r\nHost: old.early.test\r\n\r\n").await;
    assert_eq!(old, "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok");
    // hyper cannot send interim responses over HTTP/2.
    let answers =
        client::get_h2(rig.https, "two.early2.test", &[("two.early2.test", "/"), ("two.early2.test", "/")]).await;
    assert_eq!(answers, vec![(hyper::StatusCode::OK, "ok".to_owned()); 2]);
}

#[tokio::test]
async fn a_flood_of_them_is_cut_and_counted() {
    const FLOOD: usize = 10_000;
    let backend = answering(hints("/flood").repeat(FLOOD) + OK).await;
    let long = hints(&"x".repeat(17 * 1024)) + &hints("/short") + OK;
    let long_backend = answering(long).await;
    let rig = Rig::serve(&[
        Route::new("flood.early.test", "").to(backend),
        Route::new("long.early.test", "").to(long_backend),
    ])
    .await;
    for _ in 0..2 {
        assert_eq!(all(rig.http, &get("flood.early.test")).await, forwarded("/flood").repeat(8) + LAST);
    }
    assert_eq!(log::line("host", "flood.early.test").await["interim_dropped"], FLOOD - 8);
    assert_eq!(all(rig.http, &get("long.early.test")).await, forwarded("/short") + LAST);
    assert_eq!(log::line("host", "long.early.test").await["interim_dropped"], 1);
}

#[tokio::test]
async fn what_is_taken_out_of_responses_is_taken_out_of_them() {
    let interim = "HTTP/1.1 103 Early Hints\r\nConnection: X-Own\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\nLink: </a>\r\n\
                   X-By-Rule: 1\r\nX-By-Route: 2\r\nX-Kept: 3\r\n\r\n";
    let backend = answering(interim.to_owned() + OK).await;
    let rule =
        HeaderModifier { set: vec![("x-new".into(), "n".into())], add: Vec::new(), remove: vec!["x-by-rule".into()] };
    let delete = HeaderAction { name: "X-By-Route".into(), change: HeaderChange::Delete };
    let actions = HeaderActions { response: vec![delete], ..HeaderActions::default() };
    let rig = Rig::serve(&[Route::new("acts.early.test", "")
        .rule(RulePolicy { response_headers: vec![rule], ..RulePolicy::default() })
        .policy(RoutePolicy { actions: Some(Arc::new(actions)), ..RoutePolicy::default() })
        .to(backend)])
    .await;
    let expected = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nx-kept: 3\r\n\r\n";
    let found = all(rig.http, &get("acts.early.test")).await;
    assert!(found.starts_with(&(expected.to_owned() + "HTTP/1.1 200 OK\r\n")), "{found}");
    assert!(found.contains("x-new: n\r\n"), "{found}");
}

#[tokio::test]
async fn continue_and_switches_come_after_them() {
    let backend = backends::serve(|mut stream| async move {
        assert!(backends::read_head(&mut stream).await);
        let continued = hints("/a") + "HTTP/1.1 100 Continue\r\n\r\n";
        stream.write_all(continued.as_bytes()).await.unwrap();
        expect(&mut stream, "body").await;
        stream.write_all((hints("/b") + OK).as_bytes()).await.unwrap();
    })
    .await;
    let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello";
    let tunnel = answering(hints("/a") + switching).await;
    let rig = Rig::serve(&[
        Route::new("continue.early.test", "").to(backend),
        Route::new("switch.early.test", "").to(tunnel),
    ])
    .await;

    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: continue.early.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\
                Connection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // Two concurrent interim responses may come in either order.
    let (hinted, continued) = (forwarded("/a"), "HTTP/1.1 100 Continue\r\n\r\n");
    let mut both = vec![0; hinted.len() + continued.len()];
    timeout(PATIENCE, stream.read_exact(&mut both)).await.expect("both").unwrap();
    let both = String::from_utf8(both).unwrap();
    assert!(both == hinted.clone() + continued || both == continued.to_owned() + &hinted, "{both}");
    stream.write_all(b"body").await.unwrap();
    let mut rest = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut rest)).await.expect("an end").unwrap();
    assert_eq!(undated(&rest), forwarded("/b") + LAST);

    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    let request = "GET / HTTP/1.1\r\nHost: switch.early.test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    expect(&mut stream, &(forwarded("/a") + "HTTP/1.1 101 Switching Protocols\r\n")).await;
    assert!(backends::read_head(&mut stream).await);
    expect(&mut stream, "hello").await;
}

#[tokio::test]
async fn an_endpoint_that_says_no_more_is_a_504() {
    let backend = backends::serve(|mut stream| async move {
        if backends::read_head(&mut stream).await {
            stream.write_all(hints("/a").as_bytes()).await.unwrap();
            let _ = stream.read_u8().await;
        }
    })
    .await;
    let silent = RulePolicy { request_timeout: Some(Duration::from_millis(200)), ..RulePolicy::default() };
    let ended = answering(hints("/a") + "no HTTP\r\n\r\n").await;
    let rig = Rig::serve(&[
        Route::new("silent.early.test", "").rule(silent).to(backend),
        Route::new("broken.early.test", "").to(ended),
    ])
    .await;
    for (host, status) in [("silent.early.test", "HTTP/1.1 504 "), ("broken.early.test", "HTTP/1.1 502 ")] {
        let found = all(rig.http, &get(host)).await;
        assert!(found.starts_with(&(forwarded("/a") + status)), "{host}: {found}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_no_other_client() {
    // More than all buffers on the way hold, so that some responses wait while others are written.
    let long = hints(&"x".repeat(2000));
    let backend = answering(long.repeat(8) + OK).await;
    let rig = Rig::serve(&[Route::new("slow.early.test", "").to(backend)]).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1024).unwrap();
    let mut slow = socket.connect(rig.http).await.unwrap();
    slow.write_all(get("slow.early.test").as_bytes()).await.unwrap();
    let expected = forwarded(&"x".repeat(2000)).repeat(8) + LAST;
    assert!(all(rig.http, &get("slow.early.test")).await == expected);
    let mut text = String::new();
    timeout(PATIENCE, slow.read_to_string(&mut text)).await.expect("an end").unwrap();
    assert!(undated(&text) == expected);
}

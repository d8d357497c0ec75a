//! Forwarding of trailers (RFC 9110 §6.5). Over HTTP/2 all are forwarded. Over HTTP/1.1 those that the message's
//! `Trailer` field announces, as hyper writes no others; and to a client only if it sends `TE: trailers`. A message
//! without them is still complete: a sender must not rely on trailers (§6.5.1), and should announce them (§6.6.2).

use std::net::SocketAddr;

use http::{HeaderMap, HeaderValue, Request, Response};
use hyper::body::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route};
use crate::{backends, client, grpc};

const TRAILERS: [(&str, &str); 2] = [("x-sum", "42"), ("x-other", "1")];

/// A chunked response with both trailers, of which it announces these.
async fn over_http1(announced: &'static str) -> SocketAddr {
    backends::serve(move |mut stream| async move {
        while stream.read(&mut [0; 4096]).await.unwrap_or(0) > 0 {
            let head = format!("HTTP/1.1 200 OK\r\n{announced}Transfer-Encoding: chunked\r\n\r\n");
            let end = "4\r\nbody\r\n0\r\nX-Sum: 42\r\nX-Other: 1\r\n\r\n";
            stream.write_all((head + end).as_bytes()).await.unwrap();
        }
    })
    .await
}

/// The same over HTTP/2.
async fn over_http2(announced: Option<&'static str>) -> SocketAddr {
    grpc::server(move |_, mut respond| async move {
        let mut response = Response::new(());
        response.headers_mut().extend(announced.map(|names| (http::header::TRAILER, HeaderValue::from_static(names))));
        let mut out = respond.send_response(response, false).unwrap();
        out.send_data("body".into(), false).unwrap();
        let fields = TRAILERS.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        out.send_trailers(HeaderMap::from_iter(fields)).unwrap();
    })
    .await
}

#[tokio::test]
async fn of_responses_those_go_on_that_are_announced_and_that_the_client_takes() {
    let cases = [("all", "Trailer: X-Sum, X-Other\r\n"), ("one", "Trailer: x-SUM\r\n"), ("none", "")];
    let mut routes = Vec::new();
    for (name, announced) in cases {
        let names = announced.strip_prefix("Trailer: ").and_then(|names| names.strip_suffix("\r\n"));
        routes.push(Route::new(&format!("{name}.h1.trailer.test"), "").to(over_http1(announced).await));
        routes.push(Route::new(&format!("{name}.h2.trailer.test"), "").to(over_http2(names).await).h2c());
    }
    let rig = Rig::serve(&routes).await;
    let both = "x-sum: 42\r\nx-other: 1\r\n";
    for endpoint in ["h1", "h2"] {
        for (name, te, expected) in [
            ("all", "Connection: TE\r\nTE: gzip, trailers\r\n", both),
            ("one", "TE: trailers\r\n", "x-sum: 42\r\n"),
            ("none", "TE: trailers\r\n", ""),
            ("all", "", ""),
            ("one", "TE: gzip\r\n", ""),
        ] {
            let host = format!("{name}.{endpoint}.trailer.test");
            let mut stream = TcpStream::connect(rig.http).await.unwrap();
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{te}Connection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut text = String::new();
            timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("an end").unwrap();
            let (head, content) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            assert_eq!(content, format!("4\r\nbody\r\n0\r\n{expected}\r\n"), "{host}, {te:?}");
        }
    }
}

#[tokio::test]
async fn over_http2_all_go_on() {
    let rig = Rig::serve(&[
        Route::new("quiet1.trailer.test", "").edge(None).to(over_http1("").await),
        Route::new("quiet2.trailer.test", "").edge(None).to(over_http2(None).await).h2c(),
    ])
    .await;
    for host in ["quiet1.trailer.test", "quiet2.trailer.test"] {
        let stream = client::tls(rig.https, Some(host), &["h2"]).await;
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(async move { connection.await.ok() });
        let mut sender = sender.ready().await.unwrap();
        let request = Request::get(format!("https://{host}/")).body(()).unwrap();
        let (response, _): (_, h2::SendStream<Bytes>) = sender.send_request(request, true).unwrap();
        let mut body = timeout(PATIENCE, response).await.expect("an answer").unwrap().into_body();
        assert_eq!(timeout(PATIENCE, body.data()).await.expect("a frame").unwrap().unwrap(), "body");
        let trailers = timeout(PATIENCE, body.trailers()).await.expect("trailers").unwrap().expect("trailers");
        for (name, value) in TRAILERS {
            assert_eq!(trailers[name], value, "{host}");
        }
    }
}

#[tokio::test]
async fn of_requests_those_go_on_that_are_announced() {
    // The bytes after the head, until the end of the message.
    let backend = backends::serve(|mut stream| async move {
        let mut seen = String::new();
        while !seen.contains("\r\n0\r\n") || !seen.ends_with("\r\n\r\n") {
            seen.push(stream.read_u8().await.unwrap().into());
        }
        let content = seen.split_once("\r\n\r\n").unwrap().1;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let rig = Rig::serve(&[Route::new("up.trailer.test", "").to(backend)]).await;
    for (announced, expected) in [
        ("Trailer: X-Sum, X-Other\r\n", "X-Sum: 42\r\nX-Other: 1\r\n"),
        ("Trailer: X-Sum\r\n", "X-Sum: 42\r\n"),
        ("", ""),
    ] {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: up.trailer.test\r\n{announced}Transfer-Encoding: chunked\r\nConnection: close\r\n\
             \r\n4\r\nbody\r\n0\r\nX-Sum: 42\r\nX-Other: 1\r\n\r\n"
        );
        let answer = client::request(rig.http, &request).await;
        let expected = format!("4\r\nbody\r\n0\r\n{}\r\n", expected.to_ascii_lowercase());
        assert_eq!((answer.status, answer.body), (200, expected), "{announced:?}");
    }
}

#[tokio::test]
async fn connection_fields_and_client_fields_are_not_allowed_in_them() {
    let endpoint = backends::serve(|mut stream| async move {
        while stream.read(&mut [0; 4096]).await.unwrap_or(0) > 0 {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n";
            let end = "Connection: X-Own\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\nX-Sum: 42\r\n\r\n";
            stream.write_all((head.to_owned() + end).as_bytes()).await.unwrap();
        }
    })
    .await;
    // The trailers of a request, as fields of the response.
    let echo = grpc::server(|request, mut respond| async move {
        let mut body = request.into_body();
        while let Some(Ok(data)) = body.data().await {
            body.flow_control().release_capacity(data.len()).unwrap();
        }
        let mut response = Response::new(());
        *response.headers_mut() = body.trailers().await.unwrap().unwrap_or_default();
        respond.send_response(response, true).unwrap();
    })
    .await;
    let rig = Rig::serve(&[
        Route::new("down.own.trailer.test", "").edge(None).to(endpoint),
        Route::new("up.own.trailer.test", "").to(echo).h2c(),
    ])
    .await;

    let stream = client::tls(rig.https, Some("down.own.trailer.test"), &["h2"]).await;
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move { connection.await.ok() });
    let request = Request::get("https://down.own.trailer.test/").body(()).unwrap();
    let (response, _): (_, h2::SendStream<Bytes>) = sender.ready().await.unwrap().send_request(request, true).unwrap();
    let mut body = timeout(PATIENCE, response).await.expect("an answer").unwrap().into_body();
    assert_eq!(timeout(PATIENCE, body.data()).await.expect("a frame").unwrap().unwrap(), "body");
    let trailers = timeout(PATIENCE, body.trailers()).await.expect("trailers").unwrap().expect("trailers");
    assert_eq!(trailers, HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("42"))]));

    let request = "POST / HTTP/1.1\r\nHost: up.own.trailer.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                   4\r\nbody\r\n0\r\nConnection: X-Own\r\nX-Own: 1\r\nX-Sum: 42\r\nX-SSL-Client-CN: root\r\n\
                   X-Forwarded-For: 192.0.2.1\r\nx_real_ip: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n\r\n";
    let answer = client::request(rig.http, request).await;
    assert_eq!((answer.status, answer.field("x-sum")), (200, Some("42")));
    for name in ["x-own", "x-ssl-client-cn", "x-forwarded-for", "x_real_ip", "forwarded"] {
        assert_eq!(answer.field(name), None, "{name}");
    }
}

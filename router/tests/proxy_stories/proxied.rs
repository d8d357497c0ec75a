//! Listeners behind a load balancer that speaks the PROXY protocol.

use std::net::SocketAddr;

use router_proxy::ProxyConfig;
use router_table::policy::RouterPolicy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, table, under};
use crate::{backends, client, log, pki};

const HEADER: &[u8] = b"PROXY TCP4 192.0.2.77 198.51.100.1 4660 443\r\n";

async fn rig(routes: &[Route]) -> Rig {
    let policy = RouterPolicy { accept_proxy: true, ..RouterPolicy::default() };
    let key = pki::ca().leaf(&["*.proxied.test"]);
    Rig::start(ProxyConfig::default(), under(policy, table(routes, Some(&key)))).await
}

/// The response to these bytes, each piece sent in its own write, until the end.
async fn answer(to: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        if stream.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mut bytes = Vec::new();
    // A reset is an end as well.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an end");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn endpoints_and_rules_see_the_client_that_the_header_names() {
    let app = backends::http("app").await;
    let rig = rig(&[
        Route::new("http.proxied.test", "").to(app),
        Route::new("listed.proxied.test", "").to(app).allow(&["192.0.2.77/32"]),
        Route::new("other.proxied.test", "").to(app).allow(&["127.0.0.0/8"]),
    ])
    .await;
    let request = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let text = request("http.proxied.test");
    let whole = [HEADER, text.as_bytes()].concat();
    let seen = answer(rig.http, &[&whole]).await;
    assert!(seen.contains("x-forwarded-for: 192.0.2.77"), "{seen}");
    // Split anywhere, the header has the same effect.
    for cut in [1, 6, 20, HEADER.len() - 1, HEADER.len(), HEADER.len() + 5] {
        assert_eq!(answer(rig.http, &[&whole[..cut], &whole[cut..]]).await.lines().next(), Some("HTTP/1.1 200 OK"));
    }
    for (host, status) in [("listed.proxied.test", "HTTP/1.1 200 OK"), ("other.proxied.test", "HTTP/1.1 403 Forbidden")]
    {
        let seen = answer(rig.http, &[HEADER, request(host).as_bytes()]).await;
        assert_eq!(seen.lines().next(), Some(status));
    }
    // The load balancer's own health check.
    let seen = answer(rig.http, &[b"PROXY UNKNOWN\r\n", text.as_bytes()]).await;
    assert!(seen.contains("x-forwarded-for: 127.0.0.1"), "{seen}");
}

async fn echo() -> SocketAddr {
    backends::serve(|mut stream| async move {
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
    })
    .await
}

#[tokio::test]
async fn tls_follows_the_header() {
    let rig = rig(&[
        Route::new("edge.proxied.test", "").edge(None).to(backends::http("app").await),
        Route::new("through.proxied.test", "").passthrough().to(echo().await),
    ])
    .await;
    let hello = client::hello("through.proxied.test");
    for pieces in [vec![[HEADER, &hello].concat()], vec![HEADER.to_vec(), hello.clone()]] {
        let mut stream = TcpStream::connect(rig.https).await.unwrap();
        for piece in &pieces {
            stream.write_all(piece).await.unwrap();
        }
        let mut echoed = vec![0; hello.len()];
        timeout(PATIENCE, stream.read_exact(&mut echoed)).await.expect("an echo").unwrap();
        assert_eq!(echoed, hello, "the endpoint has the hello alone");
    }
    let line = log::line("host", "through.proxied.test").await;
    assert_eq!(
        (line["client"].as_str(), line["listener"].as_str()),
        (Some("192.0.2.77:4660"), Some("198.51.100.1:443"))
    );

    let mut stream = TcpStream::connect(rig.https).await.unwrap();
    stream.write_all(HEADER).await.unwrap();
    let name = "edge.proxied.test".try_into().unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(client::config(&["http/1.1"])));
    let stream = timeout(PATIENCE, connector.connect(name, stream)).await.expect("a handshake").unwrap();
    let request = "GET / HTTP/1.1\r\nHost: edge.proxied.test\r\nConnection: close\r\n\r\n";
    let answer = client::exchange(stream, request).await;
    assert!(answer.status == 200 && answer.body.contains("x-forwarded-for: 192.0.2.77"), "{answer:?}");
}

#[tokio::test]
async fn without_a_header_no_client_is_served() {
    let rig = rig(&[Route::new("http.proxied.test", "").to(backends::http("app").await)]).await;
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: http.proxied.test\r\nConnection: close\r\n\r\n"[..],
        b"PROXY TCP4 nobody 198.51.100.1 4660 443\r\nGET / HTTP/1.1\r\nHost: http.proxied.test\r\n\r\n",
    ] {
        assert_eq!(answer(rig.http, &[bytes]).await, "");
    }
    assert_eq!(answer(rig.https, &[&client::hello("http.proxied.test")]).await, "");
}

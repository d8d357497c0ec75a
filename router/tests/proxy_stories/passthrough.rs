//! Passthrough: the router does not decrypt the backend's TLS.

use std::net::SocketAddr;
use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tables::{Rig, Route, eventually, table, under};
use crate::{backends, client, log, pki};

#[tokio::test]
async fn reaches_the_backend_that_owns_the_certificate() {
    let key = pki::ca().leaf(&["pass.test"]);
    let backend = backends::tls_echo("backend one", pki::server_config(key.clone())).await;
    let rig = Rig::serve(&[Route::new("pass.test", "").passthrough().to(backend)]).await;

    let mut stream = client::tls(rig.https, Some("pass.test"), &[]).await;
    assert_eq!(client::shown(&stream), key.cert[0]);
    stream.write_all(b" echo").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "backend one echo");

    let line = log::line("host", "pass.test").await;
    assert_eq!(line["route"], "shop/pass.test");
    assert_eq!(line["endpoint"], backend.to_string());
    assert_eq!(line["datapath"], "relay");
    assert_eq!(line["flags"], "-");
    assert!(line["bytes_in"].as_u64().unwrap() > 100 && line["bytes_out"].as_u64().unwrap() > 100, "{line}");
    eventually("the counters", async || {
        rig.proxy.counters().iter().any(|c| c.route.name.as_ref() == "pass.test" && c.served == 1 && c.failed == 0)
    })
    .await;
}

#[tokio::test]
async fn a_refusing_endpoint_is_passed_over() {
    let backend = backends::tls_echo("alive", pki::server_config(pki::ca().leaf(&["next.test"]))).await;
    let endpoints = [backends::refusing(), backends::refusing(), backend];
    let rig = Rig::serve(&[Route::new("next.test", "").passthrough().service("app", &endpoints)]).await;
    for _ in 0..10 {
        let mut stream = client::tls(rig.https, Some("next.test"), &[]).await;
        let mut name = [0; 5];
        stream.read_exact(&mut name).await.unwrap();
        assert_eq!(&name, b"alive");
    }
}

/// Sends a real ClientHello for this name and waits for the end of the connection.
async fn rejected(rig: &Rig, name: &str) -> std::io::ErrorKind {
    let name = rustls_pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let stream = TcpStream::connect(rig.https).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(client::config(&[])));
    connector.connect(name, stream).await.expect_err("no handshake").kind()
}

#[tokio::test]
async fn without_a_backend_the_client_is_reset() {
    let backend = backends::named_echo("never").await;
    let rig = Rig::serve(&[
        Route::new("none.test", "").passthrough(),
        Route::new("refused.test", "").passthrough().to(backends::refusing()),
        Route::new("denied.test", "").passthrough().to(backend).allow(&["192.0.2.0/24"]),
    ])
    .await;
    for (name, flag) in [("none.test", "NE"), ("refused.test", "UF"), ("denied.test", "SNA")] {
        assert_eq!(rejected(&rig, name).await, std::io::ErrorKind::ConnectionReset, "{name}");
        assert_eq!(log::line("host", name).await["flags"], flag, "{name}");
    }
}

#[tokio::test]
async fn the_allow_list_lets_its_own_in() {
    let backend = backends::tls_echo("open", pki::server_config(pki::ca().leaf(&["listed.test"]))).await;
    let route = Route::new("listed.test", "").passthrough().to(backend).allow(&["192.0.2.0/24", "127.0.0.0/8"]);
    let rig = Rig::serve(&[route]).await;
    let mut name = [0; 4];
    client::tls(rig.https, Some("listed.test"), &[]).await.read_exact(&mut name).await.unwrap();
    assert_eq!(&name, b"open");
}

#[tokio::test]
async fn an_idle_tunnel_ends() {
    let backend = backends::tls_echo("idle", pki::server_config(pki::ca().leaf(&["idle.test"]))).await;
    let timeouts = Timeouts { tunnel: Duration::from_millis(300), ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let table = table(&[Route::new("idle.test", "").passthrough().to(backend)], None);
    let rig = Rig::start(ProxyConfig::default(), under(policy, table)).await;
    let mut stream = client::tls(rig.https, Some("idle.test"), &[]).await;
    let mut text = Vec::new();
    assert!(stream.read_to_end(&mut text).await.is_err(), "a reset, not an end");
    assert_eq!(log::line("host", "idle.test").await["flags"], "ID");
}

#[tokio::test]
async fn a_route_says_how_long_its_tunnels_may_be_idle() {
    let backend = backends::tls_echo("short", pki::server_config(pki::ca().leaf(&["short.test"]))).await;
    let route = Route::new("short.test", "").passthrough().to(backend).tunnel_timeout(Duration::from_millis(300));
    let rig = Rig::serve(&[route]).await;
    let mut stream = client::tls(rig.https, Some("short.test"), &[]).await;
    assert!(stream.read_to_end(&mut Vec::new()).await.is_err(), "a reset, not an end");
    assert_eq!(log::line("host", "short.test").await["flags"], "ID");
}

/// The PROXY v2 header of a TCP connection over IPv4 (PROXY protocol §2.2), hand-made.
fn proxy_header(client: SocketAddr, listener: SocketAddr) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c".to_vec();
    for address in [client, listener] {
        let SocketAddr::V4(address) = address else { panic!("{address} is not IPv4") };
        header.extend(address.ip().octets());
    }
    header.extend(client.port().to_be_bytes());
    header.extend(listener.port().to_be_bytes());
    header
}

#[tokio::test]
async fn a_proxy_header_goes_first_and_is_not_the_clients() {
    let tls = pki::server_config(pki::ca().leaf(&["told.test"]));
    let (seen, mut headers) = tokio::sync::mpsc::unbounded_channel();
    let backend = backends::serve(move |mut stream| {
        let (acceptor, seen) = (tokio_rustls::TlsAcceptor::from(std::sync::Arc::clone(&tls)), seen.clone());
        async move {
            let mut header = vec![0; 28];
            stream.read_exact(&mut header).await.unwrap();
            seen.send(header).unwrap();
            // The hello follows at once: the handshake succeeds only if nothing is in between.
            let mut stream = acceptor.accept(stream).await.unwrap();
            stream.write_all(b"told").await.unwrap();
            stream.shutdown().await.unwrap();
        }
    })
    .await;
    let endpoints = [backends::refusing(), backend];
    let rig =
        Rig::serve(&[Route::new("told.test", "").passthrough().service("app", &endpoints).proxy_protocol()]).await;
    let mut stream = client::tls(rig.https, Some("told.test"), &[]).await;
    let local = stream.get_ref().0.local_addr().unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "told");
    assert_eq!(headers.recv().await.unwrap(), proxy_header(local, rig.https));
}

#[tokio::test]
async fn bytes_of_the_proxy_header_are_not_counted() {
    let backend = backends::serve(|mut stream| async move {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        stream.write_all(&all).await.unwrap();
    })
    .await;
    let rig = Rig::serve(&[Route::new("count.test", "").passthrough().to(backend).proxy_protocol()]).await;
    let hello = client::hello("count.test");
    let mut stream = TcpStream::connect(rig.https).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).await.unwrap();
    let header = proxy_header(stream.local_addr().unwrap(), rig.https);
    assert_eq!(back, [header.as_slice(), &hello].concat());
    let line = log::line("host", "count.test").await;
    assert_eq!(
        (line["bytes_in"].as_u64(), line["bytes_out"].as_u64()),
        (Some(hello.len() as u64), Some(back.len() as u64))
    );
}

#[tokio::test]
async fn the_most_specific_host_wins_over_a_passthrough_wildcard() {
    let passed = backends::tls_echo("wild", pki::server_config(pki::ca().leaf(&["*.mix.test"]))).await;
    let edge = backends::http("edge").await;
    let rig = Rig::serve(&[
        Route::new("*.mix.test", "").passthrough().to(passed),
        Route::new("exact.mix.test", "").edge(None).to(edge),
    ])
    .await;
    let answer = client::get_tls(rig.https, Some("exact.mix.test"), "exact.mix.test", "/").await;
    assert!(answer.body.starts_with("edge GET /\n"), "{answer:?}");
    let mut name = [0; 4];
    client::tls(rig.https, Some("other.mix.test"), &[]).await.read_exact(&mut name).await.unwrap();
    assert_eq!(&name, b"wild");
}

//! TLS termination: certificates by name, HTTP/2, and misdirected requests.

use std::sync::Arc;

use hyper::StatusCode;
use router_proxy::ProxyConfig;
use router_table::table::InsecurePolicy;
use rustls::{AlertDescription, HandshakeKind};
use tokio::io::AsyncReadExt;

use crate::tables::{Rig, Route, table};
use crate::{backends, client, log, pki};

#[tokio::test]
async fn each_name_gets_its_certificate() {
    let backend = backends::http("app").await;
    let (one, two) = (pki::ca().leaf(&["one.test"]), pki::ca().leaf(&["*.two.test"]));
    let default = pki::ca().leaf(&["*.apps.test"]);
    let routes = [
        Route::new("one.test", "").edge(Some(&one)).to(backend),
        Route::new("*.two.test", "").edge(Some(&two)).to(backend),
        Route::new("three.apps.test", "").edge(None).to(backend),
    ];
    let rig = Rig::start(ProxyConfig::default(), table(&routes, Some(&default))).await;
    let expected = [
        (Some("one.test"), &one),
        (Some("ONE.test"), &one),
        (Some("x.two.test"), &two),
        (Some("three.apps.test"), &default),
        (Some("unknown.test"), &default),
        (None, &default),
    ];
    for (sni, key) in expected {
        let stream = client::tls(rig.https, sni, &["http/1.1"]).await;
        assert_eq!(client::shown(&stream), key.cert[0], "{sni:?}");
    }
    let answer = client::get_tls(rig.https, Some("x.two.test"), "x.two.test", "/a?b=c").await;
    assert!(answer.body.starts_with("app GET /a?b=c\n"), "{answer:?}");
    let line = log::line("host", "x.two.test").await;
    assert_eq!((line["status"].as_u64(), line["flags"].as_str()), (Some(200), Some("-")));
    assert_eq!(line["datapath"], "proxy");
}

#[tokio::test]
async fn without_a_default_the_certificate_is_made_for_the_domain() {
    let routes = [Route::new("made.apps.test", "").edge(None).to(backends::http("app").await)];
    let rig = Rig::start(ProxyConfig::default(), table(&routes, None)).await;
    let stream = client::tls(rig.https, Some("made.apps.test"), &[]).await;
    let certificate = client::shown(&stream);
    let parsed = rustls::server::ParsedCertificate::try_from(&certificate).unwrap();
    for name in ["made.apps.test", "apps.test"] {
        let name = rustls_pki_types::ServerName::try_from(name).unwrap();
        rustls::client::verify_server_name(&parsed, &name).unwrap();
    }
    // A new table, the same certificate.
    rig.tables.send_replace(table(&[Route::new("other.apps.test", "")], None));
    crate::tables::eventually("the new table", async || {
        client::get_tls(rig.https, None, "made.apps.test", "/").await.status == 503
    })
    .await;
    let again = client::tls(rig.https, Some("made.apps.test"), &[]).await;
    assert_eq!(client::shown(&again), certificate);
}

#[tokio::test]
async fn http2_is_served() {
    let key = pki::ca().leaf(&["h2.test"]);
    let route = Route::new("h2.test", "").edge(Some(&key)).to(backends::http("app").await);
    let rig = Rig::serve(&[route]).await;
    let answers = client::get_h2(rig.https, "h2.test", &[("h2.test", "/one"), ("h2.test", "/two")]).await;
    for ((status, body), path) in answers.iter().zip(["/one", "/two"]) {
        assert_eq!(*status, StatusCode::OK);
        assert!(body.starts_with(&format!("app GET {path}\n")), "{body}");
        assert!(body.contains("\nhost: h2.test\n") && body.contains("\nx-forwarded-proto-version: h2\n"), "{body}");
    }
}

#[tokio::test]
async fn what_is_spoken_is_what_client_and_router_both_know() {
    let key = pki::ca().leaf(&["alpn.test"]);
    let route = Route::new("alpn.test", "").edge(Some(&key)).to(backends::http("app").await);
    let rig = Rig::serve(&[route]).await;
    for (offered, chosen) in [
        (&["http/1.0"][..], Some("http/1.0")),
        (&["http/1.0", "http/1.1"], Some("http/1.1")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["spdy/3.1", "http/0.9", "http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let stream = client::tls(rig.https, Some("alpn.test"), offered).await;
        let spoken = stream.get_ref().1.alpn_protocol().map(|name| std::str::from_utf8(name).unwrap().to_owned());
        assert_eq!(spoken.as_deref(), chosen, "{offered:?}");
        if chosen != Some("h2") {
            // HTTP/1.0: the end of the connection ends the response.
            let answer = client::exchange(stream, "GET /old HTTP/1.0\r\nHost: alpn.test\r\n\r\n").await;
            assert!(answer.status == 200 && answer.body.starts_with("app GET /old\n"), "{offered:?}: {answer:?}");
        }
    }
    for unknown in ["http/0.9", "h2c", "h3", "acme-tls/1", "spdy/3.1", "postgresql"] {
        let error = client::try_get(rig.https, &Arc::new(client::config(&[unknown])), "alpn.test").await;
        let error = error.err().expect("a refusal");
        assert_eq!(client::alert(&error), AlertDescription::NoApplicationProtocol, "{unknown}");
    }
}

#[tokio::test]
async fn requests_on_the_wrong_connection_are_misdirected() {
    let backend = backends::http("app").await;
    let (one, two) = (pki::ca().leaf(&["one.md.test"]), pki::ca().leaf(&["two.md.test"]));
    let rig = Rig::serve(&[
        Route::new("one.md.test", "").edge(Some(&one)).to(backend),
        Route::new("two.md.test", "").edge(Some(&two)).to(backend),
        Route::new("three.md.test", "").edge(None).to(backend),
        Route::new("four.md.test", "").edge(None).to(backend),
        Route::new("pass.md.test", "").passthrough().to(backend),
        Route::new("plain.md.test", "").to(backend),
    ])
    .await;
    let cases = [
        ("one.md.test", "one.md.test", 200),
        ("one.md.test", "two.md.test", 421),
        ("one.md.test", "three.md.test", 421),
        ("one.md.test", "unknown.md.test", 421),
        ("one.md.test", "pass.md.test", 421),
        // Both have the default certificate: a client may use one connection for both.
        ("three.md.test", "four.md.test", 200),
        ("three.md.test", "one.md.test", 421),
        ("three.md.test", "unknown.md.test", 503),
        ("unknown.md.test", "three.md.test", 200),
        // This route has no TLS.
        ("plain.md.test", "plain.md.test", 503),
    ];
    for (sni, host, status) in cases {
        assert_eq!(client::get_tls(rig.https, Some(sni), host, "/").await.status, status, "{sni} → {host}");
    }
    // Without SNI, Host decides; passthrough hosts stay unreachable.
    assert_eq!(client::get_tls(rig.https, None, "two.md.test", "/").await.status, 200);
    assert_eq!(client::get_tls(rig.https, None, "pass.md.test", "/").await.status, 421);
    let answers = client::get_h2(rig.https, "one.md.test", &[("two.md.test", "/"), ("one.md.test", "/")]).await;
    assert_eq!([answers[0].0, answers[1].0], [StatusCode::MISDIRECTED_REQUEST, StatusCode::OK]);
    assert_eq!(log::line("host", "two.md.test").await["flags"], "MD");
}

#[tokio::test]
async fn sessions_are_resumed_across_tables() {
    let key = pki::ca().leaf(&["resume.test"]);
    let routes = [Route::new("resume.test", "").edge(Some(&key)).to(backends::http("app").await)];
    let rig = Rig::serve(&routes).await;
    let config = Arc::new(client::config(&["http/1.1"]));
    let connect = async || {
        let name = rustls_pki_types::ServerName::try_from("resume.test").unwrap();
        let stream = tokio::net::TcpStream::connect(rig.https).await.unwrap();
        let stream = tokio_rustls::TlsConnector::from(Arc::clone(&config)).connect(name, stream).await.unwrap();
        let kind = stream.get_ref().1.handshake_kind();
        // The tickets arrive with the first bytes of the response.
        let answer = client::exchange(stream, "GET / HTTP/1.1\r\nHost: resume.test\r\nConnection: close\r\n\r\n").await;
        assert_eq!(answer.status, 200);
        kind
    };
    assert_eq!(connect().await, Some(HandshakeKind::Full));
    let more = [routes[0].clone(), Route::new("more.test", "")];
    rig.tables.send_replace(table(&more, None));
    crate::tables::eventually("the new table", async || {
        client::get(rig.http, "more.test", "/").await.field("cache-control").is_some()
    })
    .await;
    assert_eq!(connect().await, Some(HandshakeKind::Resumed));
}

#[tokio::test]
async fn a_certificate_change_reaches_new_connections() {
    let (before, after) = (pki::ca().leaf(&["renew.test"]), pki::ca().leaf(&["renew.test"]));
    let backend = backends::http("app").await;
    let route = |key| Route::new("renew.test", "").edge(Some(key)).to(backend).insecure(InsecurePolicy::Allow);
    let rig = Rig::serve(&[route(&before)]).await;
    let mut old = client::tls(rig.https, Some("renew.test"), &["http/1.1"]).await;
    assert_eq!(client::shown(&old), before.cert[0]);
    rig.tables.send_replace(table(&[route(&after)], None));
    crate::tables::eventually("the new certificate", async || {
        client::shown(&client::tls(rig.https, Some("renew.test"), &[]).await) == after.cert[0]
    })
    .await;
    // The old connection stays usable for its own host.
    tokio::io::AsyncWriteExt::write_all(&mut old, b"GET / HTTP/1.1\r\nHost: renew.test\r\n\r\n").await.unwrap();
    let mut start = [0; 12];
    old.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
}

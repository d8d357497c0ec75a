//! Host rules over TLS: misdirected requests, selection of certificates, versions, and protocols other than HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use router_proxy::ProxyConfig;
use router_table::policy::tls_profile::TlsVersion;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, ClientConfig, HandshakeKind, ProtocolVersion, SignatureScheme, SupportedProtocolVersion,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::host_rules::{HostRulesOf, rule, rules_for, table};
use crate::tables::{PATIENCE, Rig, Route};
use crate::{backends, client, log, pki};

async fn rig(hosts: Vec<HostRulesOf>, routes: &[Route]) -> Rig {
    Rig::start(ProxyConfig::default(), table(hosts, routes)).await
}

#[tokio::test]
async fn requests_for_another_listeners_hosts_are_misdirected() {
    let app = backends::http("app").await;
    let key = pki::ca().leaf(&["*.first.test", "*.second.test", "edged.test"]);
    let rules = [rule("app", "/").to(app)];
    let on = |host: &str, listener| rules_for(host).listener(listener).tls(&[&key], &rules);
    let hosts = vec![
        on("a.first.test", "Gateway shop/g#one"),
        on("b.first.test", "Gateway shop/g#one"),
        on("*.second.test", "Gateway shop/g#two"),
        rules_for("clear.first.test").listener("Gateway shop/g#http").cleartext(&rules),
        rules_for("pass.first.test").passthrough(backends::named_echo("never").await),
    ];
    let routes =
        [Route::new("edged.test", "").edge(Some(&key)).to(app), Route::new("other.test", "").edge(None).to(app)];
    let rig = rig(hosts, &routes).await;
    let cases = [
        ("a.first.test", "a.first.test", 200),
        // One listener, one certificate: a client may use one connection for both hosts.
        ("a.first.test", "b.first.test", 200),
        ("a.first.test", "x.second.test", 421),
        ("x.second.test", "y.x.second.test", 200),
        ("x.second.test", "a.first.test", 421),
        // No listener serves these over TLS.
        ("a.first.test", "unknown.test", 404),
        ("a.first.test", "192.0.2.1", 404),
        ("a.first.test", "clear.first.test", 404),
        // The same certificate, but of another listener.
        ("a.first.test", "edged.test", 421),
        ("edged.test", "a.first.test", 421),
        ("unknown.test", "a.first.test", 421),
        ("a.first.test", "pass.first.test", 421),
        ("clear.first.test", "clear.first.test", 404),
        // Between Routes, the usual rules apply.
        ("unknown.test", "other.test", 200),
        ("unknown.test", "unknown.test", 503),
        ("edged.test", "unknown.test", 421),
    ];
    for (sni, host, status) in cases {
        assert_eq!(client::get_tls(rig.https, Some(sni), host, "/").await.status, status, "{sni} → {host}");
    }
    // Without SNI, no host was selected by TLS, and Host decides.
    assert_eq!(client::get_tls(rig.https, None, "a.first.test", "/").await.status, 200);
    let wanted = [("x.second.test", "/"), ("b.first.test", "/"), ("unknown.test", "/")];
    let answers = client::get_h2(rig.https, "a.first.test", &wanted).await;
    assert_eq!(answers.iter().map(|(status, _)| status.as_u16()).collect::<Vec<_>>(), [421, 200, 404]);
}

/// A verifier that supports only these schemes.
#[derive(Debug)]
struct Only(Arc<dyn ServerCertVerifier>, Vec<SignatureScheme>);

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.1.clone()
    }
}

fn speaking(versions: &[&'static SupportedProtocolVersion], alpn: &[&str]) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(pki::provider())
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(client::any_certificate())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

async fn connect(to: SocketAddr, config: ClientConfig, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(to).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    tokio::time::timeout(PATIENCE, TlsConnector::from(Arc::new(config)).connect(name, stream)).await.expect("an end")
}

#[tokio::test]
async fn of_several_certificates_the_one_that_suits_the_client_is_shown() {
    let [wide, p256, other, ed25519] = [
        pki::ca().leaf(&["*.several.test"]),
        pki::ca().leaf(&["several.test"]),
        pki::ca().leaf(&["named.several.test"]),
        pki::ca().leaf_signing(&rcgen::PKCS_ED25519, &["several.test"]),
    ];
    let hosts = || {
        let certificates = [&wide, &p256, &other, &ed25519];
        vec![rules_for("several.test").tls(&certificates, &[]), rules_for("*.several.test").tls(&certificates, &[])]
    };
    let rig = rig(hosts(), &[]).await;
    let shown = async |name: &str, schemes: &[SignatureScheme]| {
        let mut config = speaking(&[&TLS13, &TLS12], &[]);
        config.dangerous().set_certificate_verifier(Arc::new(Only(client::any_certificate(), schemes.to_vec())));
        client::shown(&connect(rig.https, config, name).await.unwrap())
    };
    let (nist, edwards) = (SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519);
    let of = |key: &Arc<CertifiedKey>| key.cert[0].clone();
    assert_eq!(shown("several.test", &[nist, edwards]).await, of(&p256));
    assert_eq!(shown("several.test", &[edwards]).await, of(&ed25519));
    // An exact name takes precedence over a wildcard, in any order.
    assert_eq!(shown("named.several.test", &[nist, edwards]).await, of(&other));
    assert_eq!(shown("NAMED.several.test", &[nist, edwards]).await, of(&other));
    // A key that the client can verify takes precedence over a name.
    assert_eq!(shown("named.several.test", &[edwards]).await, of(&ed25519));
    assert_eq!(shown("x.several.test", &[nist, edwards]).await, of(&wide));
    assert_eq!(shown("x.y.several.test", &[nist, edwards]).await, of(&wide), "none has it: the first");
}

#[tokio::test]
async fn host_rules_may_require_a_newer_version_than_their_router() {
    let rules = [rule("app", "/").to(backends::http("app").await)];
    let key = pki::ca().leaf(&["*.floor.test"]);
    let on = |host: &str, minimum| rules_for(host).listener("any").tls(&[&key], &rules).minimum(minimum);
    let hosts = vec![on("new.floor.test", TlsVersion::Tls13), on("old.floor.test", TlsVersion::Tls10)];
    let rig = rig(hosts, &[]).await;
    let old = || Arc::new(speaking(&[&TLS12], &[]));
    let both = Arc::new(speaking(&[&TLS13, &TLS12], &[]));
    let refused = client::try_get(rig.https, &old(), "new.floor.test").await.err().expect("refused");
    assert_eq!(client::alert(&refused), AlertDescription::ProtocolVersion);
    let line = log::line("host", "new.floor.test").await;
    assert_eq!(line["flags"], "CH");
    for (config, host, version) in [
        (&both, "new.floor.test", ProtocolVersion::TLSv1_3),
        (&both, "old.floor.test", ProtocolVersion::TLSv1_3),
        (&old(), "old.floor.test", ProtocolVersion::TLSv1_2),
    ] {
        let served = client::try_get(rig.https, config, host).await.unwrap();
        assert_eq!((served.answer.status, served.version), (200, Some(version)), "{host}");
    }
    // A connection for another name, or without one, may have a version below the minimum.
    for name in ["old.floor.test", "192.0.2.7"] {
        for (versions, status) in [(&[&TLS12][..], 421), (&[&TLS13], 200)] {
            let stream = connect(rig.https, speaking(versions, &[]), name).await.unwrap();
            let request = "GET / HTTP/1.1\r\nHost: new.floor.test\r\nConnection: close\r\n\r\n";
            assert_eq!(client::exchange(stream, request).await.status, status, "{name} {versions:?}");
        }
    }
    // Sessions above the minimum are resumed.
    for host in ["new.floor.test", "old.floor.test"] {
        let served = client::try_get(rig.https, &both, host).await.unwrap();
        assert_eq!(served.kind, Some(HandshakeKind::Resumed), "{host}");
    }
}

#[tokio::test]
async fn a_session_does_not_go_on_under_a_floor_that_came_later() {
    let rules = [rule("app", "/").to(backends::http("app").await)];
    let key = pki::ca().leaf(&["raised.test"]);
    let with = |minimum| table(vec![rules_for("raised.test").tls(&[&key], &rules).minimum(minimum)], &[]);
    let rig = Rig::start(ProxyConfig::default(), with(TlsVersion::Tls12)).await;
    let config = Arc::new(speaking(&[&TLS13], &[]));
    let kind = async || client::try_get(rig.https, &config, "raised.test").await.unwrap().kind.unwrap();
    assert_eq!((kind().await, kind().await), (HandshakeKind::Full, HandshakeKind::Resumed));
    rig.tables.send_replace(with(TlsVersion::Tls13));
    crate::tables::eventually("the new floor", async || {
        client::try_get(rig.https, &Arc::new(speaking(&[&TLS12], &[])), "raised.test").await.is_err()
    })
    .await;
    assert_eq!((kind().await, kind().await), (HandshakeKind::Full, HandshakeKind::Resumed));
}

/// Sends a greeting, echoes what it receives, and says goodbye at the end of the stream.
async fn polite() -> SocketAddr {
    backends::serve(|mut stream| async move {
        stream.write_all(b"hello ").await.unwrap();
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).await.is_ok() {
            stream.write_all(&all).await.unwrap();
            stream.write_all(b" goodbye").await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn what_is_inside_tls_goes_to_an_endpoint_as_it_is() {
    let key = pki::ca().leaf(&["*.tcp.test"]);
    let app = backends::http("app").await;
    let on = |host: &str| rules_for(host).listener("Gateway shop/g#tls").tls(&[&key], &[]);
    let hosts = vec![
        on("one.tcp.test").tcp(polite().await),
        on("gone.tcp.test").tcp(backends::refusing()),
        rules_for("web.tcp.test").listener("Gateway shop/g#https").tls(&[&key], &[rule("app", "/").to(app)]),
    ];
    let rig = rig(hosts, &[]).await;
    // Whatever protocols the client offers, the router selects none.
    for alpn in [&["h2", "http/1.1"][..], &["mqtt"], &[]] {
        let mut stream = connect(rig.https, speaking(&[&TLS13, &TLS12], alpn), "one.tcp.test").await.unwrap();
        assert_eq!(client::shown(&stream), key.cert[0]);
        assert_eq!(stream.get_ref().1.alpn_protocol(), None, "{alpn:?}");
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut text = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("an end").unwrap();
        assert_eq!(text, "hello GET / HTTP/1.1\r\n\r\n goodbye");
    }
    let line = log::line("host", "one.tcp.test").await;
    assert_eq!((&line["route"], &line["flags"]), (&"TLSRoute:shop/tcp-one.tcp.test:0".into(), &"-".into()));
    assert_eq!((&line["bytes_in"], &line["bytes_out"]), (&18.into(), &32.into()));
    assert_eq!((&line["status"], &line["datapath"]), (&0.into(), &"proxy".into()));

    let mut stream = connect(rig.https, speaking(&[&TLS13], &[]), "gone.tcp.test").await.unwrap();
    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await.expect("an end");
    assert!(end.is_err(), "a reset, not an end");
    assert_eq!(log::line("host", "gone.tcp.test").await["flags"], "UF");

    // The host of the TCP route is not reachable by HTTP requests.
    assert_eq!(client::get_tls(rig.https, Some("web.tcp.test"), "one.tcp.test", "/").await.status, 421);
    assert_eq!(client::get_tls(rig.https, None, "one.tcp.test", "/").await.status, 404);
}

#[tokio::test]
async fn an_end_that_the_client_did_not_mean_is_a_reset_to_the_endpoint() {
    let (ends, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let backend = backends::serve(move |mut stream| {
        let ends = ends.clone();
        async move {
            let mut all = Vec::new();
            let end = stream.read_to_end(&mut all).await.map_err(|error| error.kind());
            ends.send((all, end.map(drop))).unwrap();
        }
    })
    .await;
    let key = pki::ca().leaf(&["cut.tcp.test"]);
    let rig = rig(vec![rules_for("cut.tcp.test").tls(&[&key], &[]).tcp(backend)], &[]).await;
    let mut stream = connect(rig.https, speaking(&[&TLS13], &[]), "cut.tcp.test").await.unwrap();
    stream.write_all(b"whole").await.unwrap();
    stream.flush().await.unwrap();
    // Ends TCP without close_notify.
    let (mut tcp, _) = stream.into_inner();
    tcp.shutdown().await.unwrap();
    let (all, end) = tokio::time::timeout(PATIENCE, ended.recv()).await.expect("an end").unwrap();
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset));
    assert!(b"whole".starts_with(&all[..]), "{all:?}");
    assert_eq!(log::line("host", "cut.tcp.test").await["flags"], "DC");
}

#[tokio::test]
async fn passthrough_hosts_may_be_of_many_labels() {
    let wide = backends::tls_echo("wide", pki::server_config(pki::ca().leaf(&["*.wide.test"]))).await;
    let narrow = backends::tls_echo("narrow", pki::server_config(pki::ca().leaf(&["one.wide.test"]))).await;
    let key = pki::ca().leaf(&["ends.wide.test"]);
    let rules = [rule("app", "/").to(backends::http("app").await)];
    let hosts = vec![
        rules_for("*.wide.test").passthrough(wide),
        rules_for("one.wide.test").passthrough(narrow),
        rules_for("ends.wide.test").tls(&[&key], &rules),
    ];
    let rig = rig(hosts, &[]).await;
    for (name, backend) in [("a.wide.test", "wide"), ("c.b.a.wide.test", "wide"), ("one.wide.test", "narrow")] {
        let mut stream = client::tls(rig.https, Some(name), &[]).await;
        let mut said = vec![0; backend.len()];
        stream.read_exact(&mut said).await.unwrap();
        assert_eq!(said, backend.as_bytes(), "{name}");
    }
    assert_eq!(log::line("host", "c.b.a.wide.test").await["route"], "TLSRoute:shop/tls-*.wide.test:0");
    assert_eq!(client::get_tls(rig.https, Some("ends.wide.test"), "ends.wide.test", "/").await.status, 200);
    assert_eq!(client::get_tls(rig.https, Some("ends.wide.test"), "a.wide.test", "/").await.status, 421);
}

//! `tlsSecurityProfile`: the versions and cipher suites offered to clients.

use std::sync::Arc;

use router_proxy::ProxyConfig;
use router_table::policy::RouterPolicy;
use router_table::policy::tls_profile::{ProfileKind, TlsProfile, TlsVersion};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite as suite;
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, CipherSuite, ClientConfig, ProtocolVersion, SupportedCipherSuite};

use crate::tables::{Rig, Route, eventually, table, under};
use crate::{backends, client, pki};

fn profile(min_version: TlsVersion, ciphers: &[&str]) -> RouterPolicy {
    let ciphers = ciphers.iter().map(|name| (*name).into()).collect();
    RouterPolicy { tls: TlsProfile { kind: ProfileKind::Custom, min_version, ciphers }, ..RouterPolicy::default() }
}

/// A client with only these suites, preferred first, and with the versions that they belong to.
fn offering(suites: &[SupportedCipherSuite]) -> Arc<ClientConfig> {
    let versions: Vec<_> = [&TLS13, &TLS12]
        .into_iter()
        .filter(|version| suites.iter().any(|suite| suite.version().version == version.version))
        .collect();
    let provider = CryptoProvider { cipher_suites: suites.to_vec(), ..CryptoProvider::clone(&pki::provider()) };
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(client::any_certificate())
        .with_no_client_auth();
    Arc::new(config)
}

async fn rig(policy: RouterPolicy) -> Rig {
    let backend = backends::http("app").await;
    let key = pki::ca().leaf(&["tls.test"]);
    let edge = Route::new("tls.test", "").edge(Some(&key)).to(backend);
    let plain = Route::new("plain.tls.test", "").to(backend);
    Rig::start(ProxyConfig::default(), under(policy, table(&[edge, plain], None))).await
}

const OLD: [SupportedCipherSuite; 3] = [
    suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
];
const NEW: [SupportedCipherSuite; 3] =
    [suite::TLS13_CHACHA20_POLY1305_SHA256, suite::TLS13_AES_256_GCM_SHA384, suite::TLS13_AES_128_GCM_SHA256];

#[tokio::test]
async fn the_profile_decides_over_the_clients_order() {
    let new = ProtocolVersion::TLSv1_3;
    let old = ProtocolVersion::TLSv1_2;
    let listed = ["ECDHE-ECDSA-AES256-GCM-SHA384", "DHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"];
    let cases = [
        (RouterPolicy::default(), &NEW[..], Ok((new, CipherSuite::TLS13_AES_128_GCM_SHA256))),
        (RouterPolicy::default(), &OLD[..], Ok((old, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256))),
        (
            profile(TlsVersion::Tls12, &listed),
            &OLD[..],
            Ok((old, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)),
        ),
        // No suite of TLS 1.3 is named: the defaults apply.
        (profile(TlsVersion::Tls12, &listed), &NEW[..], Ok((new, CipherSuite::TLS13_AES_128_GCM_SHA256))),
        (profile(TlsVersion::Tls12, &listed), &OLD[2..], Err(AlertDescription::HandshakeFailure)),
        (
            profile(TlsVersion::Tls13, &["TLS_AES_256_GCM_SHA384"]),
            &NEW[..],
            Ok((new, CipherSuite::TLS13_AES_256_GCM_SHA384)),
        ),
        (profile(TlsVersion::Tls13, &["TLS_AES_256_GCM_SHA384"]), &NEW[2..], Err(AlertDescription::HandshakeFailure)),
        (profile(TlsVersion::Tls13, &["TLS_AES_256_GCM_SHA384"]), &OLD[..], Err(AlertDescription::ProtocolVersion)),
    ];
    for (number, (policy, offered, expected)) in cases.into_iter().enumerate() {
        let rig = rig(policy).await;
        let got = client::try_get(rig.https, &offering(offered), "tls.test").await;
        match (got, expected) {
            (Ok(served), Ok((version, suite))) => {
                assert_eq!((served.version, served.suite), (Some(version), Some(suite)), "case {number}");
                assert_eq!(served.answer.status, 200, "case {number}");
            }
            (Err(error), Err(alert)) => assert_eq!(client::alert(&error), alert, "case {number}"),
            (got, expected) => panic!("case {number}: {:?}, expected {expected:?}", got.map(|got| got.suite)),
        }
    }
}

#[tokio::test]
async fn a_profile_of_which_nothing_is_left_is_not_widened() {
    let rig = rig(profile(TlsVersion::Tls12, &["AES128-SHA", "DHE-RSA-AES128-GCM-SHA256"])).await;
    let refused = client::try_get(rig.https, &offering(&NEW), "tls.test").await.err().expect("a refusal");
    assert_eq!(client::alert(&refused), AlertDescription::InternalError);
    assert_eq!(client::get(rig.http, "plain.tls.test", "/").await.status, 200, "clear text is served");
}

#[tokio::test]
async fn a_new_profile_is_for_new_connections() {
    let backend = backends::http("app").await;
    let key = pki::ca().leaf(&["tls.test"]);
    let routes = [Route::new("tls.test", "").edge(Some(&key)).to(backend)];
    let rig = Rig::start(ProxyConfig::default(), table(&routes, None)).await;
    let open = client::tls(rig.https, Some("tls.test"), &["http/1.1"]).await;
    let modern =
        RouterPolicy { tls: TlsProfile { min_version: TlsVersion::Tls13, ..Default::default() }, ..Default::default() };
    rig.tables.send_replace(under(modern, table(&routes, None)));
    eventually("the new profile", async || client::try_get(rig.https, &offering(&OLD), "tls.test").await.is_err())
        .await;
    let answer = client::exchange(open, "GET / HTTP/1.1\r\nHost: tls.test\r\nConnection: close\r\n\r\n").await;
    assert_eq!(answer.status, 200);
}

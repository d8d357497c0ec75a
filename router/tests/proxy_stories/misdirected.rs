//! Misdirected requests on a connection for another host: by certificate, kind of route, and number of labels.

use std::sync::Arc;

use router_proxy::ProxyConfig;

use crate::tables::{Rig, Route, table};
use crate::{backends, client, pki};

/// The listeners of Gateway API's conformance test `HTTPRouteHTTPSListener…`, as routes with certificates of their own:
/// `example.org`, `second-example.org`, `*.wildcard.org`, and one exact host under that wildcard.
async fn rig() -> Rig {
    let leaf = |name: &str| pki::ca().leaf(&[name]);
    let (example, second, wildcard, fourth, shared) = (
        leaf("example.org"),
        leaf("second-example.org"),
        leaf("*.wildcard.org"),
        leaf("fourth.wildcard.org"),
        pki::ca().leaf(&["a.shared.org", "b.shared.org"]),
    );
    // Certificates with equal text are the same certificate.
    let copy = Arc::new(rustls::sign::CertifiedKey::clone(&shared));
    let backend = backends::http("app").await;
    let routes = [
        Route::new("example.org", "").edge(Some(&example)).to(backend),
        Route::new("second-example.org", "").edge(Some(&second)).to(backend),
        Route::new("*.wildcard.org", "").edge(Some(&wildcard)).to(backend),
        Route::new("fourth.wildcard.org", "").edge(Some(&fourth)).to(backend),
        Route::new("a.shared.org", "").edge(Some(&shared)).to(backend),
        Route::new("b.shared.org", "").edge(Some(&copy)).to(backend),
        Route::new("passed.wildcard.org", "").passthrough().to(backend),
        Route::new("*.passed.org", "").passthrough().to(backend),
        Route::new("own.passed.org", "").edge(None).to(backend),
        Route::new("first.apps.test", "").edge(None).to(backend),
        Route::new("second.apps.test", "").edge(None).to(backend),
    ];
    Rig::start(ProxyConfig::default(), table(&routes, Some(&pki::ca().leaf(&["*.apps.test"])))).await
}

#[tokio::test]
async fn a_connection_serves_the_hosts_of_its_certificate() {
    let rig = rig().await;
    let cases = [
        (Some("example.org"), "example.org", 200),
        (Some("EXAMPLE.org"), "Example.ORG", 200),
        (Some("example.org"), "example.org:443", 200),
        (Some("example.org"), "second-example.org", 421),
        (Some("second-example.org"), "example.org", 421),
        (Some("second-example.org"), "unknown.org", 421),
        (Some("third.wildcard.org"), "third.wildcard.org", 200),
        // One wildcard route with one certificate: like a single host.
        (Some("third.wildcard.org"), "fifth.wildcard.org", 200),
        (Some("third.wildcard.org"), "fourth.wildcard.org", 421),
        (Some("fourth.wildcard.org"), "third.wildcard.org", 421),
        (Some("third.wildcard.org"), "two.labels.wildcard.org", 421),
        (Some("third.wildcard.org"), "passed.wildcard.org", 421),
        (Some("a.shared.org"), "b.shared.org", 200),
        (Some("first.apps.test"), "second.apps.test", 200),
        (Some("first.apps.test"), "example.org", 421),
        (Some("unknown.org"), "unknown.org", 503),
        (Some("unknown.org"), "other-unknown.org", 503),
        (Some("unknown.org"), "example.org", 421),
        (Some("unknown.org"), "any.passed.org", 421),
        (Some("own.passed.org"), "own.passed.org", 200),
        (Some("own.passed.org"), "any.passed.org", 421),
        (None, "example.org", 200),
        (None, "fourth.wildcard.org", 200),
        (None, "any.passed.org", 421),
        (None, "unknown.org", 503),
    ];
    for (sni, host, status) in cases {
        let answer = client::get_tls(rig.https, sni, host, "/").await;
        assert_eq!(answer.status, status, "{sni:?} → {host}");
        let reached = answer.body.starts_with("app GET");
        assert_eq!(reached, status == 200, "{sni:?} → {host}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_stream_of_http2_is_misdirected_alone() {
    let rig = rig().await;
    let wanted =
        [("second-example.org", "/"), ("example.org", "/"), ("any.passed.org", "/"), ("example.org", "/again")];
    let answers = client::get_h2(rig.https, "example.org", &wanted).await;
    assert_eq!(answers.iter().map(|(status, _)| status.as_u16()).collect::<Vec<_>>(), [421, 200, 421, 200]);
}

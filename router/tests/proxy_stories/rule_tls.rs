//! TLS to backends with a BackendTLSPolicy.

use std::sync::Arc;

use router_model::certificate::TrustRoots;
use router_model::names::Hostname;
use router_proxy::ProxyConfig;
use router_table::host_pattern::HostPattern;
use router_table::rule::backend_tls::SubjectName;
use router_table::rule::{BackendPolicy, BackendTls, RulePolicy};
use rustls::RootCertStore;

use crate::pki::Ca;
use crate::tables::{Rig, Route, table};
use crate::{backends, client, log, pki};

fn name(name: &str) -> SubjectName {
    SubjectName::Host(match name.strip_prefix("*.") {
        Some(domain) => HostPattern::Suffix(Hostname::parse(domain).unwrap()),
        None => HostPattern::Exact(Hostname::parse(name).unwrap()),
    })
}

/// A policy with SNI `sni`; the certificate must contain one of these names, or `sni` if there are none.
fn policy(sni: &str, names: &[&str], roots: Option<Arc<RootCertStore>>) -> BackendPolicy {
    let names: Vec<_> = names.iter().map(|pattern| name(pattern)).collect();
    let tls = BackendTls::new(&Hostname::parse(sni).unwrap(), roots.map(TrustRoots::from), &names).unwrap();
    BackendPolicy { tls: Some(tls), ..BackendPolicy::default() }
}

fn rule(host: &str) -> Route {
    Route::new(host, "").rule(RulePolicy::default())
}

#[tokio::test]
async fn the_policy_says_which_authority_and_which_names() {
    let (right, wrong) = (Ca::new("right"), Ca::new("wrong"));
    let leaf = right.leaf(&["app.internal", "*.wild.internal"]);
    let backend = backends::https("secure", pki::server_config(leaf)).await;
    let right = || Some(right.roots());
    let cases = [
        ("good", policy("app.internal", &[], right()), 200),
        ("wild", policy("x.wild.internal", &[], right()), 200),
        ("authority", policy("app.internal", &[], Some(wrong.roots())), 502),
        ("name", policy("other.internal", &[], right()), 502),
        // Names of the policy replace the host name, which is then used as SNI only.
        ("names", policy("other.internal", &["no.internal", "app.internal"], right()), 200),
        ("unnamed", policy("app.internal", &["no.internal"], right()), 502),
        ("domain", policy("other.internal", &["*.internal"], right()), 200),
        ("same-wildcard", policy("other.internal", &["*.wild.internal"], right()), 200),
        ("other-domain", policy("app.internal", &["*.external"], right()), 502),
        ("domain-itself", policy("app.internal", &["*.app.internal"], right()), 502),
    ];
    let routes: Vec<Route> = cases
        .iter()
        .map(|(case, policy, _)| rule(&format!("{case}.tls.test")).backend("app", 1, &[backend], policy.clone()))
        .collect();
    let rig = Rig::serve(&routes).await;
    // Twice: connections are not shared between policies.
    for _ in 0..2 {
        for (case, policy, status) in &cases {
            let host = format!("{case}.tls.test");
            let answer = client::get(rig.http, &host, "/x").await;
            assert_eq!(answer.status, *status, "{case}: {answer:?}");
            if *status == 200 {
                let sni = policy.tls.as_ref().unwrap().server_name().as_ref();
                assert!(answer.body.starts_with(&format!("secure GET /x\nsni: {sni}\n")), "{case}: {answer:?}");
            } else {
                assert_eq!(log::line("host", &host).await["flags"], "UV", "{case}");
            }
        }
    }
}

#[tokio::test]
async fn expired_and_self_signed_certificates_are_as_for_routes() {
    let ca = Ca::new("policy CA");
    let (listed, listed_roots) = pki::self_signed(&["pod.internal"], false);
    let expired = backends::https("expired", pki::server_config(ca.expired_leaf(&["pod.internal"]))).await;
    let own = backends::https("own", pki::server_config(listed)).await;
    let rig = Rig::serve(&[
        rule("expired.tls.test").backend("app", 1, &[expired], policy("pod.internal", &[], Some(ca.roots()))),
        rule("own.tls.test").backend("app", 1, &[own], policy("pod.internal", &[], Some(Arc::clone(&listed_roots)))),
        rule("own-other.tls.test").backend("app", 1, &[own], policy("other.internal", &[], Some(listed_roots))),
    ])
    .await;
    for (host, status) in [("expired.tls.test", 502), ("own.tls.test", 200), ("own-other.tls.test", 502)] {
        assert_eq!(client::get(rig.http, host, "/").await.status, status, "{host}");
    }
}

#[tokio::test]
async fn the_systems_roots_vouch_where_the_policy_says_so() {
    let ca = Ca::new("system");
    let backend = backends::https("secure", pki::server_config(ca.leaf(&["app.internal"]))).await;
    let route = rule("system.tls.test").backend("app", 1, &[backend], policy("app.internal", &[], None));
    for (roots, status) in
        [(ca.roots(), 200), (Ca::new("another").roots(), 502), (Arc::new(RootCertStore::empty()), 503)]
    {
        let config = ProxyConfig { system_roots: Some(roots), ..ProxyConfig::default() };
        let rig = Rig::start(config, table(std::slice::from_ref(&route), None)).await;
        assert_eq!(client::get(rig.http, "system.tls.test", "/").await.status, status);
    }
}

#[tokio::test]
async fn the_version_of_http_is_negotiated() {
    let ca = Ca::new("versions");
    let both = pki::server_config_for(ca.leaf(&["app.internal"]), &["h2", "http/1.1"]);
    let backend = backends::https_any("both", both).await;
    let route = rule("alpn.tls.test").backend("app", 1, &[backend], policy("app.internal", &[], Some(ca.roots())));
    let rig = Rig::serve(&[route]).await;
    let answer = client::get(rig.http, "alpn.tls.test", "/").await;
    assert!(answer.body.starts_with("both GET /\nHTTP/2.0\n"), "{answer:?}");
}

#[tokio::test]
async fn each_backend_of_a_rule_has_its_own_policy() {
    let ca = Ca::new("mixed");
    let secure = backends::https("secure", pki::server_config(ca.leaf(&["app.internal"]))).await;
    let clear = backends::http("clear").await;
    let route = rule("mixed.tls.test")
        .backend("secure", 1, &[secure], policy("app.internal", &[], Some(ca.roots())))
        .backend("clear", 1, &[clear], BackendPolicy::default());
    let rig = Rig::serve(&[route]).await;
    let mut names = Vec::new();
    for _ in 0..4 {
        let answer = client::get(rig.http, "mixed.tls.test", "/").await;
        names.push(answer.field("x-backend").unwrap().to_owned());
    }
    assert_eq!(names, ["secure", "clear", "secure", "clear"]);
}

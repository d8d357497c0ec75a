//! Whatever differs is not the same: what was there before would stay.

use std::time::Duration;

use super::*;
use crate::gateway::spec::HeaderModifier;
use crate::model::PathMatch;
use crate::policy::Balance;
use crate::rule::HealthCheck;
use crate::table::InsecurePolicy;

#[test]
fn kinds_of_routes_differ_in_each_of_their_parts() {
    let roots = || Some(Arc::new(RootCertStore::empty()));
    let http = |path: &str, tls: Option<HttpTls>| RouteKind::Http { path: PathMatch::parse(path).unwrap(), tls };
    let with = |insecure, reencrypt| Some(HttpTls { insecure, certificate: None, reencrypt });
    let to = |destination_ca| Some(Reencrypt { destination_ca });
    let kinds = [
        RouteKind::Passthrough { redirect: false },
        RouteKind::Passthrough { redirect: true },
        http("/", None),
        http("/a", None),
        http("/", with(InsecurePolicy::None, None)),
        http("/", with(InsecurePolicy::Allow, None)),
        http("/", with(InsecurePolicy::Allow, to(None))),
        http("/", with(InsecurePolicy::Allow, to(roots()))),
    ];
    for (i, one) in kinds.iter().enumerate() {
        for (k, other) in kinds.iter().enumerate() {
            assert_eq!(same_kind(one, other), i == k, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn backends_differ_in_each_of_their_parts() {
    let usual = BackendPolicy::default;
    let modifier = || vec![HeaderModifier { set: vec![("a".into(), "b".into())], ..HeaderModifier::default() }];
    let check = HealthCheck {
        request: None,
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        unhealthy: 1,
        healthy: 1,
    };
    let policies = [
        usual(),
        BackendPolicy { namespace: Some("a".into()), ..usual() },
        BackendPolicy { failure: Some(500), ..usual() },
        BackendPolicy { request_headers: modifier(), ..usual() },
        BackendPolicy { response_headers: modifier(), ..usual() },
        BackendPolicy { balance: Some(Balance::Random), ..usual() },
        BackendPolicy { health_check: Some(Arc::new(check.clone())), ..usual() },
        BackendPolicy { health_check: Some(Arc::new(HealthCheck { healthy: 2, ..check })), ..usual() },
    ];
    for (i, one) in policies.iter().enumerate() {
        for (k, other) in policies.iter().enumerate() {
            assert_eq!(same_backend(one, other), i == k, "{one:?} and {other:?}");
        }
    }
}

//! Where equality is not derived.

use router_model::names::PathMatch;

use super::*;
use crate::rule::BackendPolicy;

fn service(change: impl FnOnce(&mut ServiceEndpoints)) -> ServiceEndpoints {
    let mut service =
        ServiceEndpoints { service: "web".into(), port: Some(80), weight: 1, endpoints: Arc::default(), policy: None };
    change(&mut service);
    service
}

#[test]
fn services_differ_in_each_of_their_parts() {
    let endpoint = Endpoint { address: "10.0.0.1:80".parse().unwrap(), target: None, h2c: false };
    let policy = BackendPolicy { failure: Some(500), ..BackendPolicy::default() };
    let services = || {
        [
            service(|_| {}),
            service(|it| it.service = "other".into()),
            service(|it| it.port = None),
            service(|it| it.port = Some(81)),
            service(|it| it.weight = 2),
            service(|it| it.endpoints = [endpoint.clone()].into()),
            service(|it| it.endpoints = [Endpoint { h2c: true, ..endpoint.clone() }].into()),
            service(|it| it.policy = Some(Arc::default())),
            service(|it| it.policy = Some(Arc::new(policy.clone()))),
        ]
    };
    let (ones, others) = (services(), services());
    for (i, one) in ones.iter().enumerate() {
        for (k, other) in others.iter().enumerate() {
            assert_eq!(one == other, i == k, "{one:?} and {other:?}");
        }
        assert!(*one == one.clone(), "{one:?} shares its endpoints");
    }
}

#[test]
fn what_is_derived_from_a_route_does_not_count() {
    let route = |path: &str| ResolvedRoute {
        derived: Derived::default(),
        policy: RoutePolicy::shared_default(),
        rule: None,
        forwarded: ForwardedHeaders::Append,
        proxy_protocol: false,
        request_work: false,
        relay_only: false,
        is_plain: false,
        cluster: Cluster { services: OneOrMany::One(service(|_| {})) },
        kind: RouteKind::Http { path: PathMatch::parse(path).unwrap(), tls: None },
        allow: None,
        tunnel_timeout: None,
        id: RouteId::of_route("shop", "cart"),
        host: HostMatch::Any,
    };
    let one = route("/a");
    one.derived.get_or_init(|| 7_u8);
    assert_eq!(one, route("/a"));
    assert_ne!(one, route("/b"));
}

//! Equality that is not derived.

use router_model::names::{PathMatch, RouteId};

use super::*;
use crate::policy::RoutePolicy;
use crate::policy::forwarded::ForwardedHeaders;

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
        cluster: Cluster::default(),
        kind: RouteKind::Http { path: PathMatch::parse(path).unwrap(), tls: None },
        rare: None,
        id: RouteId::of_route("shop", "cart"),
        host: HostMatch::Any,
    };
    let one = route("/a");
    one.derived.get_or_init(|| 7_u8);
    assert_eq!(one, route("/a"));
    assert_ne!(one, route("/b"));
}

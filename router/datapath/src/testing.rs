//! Routes for tests.

use router_model::names::{HostMatch, Hostname, PathMatch, RouteId};
use router_table::table::{Cluster, Endpoint, ResolvedRoute, RouteKind, ServiceEndpoints};

/// A clear-text route named `shop/cart`; each service has a weight and endpoints at 127.0.0.1, by port.
pub fn route(services: &[(u16, &[u16])]) -> ResolvedRoute {
    let endpoint = |port: &u16| Endpoint { address: ([127, 0, 0, 1], *port).into(), target: None, h2c: false };
    let services = services.iter().enumerate().map(|(index, (weight, ports))| ServiceEndpoints {
        service: format!("service-{index}").into(),
        port: None,
        weight: u32::from(*weight),
        policy: None,
        endpoints: ports.iter().map(endpoint).collect(),
    });
    ResolvedRoute {
        id: RouteId::of_route("shop", "cart"),
        host: HostMatch::Exact(Hostname::parse("cart.test").unwrap()),
        kind: RouteKind::Http { path: PathMatch::any(), tls: None },
        cluster: Cluster { services: services.collect() },
        allow: None,
        proxy_protocol: false,
        tunnel_timeout: None,
        forwarded: Default::default(),
        request_work: false,
        is_plain: false,
        relay_only: false,
        policy: Default::default(),
        rule: None,
        derived: Default::default(),
    }
}

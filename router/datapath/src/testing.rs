//! Routes for tests.

use std::sync::Arc;

use router_model::names::{HostMatch, Hostname, PathMatch, RouteId};
use router_table::table::{
    Cluster, Endpoint, Endpoints, EndpointsKey, PortChoice, ResolvedRoute, RouteKind, WeightedService,
};

/// A clear-text route named `shop/cart`; each service has a weight and endpoints at 127.0.0.1, by port.
pub fn route(services: &[(u16, &[u16])]) -> ResolvedRoute {
    let services = services.iter().enumerate().map(|(index, (weight, ports))| WeightedService {
        service: format!("service-{index}").into(),
        port: None,
        weight: u32::from(*weight),
        policy: None,
        key: Some(key(&ports.iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>())),
    });
    ResolvedRoute {
        id: RouteId::of_route("shop", "cart"),
        host: HostMatch::Exact(Hostname::parse("cart.test").unwrap()),
        kind: RouteKind::Http { path: PathMatch::any(), tls: None },
        cluster: Cluster { services: services.collect() },
        rare: None,
        proxy_protocol: false,
        forwarded: Default::default(),
        request_work: false,
        is_plain: false,
        relay_only: false,
        policy: Default::default(),
        rule: None,
        derived: Default::default(),
    }
}

/// A key that contains the addresses of its endpoints.
pub fn key(addresses: &[String]) -> Arc<EndpointsKey> {
    let ports = PortChoice::Target(Some(addresses.join(" ").into()));
    Arc::new(EndpointsKey { namespace: "shop".into(), service: "web".into(), ports })
}

/// The endpoints of a route with such keys.
pub fn endpoints(route: &ResolvedRoute) -> Endpoints {
    let found = |key: &Arc<EndpointsKey>| {
        let PortChoice::Target(Some(addresses)) = &key.ports else { return Arc::default() };
        let addresses = addresses.split_whitespace().map(|address| address.parse().unwrap());
        addresses.map(|address| Endpoint { address, target: None, h2c: false }).collect()
    };
    let keys = route.services().filter_map(|service| service.key.as_ref());
    keys.map(|key| (Arc::clone(key), found(key))).collect()
}

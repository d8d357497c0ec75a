//! Routes, and routers that serve them, for tests.

use std::net::SocketAddr;
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, PathMatch, RouteId, RouterName};
use router_table::policy::{RoutePolicy, RouterPolicy, Timeouts};
use router_table::rule::BackendPolicy;
use router_table::table::{
    Cluster, Endpoint, Endpoints, EndpointsKey, HttpTls, InsecurePolicy, PortChoice, ResolvedRoute, RouteKind,
    RouterTable, RoutingTable, WeightedService,
};

use crate::upstream::balancer::Balancer;
use crate::upstream::plan::BalancingPlan;

/// A clear-text route named `shop/cart`; each service has a weight and endpoints at 127.0.0.1, by port.
pub fn route(services: &[(u16, &[u16])], policy: RoutePolicy) -> ResolvedRoute {
    let services = services.iter().enumerate().map(|(index, (weight, ports))| WeightedService {
        service: format!("service-{index}").into(),
        port: None,
        weight: u32::from(*weight),
        policy: None,
        key: Some(key(index, ports)),
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
        policy: Arc::new(policy),
        rule: None,
        derived: Default::default(),
    }
}

/// The same for a rule; each service may have a status with which it fails.
pub fn rule(services: &[(u32, &[u16], Option<u16>)], policy: RoutePolicy) -> ResolvedRoute {
    let services = services.iter().enumerate().map(|(index, (weight, ports, failure))| WeightedService {
        service: format!("service-{index}").into(),
        port: None,
        weight: *weight,
        policy: failure.map(|status| Arc::new(BackendPolicy { failure: Some(status), ..BackendPolicy::default() })),
        key: Some(key(index, ports)),
    });
    let mut rule = route(&[], policy);
    rule.id.kind = Kind::HttpRoute;
    rule.cluster = Cluster { services: services.collect() };
    rule
}

/// The same as an edge route.
pub fn edge(mut route: ResolvedRoute, insecure: InsecurePolicy) -> ResolvedRoute {
    let tls = Some(HttpTls { insecure, certificate: None, reencrypt: None });
    route.kind = RouteKind::Http { path: PathMatch::any(), tls };
    route
}

/// A router with these routes.
pub fn router(name: &str, routes: &[Arc<ResolvedRoute>], timeouts: Timeouts) -> Arc<RouterTable> {
    Arc::new(RouterTable {
        name: RouterName(name.into()),
        id: 1,
        domain: "apps.test".into(),
        http_port: Some(0),
        https_port: Some(0),
        default_certificate: None,
        policy: Arc::new(RouterPolicy { timeouts, ..RouterPolicy::default() }),
        hosts: Default::default(),
        routes: routes.iter().cloned().collect(),
        common_allow: None,
    })
}

/// The address of the endpoint at a port.
pub fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// A table of these routers, with the endpoints of their routes.
pub fn table(routers: Vec<Arc<RouterTable>>) -> RoutingTable {
    let mut endpoints = Endpoints::default();
    endpoints.follow(&[], &routers, found);
    RoutingTable { revision: 1, routers, endpoints }
}

/// The endpoints of one route.
pub fn endpoints(route: &ResolvedRoute) -> Endpoints {
    let keys = route.services().filter_map(|service| service.key.as_ref());
    keys.map(|key| (Arc::clone(key), found(key))).collect()
}

/// The plan of a route, whose endpoints are those of the newest table.
pub fn plan(balancer: &Balancer, route: &ResolvedRoute) -> Arc<BalancingPlan> {
    balancer.bind(&endpoints(route));
    balancer.plan(route)
}

/// A key that encodes the ports of its endpoints.
fn key(service: usize, ports: &[u16]) -> Arc<EndpointsKey> {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let ports = PortChoice::Target(Some(ports.join(" ").into()));
    Arc::new(EndpointsKey { namespace: "shop".into(), service: format!("service-{service}").into(), ports })
}

/// The endpoints of such a key.
pub fn found(key: &EndpointsKey) -> Arc<[Endpoint]> {
    let PortChoice::Target(Some(ports)) = &key.ports else { return Arc::default() };
    ports.split_whitespace().map(|port| endpoint(port.parse().unwrap())).collect()
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint { address: address(port), target: None, h2c: false }
}

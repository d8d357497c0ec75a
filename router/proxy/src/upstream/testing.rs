//! Routes, and routers that have them, for tests.

use std::net::SocketAddr;
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, PathMatch, RouteId, RouterName};
use router_table::policy::{RoutePolicy, RouterPolicy, Timeouts};
use router_table::rule::BackendPolicy;
use router_table::table::{
    Cluster, Endpoint, HttpTls, InsecurePolicy, ResolvedRoute, RouteKind, RouterTable, ServiceEndpoints,
};

/// A clear-text route named `shop/cart`; each service has a weight and endpoints at 127.0.0.1, by port.
pub fn route(services: &[(u16, &[u16])], policy: RoutePolicy) -> ResolvedRoute {
    let services = services.iter().enumerate().map(|(index, (weight, ports))| ServiceEndpoints {
        service: format!("service-{index}").into(),
        port: None,
        weight: u32::from(*weight),
        policy: None,
        endpoints: ports.iter().map(|port| endpoint(*port)).collect(),
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
        policy: Arc::new(policy),
        rule: None,
        derived: Default::default(),
    }
}

/// The same as it is made of a rule; each service may have a status that it fails with.
pub fn rule(services: &[(u32, &[u16], Option<u16>)], policy: RoutePolicy) -> ResolvedRoute {
    let services = services.iter().enumerate().map(|(index, (weight, ports, failure))| ServiceEndpoints {
        service: format!("service-{index}").into(),
        port: None,
        weight: *weight,
        policy: failure.map(|status| Arc::new(BackendPolicy { failure: Some(status), ..BackendPolicy::default() })),
        endpoints: ports.iter().map(|port| endpoint(*port)).collect(),
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
        routes: routes.iter().map(|route| (route.id.clone(), Arc::clone(route))).collect(),
    })
}

/// The address of the endpoint at a port.
pub fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint { address: address(port), target: None, h2c: false }
}

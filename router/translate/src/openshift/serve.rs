//! From an admitted route to the services that serve it (docs/openshift.md#backends).

use std::sync::Arc;

use router_api::openshift::route::Route;
use router_api::openshift::route::annotations::TrafficOptions;
use router_api::openshift::route::annotations::allowlist::allowlist;
use router_api::openshift::route::backends::Backend;
use router_api::openshift::route::traffic::{RouteTls, Traffic};
use router_table::policy::RoutePolicy;
use router_table::table::{
    Cluster, Derived, EndpointsKey, HttpTls, PortChoice, ResolvedRoute, RouteKind, ServiceEndpoints,
};

use crate::openshift::claims::AdmittedRoute;
use crate::traffic_defaults::TrafficDefaults;

/// Resolves a route: its kind, its services, who may connect, how its traffic is carried.
pub fn resolve(admitted: &AdmittedRoute, defaults: &TrafficDefaults) -> ResolvedRoute {
    let route = admitted.route();
    // Their faults were told when the route was read.
    let (options, _) = TrafficOptions::read(&route.meta.annotations, &route.traffic);
    let policy = RoutePolicy { actions: route.header_actions.clone(), ..options.policy };
    // A client with a cookie stays with its endpoint when the service's weight becomes 0 (docs/openshift.md#backends).
    let keeps_clients = !route.traffic.is_passthrough() && !policy.affinity.disabled;
    let services = route
        .backends
        .iter()
        .filter(|backend| backend.weight > 0 || keeps_clients)
        .map(|backend| ServiceEndpoints {
            service: backend.service.clone(),
            port: None,
            weight: u32::from(backend.weight),
            key: Some(Arc::new(key(route, backend))),
            policy: None,
        })
        .collect();
    let kind = kind(route, admitted);
    let allow = allowlist(&route.meta.annotations).map(|list| list.nets.into());
    ResolvedRoute {
        id: route.meta.key.route_id(),
        host: admitted.host().clone(),
        is_plain: ResolvedRoute::is_plain(&kind, allow.as_deref()),
        kind,
        cluster: Cluster { services },
        allow,
        proxy_protocol: options.proxy_protocol,
        tunnel_timeout: options.tunnel_timeout.or(defaults.tunnel_timeout),
        forwarded: options.forwarded.unwrap_or(defaults.forwarded),
        request_work: !route.traffic.is_passthrough() && (defaults.request_work || policy.reads_requests()),
        relay_only: policy.needs_relay(),
        policy: policy.shared(),
        rule: None,
        derived: Derived::default(),
    }
}

/// What the endpoints of a backend are found by.
fn key(route: &Route, backend: &Backend) -> EndpointsKey {
    let target = route.target_port.as_ref().map(|target| target.0.clone());
    EndpointsKey {
        namespace: route.meta.key.namespace.clone(),
        service: backend.service.clone(),
        ports: PortChoice::Target(target),
    }
}

fn kind(route: &Arc<Route>, admitted: &AdmittedRoute) -> RouteKind {
    match &route.traffic {
        Traffic::Passthrough { redirect } => RouteKind::Passthrough { redirect: *redirect },
        Traffic::Http { path, tls } => {
            RouteKind::Http { path: path.clone(), tls: tls.as_ref().map(|held| tls_of(held, admitted)) }
        }
    }
}

fn tls_of(held: &RouteTls, admitted: &AdmittedRoute) -> HttpTls {
    HttpTls {
        insecure: held.insecure,
        certificate: admitted.certificate().cloned(),
        reencrypt: held.material.as_ref().ok().and_then(|material| material.reencrypt.clone()),
    }
}

#[cfg(test)]
mod tests;

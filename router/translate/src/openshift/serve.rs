//! Resolves an admitted Route to its services and policy (docs/openshift.md#backends).

use std::sync::Arc;

use router_api::openshift::route::Route;
use router_api::openshift::route::annotations::RouteAnnotations;
use router_api::openshift::route::backends::Backend;
use router_api::openshift::route::traffic::{RouteTls, Traffic};
use router_table::policy::RoutePolicy;
use router_table::table::{
    Cluster, Derived, EndpointsKey, HttpTls, PortChoice, RareSettings, ResolvedRoute, RouteKind, WeightedService,
};

use crate::openshift::claims::AdmittedRoute;
use crate::traffic_defaults::TrafficDefaults;

/// Resolves a Route: kind, services, allow-list and policy.
pub fn resolve(admitted: &AdmittedRoute, defaults: &TrafficDefaults) -> ResolvedRoute {
    let route = admitted.route();
    let annotations = route.annotations();
    let policy = policy(route, annotations);
    // A client with an affinity cookie keeps its endpoint after the service's weight becomes 0
    // (docs/openshift.md#backends).
    let keeps_clients = !route.traffic.is_passthrough() && !policy.affinity.disabled;
    let services = route
        .backends
        .iter()
        .filter(|backend| backend.weight > 0 || keeps_clients)
        .map(|backend| WeightedService {
            service: backend.service.clone(),
            port: None,
            weight: u32::from(backend.weight),
            key: Some(key(route, backend).shared()),
            policy: None,
        })
        .collect();
    let kind = kind(route, admitted);
    let allow = annotations.and_then(|all| all.allow.as_ref()).map(|list| list.nets.clone());
    let tunnel_timeout = annotations.and_then(|all| all.tunnel_timeout);
    ResolvedRoute {
        id: route.meta.key.route_id(),
        host: admitted.host().clone(),
        is_plain: ResolvedRoute::is_plain(&kind, allow.as_deref()),
        kind,
        cluster: Cluster { services },
        rare: RareSettings { allow, tunnel_timeout: tunnel_timeout.or(defaults.tunnel_timeout) }.boxed(),
        proxy_protocol: annotations.is_some_and(|all| all.proxy_protocol),
        forwarded: annotations.and_then(|all| all.forwarded).unwrap_or(defaults.forwarded),
        request_work: !route.traffic.is_passthrough() && (defaults.request_work || policy.reads_requests()),
        relay_only: policy.needs_relay(),
        policy,
        rule: None,
        derived: Derived::default(),
    }
}

/// The key of a backend's endpoints.
fn key(route: &Route, backend: &Backend) -> EndpointsKey {
    let target = route.target_port().map(|target| target.0.clone());
    EndpointsKey {
        namespace: route.meta.key.namespace.clone(),
        service: backend.service.clone(),
        ports: PortChoice::Target(target),
    }
}

/// The policy of a route: from its annotations and `spec.httpHeaders`.
fn policy(route: &Route, annotations: Option<&RouteAnnotations>) -> Arc<RoutePolicy> {
    let policy = annotations.map_or_else(RoutePolicy::shared_default, |all| Arc::clone(&all.policy));
    match route.header_actions() {
        None => policy,
        Some(actions) => RoutePolicy { actions: Some(Arc::clone(actions)), ..RoutePolicy::clone(&policy) }.shared(),
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

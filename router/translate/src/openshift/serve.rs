//! Resolves an admitted Route to its endpoints and policy (docs/openshift.md#backends).

use std::sync::Arc;

use router_api::openshift::route::Route;
use router_api::openshift::route::annotations::TrafficOptions;
use router_api::openshift::route::annotations::allowlist::allowlist;
use router_api::openshift::route::traffic::{RouteTls, Traffic};
use router_table::policy::RoutePolicy;
use router_table::table::{Cluster, Derived, HttpTls, ResolvedRoute, RouteKind, ServiceEndpoints};

use crate::endpoints::EndpointIndex;
use crate::openshift::claims::AdmittedRoute;
use crate::traffic_defaults::TrafficDefaults;

/// Resolves a Route: kind, endpoints, allow-list and policy.
pub fn resolve(admitted: &AdmittedRoute, defaults: &TrafficDefaults, endpoints: &EndpointIndex) -> ResolvedRoute {
    let route = admitted.route();
    // The reader has already reported their faults.
    let (options, _) = TrafficOptions::read(&route.meta.annotations, &route.traffic);
    let policy = RoutePolicy { actions: route.header_actions.clone(), ..options.policy };
    // A client with an affinity cookie keeps its endpoint after the service's weight becomes 0
    // (docs/openshift.md#backends).
    let keeps_clients = !route.traffic.is_passthrough() && !policy.affinity.disabled;
    let services = route
        .backends
        .iter()
        .filter(|backend| backend.weight > 0 || keeps_clients)
        .map(|backend| ServiceEndpoints {
            service: backend.service.clone(),
            port: None,
            weight: u32::from(backend.weight),
            endpoints: endpoints.endpoints(route, backend),
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

//! From an admitted route to the endpoints that serve it (openshift.md a.8, a.12).

mod addresses;
mod allowlist;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::admit::AdmittedRoute;
use crate::parse::{Backend, EndpointSlice, HeldTls, Route, Traffic};
use crate::resources::Resources;
use crate::table::{Cluster, Endpoint, HttpTls, ResolvedRoute, RouteKind, ServiceEndpoints};

pub use addresses::{EndpointAddresses, is_usable};
pub use allowlist::{AllowList, ALLOWLIST, WHITELIST, allowlist};

/// EndpointSlices by the service they belong to.
#[derive(Debug)]
pub struct EndpointIndex<'r> {
    slices: HashMap<(&'r str, &'r str), Vec<&'r EndpointSlice>>,
    addresses: EndpointAddresses,
}

impl<'r> EndpointIndex<'r> {
    /// Indexes the slices in force.
    pub fn new(resources: &'r Resources, addresses: EndpointAddresses) -> Self {
        let mut slices: HashMap<_, Vec<&EndpointSlice>> = HashMap::with_capacity(resources.endpoint_slices.len());
        for slice in resources.endpoint_slices.iter() {
            if let Some(service) = &slice.service {
                slices.entry((&*slice.meta.key.namespace, &**service)).or_default().push(slice);
            }
        }
        EndpointIndex { slices, addresses }
    }

    /// The usable endpoints of a backend of this route, each address once, in order of address.
    pub fn endpoints(&self, route: &Route, backend: &Backend) -> Vec<Endpoint> {
        let slices = self.slices.get(&(&*route.meta.key.namespace, &*backend.service));
        let mut endpoints = Vec::new();
        for slice in slices.into_iter().flatten() {
            let target = route.target_port.as_ref();
            let ports = slice.ports.iter().filter(|port| target.is_none_or(|t| t.matches(&port.name, port.number)));
            for port in ports {
                for endpoint in &slice.endpoints {
                    let usable = endpoint.addresses.iter().filter(|address| is_usable(**address, self.addresses));
                    endpoints.extend(usable.map(|address| Endpoint {
                        address: SocketAddr::new(*address, port.number),
                        target: endpoint.target.clone(),
                    }));
                }
            }
        }
        endpoints.sort();
        endpoints.dedup_by(|a, b| a.address == b.address);
        endpoints
    }
}

/// Resolves a route: its kind, its endpoints, who may connect.
pub fn resolve(admitted: &AdmittedRoute, endpoints: &EndpointIndex<'_>) -> ResolvedRoute {
    let route = admitted.route();
    let services = route
        .backends
        .iter()
        .filter(|backend| backend.weight > 0)
        .map(|backend| ServiceEndpoints {
            service: backend.service.clone(),
            weight: backend.weight,
            endpoints: endpoints.endpoints(route, backend),
        })
        .collect();
    ResolvedRoute {
        id: route.meta.key.route_id(),
        host: admitted.host().clone(),
        kind: kind(route, admitted),
        cluster: Cluster { services },
        allow: allowlist(&route.meta.annotations).map(|list| list.nets),
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

fn tls_of(held: &HeldTls, admitted: &AdmittedRoute) -> HttpTls {
    HttpTls {
        insecure: held.insecure,
        certificate: admitted.certificate().cloned(),
        reencrypt: held.material.as_ref().ok().and_then(|material| material.reencrypt.clone()),
    }
}

#[cfg(test)]
mod tests;

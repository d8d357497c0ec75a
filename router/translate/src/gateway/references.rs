//! References from routes and Gateways to other objects.

use router_api::gateway_api::types::{Filter, Gateway, GatewayRoute};
use router_model::object::ObjectKey;

use crate::gateway::rules::service_of;

/// The Services that a route references as backends or mirrors.
pub fn services_of(route: &GatewayRoute) -> impl Iterator<Item = ObjectKey> {
    route.rules.iter().flat_map(move |rule| {
        let backend_filters = rule.backends.iter().flat_map(|backend| &backend.filters);
        let mirrors = rule.filters.iter().chain(backend_filters).filter_map(|filter| match filter {
            Filter::Mirror(mirror) => Some(&mirror.object),
            _ => None,
        });
        let objects = rule.backends.iter().map(|backend| &backend.object).chain(mirrors);
        objects.filter_map(move |object| service_of(route, object))
    })
}

/// The Secrets that a Gateway's listeners reference as certificates.
pub fn secrets_of(gateway: &Gateway) -> impl Iterator<Item = ObjectKey> {
    let tls = gateway.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    tls.flat_map(|tls| &tls.certificates).map(|reference| {
        let namespace = reference.namespace.as_ref().unwrap_or(&gateway.meta.key.namespace);
        ObjectKey { namespace: namespace.clone(), name: reference.name.clone() }
    })
}

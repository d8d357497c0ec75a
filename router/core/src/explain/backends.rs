//! Where a route's traffic goes, and why a service has nobody to take it.

use std::collections::BTreeSet;

use super::Service;
use crate::object::ObjectKey;
use crate::resources::Resources;
use crate::table::{ResolvedRoute, ServiceEndpoints};

/// The services of a route.
pub fn services(resources: &Resources, route: &ResolvedRoute) -> Vec<Service> {
    let of = |service: &ServiceEndpoints| Service {
        name: service.service.to_string(),
        weight: service.weight,
        endpoints: service.endpoints.iter().map(|endpoint| endpoint.address.to_string()).collect(),
        problem: if service.endpoints.is_empty() { problem(resources, route, &service.service) } else { String::new() },
    };
    route.cluster.services.iter().map(of).collect()
}

/// Why a service has no usable endpoint, and what to do.
fn problem(resources: &Resources, route: &ResolvedRoute, service: &str) -> String {
    let key = ObjectKey::new(&route.id.namespace, service);
    let slices: Vec<_> = resources
        .endpoint_slices
        .iter()
        .filter(|slice| slice.meta.key.namespace == key.namespace && slice.service.as_deref() == Some(service))
        .collect();
    if slices.is_empty() && resources.services.slot(&key).is_none() {
        return format!("Service {key} does not exist; create it, or name another in spec.to");
    }
    if slices.is_empty() {
        return format!(
            "Service {key} has no EndpointSlice; one needs the label kubernetes.io/service-name: {service}"
        );
    }
    if slices.iter().all(|slice| slice.endpoints.is_empty()) {
        return format!("no endpoint of Service {key} is ready; look at its pods");
    }
    let ports: BTreeSet<(u16, &str)> =
        slices.iter().flat_map(|slice| &slice.ports).map(|port| (port.number, &*port.name)).collect();
    let wanted = resources.routes.get(&route.id.object_key()).and_then(|route| route.target_port.as_ref());
    if let Some(wanted) = wanted.filter(|wanted| !ports.iter().any(|(number, name)| wanted.matches(name, *number))) {
        let list: Vec<String> =
            ports.iter().map(|(number, name)| format!("{number} {name}").trim().to_owned()).collect();
        return format!(
            "Service {key} has no port {}; its ports are {}: correct spec.port.targetPort",
            wanted.0,
            list.join(", ")
        );
    }
    format!(
        "the endpoint addresses of Service {key} are loopback, link-local or metadata addresses, which are left out; \
         --endpoint-addresses any admits them"
    )
}

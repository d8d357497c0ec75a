//! Services of a route, and why one has no usable endpoint.

use std::borrow::Cow;

use router_api::resources::Resources;
use router_model::object::ObjectKey;
use router_table::table::{Endpoint, EndpointsKey, ResolvedRoute, RoutingTable, WeightedService};

use crate::endpoints::absence::{SlicesOf, absence, slices_of};
use crate::explain::explanation::ServiceSummary;
use crate::explain::facts::Facts;
use crate::status::object_status::faults;

/// The services of a route.
pub fn services(facts: Facts<'_>, route: &ResolvedRoute) -> Vec<ServiceSummary> {
    let of = |service: &WeightedService| ServiceSummary {
        name: match service.policy.as_ref().and_then(|policy| policy.namespace.as_deref()) {
            Some(namespace) => format!("{namespace}/{}", service.service),
            None => service.service.to_string(),
        },
        weight: service.weight,
        endpoints: facts.table.endpoints.of(service).iter().map(|endpoint| endpoint.address.to_string()).collect(),
        problem: problem(facts, route, service).unwrap_or_default(),
        troubles: troubles(facts, route, service),
    };
    route.cluster.services.iter().map(of).collect()
}

fn troubles(facts: Facts<'_>, route: &ResolvedRoute, service: &WeightedService) -> Vec<String> {
    let of = |endpoint: &Endpoint| {
        let trouble = facts.live?.trouble(route, service, endpoint)?;
        Some(format!("{}: {trouble}", endpoint.address))
    };
    facts.table.endpoints.of(service).iter().filter_map(of).collect()
}

/// What is wrong with a service of a route, and the fix; `None` if it has usable endpoints.
fn problem(facts: Facts<'_>, route: &ResolvedRoute, service: &WeightedService) -> Option<String> {
    if let Some(status) = service.failure() {
        let faults =
            facts.report.others.get(&route.id.object()).map(|status| faults(&status.status())).unwrap_or_default();
        let key = key(route, service).to_string();
        let why = faults.into_iter().find(|fault| fault.contains(&key));
        let why = why.unwrap_or_else(|| "the status of the route says why".to_owned());
        return Some(format!("cannot be used, its share is answered {status}: {why}"));
    }
    missing((facts.table, facts.resources), || Cow::Owned(slices_of(facts.resources)), service)
}

/// Why a service has no usable endpoint; `None` if it has one, or has no key.
pub fn missing<'s>(
    (table, resources): (&RoutingTable, &'s Resources),
    slices: impl FnOnce() -> Cow<'s, SlicesOf<'s>>,
    service: &WeightedService,
) -> Option<String> {
    let EndpointsKey { namespace, service: name, ports } = &**service.key.as_ref()?;
    let key = ObjectKey { namespace: namespace.clone(), name: name.clone() };
    let is_missing = table.endpoints.of(service).is_empty();
    is_missing.then(|| absence(resources, &slices(), &key, (ports, service.port)))
}

/// Key of the Service.
fn key(route: &ResolvedRoute, service: &WeightedService) -> ObjectKey {
    let namespace = service.policy.as_ref().and_then(|policy| policy.namespace.as_ref());
    ObjectKey { namespace: namespace.unwrap_or(&route.id.namespace).clone(), name: service.service.clone() }
}

//! The one pure entry: objects and settings in, routing table and status report out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::admit::{Decision, admit};
use crate::compile::{self, Shadow};
use crate::controllers::{self, Router};
use crate::field::FieldPath;
use crate::model::RouteId;
use crate::object::{Age, Kind, ObjectRef};
use crate::parse::Route;
use crate::resolve::{EndpointAddresses, EndpointIndex, allowlist, resolve};
use crate::resources::Resources;
use crate::status::{Condition, IngressEntry, StatusReport, invalid_manifest, last_good_serves};
use crate::table::{RouterTable, RoutingTable};

/// What translation needs to know beside the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Domain of the router when there is no IngressController, or when one names none.
    pub cluster_domain: String,
    /// Which endpoint addresses may be used.
    pub endpoint_addresses: EndpointAddresses,
    /// Port for clear text where an IngressController names none.
    pub http_port: u16,
    /// Port for TLS where an IngressController names none.
    pub https_port: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cluster_domain: "apps.localhost".to_owned(),
            endpoint_addresses: EndpointAddresses::default(),
            http_port: 80,
            https_port: 443,
        }
    }
}

/// What comes out.
#[derive(Debug)]
pub struct Translation {
    /// What traffic needs; its revision is 0, whoever publishes it numbers it.
    pub table: RoutingTable,
    /// What objects are told.
    pub report: StatusReport,
    /// What is odd and has no place in a status, in order of object.
    pub warnings: Vec<Warning>,
}

/// Something odd about an object that only the objects together show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The object.
    pub object: ObjectRef,
    /// The field.
    pub path: FieldPath,
    /// What is odd, and what to do.
    pub message: String,
}

/// A route with its rank in order of key.
type Ranked<'r> = (usize, &'r Arc<Route>);

/// Decides everything. The result depends on the objects and settings alone, not on order, time or history.
pub fn translate(resources: &Resources, settings: &Settings) -> Translation {
    let plan = controllers::plan(resources, settings);
    let names: BTreeSet<_> = plan.routers.iter().map(|router| router.name.clone()).collect();
    let ids = compile::router_ids(&names);
    let endpoints = EndpointIndex::new(resources, settings.endpoint_addresses);
    let slots = resources.routes.slots().enumerate();
    let good = slots.filter_map(|(rank, (_, slot))| slot.good.as_ref().map(|route| (rank, route)));
    let mut by_age: Vec<(Age<'_>, Ranked<'_>)> = good.map(|ranked| (ranked.1.meta.age(), ranked)).collect();
    by_age.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let routes: Vec<Ranked<'_>> = by_age.into_iter().map(|(_, ranked)| ranked).collect();

    let mut entries: Vec<Vec<IngressEntry>> = vec![Vec::new(); resources.routes.len()];
    let mut table = RoutingTable::default();
    for router in &plan.routers {
        let selected = select(router, &routes, resources);
        let decisions = admit(&router.policy, selected.iter().map(|(_, route)| *route), &resources.secrets);
        let mut resolved = Vec::with_capacity(decisions.len());
        for ((rank, _), decision) in selected.iter().zip(&decisions) {
            if let Ok(admitted) = &decision.outcome {
                resolved.push((*rank, Arc::new(resolve(admitted, &endpoints))));
            }
        }
        let hosts = compile::hosts(resolved.iter().map(|(_, route)| route));
        resolved.sort_unstable_by_key(|(rank, _)| *rank);
        let compiled = RouterTable {
            name: router.name.clone(),
            id: ids.get(&router.name).copied().unwrap_or_default(),
            domain: router.policy.domain.clone(),
            http_port: router.http_port,
            https_port: router.https_port,
            default_certificate: router.default_certificate.clone(),
            hosts,
            routes: resolved.into_iter().map(|(_, route)| route).collect(),
        };
        report_routes(router, &selected, decisions, &compiled, resources, &mut entries);
        table.routers.push(Arc::new(compiled));
    }
    let report = StatusReport {
        routes: resources.routes.slots().map(|(key, _)| key.clone()).zip(entries).collect(),
        ingress_controllers: plan.statuses,
        routers: names,
    };
    Translation { table, report, warnings: warnings(resources) }
}

/// The routes that a router selects, in the order given (openshift.md c).
fn select<'r>(router: &Router, routes: &[Ranked<'r>], resources: &Resources) -> Vec<Ranked<'r>> {
    if router.route_selector.is_empty() && router.namespace_selector.is_empty() {
        return routes.to_vec();
    }
    let mut namespaces: HashMap<&str, bool> = HashMap::new();
    let mut is_selected = |namespace: &'r str| -> bool {
        *namespaces
            .entry(namespace)
            .or_insert_with(|| router.namespace_selector.matches(&resources.namespace_labels(namespace)))
    };
    let mut selected = Vec::new();
    for (rank, route) in routes {
        if router.route_selector.matches(&route.meta.labels) && is_selected(&route.meta.key.namespace) {
            selected.push((*rank, *route));
        }
    }
    selected
}

fn report_routes(
    router: &Router,
    selected: &[Ranked<'_>],
    decisions: Vec<Decision>,
    table: &RouterTable,
    resources: &Resources,
    entries: &mut [Vec<IngressEntry>],
) {
    let hosts = table.hosts.exact.values().chain(table.hosts.wildcard.values());
    let shadows: BTreeMap<&RouteId, Shadow<'_>> =
        hosts.flat_map(|host| compile::shadows(host)).map(|shadow| (&shadow.route.id, shadow)).collect();
    let canonical: Arc<str> = router.canonical_hostname().into();
    let entry = |host, wildcard_policy, conditions| IngressEntry {
        host,
        router_name: router.name.clone(),
        router_canonical_hostname: canonical.clone(),
        wildcard_policy,
        conditions,
    };
    for ((rank, route), decision) in selected.iter().zip(decisions) {
        let condition = match decision.outcome {
            Err(rejection) => Condition::new("Admitted", false, rejection.reason.as_str(), rejection.message),
            Ok(_) if shadows.is_empty() => admitted(route, None),
            Ok(_) => admitted(route, shadows.get(&route.meta.key.route_id())),
        };
        if let Some(entries) = entries.get_mut(*rank) {
            entries.push(entry(decision.host, route.wildcard_policy.as_str(), vec![condition]));
        }
    }
    for ((_, slot), entries) in resources.routes.slots().zip(entries) {
        let Some(refused) = &slot.refused else { continue };
        if slot.good.is_none() {
            // Nobody knows which routers would select a route that cannot be read, so every router reports it.
            entries.push(entry(refused.host().to_owned(), "None", vec![invalid_manifest(refused)]));
        } else if let Some(entry) = entries.last_mut().filter(|entry| entry.router_name == router.name) {
            entry.conditions.push(last_good_serves(refused));
        }
    }
}

/// Admitted is True with empty reason and message (openshift.md a.11), except where something is worth saying.
fn admitted(route: &Route, shadow: Option<&Shadow<'_>>) -> Condition {
    if let Some(list) = allowlist(&route.meta.annotations).filter(|list| list.nets.is_empty()) {
        let message = format!("annotation {} has no valid address, so nobody may connect", list.annotation);
        return Condition::new("Admitted", true, "NobodyAllowed", message);
    }
    let Some(shadow) = shadow else { return Condition::new("Admitted", true, "", "") };
    let schemes: Vec<_> = shadow.schemes.iter().copied().collect();
    let by = if shadow.by.id.namespace == shadow.route.id.namespace {
        format!("route {}", shadow.by.id.name)
    } else {
        "a route in another namespace".to_owned()
    };
    let message = format!(
        "shadowed over {}: {by} has path {:?}, which covers the same requests, and is older",
        schemes.join(" and "),
        shadow.by.path()
    );
    Condition::new("Admitted", true, "Shadowed", message)
}

fn warnings(resources: &Resources) -> Vec<Warning> {
    let services: HashSet<(&str, &str)> =
        resources.services.slots().map(|(key, _)| (&*key.namespace, &*key.name)).collect();
    let mut warnings = Vec::new();
    for route in resources.routes.iter() {
        let object = || ObjectRef { kind: Kind::Route, key: route.meta.key.clone() };
        let namespace = &*route.meta.key.namespace;
        let missing = route.backends.iter().filter(|backend| !services.contains(&(namespace, &*backend.service)));
        warnings.extend(missing.map(|backend| Warning {
            object: object(),
            path: FieldPath::of(&["spec", "to"]),
            message: format!("there is no Service {namespace}/{}", backend.service),
        }));
        let list = allowlist(&route.meta.annotations).filter(|list| !list.invalid.is_empty());
        warnings.extend(list.map(|list| Warning {
            object: object(),
            path: FieldPath::of(&["metadata", "annotations", list.annotation]),
            message: format!(
                "not addresses, ignored: {}; write IP addresses or networks, such as 10.0.0.0/8",
                list.invalid.join(" ")
            ),
        }));
    }
    warnings.sort();
    warnings
}

#[cfg(test)]
mod tests;

//! The one pure entry: objects and settings in, routing table and status report out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::admit::{Decision, admit};
use crate::compile::{self, Shadow};
use crate::controllers::{self, Router};
use crate::field::FieldPath;
use crate::model::RouteId;
use crate::object::{Kind, ObjectKey, ObjectRef};
use crate::parse::Route;
use crate::resolve::{EndpointAddresses, EndpointIndex, allowlist, resolve};
use crate::resources::{Refused, Resources};
use crate::status::{Condition, IngressEntry, StatusReport, invalid_manifest, last_good_serves};
use crate::table::{ResolvedRoute, RouterTable, RoutingTable};

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

/// Decides everything. The result depends on the objects and settings alone, not on order, time or history.
pub fn translate(resources: &Resources, settings: &Settings) -> Translation {
    let plan = controllers::plan(resources, settings);
    let names: BTreeSet<_> = plan.routers.iter().map(|router| router.name.clone()).collect();
    let ids = compile::router_ids(&names);
    let endpoints = EndpointIndex::new(resources, settings.endpoint_addresses);
    let mut routes: Vec<&Arc<Route>> = resources.routes.iter().collect();
    routes.sort_by(|a, b| a.meta.age().cmp(&b.meta.age()));

    let mut report = StatusReport {
        routes: resources.routes.slots().map(|(key, _)| (key.clone(), Vec::new())).collect(),
        ingress_controllers: plan.statuses,
        routers: names,
    };
    let mut table = RoutingTable::default();
    for router in &plan.routers {
        let selected = select(router, &routes, resources);
        let decisions = admit(&router.policy, selected, &resources.secrets);
        let admitted = decisions.iter().filter_map(|decision| decision.outcome.as_ref().ok());
        let resolved: Vec<_> = admitted.map(|admitted| Arc::new(resolve(admitted, &endpoints))).collect();
        let compiled = RouterTable {
            name: router.name.clone(),
            id: ids.get(&router.name).copied().unwrap_or_default(),
            domain: router.policy.domain.clone(),
            http_port: router.http_port,
            https_port: router.https_port,
            default_certificate: router.default_certificate.clone(),
            hosts: compile::hosts(&resolved),
            routes: sorted(resolved),
        };
        report_routes(router, &decisions, &compiled, resources, &mut report.routes);
        table.routers.push(Arc::new(compiled));
    }
    Translation { table, report, warnings: warnings(resources) }
}

fn sorted(mut routes: Vec<Arc<ResolvedRoute>>) -> Vec<Arc<ResolvedRoute>> {
    routes.sort_by(|a, b| a.id.cmp(&b.id));
    routes
}

/// The routes that a router selects, in the order given (openshift.md c).
fn select<'r>(router: &Router, routes: &[&'r Arc<Route>], resources: &Resources) -> Vec<&'r Arc<Route>> {
    let mut namespaces: HashMap<&str, bool> = HashMap::new();
    let mut is_selected = |namespace: &'r str| -> bool {
        *namespaces.entry(namespace).or_insert_with(|| {
            router.namespace_selector.matches(&resources.namespace_labels(namespace))
        })
    };
    let mut selected = Vec::new();
    for route in routes {
        if router.route_selector.matches(&route.meta.labels) && is_selected(&route.meta.key.namespace) {
            selected.push(*route);
        }
    }
    selected
}

fn report_routes(
    router: &Router,
    decisions: &[Decision],
    table: &RouterTable,
    resources: &Resources,
    report: &mut BTreeMap<ObjectKey, Vec<IngressEntry>>,
) {
    let hosts = table.hosts.exact.values().chain(table.hosts.wildcard.values());
    let shadows: HashMap<&RouteId, Shadow<'_>> =
        hosts.flat_map(|host| compile::shadows(host)).map(|shadow| (&shadow.route.id, shadow)).collect();
    for decision in decisions {
        let key = &decision.route.meta.key;
        let condition = match &decision.outcome {
            Err(rejection) => {
                Condition::new("Admitted", false, rejection.reason.as_str(), rejection.message.clone())
            }
            Ok(_) => admitted(&decision.route, shadows.get(&key.route_id())),
        };
        let refused = resources.routes.slot(key).and_then(|slot| slot.refused.as_deref());
        let mut conditions = vec![condition];
        conditions.extend(refused.map(last_good_serves));
        let entry = entry(router, decision.host.clone(), decision.route.wildcard_policy.as_str(), conditions);
        report.entry(key.clone()).or_default().push(entry);
    }
    for (key, slot) in resources.routes.slots() {
        if let (None, Some(refused)) = (&slot.good, &slot.refused) {
            report.entry(key.clone()).or_default().push(refused_entry(router, refused));
        }
    }
}

/// Nobody knows which routers would select a route that cannot be read, so every router reports it.
fn refused_entry(router: &Router, refused: &Refused) -> IngressEntry {
    entry(router, refused.host().to_owned(), "None", vec![invalid_manifest(refused)])
}

fn entry(
    router: &Router,
    host: String,
    wildcard_policy: &'static str,
    conditions: Vec<Condition>,
) -> IngressEntry {
    IngressEntry {
        host,
        router_name: router.name.clone(),
        router_canonical_hostname: router.canonical_hostname(),
        wildcard_policy,
        conditions,
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
    let mut warnings = Vec::new();
    for route in resources.routes.iter() {
        let object = || ObjectRef { kind: Kind::Route, key: route.meta.key.clone() };
        let services = route.backends.iter().filter(|backend| {
            let key = ObjectKey { namespace: route.meta.key.namespace.clone(), name: backend.service.clone() };
            resources.services.slot(&key).is_none()
        });
        warnings.extend(services.map(|backend| Warning {
            object: object(),
            path: FieldPath::of(&["spec", "to"]),
            message: format!("there is no Service {}/{}", route.meta.key.namespace, backend.service),
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

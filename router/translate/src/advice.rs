//! Warnings that no status reports, since the problem depends on several objects.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use router_api::resources::Resources;
use router_model::field::FieldPath;
use router_model::kind::Kind;
use router_model::object::ObjectRef;
use router_table::live_state::Trust;
use router_table::table::{ResolvedRoute, RoutingTable, WeightedService};
use serde_json::Value;

use crate::endpoints::absence::slices_of;
use crate::explain::backends::missing;
use crate::explain::facts::Facts;
use crate::gateway::inclusion::slot_validation;
use crate::openshift::controllers::is_made;
use crate::presented_certificates;
use crate::status::report::StatusReport;
use crate::unserved::unserved;
use crate::warning::{Unserved, Warning};

/// All warnings as of `now`, in order of object.
pub fn advice(facts: Facts<'_>, now: Timestamp) -> Vec<Warning> {
    let Facts { table, report, resources, trust, .. } = facts;
    let mut all = warnings(resources, table, report);
    all.extend(unverified(table, resources, trust));
    all.extend(presented_certificates::warnings(table, resources, now));
    all.sort();
    all
}

/// Warnings that depend on objects alone, in order of object.
pub fn warnings(resources: &Resources, table: &RoutingTable, report: &StatusReport) -> Vec<Warning> {
    let normal: Vec<_> = resources
        .ingress_controllers
        .iter()
        .filter(|controller| controller.paths.normalise)
        .map(|controller| (&controller.meta.key.name, controller.paths.usual()))
        .collect();
    let mut warnings = Vec::new();
    for route in resources.routes.iter() {
        let path = route.traffic.path();
        let unmatched = normal.iter().filter(|(_, form)| *form.of(path) != *path);
        warnings.extend(unmatched.map(|(router, form)| Warning {
            object: ObjectRef { kind: Kind::Route, key: route.meta.key.clone() },
            path: FieldPath::of(&["spec", "path"]),
            message: format!(
                "{path:?} matches no request to router {router}, which puts paths in normal form; write {:?}",
                form.of(path)
            ),
        }));
    }
    warnings.extend(slot_validation::warnings(resources));
    warnings.extend(gates_not_in_force(resources, table, report));
    warnings.extend(absences(table, resources));
    warnings.extend(unserved(resources, report).iter().map(Unserved::warning));
    warnings.sort();
    warnings
}

/// Listeners of Gateways on which their annotations for the XDP gate are not in force; of those that are on a router.
fn gates_not_in_force(resources: &Resources, table: &RoutingTable, report: &StatusReport) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for gateway in resources.gateways.iter().filter(|gateway| gateway.gate.is_some()) {
        let object = ObjectRef { kind: Kind::Gateway, key: gateway.meta.key.clone() };
        let rows = report.others.get(&object).into_iter().flat_map(|status| &status.rows);
        // One row for each listener; its parent is `router#listener`.
        let on_routers = gateway.listeners.iter().zip(rows).filter_map(|(listener, row)| {
            let (name, _) = row.parent.split_once('#')?;
            let router = table.routers.iter().find(|router| *router.name.0 == *name)?;
            Some((listener.port, router))
        });
        for (port, router) in on_routers.collect::<BTreeMap<_, _>>() {
            let why = if !is_made(&router.name.0) {
                format!("its policy is that of IngressController {}; write them there", router.name)
            } else if router.policy.gate != gateway.gate {
                "other Gateways with listeners there have other annotations; write the same ones, or choose another port"
                    .to_owned()
            } else {
                continue;
            };
            warnings.push(Warning {
                object: object.clone(),
                path: FieldPath::of(&["metadata", "annotations"]),
                message: format!("gate.sluice.dev annotations are not in force on port {port}: {why}"),
            });
        }
    }
    warnings
}

/// Services of a route, or of its mirrors, without an endpoint.
fn absences(table: &RoutingTable, resources: &Resources) -> Vec<Warning> {
    let slices = OnceCell::new();
    of_services(table, resources, |_, service| {
        let is_expected = service.weight > 0 && service.failure().is_none();
        let slices = || Cow::Borrowed(slices.get_or_init(|| slices_of(resources)));
        is_expected.then(|| missing((table, resources), slices, service)).flatten()
    })
}

/// Services whose endpoints cannot be verified, so that nothing is sent to them.
fn unverified(table: &RoutingTable, resources: &Resources, trust: Trust<'_>) -> Vec<Warning> {
    of_services(table, resources, |route, service| {
        let advice = trust.missing(route, service)?;
        Some(format!("there is no CA to verify the endpoints of Service {} with: {advice}", service.service))
    })
}

/// A warning for each service of a route that has a problem.
fn of_services(
    table: &RoutingTable,
    resources: &Resources,
    problem_of: impl Fn(&ResolvedRoute, &WeightedService) -> Option<String>,
) -> Vec<Warning> {
    let routes = table.routers.iter().flat_map(|router| router.routes.values());
    let services = routes.flat_map(|route| route.services().map(move |service| (route, service)));
    // A route may be on several routers, and a rule on several hosts.
    let warnings: BTreeSet<Warning> = services
        .filter_map(|(route, service)| {
            let message = problem_of(route, service)?;
            let object = route.id.object();
            let path = reference(resources, &object, service);
            Some(Warning { object, path, message })
        })
        .collect();
    warnings.into_iter().collect()
}

/// The field in which an object names a service; the object's root if it is not found.
fn reference(resources: &Resources, object: &ObjectRef, service: &WeightedService) -> FieldPath {
    let manifest = resources.manifest(object.kind, &object.key).map(|manifest| manifest.value());
    let spec = manifest.as_ref().and_then(|manifest| manifest.get("spec"));
    spec.and_then(|spec| find(spec, &FieldPath::of(&["spec"]), service)).unwrap_or_default()
}

fn find(value: &Value, path: &FieldPath, service: &WeightedService) -> Option<FieldPath> {
    match value {
        Value::Object(members) => {
            let is_port = |port: &Value| service.port.is_none_or(|number| port.as_u64() == Some(number.into()));
            if members.get("name").and_then(Value::as_str) == Some(&*service.service)
                && members.get("port").is_none_or(is_port)
            {
                return Some(path.clone());
            }
            // These name parents, not services.
            let others = members.iter().filter(|(name, _)| !matches!(&***name, "parentRefs" | "virtualhost"));
            others.into_iter().find_map(|(name, value)| find(value, &path.key(name), service))
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| find(item, &path.index(index), service))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! Validates the slots of routes, independently of the attachments of the routes.

use router_api::gateway_api::types::{GROUP, GatewayRoute};
use router_api::resources::Resources;
use router_model::field::FieldPath;
use router_model::object::ObjectRef;

use super::edges::{parent_of, routes};
use super::slots::{SlotResolver, may_be_slot};
use crate::gateway::inclusion::slot_problem::SlotProblem;
use crate::warning::Warning;

/// Invalid slots of a route, with the index of each rule.
pub fn problems(resources: &Resources, route: &GatewayRoute) -> Vec<(usize, SlotProblem)> {
    if !route.rules.iter().any(may_be_slot) {
        return Vec::new();
    }
    let slots = SlotResolver::new(resources);
    let rules = route.rules.iter().enumerate();
    rules.filter_map(|(i, rule)| slots.slot(route, rule).err().map(|problem| (i, problem))).collect()
}

/// Warnings for parent routes that do not exist: the API defines no status for such a reference.
pub fn warnings(resources: &Resources) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for route in routes(resources) {
        for (i, reference) in route.parents.iter().enumerate() {
            let Some(parent) = parent_of(route, reference) else { continue };
            if *reference.object.group == *GROUP && resources.gateway_route(&parent).is_none() {
                let key = route.meta.key.clone();
                warnings.push(Warning {
                    object: ObjectRef { kind: route.kind, key },
                    path: FieldPath::of(&["spec", "parentRefs"]).index(i),
                    message: format!("there is no {parent}"),
                });
            }
        }
    }
    warnings
}

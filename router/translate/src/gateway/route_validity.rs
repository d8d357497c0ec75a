//! Validates a route independently of its parents: unsupported rules, unresolved references.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use router_api::gateway_api::types::GatewayRoute;
use router_api::resources::Resources;
use router_model::kind::Kind;

use super::conditions::ReferenceErrors;
use super::rules::Resolver;
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::inclusion::slot_validation::problems;
use crate::status::condition::Condition;

/// Conditions in every row of a route's status, besides `Accepted`.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteValidity {
    /// `ResolvedRefs`.
    resolved: Condition,
    /// The same for passthrough connections, of a TLSRoute.
    passthrough: Option<Condition>,
    /// Unsupported values by index of the rule; empty if no rule is supported.
    unsupported: BTreeMap<usize, Vec<String>>,
}

impl RouteValidity {
    /// The validity of a route without faults.
    pub fn good() -> &'static Self {
        static GOOD: LazyLock<RouteValidity> = LazyLock::new(|| {
            let resolved = Condition::new("ResolvedRefs", true, "ResolvedRefs", "");
            RouteValidity { resolved, passthrough: None, unsupported: BTreeMap::new() }
        });
        &GOOD
    }

    /// Validates a route; `None` if it has no faults.
    pub fn faults(resources: &Resources, route: &GatewayRoute, resolver: &Resolver<'_>) -> Option<Box<Self>> {
        let (unsupported, errors) = validate(resources, route);
        let unsupported = if unsupported.len() < route.rules.len() { unsupported } else { BTreeMap::new() };
        let is_tls = route.kind == Kind::TlsRoute;
        let passthrough = is_tls.then(|| resolver.condition(route, BackendPayload::Passthrough, errors.clone()));
        let resolved = resolver.condition(route, BackendPayload::Content, errors);
        let is_good = resolved.holds && passthrough.as_ref().is_none_or(|it| it.holds) && unsupported.is_empty();
        (!is_good).then(|| Box::new(RouteValidity { resolved, passthrough, unsupported }))
    }

    /// Condition `ResolvedRefs` for backends that receive this payload.
    pub fn resolved(&self, payload: BackendPayload) -> &Condition {
        let passthrough = self.passthrough.as_ref().filter(|_| payload == BackendPayload::Passthrough);
        passthrough.unwrap_or(&self.resolved)
    }

    /// Condition `PartiallyInvalid`, if true: for the route's own unsupported values, and for rules dropped in this row
    /// alone.
    pub fn partial(&self, dropped: &BTreeMap<usize, BTreeSet<String>>) -> Option<Condition> {
        let mut unsupported = self.unsupported.clone();
        for (rule, text) in dropped {
            unsupported.entry(*rule).or_default().extend(text.iter().cloned());
        }
        (!unsupported.is_empty()).then(|| {
            let rules: Vec<_> = unsupported.keys().map(|rule| format!("{rule}")).collect();
            let message = format!("Dropped Rule {}: {}", rules.join(", "), text(&unsupported));
            Condition::new("PartiallyInvalid", true, "UnsupportedValue", message)
        })
    }

    /// Reason and message of `Accepted` if no rule of the route is supported.
    pub fn rejection(resources: &Resources, route: &GatewayRoute) -> Option<(String, String)> {
        let (unsupported, _) = validate(resources, route);
        let is_rejected = !unsupported.is_empty() && unsupported.len() == route.rules.len();
        is_rejected.then(|| ("UnsupportedValue".to_owned(), text(&unsupported)))
    }
}

/// Unsupported values by index of the rule, and errors of references to slots.
fn validate(resources: &Resources, route: &GatewayRoute) -> (BTreeMap<usize, Vec<String>>, ReferenceErrors) {
    let mut unsupported: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (i, rule) in route.rules.iter().enumerate().filter(|(_, rule)| !rule.unsupported.is_empty()) {
        unsupported.insert(i, rule.unsupported.clone());
    }
    let mut errors = ReferenceErrors::default();
    for (i, problem) in problems(resources, route) {
        let Condition { kind, reason, message, .. } = problem.condition;
        match kind {
            "Accepted" => unsupported.entry(i).or_default().push(message),
            _ => errors.add(&reason, format!("rule {i}: {message}")),
        }
    }
    (unsupported, errors)
}

fn text(unsupported: &BTreeMap<usize, Vec<String>>) -> String {
    let rules = unsupported.iter().map(|(i, text)| format!("rule {i}: {}", text.join("; ")));
    rules.collect::<Vec<_>>().join("; ")
}

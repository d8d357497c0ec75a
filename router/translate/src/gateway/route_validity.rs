//! Validates a route independently of its parents: unsupported rules, unresolved references.

use std::collections::{BTreeMap, BTreeSet};

use router_api::gateway_api::types::GatewayRoute;
use router_api::resources::Resources;
use router_model::kind::Kind;

use super::conditions::Faults;
use super::rules::Resolver;
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::inclusion::slot_validation::problems;
use crate::status::condition::Condition;

/// Conditions that every row of a route's status has beside `Accepted`.
#[derive(Clone, Debug)]
pub struct RouteValidity {
    /// `ResolvedRefs`.
    resolved: Condition,
    /// The same for passthrough connections, of a TLSRoute.
    passthrough: Option<Condition>,
    /// Unsupported values, by index of the rule, if other rules remain.
    bad: BTreeMap<usize, Vec<String>>,
}

impl RouteValidity {
    /// Validates a route.
    pub fn new(resources: &Resources, route: &GatewayRoute, resolver: &Resolver<'_>) -> Self {
        let (bad, faults) = look(resources, route);
        let bad = if bad.len() < route.rules.len() { bad } else { BTreeMap::new() };
        let is_tls = route.kind == Kind::TlsRoute;
        let passthrough = is_tls.then(|| resolver.condition(route, BackendPayload::AsItCame, faults.clone()));
        RouteValidity { resolved: resolver.condition(route, BackendPayload::Content, faults), passthrough, bad }
    }

    /// Condition `ResolvedRefs` for backends that receive this of a client's connection.
    pub fn resolved(&self, carried: BackendPayload) -> &Condition {
        let passthrough = self.passthrough.as_ref().filter(|_| carried == BackendPayload::AsItCame);
        passthrough.unwrap_or(&self.resolved)
    }

    /// Condition `PartiallyInvalid`, if true: for the route's own faults, and for rules dropped in this row alone.
    pub fn partial(&self, dropped: &BTreeMap<usize, BTreeSet<String>>) -> Option<Condition> {
        let mut bad = self.bad.clone();
        for (rule, words) in dropped {
            bad.entry(*rule).or_default().extend(words.iter().cloned());
        }
        (!bad.is_empty()).then(|| {
            let rules: Vec<_> = bad.keys().map(|rule| format!("{rule}")).collect();
            let message = format!("Dropped Rule {}: {}", rules.join(", "), words(&bad));
            Condition::new("PartiallyInvalid", true, "UnsupportedValue", message)
        })
    }

    /// Reason and message of `Accepted` if no rule of the route is supported.
    pub fn refusal(resources: &Resources, route: &GatewayRoute) -> Option<(String, String)> {
        let (bad, _) = look(resources, route);
        let is_refused = !bad.is_empty() && bad.len() == route.rules.len();
        is_refused.then(|| ("UnsupportedValue".to_owned(), words(&bad)))
    }
}

/// Unsupported values by index of the rule, and faults of references to slots.
fn look(resources: &Resources, route: &GatewayRoute) -> (BTreeMap<usize, Vec<String>>, Faults) {
    let mut bad: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (i, rule) in route.rules.iter().enumerate().filter(|(_, rule)| !rule.unsupported.is_empty()) {
        bad.insert(i, rule.unsupported.clone());
    }
    let mut faults = Faults::default();
    for (i, problem) in problems(resources, route) {
        let Condition { kind, reason, message, .. } = problem.condition;
        match kind {
            "Accepted" => bad.entry(i).or_default().push(message),
            _ => faults.add(&reason, format!("rule {i}: {message}")),
        }
    }
    (bad, faults)
}

fn words(bad: &BTreeMap<usize, Vec<String>>) -> String {
    let rules = bad.iter().map(|(i, words)| format!("rule {i}: {}", words.join("; ")));
    rules.collect::<Vec<_>>().join("; ")
}

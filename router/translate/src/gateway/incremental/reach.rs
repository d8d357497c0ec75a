//! What a change of routes affects within inclusion trees: the changed routes, all routes below them, and what depends
//! on which children a route has.

use std::collections::BTreeSet;

use router_api::gateway_api::types::GatewayRoute;
use router_api::resources::Resources;
use router_model::object::ObjectRef;

use crate::gateway::inclusion::matches::canonical;
use crate::gateway::incremental::components::{RouteLinks, parents};

/// What a change of routes affects; see the module.
#[derive(Debug, Default)]
pub struct Reach {
    /// The changed objects, and all routes below them.
    pub below: BTreeSet<ObjectRef>,
    /// Routes whose effective rules may differ: those, and their parents, whose slots may have no child any more.
    pub rules: BTreeSet<ObjectRef>,
}

impl Reach {
    /// Adds what a change of these objects affects, in the state of `resources` and `links`.
    pub fn extend(&mut self, links: &RouteLinks, resources: &Resources, changed: &BTreeSet<ObjectRef>) {
        let below = links.below(changed.iter().cloned());
        let routes = below.iter().filter_map(|object| resources.gateway_route(object));
        self.rules.extend(routes.flat_map(|route| parents(route)));
        self.rules.extend(below.iter().cloned());
        self.below.extend(below);
    }
}

/// The siblings of changed routes that have a match in common with them, before or after the change: of two such routes
/// the older one serves, and the status of the younger one names it.
pub fn rivals(
    links: &RouteLinks,
    [last, resources]: [&Resources; 2],
    changed: &BTreeSet<ObjectRef>,
) -> BTreeSet<ObjectRef> {
    let mut found = BTreeSet::new();
    for object in changed {
        let versions = || [last, resources].into_iter().filter_map(|version| version.gateway_route(object));
        let above: BTreeSet<ObjectRef> = versions().flat_map(|route| parents(route)).collect();
        if above.is_empty() {
            continue;
        }
        let own: BTreeSet<String> = versions().flat_map(|route| matches(route)).collect();
        let siblings =
            above.iter().flat_map(|parent| links.naming(parent)).filter(|sibling| !changed.contains(*sibling));
        let is_rival = |sibling: &&ObjectRef| {
            resources.gateway_route(sibling).is_some_and(|sibling| matches(sibling).any(|text| own.contains(&text)))
        };
        found.extend(siblings.filter(is_rival).cloned());
    }
    found
}

fn matches(route: &GatewayRoute) -> impl Iterator<Item = String> {
    route.rules.iter().flat_map(|rule| &rule.matches).map(canonical)
}

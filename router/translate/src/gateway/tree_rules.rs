//! Effective rules of the routes of inclusion trees, which outlive a translation: a change in a tree computes only the
//! rules that it affects.

use std::collections::{BTreeMap, BTreeSet};

use router_api::gateway_api::types::GatewayRoute;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::host_pattern::HostPattern;
use serde_json::Value;

use crate::gateway::base::ListenerAt;
use crate::gateway::inclusion::types::{EffectiveRule, Fragment, RootRoute, WalkResult};
use crate::gateway::serve::AttachedRules;

/// The effective rules whose last level is one route, on all listeners.
#[derive(Debug, Default)]
pub struct RouteRules {
    /// Hosts that the route claims on the listeners that its own `parentRefs` name.
    roots: Vec<(ListenerAt, Box<[HostPattern]>)>,
    /// In the order of the walks.
    rules: Vec<(ListenerAt, EffectiveRule)>,
    /// Matches evaluated for the route as a child, by root route.
    pub evaluated: Vec<((ListenerAt, ObjectRef), usize)>,
    /// Entries of `status.inclusions` of the RouteSlots that the route names.
    pub slots: BTreeMap<ObjectKey, Vec<Value>>,
}

impl RouteRules {
    /// The rules, and the hosts that the route claims.
    pub fn attached<'m>(&'m self, route: &'m GatewayRoute) -> impl Iterator<Item = AttachedRules<'m>> {
        let is_resolved = self.is_resolved();
        let attached = move |at, hosts, rules| AttachedRules { at, route, hosts, rules, is_resolved };
        let roots = self.roots.iter().map(move |(at, hosts)| attached(*at, hosts, Vec::new()));
        let by_listener = self.rules.chunk_by(|one, next| one.0 == next.0).filter_map(move |rules| {
            let at = rules.first()?.0;
            Some(attached(at, &[], rules.iter().map(|(_, rule)| rule).collect()))
        });
        roots.chain(by_listener)
    }

    fn is_resolved(&self) -> bool {
        self.rules.iter().flat_map(|(_, rule)| &rule.alternatives).all(|alternative| alternative.built.get().is_some())
    }
}

/// The effective rules of the selected routes, by last level, and what fragments contain for RouteSlots.
pub(super) fn rules_by_route<'r>(
    walks: impl Iterator<Item = ((ListenerAt, &'r RootRoute<'r>), WalkResult)>,
    fragments: &BTreeMap<ObjectRef, Fragment>,
    is_selected: &dyn Fn(&ObjectRef) -> bool,
) -> BTreeMap<ObjectRef, RouteRules> {
    let mut found: BTreeMap<ObjectRef, RouteRules> = BTreeMap::new();
    let mut seen: BTreeSet<(ListenerAt, ObjectRef)> = BTreeSet::new();
    for ((at, RootRoute { route, hosts, .. }), walk) in walks {
        let root = route.object();
        // Without children the walk has only rules of the root route.
        if walk.evaluated.is_empty() && !is_selected(&root) || !seen.insert((at, root.clone())) {
            continue;
        }
        for rule in walk.rules {
            let Some(object) = rule.leaf().map(|leaf| leaf.object()).filter(is_selected) else { continue };
            found.entry(object).or_default().rules.push((at, rule));
        }
        for (child, evaluated) in walk.evaluated.into_iter().filter(|(child, _)| is_selected(child)) {
            found.entry(child).or_default().evaluated.push(((at, root.clone()), evaluated));
        }
        if is_selected(&root) {
            found.entry(root).or_default().roots.push((at, (*hosts).into()));
        }
    }
    let slots = fragments.iter().filter(|(object, fragment)| is_selected(object) && !fragment.slots.is_empty());
    for (object, fragment) in slots {
        found.entry(object.clone()).or_default().slots = fragment.slots.clone();
    }
    found
}

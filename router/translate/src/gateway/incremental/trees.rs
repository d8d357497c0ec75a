//! Effective rules of all routes in inclusion trees, so that a change in a tree computes only those that it affects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use router_model::object::{ObjectKey, ObjectRef};

use crate::gateway::base::ListenerAt;
use crate::gateway::inclusion::walk::MAX_MATCHES_BELOW;
use crate::gateway::tree_rules::RouteRules;

/// Effective rules of all routes in inclusion trees.
#[derive(Debug, Default)]
pub struct Trees {
    routes: HashMap<ObjectRef, RouteRules>,
    /// Matches evaluated below each root route. A walk of some of its routes does not reach a limit that their sum
    /// does.
    evaluated: BTreeMap<(ListenerAt, ObjectRef), usize>,
    /// True if a limit on all paths or matches below a root route may apply: then the result for a route depends on
    /// routes beside its own paths, and trees are translated as a whole. Stays true until all is translated anew.
    is_limited: bool,
}

impl Trees {
    /// The effective rules of all routes in trees.
    pub fn new(rules: BTreeMap<ObjectRef, RouteRules>, is_limited: bool) -> Self {
        let mut trees = Trees::default();
        trees.replace(&BTreeSet::new(), rules, is_limited);
        trees
    }

    /// The rules of a route in a tree.
    pub fn get(&self, route: &ObjectRef) -> Option<&RouteRules> {
        self.routes.get(route)
    }

    /// True if trees must be translated as a whole.
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Replaces the rules of these routes. Returns the RouteSlots whose status differs.
    pub fn replace(
        &mut self,
        routes: &BTreeSet<ObjectRef>,
        rules: BTreeMap<ObjectRef, RouteRules>,
        is_limited: bool,
    ) -> BTreeSet<ObjectKey> {
        let old: BTreeMap<_, _> =
            routes.iter().filter_map(|route| Some((route.clone(), self.routes.remove(route)?))).collect();
        let (none, mut slots) = (RouteRules::default(), BTreeSet::new());
        for route in old.keys().chain(rules.keys()) {
            let (old, new) = (&old.get(route).unwrap_or(&none).slots, &rules.get(route).unwrap_or(&none).slots);
            slots.extend(old.keys().chain(new.keys()).filter(|slot| old.get(*slot) != new.get(*slot)).cloned());
        }
        let evaluated = || rules.values().flat_map(|rules| &rules.evaluated);
        for (root, added) in evaluated() {
            *self.evaluated.entry(root.clone()).or_default() += added;
        }
        for (root, removed) in old.values().flat_map(|rules| &rules.evaluated) {
            let Some(sum) = self.evaluated.get_mut(root) else { continue };
            *sum = sum.saturating_sub(*removed);
            if *sum == 0 {
                self.evaluated.remove(root);
            }
        }
        let exceeds = |(root, _): &(_, _)| self.evaluated.get(root).is_some_and(|sum| *sum > MAX_MATCHES_BELOW);
        self.is_limited |= is_limited || evaluated().any(exceeds);
        self.routes.extend(rules);
        slots
    }
}

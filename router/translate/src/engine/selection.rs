//! Which Routes a router selects, by their labels and those of their namespaces (docs/openshift.md#shards).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use router_api::openshift::route::Route;
use router_api::resources::{RejectedManifest, Resources};
use router_model::object::ObjectKey;
use router_model::selector::LabelSelector;

use crate::engine::route_revision::{RouteChanges, RouteRevision};

/// The selectors of a router, and the namespaces that they select.
#[derive(Debug)]
pub struct RouteSelection {
    routes: LabelSelector,
    namespaces: LabelSelector,
    /// Whether a namespace is selected, for the namespaces of all routes; empty if the router selects all namespaces.
    known: HashMap<Arc<str>, bool>,
}

impl RouteSelection {
    /// A router with these selectors, without routes.
    pub fn new(routes: LabelSelector, namespaces: LabelSelector) -> Self {
        RouteSelection { routes, namespaces, known: HashMap::new() }
    }

    /// True if it selects this route, which an earlier change contained.
    pub fn selects(&self, route: &Route) -> bool {
        self.routes.matches(&route.meta.labels)
            && (self.namespaces.is_empty() || self.known.get(&route.meta.key.namespace).copied().unwrap_or_default())
    }

    /// True if it may select a route without a valid version. If the labels are invalid, any router may select the
    /// route.
    pub fn may_select(&self, key: &ObjectKey, rejected: &RejectedManifest, resources: &Resources) -> bool {
        let of_route = |labels| self.routes.matches(&labels);
        (self.routes.is_empty() || rejected.labels().is_none_or(of_route))
            && (self.namespaces.is_empty() || self.namespaces.matches(&resources.namespace_labels(&key.namespace)))
    }

    /// Applies changed routes and namespaces. Returns the changes of routes that it selects or selected; a route counts
    /// as removed once it is no longer selected. Adds the routes of namespaces that it now selects, or no longer
    /// selects, to `affected`.
    pub fn apply_changes<'r>(
        &mut self,
        changes: RouteChanges<'r>,
        resources: &'r Resources,
        affected: &mut Vec<ObjectKey>,
    ) -> Vec<RouteRevision<'r>> {
        // Before the namespaces are updated: the old version was selected by the labels that its namespace had.
        let old: Vec<_> = changes.routes.iter().map(|change| change.old.filter(|route| self.selects(route))).collect();
        let moved = self.update_namespaces(changes, resources);
        let selected = changes.routes.iter().zip(old).map(|(change, old)| RouteRevision {
            key: change.key,
            old,
            new: change.new.filter(|route| self.selects(route)),
        });
        let mut selected: Vec<RouteRevision<'r>> = selected.collect();
        if !moved.is_empty() {
            let changed: BTreeSet<&ObjectKey> = changes.routes.iter().map(|change| change.key).collect();
            for (namespace, is_selected) in &moved {
                let routes = resources.routes.of_namespace(namespace);
                let routes = routes.filter(|route| !changed.contains(&route.meta.key));
                for route in routes.filter(|route| self.routes.matches(&route.meta.labels)) {
                    let key = &route.meta.key;
                    affected.push(key.clone());
                    let (old, new) = if *is_selected { (None, Some(route)) } else { (Some(route), None) };
                    selected.push(RouteRevision { key, old, new });
                }
            }
        }
        selected.retain(|change| change.old.is_some() || change.new.is_some());
        selected
    }

    /// Updates known namespaces by their labels, adds those of new routes, and removes those without routes. Returns
    /// the namespaces that it now selects (true), or no longer selects.
    fn update_namespaces(&mut self, changes: RouteChanges<'_>, resources: &Resources) -> Vec<(Arc<str>, bool)> {
        if self.namespaces.is_empty() {
            return Vec::new();
        }
        let mut moved = Vec::new();
        for namespace in changes.namespaces {
            let Some(known) = self.known.get_mut(namespace) else { continue };
            let is_selected = self.namespaces.matches(&resources.namespace_labels(namespace));
            if std::mem::replace(known, is_selected) != is_selected {
                moved.push((namespace.clone(), is_selected));
            }
        }
        for change in changes.routes {
            let namespace = &change.key.namespace;
            if change.new.is_none() && resources.routes.of_namespace(namespace).next().is_none() {
                self.known.remove(namespace);
            } else if change.new.is_some() && !self.known.contains_key(namespace) {
                let is_selected = self.namespaces.matches(&resources.namespace_labels(namespace));
                self.known.insert(namespace.clone(), is_selected);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use router_api::testing::{good, route};
    use router_model::selector::{Operator, Requirement};
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_without_routes_are_forgotten() {
        let labelled = Requirement { key: "team".to_owned(), operator: Operator::Exists };
        let mut selection = RouteSelection::new(LabelSelector::default(), LabelSelector::new(vec![labelled]));
        let mut last = Resources::default();
        let mut known = |ids: &[&str]| {
            let mut resources = Resources::default();
            ids.iter().for_each(|id| resources.insert(&good(route(id, 1, json!({ "host": "a.test" })))));
            let routes: Vec<RouteRevision<'_>> = resources.routes.in_force_since(&last.routes).collect();
            selection.apply_changes(RouteChanges { routes: &routes, namespaces: &[] }, &resources, &mut Vec::new());
            drop(routes);
            last = resources;
            let mut known: Vec<String> = selection.known.keys().map(ToString::to_string).collect();
            known.sort_unstable();
            known.join(" ")
        };
        assert_eq!(known(&["blue/a", "red/a", "red/b"]), "blue red");
        assert_eq!(known(&["blue/a", "red/b"]), "blue red");
        assert_eq!(known(&["blue/a"]), "blue");
    }
}

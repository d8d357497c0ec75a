//! Routes of a router by group: routes that may conflict are in one group.

use std::cmp::Ordering;
use std::sync::Arc;

use router_api::openshift::route::Route;
use router_model::persistent::OrderedMap;

/// A route in its group, ordered by group, namespace and name.
#[derive(Clone, Debug)]
pub struct GroupEntry {
    /// The host, or `*.` and the domain.
    pub group: Arc<str>,
    /// The route.
    pub route: Arc<Route>,
}

impl Ord for GroupEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        let groups =
            if Arc::ptr_eq(&self.group, &other.group) { Ordering::Equal } else { self.group.cmp(&other.group) };
        groups.then_with(|| self.route.meta.key.cmp(&other.route.meta.key))
    }
}

impl PartialOrd for GroupEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GroupEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for GroupEntry {}

/// True if a group has routes.
pub fn has_routes(groups: &OrderedMap<GroupEntry, ()>, group: &str) -> bool {
    let mut following = groups.entries_from(|entry| *entry.group < *group).map(|(entry, ())| entry);
    following.next().is_some_and(|entry| *entry.group == *group)
}

/// The routes of a group, oldest first.
pub fn routes_of(groups: &OrderedMap<GroupEntry, ()>, group: &str) -> Vec<Arc<Route>> {
    let following = groups.entries_from(|entry| *entry.group < *group).map(|(entry, ())| entry);
    let mut routes: Vec<_> =
        following.take_while(|entry| *entry.group == *group).map(|entry| entry.route.clone()).collect();
    routes.sort_by(|a, b| a.meta.age().cmp(&b.meta.age()));
    routes
}

//! The routes of a router by group: routes that may contend are in one.

use std::cmp::Ordering;
use std::sync::Arc;

use router_api::openshift::route::Route;
use router_model::persistent::OrderedMap;

/// A route in its group: in order of group, namespace and name. Routes of a group may contend.
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

/// Whether a group has routes.
pub fn has_routes(members: &OrderedMap<GroupEntry, ()>, group: &str) -> bool {
    let mut following = members.entries_from(|member| *member.group < *group).map(|(member, ())| member);
    following.next().is_some_and(|member| *member.group == *group)
}

/// The routes of a group, oldest first.
pub fn routes_of(members: &OrderedMap<GroupEntry, ()>, group: &str) -> Vec<Arc<Route>> {
    let following = members.entries_from(|member| *member.group < *group).map(|(member, ())| member);
    let mut routes: Vec<_> =
        following.take_while(|member| *member.group == *group).map(|member| member.route.clone()).collect();
    routes.sort_by(|a, b| a.meta.age().cmp(&b.meta.age()));
    routes
}

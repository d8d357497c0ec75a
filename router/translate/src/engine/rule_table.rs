//! Host rules of one router, updated by the hosts that differ.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use router_model::names::{HostMatch, Hostname, RouteId};
use router_model::persistent::last_of_each;
use router_table::table::{ResolvedRoute, VirtualHost};

use crate::engine::assembly::{HostRulesTable, MatchedHost};
use crate::engine::reuse::{Reuse, routes_of};

/// Hosts and routes of the APIs other than Routes on one router.
#[derive(Debug, Default)]
pub struct RuleTable {
    table: HostRulesTable,
    /// For routes of several hosts, the number of hosts beyond the first.
    extra_hosts: HashMap<RouteId, usize>,
}

/// Change in the use of a route.
struct Use {
    /// Number of hosts that use it now and did not before, less those that no longer do.
    hosts: isize,
    /// Its newest version.
    route: Option<Arc<ResolvedRoute>>,
}

impl RuleTable {
    /// The hosts and routes.
    pub fn table(&self) -> &HostRulesTable {
        &self.table
    }

    /// True if there are neither hosts nor domains.
    pub fn is_empty(&self) -> bool {
        self.table.hosts.is_empty() && self.table.domains.is_empty()
    }

    /// Sets the delegated domains.
    pub fn set_domains(&mut self, domains: BTreeSet<Hostname>) {
        if *self.table.domains != domains {
            self.table.domains = Arc::new(domains);
        }
    }

    /// Sets and removes (`None`) hosts; the last change of a host counts. Hosts and routes that are equal to the earlier
    /// ones keep their `Arc`.
    pub fn update(&mut self, changes: Vec<(HostMatch, Option<VirtualHost>)>) {
        let before = self.table.routes.clone();
        let mut reuse = Reuse::new(&before);
        let mut uses: Vec<(RouteId, Use)> = Vec::new();
        let mut set = Vec::new();
        for (at, host) in last_of_each(changes, |(at, _)| at) {
            let old = self.table.hosts.get(&at).cloned();
            debug_assert!(host.as_ref().is_none_or(|host| host.host == at), "a host is at its match");
            let new = host.map(|host| reuse.host(host, old.as_ref()));
            if let (Some(old), Some(new)) = (&old, &new)
                && Arc::ptr_eq(old, new)
            {
                continue;
            }
            add_uses(old.as_deref(), new.as_deref(), &mut uses);
            match new {
                Some(new) => set.push(MatchedHost(new)),
                None => drop(self.table.hosts.remove(&at)),
            }
        }
        self.table.hosts.extend(set);
        self.use_routes(uses);
    }

    /// Applies these uses; of several of a route, the last version counts.
    fn use_routes(&mut self, mut uses: Vec<(RouteId, Use)>) {
        uses.sort_by(|(one, _), (other, _)| one.cmp(other));
        uses.dedup_by(|(id, later), (known, sum)| {
            let is_same = id == known;
            if is_same {
                sum.hosts += later.hosts;
                sum.route = later.route.take().or(sum.route.take());
            }
            is_same
        });
        let mut set = Vec::new();
        for (id, Use { hosts, route }) in uses {
            let known = self.table.routes.get(&id);
            let before = known.map_or(0, |_| 1 + self.extra_hosts.get(&id).copied().unwrap_or_default());
            let after = before.saturating_add_signed(hosts);
            if after > 1 {
                self.extra_hosts.insert(id.clone(), after - 1);
            } else if !self.extra_hosts.is_empty() {
                self.extra_hosts.remove(&id);
            }
            if after == 0 {
                self.table.routes.remove(&id);
            } else if let Some(route) = route.filter(|route| known.is_none_or(|known| !Arc::ptr_eq(known, route))) {
                set.push(route);
            }
        }
        self.table.routes.extend(set);
    }
}

/// A route in the old and in the new version of a host.
type Versions<'h> = (Option<&'h Arc<ResolvedRoute>>, Option<&'h Arc<ResolvedRoute>>);

/// Adds what differs between two versions of a host. Most routes of a large host are the same.
fn add_uses(old: Option<&VirtualHost>, new: Option<&VirtualHost>, uses: &mut Vec<(RouteId, Use)>) {
    let mut added = new.into_iter().flat_map(routes_of);
    // As most new hosts have.
    if let (None, Some(only), None) = (old, added.next(), added.next()) {
        uses.push((only.id.clone(), Use { hosts: 1, route: Some(Arc::clone(only)) }));
        return;
    }
    let mut routes: HashMap<&RouteId, Versions<'_>> = HashMap::new();
    for route in old.into_iter().flat_map(routes_of) {
        routes.entry(&route.id).or_default().0 = Some(route);
    }
    for route in new.into_iter().flat_map(routes_of) {
        routes.entry(&route.id).or_default().1 = Some(route);
    }
    let is_same = |versions: &Versions<'_>| matches!(versions, (Some(old), Some(new)) if Arc::ptr_eq(old, new));
    let differing = routes.into_iter().filter(|(_, versions)| !is_same(versions));
    uses.extend(differing.map(|(id, (old, new))| {
        let hosts = isize::from(new.is_some()) - isize::from(old.is_some());
        (id.clone(), Use { hosts, route: new.cloned() })
    }));
}

#[cfg(test)]
mod tests;

//! Assembles a router's table from the hosts of Routes and those of objects of other kinds. The only writer of the
//! table; the cost is proportional to the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use router_model::names::{HostMatch, Hostname, RouteId};
use router_model::persistent::{Entry, KeyedMap, Ordered};
use router_table::policy::gate::aggregated;
use router_table::table::{ResolvedRoute, RouterTable, VirtualHost};

/// Changes of a router's Routes.
#[derive(Debug, Default)]
pub struct ChangedRoutes {
    /// Routes to remove from the table with their hosts, if they are in it. A change of a host lists all its Routes.
    pub removed: Vec<RouteId>,
    /// The hosts to add; only Routes own them.
    pub hosts: Vec<Arc<VirtualHost>>,
    /// The Routes of these hosts.
    pub routes: Vec<Arc<ResolvedRoute>>,
}

/// A virtual host by its match.
#[derive(Clone, Debug)]
pub struct MatchedHost(pub Arc<VirtualHost>);

impl Entry for MatchedHost {
    type Key = HostMatch;
    type Value = Arc<VirtualHost>;

    fn key(&self) -> &HostMatch {
        &self.0.host
    }

    fn value(&self) -> &Arc<VirtualHost> {
        &self.0
    }
}

/// Hosts on one router of objects of other kinds than Route.
#[derive(Clone, Debug, Default)]
pub struct HostRulesTable {
    /// Their hosts; no Route owns one of these.
    pub hosts: Ordered<MatchedHost>,
    /// The routes of these hosts.
    pub routes: KeyedMap<ResolvedRoute>,
    /// See [`router_table::table::HostIndex::domains`].
    pub domains: Arc<BTreeSet<Hostname>>,
}

/// A router's table, with the hosts in it that objects of other kinds own.
#[derive(Debug)]
pub struct Assembled {
    table: Arc<RouterTable>,
    rules: HostRulesTable,
    allow_lists: AllowLists,
}

impl Assembled {
    /// A router without hosts: `table` has neither hosts nor routes.
    pub fn new(table: RouterTable) -> Self {
        Assembled { table: Arc::new(table), rules: HostRulesTable::default(), allow_lists: AllowLists::default() }
    }

    /// The table.
    pub fn table(&self) -> &Arc<RouterTable> {
        &self.table
    }

    /// Sets everything except hosts and routes. The table stays the same `Arc` if nothing differs.
    pub fn configure(&mut self, new: RouterTable) {
        let RouterTable {
            name,
            id,
            domain,
            http_port,
            https_port,
            default_certificate,
            policy,
            hosts: _,
            routes: _,
            common_allow: _,
        } = &*self.table;
        let is_same = (name, *id, domain) == (&new.name, new.id, &new.domain)
            && (*http_port, *https_port) == (new.http_port, new.https_port)
            && (default_certificate, policy) == (&new.default_certificate, &new.policy);
        if !is_same {
            let common_allow = self.table.common_allow.clone();
            let with = new.with(self.table.hosts.clone(), self.table.routes.clone());
            self.table = Arc::new(RouterTable { common_allow, ..with });
        }
    }

    /// Applies changes of Routes, and sets the hosts of objects of other kinds. The table stays the same `Arc` if
    /// neither differs.
    pub fn assemble(&mut self, of_routes: Option<ChangedRoutes>, rules: &HostRulesTable) {
        let before = std::mem::replace(&mut self.rules, rules.clone());
        let rule_hosts: Vec<_> = rules.hosts.changes_since(&before.hosts).collect();
        let rule_routes: Vec<_> = rules.routes.changes_since(&before.routes).collect();
        let same_rules = rule_hosts.is_empty() && rule_routes.is_empty() && rules.domains == before.domains;
        if of_routes.is_none() && same_rules {
            return;
        }
        let of_routes = of_routes.unwrap_or_default();
        let (mut hosts, mut routes) = (self.table.hosts.clone(), self.table.routes.clone());
        // Removals come first: a route may move between hosts, and a host between kinds.
        for route in of_routes.removed.iter().filter_map(|id| routes.remove(id)) {
            self.allow_lists.remove(&route);
            hosts.remove(&route.host);
        }
        for changed in rule_hosts.iter().filter(|changed| changed.old.is_some()) {
            hosts.remove(changed.key);
        }
        for changed in &rule_routes {
            changed.old.into_iter().for_each(|route| self.allow_lists.remove(route));
            if changed.new.is_none() {
                routes.remove(changed.key);
            }
        }
        let mut new_hosts = of_routes.hosts;
        new_hosts.extend(rule_hosts.iter().filter_map(|changed| changed.new.cloned()));
        debug_assert!(new_hosts.iter().all(|host| hosts.entry(&host.host).is_none()), "a host has two owners");
        hosts.extend(new_hosts);
        hosts.domains = Arc::clone(&rules.domains);
        let mut new_routes = of_routes.routes;
        new_routes.extend(rule_routes.iter().filter_map(|changed| changed.new.cloned()));
        new_routes.iter().for_each(|route| self.allow_lists.add(route));
        routes.extend(new_routes);
        debug_assert_eq!(self.allow_lists.routes(), routes.len(), "every route is counted once");
        let common_allow = self.allow_lists.common();
        self.table = Arc::new(RouterTable { common_allow, ..self.table.with(hosts, routes) });
    }
}

/// The allow-lists of a router's routes, counted.
#[derive(Debug, Default)]
struct AllowLists {
    /// Routes without one.
    without: usize,
    /// Routes with each, sorted and aggregated.
    with: BTreeMap<Arc<[IpNet]>, usize>,
}

impl AllowLists {
    fn add(&mut self, route: &ResolvedRoute) {
        match route.allow() {
            None => self.without += 1,
            Some(list) => *self.with.entry(aggregated(list)).or_default() += 1,
        }
    }

    fn remove(&mut self, route: &ResolvedRoute) {
        let Some(list) = route.allow() else { return self.without -= 1 };
        let list = aggregated(list);
        if let Some(count) = self.with.get_mut(&list) {
            *count -= 1;
            if *count == 0 {
                self.with.remove(&list);
            }
        }
    }

    /// The one that all routes have.
    fn common(&self) -> Option<Arc<[IpNet]>> {
        let mut lists = self.with.keys();
        let list = lists.next().filter(|_| self.without == 0)?;
        lists.next().is_none().then(|| Arc::clone(list))
    }

    fn routes(&self) -> usize {
        self.without + self.with.values().sum::<usize>()
    }
}

#[cfg(test)]
mod tests;

//! The one place that puts hosts and routes into a router's table: those of Routes, and those of objects of other kinds.
//! Costs what changed of either side.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_model::names::{HostMatch, Hostname, RouteId};
use router_model::persistent::OrderedMap;
use router_table::table::{ResolvedRoute, RouterTable, VirtualHost};

/// What changes of a router's Routes.
#[derive(Debug, Default)]
pub struct ChangedRoutes {
    /// They leave the table with their hosts, if they are in it. A host is decided whole, so all Routes of one are here.
    pub gone: Vec<RouteId>,
    /// The hosts that Routes have instead, and nobody else.
    pub hosts: Vec<Arc<VirtualHost>>,
    /// The Routes of these hosts.
    pub routes: Vec<(RouteId, Arc<ResolvedRoute>)>,
}

/// What objects of other kinds than Route serve on one router.
#[derive(Clone, Debug, Default)]
pub struct HostRulesTable {
    /// Their hosts; no Route has one of these.
    pub hosts: OrderedMap<HostMatch, Arc<VirtualHost>>,
    /// The routes of these hosts.
    pub routes: OrderedMap<RouteId, Arc<ResolvedRoute>>,
    /// See [`router_table::table::HostIndex::domains`].
    pub domains: Arc<BTreeSet<Hostname>>,
}

/// A router's table, with what objects of other kinds have in it.
#[derive(Debug)]
pub struct Assembled {
    table: Arc<RouterTable>,
    rules: HostRulesTable,
}

impl Assembled {
    /// A router that serves nothing yet: `table` has neither hosts nor routes.
    pub fn new(table: RouterTable) -> Self {
        Assembled { table: Arc::new(table), rules: HostRulesTable::default() }
    }

    /// The table.
    pub fn table(&self) -> &Arc<RouterTable> {
        &self.table
    }

    /// Sets everything except hosts and routes. The table stays the same `Arc` if nothing differs.
    pub fn configure(&mut self, new: RouterTable) {
        let RouterTable { name, id, domain, http_port, https_port, default_certificate, policy, hosts: _, routes: _ } =
            &*self.table;
        let is_same = (name, *id, domain) == (&new.name, new.id, &new.domain)
            && (*http_port, *https_port) == (new.http_port, new.https_port)
            && (default_certificate, policy) == (&new.default_certificate, &new.policy);
        if !is_same {
            self.table = Arc::new(new.with(self.table.hosts.clone(), self.table.routes.clone()));
        }
    }

    /// Takes over what changes of Routes, and what objects of other kinds serve from now on. The table stays the same
    /// `Arc` if neither differs.
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
        // All that goes leaves before anything comes: routes move between hosts, and hosts between kinds.
        for route in of_routes.gone.iter().filter_map(|id| routes.remove(id)) {
            hosts.remove(&route.host);
        }
        for changed in rule_hosts.iter().filter(|changed| changed.old.is_some()) {
            hosts.remove(changed.key);
        }
        for changed in rule_routes.iter().filter(|changed| changed.new.is_none()) {
            routes.remove(changed.key);
        }
        let mut new_hosts = of_routes.hosts;
        new_hosts.extend(rule_hosts.iter().filter_map(|changed| changed.new.cloned()));
        debug_assert!(new_hosts.iter().all(|host| hosts.entry(&host.host).is_none()), "a host has two owners");
        hosts.extend(new_hosts);
        hosts.domains = Arc::clone(&rules.domains);
        let mut new_routes = of_routes.routes;
        new_routes.extend(rule_routes.iter().filter_map(|it| Some((it.key.clone(), Arc::clone(it.new?)))));
        routes.extend(new_routes);
        self.table = Arc::new(self.table.with(hosts, routes));
    }
}

#[cfg(test)]
mod tests;

//! Reuses the previous `Arc` when a rebuilt value is equal: connections, plans and kernel entries depend on the identity
//! of hosts and routes.

use std::collections::HashMap;
use std::sync::Arc;

use router_model::names::RouteId;
use router_model::persistent::OrderedMap;
use router_table::rule::{HostRules, HostRulesTls, Rule};
use router_table::table::{ResolvedRoute, VirtualHost};

/// Replaces new routes by equal earlier ones.
pub struct Reuse<'o> {
    before: &'o OrderedMap<RouteId, Arc<ResolvedRoute>>,
    /// By address of what came, which is held so that the address stays its own.
    routes: HashMap<*const ResolvedRoute, Replaced<ResolvedRoute>>,
    rules: HashMap<*const Rule, Replaced<Rule>>,
    lists: HashMap<*const Arc<Rule>, Replaced<[Arc<Rule>]>>,
}

/// What came, and what stands for it.
type Replaced<T> = (Arc<T>, Arc<T>);

impl<'o> Reuse<'o> {
    /// The routes of the last version.
    pub fn new(before: &'o OrderedMap<RouteId, Arc<ResolvedRoute>>) -> Self {
        Reuse { before, routes: HashMap::new(), rules: HashMap::new(), lists: HashMap::new() }
    }

    /// The virtual host with earlier routes where they are equal, or the earlier host if that is equal.
    pub fn host(&mut self, mut host: VirtualHost, before: Option<&Arc<VirtualHost>>) -> Arc<VirtualHost> {
        if !self.before.is_empty() {
            host.passthrough.iter_mut().for_each(|route| self.route(route));
            host.rules.iter_mut().for_each(|site| self.site(site));
        }
        // Their routes and rules are mostly the same `Arc`s by now, which are equal without a look at them.
        before.filter(|before| ***before == host).map_or_else(|| Arc::new(host), Arc::clone)
    }

    fn site(&mut self, site: &mut HostRules) {
        let HostRules { owner: _, listener: _, cleartext_listener: _, cleartext, tls } = site;
        if let Some(rules) = cleartext {
            self.rules(rules);
        }
        if let Some(HostRulesTls { shown_by: _, certificates: _, minimum: _, rules, tcp }) = tls {
            self.rules(rules);
            if let Some(route) = tcp {
                self.route(route);
            }
        }
    }

    fn rules(&mut self, rules: &mut Arc<[Arc<Rule>]>) {
        let Some(first) = rules.first().map(std::ptr::from_ref) else { return };
        if let Some((_, kept)) = self.lists.get(&first) {
            *rules = Arc::clone(kept);
            return;
        }
        let kept: Arc<[Arc<Rule>]> = rules.iter().map(|rule| self.rule(rule)).collect();
        let came = std::mem::replace(rules, Arc::clone(&kept));
        self.lists.insert(first, (came, kept));
    }

    fn rule(&mut self, rule: &Arc<Rule>) -> Arc<Rule> {
        if let Some((_, kept)) = self.rules.get(&Arc::as_ptr(rule)) {
            return Arc::clone(kept);
        }
        let mut route = Arc::clone(&rule.route);
        self.route(&mut route);
        let kept = if Arc::ptr_eq(&route, &rule.route) {
            Arc::clone(rule)
        } else {
            Arc::new(Rule { route, ..Rule::clone(rule) })
        };
        self.rules.insert(Arc::as_ptr(rule), (Arc::clone(rule), Arc::clone(&kept)));
        kept
    }

    fn route(&mut self, route: &mut Arc<ResolvedRoute>) {
        if let Some((_, kept)) = self.routes.get(&Arc::as_ptr(route)) {
            *route = Arc::clone(kept);
            return;
        }
        let before = self.before.get(&route.id).filter(|before| **before == *route);
        let kept = Arc::clone(before.unwrap_or(route));
        let came = std::mem::replace(route, Arc::clone(&kept));
        self.routes.insert(Arc::as_ptr(&came), (came, kept));
    }
}

/// The routes of a virtual host, each as often as it is named.
pub fn routes_of(host: &VirtualHost) -> impl Iterator<Item = &Arc<ResolvedRoute>> {
    let site = host.rules.as_deref();
    let tls = site.and_then(|site| site.tls.as_ref());
    let cleartext = site.and_then(|site| site.cleartext.as_ref()).into_iter().flat_map(|rules| rules.iter());
    let rules = cleartext.chain(tls.into_iter().flat_map(|tls| tls.rules.iter())).map(|rule| &rule.route);
    host.passthrough.iter().chain(rules).chain(tls.and_then(|tls| tls.tcp.as_ref()))
}

#[cfg(test)]
mod tests;

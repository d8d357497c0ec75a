//! Reuses the previous `Arc` when a rebuilt value is equal: connections, plans and kernel entries depend on the
//! identity of hosts and routes.

use std::collections::HashMap;
use std::sync::Arc;

use router_model::persistent::KeyedMap;
use router_table::rule::{HostRules, HostRulesTls, Rule};
use router_table::table::{ResolvedRoute, VirtualHost};

/// Replaces new routes by equal earlier ones.
pub struct Reuse<'o> {
    before: &'o KeyedMap<ResolvedRoute>,
    /// By address of the new value. The entry holds the value, so that the address is not reused.
    routes: HashMap<*const ResolvedRoute, Replaced<ResolvedRoute>>,
    rules: HashMap<*const Rule, Replaced<Rule>>,
    lists: HashMap<*const Arc<Rule>, Replaced<[Arc<Rule>]>>,
}

/// The new value, and the value used in its place.
type Replaced<T> = (Arc<T>, Arc<T>);

impl<'o> Reuse<'o> {
    /// Reuses the routes of the previous version.
    pub fn new(before: &'o KeyedMap<ResolvedRoute>) -> Self {
        let (routes, rules, lists) = (HashMap::new(), HashMap::new(), HashMap::new());
        Reuse { before, routes, rules, lists }
    }

    /// The virtual host with earlier routes where they are equal, or the earlier host if that is equal.
    pub fn host(&mut self, mut host: VirtualHost, before: Option<&Arc<VirtualHost>>) -> Arc<VirtualHost> {
        if !self.before.is_empty() {
            host.passthrough.iter_mut().for_each(|route| self.route(route));
            host.rules.iter_mut().for_each(|rules| self.host_rules(rules));
        }
        // Cheap: most routes and rules are the same `Arc`s by now, which compare equal by address.
        before.filter(|before| ***before == host).map_or_else(|| Arc::new(host), Arc::clone)
    }

    fn host_rules(&mut self, host_rules: &mut HostRules) {
        let HostRules { owner: _, listener: _, cleartext_listener: _, cleartext, tls } = host_rules;
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
        if let Some((_, reused)) = self.lists.get(&first) {
            *rules = Arc::clone(reused);
            return;
        }
        let reused: Arc<[Arc<Rule>]> = rules.iter().map(|rule| self.rule(rule)).collect();
        let new = std::mem::replace(rules, Arc::clone(&reused));
        self.lists.insert(first, (new, reused));
    }

    fn rule(&mut self, rule: &Arc<Rule>) -> Arc<Rule> {
        // Most rules of a large host are the same as before.
        if self.before.get(&rule.route.id).is_some_and(|known| Arc::ptr_eq(known, &rule.route)) {
            return Arc::clone(rule);
        }
        if let Some((_, reused)) = self.rules.get(&Arc::as_ptr(rule)) {
            return Arc::clone(reused);
        }
        let mut route = Arc::clone(&rule.route);
        self.route(&mut route);
        let reused = if Arc::ptr_eq(&route, &rule.route) {
            Arc::clone(rule)
        } else {
            Arc::new(Rule { route, ..Rule::clone(rule) })
        };
        self.rules.insert(Arc::as_ptr(rule), (Arc::clone(rule), Arc::clone(&reused)));
        reused
    }

    fn route(&mut self, route: &mut Arc<ResolvedRoute>) {
        if let Some((_, reused)) = self.routes.get(&Arc::as_ptr(route)) {
            *route = Arc::clone(reused);
            return;
        }
        let before = self.before.get(&route.id).filter(|before| **before == *route);
        let reused = Arc::clone(before.unwrap_or(route));
        let new = std::mem::replace(route, Arc::clone(&reused));
        self.routes.insert(Arc::as_ptr(&new), (new, reused));
    }
}

/// The routes of a virtual host; a route of several rules is repeated.
pub fn routes_of(host: &VirtualHost) -> impl Iterator<Item = &Arc<ResolvedRoute>> {
    let tls = host.rules.as_deref().and_then(|rules| rules.tls.as_ref());
    let rules = rules_of(host).map(|rule| &rule.route);
    host.passthrough.iter().chain(rules).chain(tls.and_then(|tls| tls.tcp.as_ref()))
}

fn rules_of(host: &VirtualHost) -> impl Iterator<Item = &Arc<Rule>> {
    let host_rules = host.rules.as_deref();
    let tls = host_rules.and_then(|rules| rules.tls.as_ref()).into_iter().flat_map(|tls| tls.rules.iter());
    let cleartext = host_rules.and_then(|rules| rules.cleartext.as_ref()).into_iter().flat_map(|rules| rules.iter());
    cleartext.chain(tls)
}

#[cfg(test)]
mod tests;

//! What is made anew and says the same as before is kept as it was: connections, plans and kernel entries hang on the
//! identity of hosts and routes.
//!
//! Every field is named here, so that a new one cannot be forgotten. Certificates are compared by identity, as they
//! come from Secrets that are kept while they do not change.

use std::collections::HashMap;
use std::sync::Arc;

use router_model::names::RouteId;
use router_model::persistent::Sorted;
use router_table::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use router_table::rule::{BackendPolicy, HostRules, HostRulesTls, Mirror, Rule, RulePolicy};
use router_table::table::{Cluster, HttpTls, Reencrypt, ResolvedRoute, RouteKind, ServiceEndpoints, VirtualHost};
use rustls::RootCertStore;

/// Puts earlier routes into the place of new ones that say the same.
pub struct Reuse<'o> {
    before: &'o Sorted<RouteId, Arc<ResolvedRoute>>,
    /// By address of what came, which is held so that the address stays its own.
    routes: HashMap<*const ResolvedRoute, Replaced<ResolvedRoute>>,
    rules: HashMap<*const Rule, Replaced<Rule>>,
    lists: HashMap<*const Arc<Rule>, Replaced<[Arc<Rule>]>>,
}

/// What came, and what stands for it.
type Replaced<T> = (Arc<T>, Arc<T>);

impl<'o> Reuse<'o> {
    /// The routes of the last version.
    pub fn new(before: &'o Sorted<RouteId, Arc<ResolvedRoute>>) -> Self {
        Reuse { before, routes: HashMap::new(), rules: HashMap::new(), lists: HashMap::new() }
    }

    /// The virtual host, or the earlier one when both say the same.
    pub fn host(&mut self, mut host: VirtualHost, before: Option<&Arc<VirtualHost>>) -> Arc<VirtualHost> {
        if let Some(route) = &mut host.passthrough {
            self.route(route);
        }
        if let Some(site) = &mut host.site {
            self.site(site);
        }
        match before {
            Some(before) if same_host(before, &host) => Arc::clone(before),
            _ => Arc::new(host),
        }
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
        let before = self.before.get(&route.id).filter(|before| same_route(before, route));
        let kept = Arc::clone(before.unwrap_or(route));
        let came = std::mem::replace(route, Arc::clone(&kept));
        self.routes.insert(Arc::as_ptr(&came), (came, kept));
    }
}

/// The routes of a virtual host, each as often as it is named.
pub fn routes_of(host: &VirtualHost) -> impl Iterator<Item = &Arc<ResolvedRoute>> {
    let site = host.site.as_deref();
    let tls = site.and_then(|site| site.tls.as_ref());
    let cleartext = site.and_then(|site| site.cleartext.as_ref()).into_iter().flat_map(|rules| rules.iter());
    let rules = cleartext.chain(tls.into_iter().flat_map(|tls| tls.rules.iter())).map(|rule| &rule.route);
    host.passthrough.iter().chain(rules).chain(tls.and_then(|tls| tls.tcp.as_ref()))
}

/// Whether two hosts say the same; their routes are compared by identity.
fn same_host(a: &VirtualHost, b: &VirtualHost) -> bool {
    let VirtualHost { host, passthrough, terminated, cleartext, certificate, site } = a;
    *host == b.host
        && same_option(passthrough.as_ref(), b.passthrough.as_ref(), Arc::ptr_eq)
        && same_items(terminated, &b.terminated)
        && same_items(cleartext, &b.cleartext)
        && same_option(certificate.as_ref(), b.certificate.as_ref(), Arc::ptr_eq)
        && same_option(site.as_deref(), b.site.as_deref(), same_site)
}

fn same_site(a: &HostRules, b: &HostRules) -> bool {
    let HostRules { owner, listener, cleartext_listener, cleartext, tls } = a;
    *owner == b.owner
        && *listener == b.listener
        && *cleartext_listener == b.cleartext_listener
        && same_option(cleartext.as_deref(), b.cleartext.as_deref(), same_rules)
        && same_option(tls.as_ref(), b.tls.as_ref(), |a, b| {
            let HostRulesTls { shown_by, certificates, minimum, rules, tcp } = a;
            *shown_by == b.shown_by
                && same_items(certificates, &b.certificates)
                && *minimum == b.minimum
                && same_rules(rules, &b.rules)
                && same_option(tcp.as_ref(), b.tcp.as_ref(), Arc::ptr_eq)
        })
}

fn same_rules(a: &[Arc<Rule>], b: &[Arc<Rule>]) -> bool {
    same_list(a, b, |a, b| {
        let Rule { matcher, path_form, prefix, route, origin } = &**a;
        Arc::ptr_eq(a, b)
            || (Arc::ptr_eq(route, &b.route)
                && *path_form == b.path_form
                && *prefix == b.prefix
                && *origin == b.origin
                && same_matcher(matcher, &b.matcher))
    })
}

fn same_matcher(a: &RequestMatcher, b: &RequestMatcher) -> bool {
    let RequestMatcher { path, method, headers, query } = a;
    let same_value = |a: &(Arc<str>, ValueMatcher), b: &(Arc<str>, ValueMatcher)| {
        a.0 == b.0
            && match (&a.1, &b.1) {
                (ValueMatcher::Exact(a), ValueMatcher::Exact(b)) => a == b,
                (ValueMatcher::Regex(a), ValueMatcher::Regex(b)) => a.as_str() == b.as_str(),
                _ => false,
            }
    };
    let same_path = match (path, &b.path) {
        (PathMatcher::Prefix(a), PathMatcher::Prefix(b)) | (PathMatcher::Exact(a), PathMatcher::Exact(b)) => a == b,
        (PathMatcher::Regex(a), PathMatcher::Regex(b)) => a.as_str() == b.as_str(),
        _ => false,
    };
    same_path
        && *method == b.method
        && same_list(headers, &b.headers, same_value)
        && same_list(query, &b.query, same_value)
}

fn same_route(a: &ResolvedRoute, b: &ResolvedRoute) -> bool {
    let ResolvedRoute {
        id,
        host,
        kind,
        cluster,
        allow,
        proxy_protocol,
        tunnel_timeout,
        forwarded,
        request_work,
        relay_only,
        policy,
        rule,
        // They follow from the rest.
        is_plain: _,
        derived: _,
    } = a;
    *id == b.id
        && *host == b.host
        && same_kind(kind, &b.kind)
        && same_cluster(cluster, &b.cluster)
        && *allow == b.allow
        && *proxy_protocol == b.proxy_protocol
        && *tunnel_timeout == b.tunnel_timeout
        && *forwarded == b.forwarded
        && *request_work == b.request_work
        && *relay_only == b.relay_only
        && *policy == b.policy
        && same_option(rule.as_deref(), b.rule.as_deref(), same_policy)
}

fn same_kind(a: &RouteKind, b: &RouteKind) -> bool {
    match (a, b) {
        (RouteKind::Passthrough { redirect: a }, RouteKind::Passthrough { redirect: b }) => a == b,
        (RouteKind::Http { path, tls }, RouteKind::Http { path: other, tls: others }) => {
            path == other
                && same_option(tls.as_ref(), others.as_ref(), |a, b| {
                    let HttpTls { insecure, certificate, reencrypt } = a;
                    *insecure == b.insecure
                        && same_option(certificate.as_ref(), b.certificate.as_ref(), Arc::ptr_eq)
                        && same_option(reencrypt.as_ref(), b.reencrypt.as_ref(), |a, b| {
                            let Reencrypt { destination_ca } = a;
                            same_option(destination_ca.as_ref(), b.destination_ca.as_ref(), same_roots)
                        })
                })
        }
        _ => false,
    }
}

fn same_cluster(a: &Cluster, b: &Cluster) -> bool {
    let Cluster { services } = a;
    same_list(services, &b.services, |a, b| {
        let ServiceEndpoints { service, port, weight, key, policy } = a;
        *service == b.service
            && *port == b.port
            && *weight == b.weight
            && *key == b.key
            && same_option(policy.as_deref(), b.policy.as_deref(), same_backend)
    })
}

fn same_backend(a: &BackendPolicy, b: &BackendPolicy) -> bool {
    let BackendPolicy { namespace, failure, request_headers, response_headers, tls, balance, health_check } = a;
    *namespace == b.namespace
        && *failure == b.failure
        && *request_headers == b.request_headers
        && *response_headers == b.response_headers
        && *balance == b.balance
        && *health_check == b.health_check
        && *tls == b.tls
}

fn same_policy(a: &RulePolicy, b: &RulePolicy) -> bool {
    let RulePolicy {
        action,
        request_headers,
        response_headers,
        rewrite_host,
        rewrite_path,
        mirrors,
        cors,
        request_timeout,
        backend_timeout,
        idle_timeout,
        keep_connections,
        retry,
    } = a;
    *action == b.action
        && *request_headers == b.request_headers
        && *response_headers == b.response_headers
        && *rewrite_host == b.rewrite_host
        && *rewrite_path == b.rewrite_path
        && same_list(mirrors, &b.mirrors, |a, b| {
            let Mirror { cluster, share } = a;
            same_cluster(cluster, &b.cluster) && *share == b.share
        })
        && *cors == b.cors
        && *request_timeout == b.request_timeout
        && *backend_timeout == b.backend_timeout
        && *idle_timeout == b.idle_timeout
        && *keep_connections == b.keep_connections
        && *retry == b.retry
}

fn same_roots(a: &Arc<RootCertStore>, b: &Arc<RootCertStore>) -> bool {
    Arc::ptr_eq(a, b) || a.roots == b.roots
}

/// Whether these are the same items, by identity.
fn same_items<T: ?Sized>(a: &[Arc<T>], b: &[Arc<T>]) -> bool {
    same_list(a, b, Arc::ptr_eq)
}

fn same_list<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn same_option<T>(a: Option<T>, b: Option<T>, same: impl FnOnce(T, T) -> bool) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;

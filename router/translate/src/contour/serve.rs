//! Builds virtual hosts from the rules that a walk collects.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use router_api::contour::types::{ContourProxy, RouteSpec, Strategy};
use router_api::openshift::route::annotations::values::MAX_TIMEOUT;
use router_api::redirect::{PathModifier, Redirect};
use router_model::names::{PathMatch, RouteId};
use router_model::object::ObjectRef;
use router_model::one_or_many::OneOrMany;
use router_table::cors::Cors;
use router_table::matchers::{PathMatcher, RequestMatcher};
use router_table::path_form::PathForm;
use router_table::policy::{Balance, RoutePolicy};
use router_table::rule::{
    Action, BackendPolicy, HostRules, HostRulesTls, PathChange, RedirectPort, RedirectTo, Rule, RulePolicy,
};
use router_table::table::{Cluster, Derived, RareSettings, ResolvedRoute, RouteKind, VirtualHost, WeightedService};

use super::backends::{self, modifier_list};
use super::tls::HostTls;
use super::walk::{CollectedRule, RouteTarget, RuleAction};
use crate::contour::claims::types::Claim;
use crate::contour::numbers::{Numbers, Parts};
use crate::contour::walk::tcp_target::Tcp;
use crate::traffic_defaults::TrafficDefaults;

/// Builds the virtual host of a claim, and numbers the routes of each object in the order of creation.
#[derive(Debug)]
pub struct VirtualHostBuilder<'r> {
    claim: &'r Claim,
    root: &'r Arc<ContourProxy>,
    start: Option<&'r Arc<ContourProxy>>,
    traffic: TrafficDefaults,
    numbers: &'r Numbers,
    parts: BTreeMap<ObjectRef, Parts>,
}

/// A rule with its sort key.
struct SortedRule {
    rule: Arc<Rule>,
    proxy: ObjectRef,
    permit_insecure: bool,
}

impl<'r> VirtualHostBuilder<'r> {
    /// Builds the virtual host of a claim of this root, beginning with the object `start`, for a router with these
    /// defaults.
    pub fn new(
        claim: &'r Claim,
        root: &'r Arc<ContourProxy>,
        start: Option<&'r Arc<ContourProxy>>,
        traffic: TrafficDefaults,
        numbers: &'r Numbers,
    ) -> Self {
        VirtualHostBuilder { claim, root, start, traffic, numbers, parts: BTreeMap::new() }
    }

    /// The numbers of each object's routes.
    pub fn parts(self) -> Vec<(ObjectRef, Parts)> {
        self.parts.into_iter().collect()
    }

    /// The virtual host.
    pub fn virtual_host(&mut self, tls: &HostTls, rules: Vec<CollectedRule<'_>>, tcp: Option<Tcp<'_>>) -> VirtualHost {
        let (claim, root, start) = (self.claim, self.root, self.start);
        let cors = root.virtual_host.as_ref().and_then(|host| host.cors.as_ref());
        let rules = self.sorted(rules, cors);
        let tcp = tcp.map(|tcp| self.tcp(tcp, matches!(tls, HostTls::Passthrough { .. })));
        let has_tcp_proxy = start.is_some_and(|start| start.tcp.is_some());
        let all = || rules.iter().map(|sorted| Arc::clone(&sorted.rule)).collect::<Arc<[Arc<Rule>]>>();
        let some = || Some(all()).filter(|rules| !rules.is_empty());
        let (cleartext, passthrough, host_rules_tls) = match tls {
            HostTls::None => (Some(all()), None, None),
            HostTls::Passthrough { .. } => (some(), tcp, None),
            HostTls::Terminate { certificate, minimum, .. } => {
                let has_tls =
                    |start: &&Arc<ContourProxy>| start.virtual_host.as_ref().is_some_and(|host| host.tls.is_some());
                let host_rules_tls = HostRulesTls {
                    shown_by: start.filter(has_tls).unwrap_or(root).object(),
                    certificates: vec![certificate.clone()],
                    minimum: Some(*minimum),
                    rules: if has_tcp_proxy { Arc::from([]) } else { all() },
                    tcp,
                };
                // Beside a `tcpproxy`, routes serve clear text only.
                let cleartext = if has_tcp_proxy { some() } else { Some(self.redirected(&rules)) };
                (cleartext, None, Some(host_rules_tls))
            }
        };
        let listener: Arc<str> = format!("{}#{}", claim.root, claim.name).into();
        let host_rules = HostRules {
            owner: claim.root.clone(),
            cleartext_listener: Some(Arc::clone(&listener)),
            listener,
            cleartext,
            tls: host_rules_tls,
        };
        VirtualHost {
            host: claim.host.clone(),
            passthrough,
            terminated: OneOrMany::default(),
            cleartext: OneOrMany::default(),
            certificate: None,
            rules: Some(Box::new(host_rules)),
        }
    }

    /// A subdomain without a delegate: all requests get this status.
    pub fn answer(&mut self, tls: &HostTls, status: u16) -> VirtualHost {
        let rule = CollectedRule {
            matcher: RequestMatcher::default(),
            proxy: self.root,
            origin: format!("{}#{}", self.claim.root, self.claim.name),
            permit_insecure: false,
            action: RuleAction::Answer(status, None),
        };
        self.virtual_host(tls, vec![rule], None)
    }

    /// Sorts rules by precedence: exact paths, then regular expressions, then prefixes, longer ones first; then by
    /// number of conditions. Of equal rules, the last one written wins.
    fn sorted(&mut self, rules: Vec<CollectedRule<'_>>, cors: Option<&Arc<Cors>>) -> Vec<SortedRule> {
        let mut sorted: Vec<SortedRule> = rules.into_iter().map(|collected| self.rule(collected, cors)).collect();
        sorted.reverse();
        sorted.sort_by_key(|sorted| {
            let matcher = &sorted.rule.matcher;
            let fields = matcher.headers.len() + usize::from(matcher.method.is_some());
            let (rank, length) = match &matcher.path {
                PathMatcher::Exact(path) => (0, path.len()),
                PathMatcher::Regex(regex) => (1, regex.as_str().len()),
                PathMatcher::Prefix(prefix) => (2, prefix.len()),
            };
            (rank, Reverse(length), Reverse(fields), Reverse(matcher.query.len()))
        });
        sorted
    }

    fn rule(&mut self, collected: CollectedRule<'_>, cors: Option<&Arc<Cors>>) -> SortedRule {
        let path_form = self.traffic.paths.normal();
        // If the router merges slashes in request paths, conditions are normalised too; otherwise they would never
        // match.
        let matcher = RequestMatcher { path: in_form(&collected.matcher.path, path_form), ..collected.matcher };
        let prefix = match &matcher.path {
            PathMatcher::Prefix(prefix) => Arc::clone(prefix),
            _ => Arc::default(),
        };
        let (target, policy, rule) = match collected.action {
            RuleAction::Answer(status, route) => {
                let response_headers = route.map(|route| modifier_list(&route.response_headers)).unwrap_or_default();
                let action = route.map_or(Action::Answer(status), |_| Action::Direct(status));
                let rule = RulePolicy { action, response_headers, ..RulePolicy::default() };
                (RouteTarget::default(), backends::policy(&Strategy::default()), rule)
            }
            RuleAction::Route(route, mut target) => {
                let rule = rule_policy(route, &mut target);
                let policy =
                    RoutePolicy { server_timeout: server_timeout(route), ..backends::policy(&target.strategy) };
                (target, policy, rule)
            }
        };
        let cluster = Cluster { services: target.services.into() };
        let rule = RulePolicy { cors: cors.cloned(), ..rule };
        let route = Arc::new(self.route(&collected.proxy.object(), cluster, policy, Some(rule)));
        let rule = Rule { matcher, path_form, prefix, route, origin: collected.origin.into() };
        SortedRule { rule: Arc::new(rule), proxy: collected.proxy.object(), permit_insecure: collected.permit_insecure }
    }

    /// Clear-text rules beside TLS: a rule without `permitInsecure` redirects to https.
    fn redirected(&mut self, rules: &[SortedRule]) -> Arc<[Arc<Rule>]> {
        let to_https = RedirectTo {
            scheme: Some("https".into()),
            hostname: None,
            port: Some(RedirectPort::RouterHttps),
            path: None,
            status: 301,
        };
        let none = backends::policy(&Strategy::default());
        let mut redirects: BTreeMap<&ObjectRef, Arc<ResolvedRoute>> = BTreeMap::new();
        let mut cleartext = Vec::new();
        for SortedRule { rule, proxy, permit_insecure } in rules {
            if *permit_insecure {
                cleartext.push(Arc::clone(rule));
                continue;
            }
            let route = redirects.entry(proxy).or_insert_with(|| {
                let policy = RulePolicy { action: Action::Redirect(to_https.clone()), ..RulePolicy::default() };
                Arc::new(self.route(proxy, Cluster::default(), none.clone(), Some(policy)))
            });
            cleartext.push(Arc::new(Rule { route: Arc::clone(route), ..Rule::clone(rule) }));
        }
        cleartext.into()
    }

    fn tcp(&mut self, mut tcp: Tcp<'_>, is_passed_through: bool) -> Arc<ResolvedRoute> {
        if is_passed_through {
            // The client's own TLS reaches the service.
            for policy in tcp.services.iter_mut().filter_map(|service| service.policy.as_mut()) {
                *policy = Arc::new(BackendPolicy { tls: None, ..BackendPolicy::clone(policy) });
            }
        }
        let cluster = Cluster { services: tcp.services.into() };
        let mut route = self.route(&tcp.proxy.object(), cluster, backends::policy(&tcp.strategy), None);
        route.kind = RouteKind::Passthrough { redirect: false };
        route.request_work = false;
        // The kernel does not run health checks.
        let is_checked =
            |service: &WeightedService| service.policy.as_ref().is_some_and(|policy| policy.health_check.is_some());
        // The kernel does not count connections to an endpoint.
        let is_counted = |service: &WeightedService| {
            service.policy.as_ref().is_some_and(|policy| policy.balance == Some(Balance::LeastConnections))
        };
        route.relay_only |= route.cluster.services.iter().any(|service| is_checked(service) || is_counted(service));
        Arc::new(route)
    }

    fn route(
        &mut self,
        proxy: &ObjectRef,
        cluster: Cluster,
        policy: RoutePolicy,
        rule: Option<RulePolicy>,
    ) -> ResolvedRoute {
        let (host, numbers) = (&self.claim.host, self.numbers);
        let parts =
            self.parts.entry(proxy.clone()).or_insert_with(|| Parts { first: numbers.first(proxy, host), count: 0 });
        let part = parts.first.saturating_add(parts.count);
        parts.count += 1;
        let idle = rule.as_ref().and_then(|rule| rule.idle_timeout);
        ResolvedRoute {
            id: RouteId {
                namespace: Arc::clone(&proxy.key.namespace),
                name: Arc::clone(&proxy.key.name),
                kind: proxy.kind,
                part,
            },
            host: host.clone(),
            kind: RouteKind::Http { path: PathMatch::any(), tls: None },
            cluster,
            rare: RareSettings { allow: None, tunnel_timeout: idle.or(self.traffic.tunnel_timeout) }.boxed(),
            proxy_protocol: false,
            forwarded: self.traffic.forwarded,
            request_work: true,
            is_plain: false,
            relay_only: policy.needs_relay(),
            policy: policy.shared(),
            rule: rule.map(RulePolicy::shared),
            derived: Derived::default(),
        }
    }
}

/// A path condition in the form in which paths are compared.
fn in_form(path: &PathMatcher, form: PathForm) -> PathMatcher {
    match path {
        PathMatcher::Prefix(prefix) => PathMatcher::Prefix(form.of(prefix).into()),
        PathMatcher::Exact(exact) => PathMatcher::Exact(form.of(exact).into()),
        PathMatcher::Regex(regex) => PathMatcher::Regex(regex.clone()),
    }
}

fn rule_policy(route: &RouteSpec, target: &mut RouteTarget) -> RulePolicy {
    RulePolicy {
        action: route.redirect.as_ref().map_or(Action::Forward, |redirect| Action::Redirect(redirect_to(redirect))),
        request_headers: modifier_list(&route.request_headers),
        response_headers: modifier_list(&route.response_headers),
        rewrite_host: route.rewrite_host.clone(),
        rewrite_path: target.rewrite.take().map(PathChange::Prefix),
        mirrors: std::mem::take(&mut target.mirrors),
        request_timeout: route.timeout.flatten(),
        backend_timeout: route.per_try,
        idle_timeout: route.idle.map(bounded),
        keep_connections: route.idle_connection.map(bounded),
        retry: route.retry.clone(),
        ..RulePolicy::default()
    }
}

/// Maximum idle time of an endpoint: the route's own, or at least the response time-out.
fn server_timeout(route: &RouteSpec) -> Option<Duration> {
    route.idle.or(route.timeout).map(bounded)
}

/// The written time-out; `infinity` becomes the maximum.
fn bounded(timeout: Option<Duration>) -> Duration {
    timeout.unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT)
}

fn redirect_to(redirect: &Redirect) -> RedirectTo {
    RedirectTo {
        scheme: redirect.scheme.clone(),
        hostname: redirect.hostname.clone(),
        port: redirect.port.map(RedirectPort::Number),
        path: redirect.path.as_ref().map(|path| match path {
            PathModifier::Full(path) => PathChange::Full(Arc::clone(path)),
            PathModifier::Prefix(path) => PathChange::Prefix(Arc::clone(path)),
        }),
        status: redirect.status,
    }
}

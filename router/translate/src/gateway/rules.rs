//! Translates effective rules: resolves references, and turns filters into policies.

mod references;
mod rule_path;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

pub use references::{Resolver, service_of};
use router_api::gateway_api::types::{BackendRef, Filter, GatewayRoute};
use router_api::redirect::{PathModifier, Redirect};
use router_model::kind::Kind;
use router_model::names::{PathMatch, RouteId};
use router_model::object::{ObjectKey, ObjectRef};
use router_table::header_modifier::HeaderModifier;
use router_table::host_pattern::HostPattern;
use router_table::policy::{Affinity, RoutePolicy};
use router_table::rule::{Action, BackendPolicy, Mirror, PathChange, RedirectPort, RedirectTo, RulePolicy};
use router_table::table::{Cluster, Derived, RareSettings, ResolvedRoute, RouteKind, WeightedService};
use rule_path::{Paths, RulePath};

use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::inclusion::types::{EffectiveRule, Level, RuleOutcome};
use crate::translator::RouterPorts;

/// Status code if no backend is usable.
const FAILED: u16 = 500;
/// Status code for requests to a slot that no child matches.
const NO_CHILD: u16 = 404;

/// The resolved routes of one router. Each effective rule is resolved once, however many hosts it serves. A TLSRoute
/// has a resolved route for each host, numbered in the order of hosts.
pub struct Routes<'a, 'r, 'e> {
    resolver: &'a Resolver<'r>,
    router: &'a RouterPorts,
    /// A rule has several outcomes if a slot is empty under one listener and not under another.
    rule_routes: HashMap<RulePath<'e>, Vec<RuleRoute<'e>>>,
    connections: HashMap<ObjectRef, u32>,
    /// Routes without endpoints, for listeners without TLSRoutes.
    closed_routes: HashMap<(ObjectRef, usize), Arc<ResolvedRoute>>,
}

/// The resolved route of an effective rule.
struct RuleRoute<'e> {
    outcome: RuleOutcome,
    /// See [`RouteId::part`].
    part: u32,
    /// The smallest of the rule's hosts on the router, in the order of [`HostPattern`].
    host: &'e HostPattern,
    /// Resolved at the first request for it.
    route: OnceLock<Arc<ResolvedRoute>>,
}

impl<'a, 'r, 'e> Routes<'a, 'r, 'e> {
    /// Numbers these rules. They must include all rules of their routes on the router, so that the ids of a route's
    /// parts depend only on that route and its parents.
    pub fn new(resolver: &'a Resolver<'r>, router: &'a RouterPorts, rules: &[&'e EffectiveRule]) -> Self {
        let (rule_routes, connections) = (HashMap::with_capacity(rules.len()), HashMap::new());
        let mut routes = Routes { resolver, router, rule_routes, connections, closed_routes: HashMap::new() };
        let mut paths = Paths::with_capacity(rules.len());
        rules.iter().for_each(|rule| routes.number(rule, &mut paths));
        routes
    }

    /// Numbers a rule: its position in the route, offset for each further path to that route. `paths` are those so far.
    fn number(&mut self, rule: &'e EffectiveRule, paths: &mut Paths<'e>) {
        let (Some(leaf), Some(least)) = (rule.leaf(), rule.hosts().iter().min()) else { return };
        let outcomes = self.rule_routes.entry(RulePath(&rule.levels)).or_insert_with(|| Vec::with_capacity(1));
        match outcomes.iter_mut().find(|known| known.outcome == rule.outcome) {
            Some(known) => known.host = known.host.min(least),
            None => {
                let nth = paths.number(&rule.levels, leaf, outcomes.len());
                let part = nth * leaf.route.rules.len().max(1) + leaf.rule;
                let part = u32::try_from(part).unwrap_or(u32::MAX);
                outcomes.push(RuleRoute { outcome: rule.outcome, part, host: least, route: OnceLock::new() });
            }
        }
    }

    /// The resolved route for a rule's requests.
    pub fn http(&self, rule: &EffectiveRule) -> Arc<ResolvedRoute> {
        let outcomes = self.rule_routes.get(&RulePath(&rule.levels)).into_iter().flatten();
        match outcomes.into_iter().find(|known| known.outcome == rule.outcome) {
            Some(RuleRoute { outcome: _, part, host, route }) => {
                Arc::clone(route.get_or_init(|| self.resolve(rule, *part, host)))
            }
            None => self.resolve(rule, 0, &HostPattern::Any),
        }
    }

    fn resolve(&self, rule: &EffectiveRule, part: u32, host: &HostPattern) -> Arc<ResolvedRoute> {
        let object = rule.leaf().map_or_else(|| placeholder(Kind::HttpRoute), Level::object);
        let (cluster, policy) = self.policy(rule);
        let traffic = &self.router.traffic;
        Arc::new(ResolvedRoute {
            id: id(&object, part),
            host: host.to_match(),
            kind: RouteKind::Http { path: PathMatch::any(), tls: None },
            cluster,
            rare: RareSettings { allow: None, tunnel_timeout: traffic.tunnel_timeout }.boxed(),
            proxy_protocol: false,
            forwarded: traffic.forwarded,
            request_work: true,
            is_plain: false,
            relay_only: false,
            policy: without_affinity(),
            rule: Some(policy.shared()),
            derived: Derived::default(),
        })
    }

    /// The resolved route for the connections of a host. BackendTLSPolicies do not apply to passthrough connections,
    /// which contain the client's own TLS.
    pub fn tcp(&mut self, rule: &EffectiveRule, host: &HostPattern, payload: BackendPayload) -> Arc<ResolvedRoute> {
        let cluster = match (rule.outcome, rule.leaf()) {
            (RuleOutcome::Serve, Some(leaf)) => self.cluster(leaf, payload),
            _ => Cluster::default(),
        };
        let object = rule.leaf().map(Level::object).unwrap_or_else(|| placeholder(Kind::TlsRoute));
        let next = self.connections.entry(object.clone()).or_default();
        let part = std::mem::replace(next, next.saturating_add(1));
        self.connection(id(&object, part), host, cluster)
    }

    /// A route without endpoints, for the hosts of a listener that no route serves: their connections are closed.
    pub fn closed_tcp(&mut self, gateway: &ObjectRef, listener: usize, hostname: &HostPattern) -> Arc<ResolvedRoute> {
        let key = (gateway.clone(), listener);
        if let Some(known) = self.closed_routes.get(&key) {
            return Arc::clone(known);
        }
        let part = u32::try_from(listener).unwrap_or(u32::MAX);
        let route = self.connection(id(gateway, part), hostname, Cluster::default());
        self.closed_routes.insert(key, Arc::clone(&route));
        route
    }

    fn connection(&self, id: RouteId, host: &HostPattern, cluster: Cluster) -> Arc<ResolvedRoute> {
        let traffic = &self.router.traffic;
        Arc::new(ResolvedRoute {
            id,
            host: host.to_match(),
            kind: RouteKind::Passthrough { redirect: false },
            cluster,
            rare: RareSettings { allow: None, tunnel_timeout: traffic.tunnel_timeout }.boxed(),
            proxy_protocol: false,
            forwarded: traffic.forwarded,
            request_work: false,
            is_plain: false,
            relay_only: false,
            policy: RoutePolicy::shared_default(),
            rule: None,
            derived: Derived::default(),
        })
    }

    /// The rule's backends of non-zero weight.
    fn cluster(&self, leaf: &Level, payload: BackendPayload) -> Cluster {
        let backends = leaf.rule().map_or(&[][..], |rule| &rule.backends);
        let shares = backends.iter().filter(|backend| backend.weight > 0);
        Cluster { services: shares.map(|backend| self.service(&leaf.route, backend, payload)).collect() }
    }

    fn service(&self, route: &GatewayRoute, backend: &BackendRef, payload: BackendPayload) -> WeightedService {
        let own = &route.meta.key.namespace;
        let mut policy = BackendPolicy {
            namespace: backend.object.namespace.clone().filter(|namespace| namespace != own),
            ..BackendPolicy::default()
        };
        for filter in &backend.filters {
            match filter {
                Filter::RequestHeaders(modifier) => policy.request_headers.push(modifier.clone()),
                Filter::ResponseHeaders(modifier) => policy.response_headers.push(modifier.clone()),
                // The reader has already reported it as unsupported; ignoring the filter would change the meaning of
                // the rule.
                _ => policy.failure = Some(FAILED),
            }
        }
        let mut key = None;
        match self.resolver.backend(route, &backend.object, backend.port, payload) {
            Ok(found) if payload == BackendPayload::Passthrough => key = Some(found.key),
            Ok(found) if !found.fails => (key, policy.tls) = (Some(found.key), found.tls),
            _ => policy.failure = Some(FAILED),
        }
        let BackendPolicy { namespace, failure, request_headers, response_headers, tls, balance: _, health_check: _ } =
            &policy;
        let is_plain = namespace.is_none()
            && failure.is_none()
            && request_headers.is_empty()
            && response_headers.is_empty()
            && tls.is_none();
        WeightedService {
            service: Arc::clone(&backend.object.name),
            port: backend.port,
            weight: backend.weight,
            key,
            policy: (!is_plain).then(|| Arc::new(policy)),
        }
    }

    fn policy(&self, rule: &EffectiveRule) -> (Cluster, RulePolicy) {
        let mut policy = RulePolicy {
            request_timeout: rule.request_timeout.filter(|time| *time != Duration::ZERO),
            backend_timeout: rule.backend_timeout.filter(|time| *time != Duration::ZERO),
            retry: rule.retry.clone(),
            ..RulePolicy::default()
        };
        let answer = |status| (Cluster::default(), RulePolicy { action: Action::Answer(status), ..policy.clone() });
        let leaf = match (rule.outcome, rule.leaf()) {
            (RuleOutcome::NoChild, _) => return answer(NO_CHILD),
            (RuleOutcome::NoBackend, _) | (_, None) => return answer(FAILED),
            (RuleOutcome::Serve, Some(leaf)) => leaf,
        };
        for authored in &rule.filters {
            self.filter(&authored.author, &authored.filter, &mut policy);
        }
        let mut cluster = Cluster::default();
        if policy.action == Action::Forward {
            cluster = self.cluster(leaf, BackendPayload::Content);
            let fails = |service: &WeightedService| service.policy.as_ref().is_some_and(|own| own.failure.is_some());
            if cluster.services.iter().all(fails) {
                policy.action = Action::Answer(FAILED);
            }
        }
        (cluster, policy)
    }

    fn filter(&self, author: &GatewayRoute, filter: &Filter, policy: &mut RulePolicy) {
        match filter {
            Filter::RequestHeaders(modifier) => policy.request_headers.push(HeaderModifier::clone(modifier)),
            Filter::ResponseHeaders(modifier) => policy.response_headers.push(HeaderModifier::clone(modifier)),
            // A failure takes precedence over a redirect.
            Filter::Redirect(redirect) if policy.action == Action::Forward => {
                policy.action = Action::Redirect(redirect_to(redirect));
            }
            Filter::Redirect(_) => {}
            Filter::Rewrite(rewrite) => {
                policy.rewrite_host = rewrite.hostname.clone().or(policy.rewrite_host.take());
                policy.rewrite_path = rewrite.path.as_ref().map(path_change).or(policy.rewrite_path.take());
            }
            Filter::Mirror(mirror) => {
                // An unresolved mirror is dropped; `ResolvedRefs` reports it.
                let found = self.resolver.backend(author, &mirror.object, mirror.port, BackendPayload::Content);
                if let Some(found) = found.ok().filter(|found| !found.fails) {
                    let own = &author.meta.key.namespace;
                    let namespace = mirror.object.namespace.clone().filter(|namespace| namespace != own);
                    let has_policy = namespace.is_some() || found.tls.is_some();
                    let backend = BackendPolicy { namespace, tls: found.tls, ..BackendPolicy::default() };
                    let service = WeightedService {
                        service: Arc::clone(&mirror.object.name),
                        port: mirror.port,
                        weight: 1,
                        key: Some(found.key),
                        policy: has_policy.then(|| Arc::new(backend)),
                    };
                    let cluster = Cluster { services: vec![service].into() };
                    policy.mirrors.push(Mirror { cluster, share: mirror.share });
                }
            }
            Filter::Cors(cors) => policy.cors = Some(Arc::new(cors.clone())),
            Filter::Extension(_) => policy.action = Action::Answer(FAILED),
        }
    }
}

impl Level {
    /// The route's reference.
    pub fn object(&self) -> ObjectRef {
        ObjectRef { kind: self.route.kind, key: self.route.meta.key.clone() }
    }
}

fn id(object: &ObjectRef, part: u32) -> RouteId {
    let ObjectKey { namespace, name } = object.key.clone();
    RouteId { namespace, name, kind: object.kind, part }
}

/// Placeholder route of a rule without levels, which cannot occur.
fn placeholder(kind: Kind) -> ObjectRef {
    ObjectRef { kind, key: ObjectKey::new("", "") }
}

fn redirect_to(redirect: &Redirect) -> RedirectTo {
    RedirectTo {
        scheme: redirect.scheme.clone(),
        hostname: redirect.hostname.clone(),
        port: redirect.port.map(RedirectPort::Number),
        path: redirect.path.as_ref().map(path_change),
        status: redirect.status,
    }
}

fn path_change(path: &PathModifier) -> PathChange {
    match path {
        PathModifier::Full(path) => PathChange::Full(path.clone()),
        PathModifier::Prefix(prefix) => PathChange::Prefix(prefix.clone()),
    }
}

/// The policy of all rules: session affinity disabled.
fn without_affinity() -> Arc<RoutePolicy> {
    static POLICY: LazyLock<Arc<RoutePolicy>> = LazyLock::new(|| {
        Arc::new(RoutePolicy { affinity: Affinity { disabled: true, ..Affinity::default() }, ..RoutePolicy::default() })
    });
    Arc::clone(&POLICY)
}

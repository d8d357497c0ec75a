//! Builds the virtual hosts of Gateways. On each port, the listener with the most specific hostname serves a host;
//! requests that match none of its rules get 404, even if a listener with a wider hostname has a match. So each host
//! lists all rules that can serve it, in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use router_api::gateway_api::types::GatewayRoute;
use router_model::certificate::Certificate;
use router_model::certificate::subject::covers;
use router_model::kind::Kind;
use router_model::object::{Meta, ObjectRef};
use router_model::parallel;
use router_table::host_pattern::HostPattern;
use router_table::matchers::{PathMatcher, RequestMatcher};
use router_table::path_form::PathForm;
use router_table::rule::{HostRules, HostRulesTls, Rule};
use router_table::table::ResolvedRoute;

use super::rules::{Resolver, Routes};
use crate::gateway::base::{GatewayBase, HostScope, ListenerAt};
use crate::gateway::gateway_state::GatewayState;
use crate::gateway::inclusion::order::Precedence;
use crate::gateway::inclusion::types::EffectiveRule;
use crate::gateway::listeners::placed_listener::{GatewayProtocol, PlacedListener};
use crate::gateway::listeners::ports::PortKind;
use crate::owned_age::OwnedAge;
use crate::translator::{HostClaim, RouterHost, RouterPorts};

/// All virtual hosts of Gateways.
#[derive(Debug)]
pub struct GatewayHosts {
    /// Each host of a router once.
    pub built: Vec<(RouterHost, Built)>,
    /// Notes on hosts for the statuses of routes, by route.
    pub notes: BTreeMap<ObjectRef, BTreeSet<String>>,
    base: Arc<GatewayBase>,
    /// The oldest route that claims a host, and its listener, by router, port and host: only of ports that Gateways
    /// share.
    claims: HashMap<(usize, PortKind), HashMap<HostPattern, (OwnedAge, ListenerAt)>>,
}

/// A virtual host of Gateway API.
#[derive(Debug)]
pub struct Built {
    /// The claim of the oldest object that claims the host, which owns the host rules.
    pub claim: Arc<HostClaim>,
    /// Rules for clear text and terminated TLS.
    pub host_rules: Box<HostRules>,
    /// Route of passthrough connections.
    pub passthrough: Option<Arc<ResolvedRoute>>,
}

/// A route attached to a listener, with effective rules there.
#[derive(Debug)]
pub struct AttachedRules<'m> {
    /// The listener.
    pub at: ListenerAt,
    /// The route.
    pub route: &'m GatewayRoute,
    /// Hosts that the route claims, besides those of the rules.
    pub hosts: &'m [HostPattern],
    /// Its rules and those of routes below it.
    pub rules: Vec<&'m EffectiveRule>,
    /// True if the rules of all their alternatives have been built.
    pub is_resolved: bool,
}

impl GatewayHosts {
    /// Builds the virtual hosts of all routers, or only those in `scope`. `attached_rules` must contain all rules of
    /// every pattern that covers a host of the scope.
    pub fn new(
        base: &Arc<GatewayBase>,
        attached_rules: &[AttachedRules<'_>],
        resolver: &Resolver<'_>,
        scope: Option<&HostScope>,
    ) -> GatewayHosts {
        let (built, notes, claims) = (Vec::new(), BTreeMap::new(), HashMap::new());
        let mut hosts = GatewayHosts { built, notes, base: Arc::clone(base), claims };
        let mut by_router: Vec<Vec<&AttachedRules<'_>>> = vec![Vec::new(); base.routers.len()];
        for one in attached_rules {
            let Some(of_router) = by_router.get_mut(base.router_index(one.at)) else { continue };
            hosts.claim(one);
            of_router.push(one);
        }
        for ((i, router), attached_rules) in base.routers.iter().enumerate().zip(by_router) {
            let selected: Option<BTreeSet<&HostPattern>> = scope.map(|scope| {
                scope.iter().filter(|(router_index, _)| *router_index == i).map(|(_, host)| host).collect()
            });
            if selected.as_ref().is_some_and(BTreeSet::is_empty) {
                continue;
            }
            let unresolved = attached_rules.iter().filter(|one| !one.is_resolved);
            let unresolved: Vec<_> = unresolved.flat_map(|one| &one.rules).copied().collect();
            let mut routes = Routes::new(resolver, router, &unresolved);
            let mut attached: BTreeMap<ListenerAt, Vec<&AttachedRules<'_>>> = BTreeMap::new();
            for one in attached_rules {
                attached.entry(one.at).or_default().push(one);
            }
            let listeners: Vec<ListenerAt> = match &selected {
                None => {
                    let all = base.listeners().filter(|(.., placed)| placed.router.as_ref() == Some(&router.name));
                    all.map(|(at, ..)| at).collect()
                }
                Some(selected) => {
                    let hostnames: BTreeSet<HostPattern> = selected.iter().flat_map(|host| host.and_wider()).collect();
                    let listeners_of =
                        |port_kind| hostnames.iter().filter_map(move |name| base.with_hostname(i, port_kind, name));
                    listeners_of(PortKind::Cleartext).chain(listeners_of(PortKind::Tls)).collect()
                }
            };
            for at in listeners {
                attached.entry(at).or_default();
            }
            let served_listeners: BTreeMap<ListenerAt, ServedListener<'_>> = attached
                .iter()
                .filter_map(|(at, rules)| {
                    let state = base.gateways.get(at.0)?;
                    Some((*at, ServedListener::new(*at, state, state.listeners.get(at.1)?, rules, router)?))
                })
                .collect();
            hosts.build((i, router), served_listeners, &mut routes, selected.as_ref());
        }
        hosts
    }

    /// Records the hosts that a route claims on its listener.
    fn claim(&mut self, one: &AttachedRules<'_>) {
        let router = self.base.router_index(one.at);
        let port_kind = self.base.listener(one.at).and_then(|placed| placed.protocol).map(GatewayProtocol::port_kind);
        let Some(port_kind) = port_kind.filter(|port_kind| self.base.is_shared(router, *port_kind)) else { return };
        let port_claims = self.claims.entry((router, port_kind)).or_default();
        let mut record = |hosts: &[HostPattern], meta: &Meta| {
            let age = OwnedAge::of(meta);
            for host in hosts.iter().filter(|host| **host != HostPattern::Any) {
                match port_claims.get(host) {
                    Some((known, _)) if *known <= age => {}
                    _ => drop(port_claims.insert(host.clone(), (age.clone(), one.at))),
                }
            }
        };
        record(one.hosts, &one.route.meta);
        for leaf in one.rules.iter().filter_map(|rule| rule.leaf()) {
            record(&leaf.hosts, &leaf.route.meta);
        }
    }

    /// The listener that serves a host on a port: the one with the most specific hostname. Exception: if a route of
    /// another Gateway claims exactly this host and is older than the Gateway of that listener, the route's listener
    /// serves.
    pub fn closest(&self, place: usize, port_kind: PortKind, host: &HostPattern) -> Option<ListenerAt> {
        let closest = self.base.covering(place, port_kind, host)?;
        let claim = self.claims.get(&(place, port_kind)).and_then(|claims| claims.get(host));
        let is_older = |age: &OwnedAge| self.base.ages.get(closest.0).is_some_and(|own| age.was_created_before(own));
        let older = claim.filter(|(age, at)| at.0 != closest.0 && is_older(age));
        Some(older.map_or(closest, |(_, at)| *at))
    }

    fn build(
        &mut self,
        (place, router): (usize, &RouterPorts),
        served_listeners: BTreeMap<ListenerAt, ServedListener<'_>>,
        routes: &mut Routes<'_, '_, '_>,
        selected: Option<&BTreeSet<&HostPattern>>,
    ) {
        let base = Arc::clone(&self.base);
        // A listener does not serve a route's host that another listener serves.
        let is_served = |at: &ListenerAt, served: &ServedListener<'_>, host: &HostPattern| {
            self.closest(place, served.protocol.port_kind(), host) == Some(*at)
        };
        let mut claimed_hosts: Vec<HostPattern> = served_listeners
            .iter()
            .flat_map(|(at, served)| {
                let own = served.claimants.keys().filter(|host| is_served(at, served, host));
                own.flat_map(|host| base.domains.narrowed(host))
            })
            .filter(|host| selected.is_none_or(|selected| selected.contains(host)))
            .collect();
        claimed_hosts.sort_unstable();
        claimed_hosts.dedup();
        let served = parallel::map_all(&claimed_hosts, |host| {
            [PortKind::Cleartext, PortKind::Tls].map(|port_kind| {
                let served = served_listeners.get(&self.closest(place, port_kind, host)?)?;
                Some((served, served.rules(host, routes)))
            })
        });
        // Hosts with equal rules share one list.
        let mut lists: HashMap<Vec<*const Rule>, Arc<[Arc<Rule>]>> = HashMap::with_capacity(claimed_hosts.len());
        self.built.reserve(claimed_hosts.len());
        for (host, served) in claimed_hosts.into_iter().zip(served) {
            let host_listeners = || served.iter().flatten().map(|(listener, _)| listener);
            let oldest = host_listeners()
                .filter_map(|listener| listener.claimants.get(&host).copied())
                .min_by_key(|one| one.0.age());
            // No object claims exactly the allowed part of a wider host.
            let owner = oldest.or_else(|| host_listeners().find_map(|served| served.owner_of(&host)));
            let (mut host_rules, mut passthrough) = (None::<Box<HostRules>>, None);
            for (served, rules) in served.into_iter().flatten() {
                let same: Vec<_> = rules.iter().map(Arc::as_ptr).collect();
                let rules = Arc::clone(lists.entry(same).or_insert_with(|| rules.into()));
                let host_rules = host_rules.get_or_insert_with(|| {
                    Box::new(HostRules {
                        owner: served.gateway.clone(),
                        listener: Arc::clone(&served.name),
                        cleartext_listener: None,
                        cleartext: None,
                        tls: None,
                    })
                });
                // Names the listener in the 421 message for TLS clients of another listener's host.
                host_rules.listener = Arc::clone(&served.name);
                match served.protocol {
                    GatewayProtocol::Http => {
                        host_rules.cleartext_listener = Some(Arc::clone(&served.name));
                        host_rules.cleartext = Some(rules);
                    }
                    GatewayProtocol::Https => host_rules.tls = served.tls(&host, rules, None),
                    GatewayProtocol::TlsTerminate => {
                        let tcp = served.tcp_route(&host, routes, &mut self.notes);
                        host_rules.tls = served.tls(&host, rules, Some(tcp));
                    }
                    GatewayProtocol::TlsPassthrough => {
                        passthrough = Some(served.tcp_route(&host, routes, &mut self.notes));
                    }
                }
            }
            let (Some(mut host_rules), Some((meta, kind))) = (host_rules, owner) else { continue };
            host_rules.owner = ObjectRef { kind, key: meta.key.clone() };
            let claim = HostClaim { kind, age: OwnedAge::of(meta) };
            let built = Built { claim: Arc::new(claim), host_rules, passthrough };
            self.built.push(((router.name.clone(), host.to_match()), built));
        }
    }
}

/// One listener with its attached rules.
struct ServedListener<'m> {
    at: ListenerAt,
    /// E.g. `Gateway shop/public#web`.
    name: Arc<str>,
    gateway: ObjectRef,
    hostname: &'m HostPattern,
    protocol: GatewayProtocol,
    certificates: &'m [Certificate],
    path_form: PathForm,
    precedence: Precedence<'m>,
    /// The oldest object that claims each host.
    claimants: HashMap<&'m HostPattern, (&'m Meta, Kind)>,
}

impl<'m> ServedListener<'m> {
    fn new(
        at: ListenerAt,
        state: &'m GatewayState,
        placed: &'m PlacedListener,
        attached_rules: &[&AttachedRules<'m>],
        router: &RouterPorts,
    ) -> Option<Self> {
        let mut claimants: HashMap<&HostPattern, (&Meta, Kind)> = HashMap::with_capacity(attached_rules.len());
        let mut claim = |host: &'m HostPattern, meta: &'m Meta, kind: Kind| {
            let owner = claimants.entry(host).or_insert((meta, kind));
            if meta.age() < owner.0.age() {
                *owner = (meta, kind);
            }
        };
        claim(&placed.listener.hostname, &state.gateway.meta, Kind::Gateway);
        for one in attached_rules {
            one.hosts.iter().for_each(|host| claim(host, &one.route.meta, one.route.kind));
            for leaf in one.rules.iter().filter_map(|rule| rule.leaf()) {
                leaf.hosts.iter().for_each(|host| claim(host, &leaf.route.meta, leaf.route.kind));
            }
        }
        let precedence = Precedence::new(attached_rules.iter().flat_map(|one| &one.rules).copied());
        Some(ServedListener {
            at,
            hostname: &placed.listener.hostname,
            name: state.parent(&placed.listener.name).into(),
            gateway: ObjectRef { kind: Kind::Gateway, key: state.gateway.meta.key.clone() },
            protocol: placed.protocol?,
            certificates: &placed.certificates,
            path_form: state.gateway.paths.unwrap_or(router.traffic.paths).usual(),
            precedence,
            claimants,
        })
    }

    /// The owner of the narrowest host that covers this one.
    fn owner_of(&self, host: &HostPattern) -> Option<(&'m Meta, Kind)> {
        host.and_wider().iter().find_map(|wider| self.claimants.get(wider)).copied()
    }

    /// The rules that serve a host, in order; none for a protocol without HTTP.
    fn rules(&self, host: &HostPattern, routes: &Routes<'_, '_, '_>) -> Vec<Arc<Rule>> {
        let mut rules = Vec::new();
        if !matches!(self.protocol, GatewayProtocol::Http | GatewayProtocol::Https) {
            return rules;
        }
        for (rule, alternative) in self.precedence.rules_for(host) {
            let built = alternative.built.get_or_init(|| {
                Arc::new(Rule {
                    matcher: alternative.matcher.clone(),
                    path_form: self.path_form,
                    prefix: Arc::clone(&alternative.prefix),
                    route: routes.http(rule),
                    origin: rule.origin(&self.name).into(),
                })
            });
            rules.push(Arc::clone(built));
            // Rules after one that matches every request are unreachable.
            if matches_all(&alternative.matcher) {
                break;
            }
        }
        rules
    }

    /// TLS settings of a host; `None` if the listener has no certificate.
    fn tls(
        &self,
        host: &HostPattern,
        rules: Arc<[Arc<Rule>]>,
        tcp: Option<Arc<ResolvedRoute>>,
    ) -> Option<HostRulesTls> {
        let mut certificates = self.certificates.to_vec();
        let name = match host {
            HostPattern::Exact(name) => Some(name.to_string()),
            HostPattern::Suffix(domain) => Some(format!("any.{domain}")),
            HostPattern::Any => None,
        };
        // Certificates that cover the host come first.
        if let Some(name) = name.filter(|_| certificates.len() > 1) {
            certificates.sort_by_cached_key(|pair| !covers(pair, &name));
        }
        (!certificates.is_empty()).then_some(HostRulesTls {
            shown_by: self.gateway.clone(),
            certificates,
            minimum: None,
            rules,
            tcp,
        })
    }

    /// The route of a host's connections: that of the first TLSRoute, or one without endpoints. Other TLSRoutes of
    /// exactly this host get a note.
    fn tcp_route(
        &self,
        host: &HostPattern,
        routes: &mut Routes<'_, '_, '_>,
        notes: &mut BTreeMap<ObjectRef, BTreeSet<String>>,
    ) -> Arc<ResolvedRoute> {
        let rules = self.precedence.rules_for(host);
        let Some(((first, _), rest)) = rules.split_first() else {
            return routes.closed_tcp(&self.gateway, self.at.1, self.hostname);
        };
        let object_of = |rule: &EffectiveRule| rule.leaf().map(|leaf| leaf.object());
        for (rule, _) in rest.iter().filter(|(rule, _)| rule.hosts().contains(host)) {
            let loser = object_of(rule).filter(|object| object_of(first).as_ref() != Some(object));
            if let Some(object) = loser {
                let note = format!("connections for {host} go to another {}, which takes precedence", object.kind);
                notes.entry(object).or_default().insert(note);
            }
        }
        routes.tcp(first, host, self.protocol.payload())
    }
}

fn matches_all(matcher: &RequestMatcher) -> bool {
    let matches_all_paths = matches!(&matcher.path, PathMatcher::Prefix(prefix) if **prefix == *"/");
    matches_all_paths && matcher.method.is_none() && matcher.headers.is_empty() && matcher.query.is_empty()
}

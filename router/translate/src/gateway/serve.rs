//! Virtual hosts of Gateways. On each port, the listener with the most specific hostname serves a host; requests that
//! match none of its rules get 404, even if a listener with a wider hostname has a match. So each host lists all rules
//! that can serve it, in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use router_model::certificate::Certificate;
use router_model::certificate::subject::covers;
use router_model::kind::Kind;
use router_model::names::{HostMatch, RouterName};
use router_model::object::{Meta, ObjectRef};
use router_model::parallel;
use router_table::host_pattern::HostPattern;
use router_table::matchers::{PathMatcher, RequestMatcher};
use router_table::path_form::PathForm;
use router_table::rule::{HostRules, HostRulesTls, Rule};
use router_table::table::ResolvedRoute;

use super::rules::{Resolver, Routes};
use crate::gateway::base::{Base, ListenerAt, Scope};
use crate::gateway::gateway_state::GatewayState;
use crate::gateway::inclusion::order::Precedence;
use crate::gateway::inclusion::types::{EffectiveRule, RootRoute};
use crate::gateway::listeners::evaluated::{GatewayProtocol, Placed};
use crate::gateway::listeners::ports::PortKind;
use crate::owned_age::OwnedAge;
use crate::translator::RouterPorts;

/// All virtual hosts of Gateways.
#[derive(Debug)]
pub struct GatewayHosts {
    /// By router and host.
    pub built: BTreeMap<(RouterName, HostMatch), Built>,
    /// Notes on hosts for the statuses of routes, by route.
    pub notes: BTreeMap<ObjectRef, BTreeSet<String>>,
    base: Arc<Base>,
    /// The oldest route that claims a host, and its listener, by place, port and host: only of ports that Gateways share.
    claims: HashMap<(usize, PortKind), HashMap<HostPattern, (OwnedAge, ListenerAt)>>,
}

/// A virtual host, as Gateways define it.
#[derive(Debug)]
pub struct Built {
    /// Age of the oldest object that claims the host; that object owns the host rules.
    pub age: OwnedAge,
    /// Rules for clear text and terminated TLS.
    pub site: HostRules,
    /// Route of passthrough connections.
    pub passthrough: Option<Arc<ResolvedRoute>>,
}

/// A route attached to a listener, with its effective rules there.
#[derive(Clone, Copy, Debug)]
pub struct AttachedRules<'m> {
    /// The listener.
    pub at: ListenerAt,
    /// The route.
    pub root_route: &'m RootRoute<'m>,
    /// Its rules.
    pub rules: &'m [EffectiveRule],
}

impl GatewayHosts {
    /// Builds the virtual hosts of all routers, or those in `scope` alone. `attached_rules` must have all rules of every
    /// pattern that covers a host of the scope.
    pub fn new(
        base: &Arc<Base>,
        attached_rules: &[AttachedRules<'_>],
        resolver: &Resolver<'_>,
        scope: Option<&Scope>,
    ) -> GatewayHosts {
        let (built, notes, claims) = (BTreeMap::new(), BTreeMap::new(), HashMap::new());
        let mut hosts = GatewayHosts { built, notes, base: Arc::clone(base), claims };
        let mut by_router: HashMap<&RouterName, BTreeMap<ListenerAt, Vec<AttachedRules<'_>>>> = HashMap::new();
        for one in attached_rules {
            let Some(router) = base.listener(one.at).and_then(|placed| placed.router.as_ref()) else { continue };
            hosts.claim(one);
            by_router.entry(router).or_default().entry(one.at).or_default().push(*one);
        }
        for (i, router) in base.routers.iter().enumerate() {
            let wanted: Option<BTreeSet<&HostPattern>> =
                scope.map(|scope| scope.iter().filter(|(place, _)| *place == i).map(|(_, host)| host).collect());
            if wanted.as_ref().is_some_and(BTreeSet::is_empty) {
                continue;
            }
            let mut attached = by_router.remove(&router.name).unwrap_or_default();
            let of_router = attached_rules
                .iter()
                .filter(|one| base.listener(one.at).is_some_and(|placed| placed.router.as_ref() == Some(&router.name)));
            let mut routes = Routes::new(resolver, router, of_router.flat_map(|one| one.rules));
            let listeners: Vec<ListenerAt> = match &wanted {
                None => {
                    let all = base.listeners().filter(|(.., placed)| placed.router.as_ref() == Some(&router.name));
                    all.map(|(at, ..)| at).collect()
                }
                Some(wanted) => {
                    let hostnames: BTreeSet<HostPattern> = wanted.iter().flat_map(|host| host.and_wider()).collect();
                    let of_side = |side| hostnames.iter().filter_map(move |name| base.with_hostname(i, side, name));
                    of_side(PortKind::Cleartext).chain(of_side(PortKind::Tls)).collect()
                }
            };
            for at in listeners {
                attached.entry(at).or_default();
            }
            let servings: BTreeMap<ListenerAt, Serving<'_>> = attached
                .iter()
                .filter_map(|(at, rules)| {
                    let state = base.gateways.get(at.0)?;
                    Some((*at, Serving::new(*at, state, state.listeners.get(at.1)?, rules, router)?))
                })
                .collect();
            hosts.build((i, router), servings, &mut routes, wanted.as_ref());
        }
        hosts
    }

    /// Records the hosts that a route claims on its listener.
    fn claim(&mut self, one: &AttachedRules<'_>) {
        let place = self.base.place(one.at);
        let side = self.base.listener(one.at).and_then(|placed| placed.protocol).map(GatewayProtocol::side);
        let Some(side) = side.filter(|side| self.base.is_shared(place, *side)) else { return };
        let of_port = self.claims.entry((place, side)).or_default();
        let mut note = |hosts: &[HostPattern], meta: &Meta| {
            let age = OwnedAge::of(meta);
            for host in hosts.iter().filter(|host| **host != HostPattern::Any) {
                match of_port.get(host) {
                    Some((known, _)) if *known <= age => {}
                    _ => drop(of_port.insert(host.clone(), (age.clone(), one.at))),
                }
            }
        };
        note(one.root_route.hosts, &one.root_route.route.meta);
        for leaf in one.rules.iter().filter_map(EffectiveRule::leaf) {
            note(&leaf.hosts, &leaf.route.meta);
        }
    }

    /// The listener that serves a host on a port: the one with the most specific hostname. Exception: a Gateway does
    /// not take a host from a route of another Gateway that has claimed exactly this host since before this Gateway was
    /// created.
    pub fn closest(&self, place: usize, side: PortKind, host: &HostPattern) -> Option<ListenerAt> {
        let closest = self.base.covering(place, side, host)?;
        let claim = self.claims.get(&(place, side)).and_then(|claims| claims.get(host));
        let is_older = |age: &OwnedAge| self.base.ages.get(closest.0).is_some_and(|own| age.was_there_before(own));
        let older = claim.filter(|(age, at)| at.0 != closest.0 && is_older(age));
        Some(older.map_or(closest, |(_, at)| *at))
    }

    fn build(
        &mut self,
        (place, router): (usize, &RouterPorts),
        servings: BTreeMap<ListenerAt, Serving<'_>>,
        routes: &mut Routes<'_, '_>,
        wanted: Option<&BTreeSet<&HostPattern>>,
    ) {
        let base = Arc::clone(&self.base);
        // A listener does not serve a route's host that another listener serves.
        let is_served = |at: &ListenerAt, serving: &Serving<'_>, host: &HostPattern| {
            self.closest(place, serving.protocol.side(), host) == Some(*at)
        };
        let claimed_hosts: BTreeSet<HostPattern> = servings
            .iter()
            .flat_map(|(at, serving)| {
                let own = serving.claimants.keys().filter(|host| is_served(at, serving, host));
                own.flat_map(|host| base.domains.narrowed(host))
            })
            .filter(|host| wanted.is_none_or(|wanted| wanted.contains(host)))
            .collect();
        let claimed_hosts: Vec<HostPattern> = claimed_hosts.into_iter().collect();
        let served = parallel::map_all(&claimed_hosts, |host| {
            let sides = [PortKind::Cleartext, PortKind::Tls].into_iter();
            let servings = sides.filter_map(|side| servings.get(&self.closest(place, side, host)?));
            servings.map(|serving| (serving, serving.rules(host, routes))).collect::<Vec<_>>()
        });
        // Hosts with equal rules share one list.
        let mut lists: HashMap<Vec<*const Rule>, Arc<[Arc<Rule>]>> = HashMap::new();
        for (host, served) in claimed_hosts.into_iter().zip(served) {
            let of_sides = || served.iter().map(|(serving, _)| serving);
            let oldest =
                of_sides().filter_map(|serving| serving.claimants.get(&host).copied()).min_by_key(|one| one.0.age());
            // No object claims exactly the allowed part of a wider host.
            let owner = oldest.or_else(|| of_sides().find_map(|serving| serving.holder(&host)));
            let (mut site, mut passthrough) = (None::<HostRules>, None);
            for (serving, rules) in served {
                let same: Vec<_> = rules.iter().map(Arc::as_ptr).collect();
                let rules = Arc::clone(lists.entry(same).or_insert_with(|| rules.into()));
                let site = site.get_or_insert_with(|| HostRules {
                    owner: serving.gateway.clone(),
                    listener: Arc::clone(&serving.name),
                    cleartext_listener: None,
                    cleartext: None,
                    tls: None,
                });
                // Names the listener in the 421 message for TLS clients of another listener's host.
                site.listener = Arc::clone(&serving.name);
                match serving.protocol {
                    GatewayProtocol::Http => {
                        site.cleartext_listener = Some(Arc::clone(&serving.name));
                        site.cleartext = Some(rules);
                    }
                    GatewayProtocol::Https => site.tls = serving.tls(&host, rules, None),
                    GatewayProtocol::TlsTerminate => {
                        let tcp = serving.connections(&host, routes, &mut self.notes);
                        site.tls = serving.tls(&host, rules, Some(tcp));
                    }
                    GatewayProtocol::TlsPassthrough => {
                        passthrough = Some(serving.connections(&host, routes, &mut self.notes));
                    }
                }
            }
            let (Some(mut site), Some((meta, kind))) = (site, owner) else { continue };
            site.owner = ObjectRef { kind, key: meta.key.clone() };
            let age = OwnedAge::of(meta);
            self.built.insert((router.name.clone(), host.to_match()), Built { age, site, passthrough });
        }
    }
}

/// One listener with its attached rules.
struct Serving<'m> {
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
    /// Rules made so far, by number of the alternative.
    made: Vec<OnceLock<Arc<Rule>>>,
}

impl<'m> Serving<'m> {
    fn new(
        at: ListenerAt,
        state: &'m GatewayState,
        placed: &'m Placed,
        attached_rules: &[AttachedRules<'m>],
        router: &RouterPorts,
    ) -> Option<Self> {
        let mut claimants: HashMap<&HostPattern, (&Meta, Kind)> = HashMap::new();
        let mut claim = |host: &'m HostPattern, meta: &'m Meta, kind: Kind| {
            let holder = claimants.entry(host).or_insert((meta, kind));
            if meta.age() < holder.0.age() {
                *holder = (meta, kind);
            }
        };
        claim(&placed.listener.hostname, &state.gateway.meta, Kind::Gateway);
        for one in attached_rules {
            one.root_route
                .hosts
                .iter()
                .for_each(|host| claim(host, &one.root_route.route.meta, one.root_route.route.kind));
            for leaf in one.rules.iter().filter_map(EffectiveRule::leaf) {
                leaf.hosts.iter().for_each(|host| claim(host, &leaf.route.meta, leaf.route.kind));
            }
        }
        let precedence = Precedence::new(attached_rules.iter().flat_map(|one| one.rules));
        Some(Serving {
            at,
            hostname: &placed.listener.hostname,
            name: state.parent(&placed.listener.name).into(),
            gateway: ObjectRef { kind: Kind::Gateway, key: state.gateway.meta.key.clone() },
            protocol: placed.protocol?,
            certificates: &placed.certificates,
            path_form: state.gateway.paths.unwrap_or(router.traffic.paths).usual(),
            made: (0..precedence.alternatives()).map(|_| OnceLock::new()).collect(),
            precedence,
            claimants,
        })
    }

    /// The owner of the narrowest host that covers this one.
    fn holder(&self, host: &HostPattern) -> Option<(&'m Meta, Kind)> {
        host.and_wider().iter().find_map(|wider| self.claimants.get(wider)).copied()
    }

    /// The rules that serve a host, in order; none for a protocol without HTTP.
    fn rules(&self, host: &HostPattern, routes: &Routes<'_, '_>) -> Vec<Arc<Rule>> {
        let mut rules = Vec::new();
        if !matches!(self.protocol, GatewayProtocol::Http | GatewayProtocol::Https) {
            return rules;
        }
        for (i, rule, alternative) in self.precedence.serving(host) {
            let Some(made) = self.made.get(i) else { continue };
            let made = made.get_or_init(|| {
                Arc::new(Rule {
                    matcher: alternative.matcher.clone(),
                    path_form: self.path_form,
                    prefix: Arc::clone(&alternative.prefix),
                    route: routes.http(rule),
                    origin: format!("{} ▸ {}", self.name, rule.origin()).into(),
                })
            });
            rules.push(Arc::clone(made));
            // Rules after one that matches every request are unreachable.
            if takes_all(&alternative.matcher) {
                break;
            }
        }
        rules
    }

    /// TLS settings of a host; `None` without a certificate.
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

    /// The route of a host's connections: the first TLSRoute, or one without endpoints. Other TLSRoutes of exactly this
    /// host get a note.
    fn connections(
        &self,
        host: &HostPattern,
        routes: &mut Routes<'_, '_>,
        notes: &mut BTreeMap<ObjectRef, BTreeSet<String>>,
    ) -> Arc<ResolvedRoute> {
        let serving = self.precedence.serving(host);
        let Some(((_, first, _), rest)) = serving.split_first() else {
            return routes.no_tcp(&self.gateway, self.at.1, self.hostname);
        };
        let object_of = |rule: &EffectiveRule| rule.leaf().map(|leaf| leaf.object());
        for (_, rule, _) in rest.iter().filter(|(_, rule, _)| rule.hosts().contains(host)) {
            let loser = object_of(rule).filter(|object| object_of(first).as_ref() != Some(object));
            if let Some(object) = loser {
                let note = format!("connections for {host} go to another {}, which takes precedence", object.kind);
                notes.entry(object).or_default().insert(note);
            }
        }
        routes.tcp(first, host, self.protocol.carried())
    }
}

fn takes_all(matcher: &RequestMatcher) -> bool {
    let takes_all_paths = matches!(&matcher.path, PathMatcher::Prefix(prefix) if **prefix == *"/");
    takes_all_paths && matcher.method.is_none() && matcher.headers.is_empty() && matcher.query.is_empty()
}

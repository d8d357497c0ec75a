//! What choosing needs to know of a route, worked out once per version of it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use http::{HeaderMap, HeaderValue};
use router_core::policy::{Balance, RoutePolicy, SourceLimits};
use router_core::table::{Cluster, Endpoint, ResolvedRoute, ServiceEndpoints};

use super::affinity::{Cookie, Tag};
use super::choose::{Target, score};
use super::occupancy::{Line, Occupancy};
use super::turns::{Turn, Turns, is_within};
use crate::proxy::counters::Totals;
use crate::proxy::limits::{Sources, TooMany, Visit};

/// What is counted for a route, and outlives its versions.
#[derive(Debug, Default)]
pub struct RouteState {
    /// How many choices were made in turn.
    pub turn: AtomicU32,
    /// How many times it was asked which service's share a connection or request is.
    pub shares: AtomicU32,
    /// Those who wait for any endpoint.
    pub line: Arc<Line>,
    /// What its clients do, if they have limits.
    sources: OnceLock<Arc<Sources>>,
    occupancies: Mutex<HashMap<SocketAddr, Arc<Occupancy>>>,
}

impl RouteState {
    /// Those of these endpoints. Those of others are kept as long as they are in use: an endpoint may come back.
    fn occupancies<'e>(&self, endpoints: impl Iterator<Item = &'e Endpoint>) -> HashMap<SocketAddr, Arc<Occupancy>> {
        let mut known = self.occupancies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut these = HashMap::new();
        for Endpoint { address, .. } in endpoints {
            let new = || Arc::new(Occupancy::new(Arc::clone(&self.line)));
            these.insert(*address, Arc::clone(known.entry(*address).or_insert_with(new)));
        }
        known.retain(|address, occupancy| these.contains_key(address) || occupancy.active() > 0);
        these
    }
}

/// One endpoint of one service of a route.
#[derive(Debug)]
pub struct Member {
    service: usize,
    endpoint: usize,
    /// Share of this endpoint; 0: only for clients whose cookie names it.
    pub weight: u32,
    /// What stands for it in a cookie; also what source balancing hashes.
    pub tag: Tag,
    /// What it has to do, if the route asks for counting.
    pub occupancy: Option<Arc<Occupancy>>,
    cookie: OnceLock<Option<HeaderValue>>,
}

/// Members that stand beside each other and have the same weight: those of one service.
#[derive(Debug)]
pub struct Span {
    first: usize,
    members: u32,
    weight: u32,
    /// The service's weight.
    share: u32,
    /// See [`BackendPolicy::failure`](router_core::rule::BackendPolicy::failure).
    pub failure: Option<u16>,
}

impl Span {
    /// Whether it has any members.
    pub fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Whether this member is one of its own.
    pub fn has(&self, member: usize) -> bool {
        member.checked_sub(self.first).is_some_and(|at| at < self.members as usize)
    }
}

/// Whose share a connection or request of a rule is.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The service, as a number.
    service: usize,
    /// The member whose turn it is, where that is the rule.
    pub member: Option<usize>,
}

/// How a route's endpoints are chosen.
#[derive(Debug)]
pub struct Plan {
    /// All endpoints, service by service.
    pub members: Box<[Member]>,
    /// The rule.
    pub balance: Balance,
    /// There if the rule or a limit needs it.
    pub state: Option<Arc<RouteState>>,
    spans: Box<[Span]>,
    /// Sum of all weights: how many tickets there are.
    total: u32,
    /// Empty unless the rule needs it.
    pub turns: Turns,
    /// Services keep their shares, whatever becomes of their endpoints: a rule's, and there are several or it fails.
    pub by_share: bool,
    /// Whether some service has its own work on requests' headers.
    pub modifies_requests: bool,
    /// How the endpoints of mirrors are chosen.
    pub mirrors: Box<[Mirrored]>,
    cookie: Option<Cookie>,
    /// There if clients have limits.
    sources: Option<(Arc<Sources>, SourceLimits)>,
    /// What the route has served on its router, as soon as it is known.
    totals: OnceLock<Arc<Totals>>,
}

/// How copies of a rule's requests go to one of its mirrors.
#[derive(Debug)]
pub struct Mirrored {
    /// Which endpoint.
    pub plan: Plan,
    /// Of how many requests: numerator and denominator.
    share: (u32, u32),
    turn: AtomicU32,
}

impl Mirrored {
    /// Whether the next request is one that is copied. They are spread evenly: of N in a row, no more than
    /// 3 + log₂ N too many or too few are.
    pub fn is_next(&self) -> bool {
        let (of, all) = self.share;
        of >= all || is_within(self.turn.fetch_add(1, Ordering::Relaxed), of, all)
    }
}

impl Plan {
    /// The plan of a route; `state` gives what outlives it.
    pub fn new(route: &ResolvedRoute, state: impl FnOnce() -> Arc<RouteState>) -> Self {
        let mirrors = route.rule.iter().flat_map(|rule| &rule.mirrors).map(|mirror| Mirrored {
            plan: Plan::of(route, &mirror.cluster, &RoutePolicy::default(), Arc::default),
            share: mirror.share,
            turn: AtomicU32::new(0),
        });
        let plan = Plan::of(route, &route.cluster, &route.policy, state);
        Plan { mirrors: mirrors.collect(), cookie: Cookie::of(route), ..plan }
    }

    fn of(
        route: &ResolvedRoute,
        cluster: &Cluster,
        policy: &RoutePolicy,
        state: impl FnOnce() -> Arc<RouteState>,
    ) -> Self {
        let services = &cluster.services;
        let weights = cluster.endpoint_weights();
        let usable = |service: &ServiceEndpoints| if service.failure().is_some() { 0 } else { service.endpoints.len() };

        let shares = || services.iter().filter(|service| service.weight > 0);
        let by_share = route.is_of_rule() && (shares().count() > 1 || shares().any(|s| s.failure().is_some()));
        let active = shares().filter(|service| service.is_usable()).count();
        let default = if active > 1 || by_share { Balance::RoundRobin } else { Balance::Random };
        let balance = policy.balance.unwrap_or(default);
        let limit = policy.endpoint_connections;
        let is_counted = limit.is_some() || balance == Balance::LeastConnections;
        let limits = policy.source_limits;
        let is_limited = limits != SourceLimits::default();
        let has_turns = by_share || balance == Balance::RoundRobin;
        let state = (is_counted || is_limited || has_turns).then(state);
        let sources = state.as_ref().filter(|_| is_limited).map(|state| state.sources.get_or_init(Arc::default));
        let sources = sources.map(|sources| (Arc::clone(sources), limits));
        let occupancies = match &state {
            Some(state) if is_counted => {
                state.occupancies(services.iter().flat_map(|service| service.endpoints.iter()))
            }
            _ => HashMap::new(),
        };
        occupancies.values().for_each(|occupancy| occupancy.set_limit(limit));

        let (mut members, mut spans) = (Vec::new(), Vec::new());
        for (at, (service, weight)) in services.iter().zip(weights).enumerate() {
            let endpoints = service.endpoints.iter().take(usable(service));
            let (share, failure) = (service.weight, service.failure());
            spans.push(Span { first: members.len(), members: endpoints.len() as u32, weight, share, failure });
            members.extend(endpoints.enumerate().map(|(index, endpoint)| Member {
                service: at,
                endpoint: index,
                weight,
                tag: Tag::of(&route.id, endpoint.address),
                occupancy: occupancies.get(&endpoint.address).cloned(),
                cookie: OnceLock::new(),
            }));
        }
        // A Route's service without endpoints has no turn: the others have its share.
        let of_turns = |span: &Span| if by_share || !span.is_empty() { span.share } else { 0 };
        let turns = || Turns::new(spans.iter().map(|span| (of_turns(span), span.members as usize)));
        let turns = has_turns.then(turns).unwrap_or_default();
        let total = spans.iter().map(|span| span.members * span.weight).sum();
        let modifies =
            |service: &ServiceEndpoints| service.policy.as_ref().is_some_and(|p| !p.request_headers.is_empty());
        Plan {
            members: members.into(),
            balance,
            state,
            spans: spans.into(),
            total,
            turns,
            by_share,
            modifies_requests: services.iter().any(modifies),
            mirrors: Box::default(),
            cookie: None,
            sources,
            totals: OnceLock::new(),
        }
    }

    /// Whose share the next connection or request of this client is; `None` where endpoints alone are chosen between.
    pub fn next_share(&self, client: IpAddr) -> Option<Share> {
        if !self.by_share {
            return None;
        }
        if self.balance == Balance::Source {
            let spans = self.spans.iter().enumerate().filter(|(_, span)| span.share > 0);
            let scored = spans.map(|(index, span)| (index, score(client, Tag(index as u128), span.share)));
            let (service, _) = scored.max_by(|a, b| a.1.total_cmp(&b.1))?;
            return Some(Share { service, member: None });
        }
        let turn = self.state.as_ref()?.shares.fetch_add(1, Ordering::Relaxed);
        let Turn { service, endpoint } = self.turns.holder(turn)?;
        Some(Share { service, member: endpoint.filter(|_| self.balance == Balance::RoundRobin) })
    }

    /// The service of a share.
    pub fn span(&self, share: Share) -> Option<&Span> {
        self.spans.get(share.service)
    }

    /// What the route has served; `find` is asked for it once.
    pub fn totals(&self, find: impl FnOnce() -> Arc<Totals>) -> &Totals {
        self.totals.get_or_init(find)
    }

    /// The plan of nothing.
    pub fn none() -> Self {
        Plan {
            members: Box::default(),
            balance: Balance::Random,
            state: None,
            spans: Box::default(),
            total: 0,
            turns: Turns::default(),
            by_share: false,
            modifies_requests: false,
            mirrors: Box::default(),
            cookie: None,
            sources: None,
            totals: OnceLock::new(),
        }
    }

    /// Lets a client's connection or request through, if it keeps to the route's limits; what is returned is to be kept
    /// as long as it is under way.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn admit(&self, client: IpAddr) -> Result<Option<Visit>, TooMany> {
        match &self.sources {
            Some((sources, limits)) => sources.admit(limits, client, Instant::now()),
            None => Ok(None),
        }
    }

    /// How many tickets there are; each member has as many as its weight.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// The member that a ticket belongs to.
    pub fn holder(&self, mut ticket: u32) -> Option<usize> {
        for span in &self.spans {
            let tickets = span.members * span.weight;
            if ticket < tickets {
                return Some(span.first + (ticket / span.weight) as usize);
            }
            ticket -= tickets;
        }
        None
    }

    /// Takes the route's cookie out of a request: the endpoint that the client should stay with.
    pub fn take_cookie(&self, headers: &mut HeaderMap) -> Option<Tag> {
        self.cookie.as_ref().and_then(|cookie| cookie.take(headers))
    }

    /// The cookie that makes a client stay with a member; `None` for a route without affinity.
    pub fn cookie_for(&self, member: &Member) -> Option<HeaderValue> {
        let cookie = self.cookie.as_ref()?;
        member.cookie.get_or_init(|| cookie.value(member.tag)).clone()
    }

    /// Puts the cookie of [`Plan::cookie_for`] into a response, when one is due.
    pub fn set_cookie(&self, headers: &mut HeaderMap, value: Option<HeaderValue>) {
        if let Some(cookie) = &self.cookie {
            cookie.set(headers, value);
        }
    }
}

impl Member {
    /// The service that it belongs to, and its endpoint, in the cluster that the plan was made from.
    pub fn of<'r>(&self, cluster: &'r Cluster) -> Option<Target<'r>> {
        let service = cluster.services.get(self.service)?;
        let endpoint = service.endpoints.get(self.endpoint)?;
        Some(Target { service: &service.service, endpoint, policy: service.policy.as_ref() })
    }
}

#[cfg(test)]
mod tests;

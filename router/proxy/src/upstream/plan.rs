//! What choosing needs to know of a route, worked out once per version of it and of its endpoints.

mod extra;

use std::cell::LazyCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use http::{HeaderMap, HeaderValue};
use router_access_log::Totals;
use router_model::one_or_many::OneOrMany;
use router_table::policy::{Balance, RoutePolicy, SourceLimits};
use router_table::table::{Cluster, Endpoint, Endpoints, ResolvedRoute, ServiceEndpoints};

use super::affinity::{Cookie, StandsFor};
use super::hashing::{Hashed, Key, score};
use super::tag::Tag;
use super::target::Target;
use super::weighted_round_robin::{Portion, Turn, Turns};
use crate::limits::{TooMany, Visit};
use extra::Extra;

pub use extra::{Member, Mirrored, RouteState};

/// State of the proxy for one version of a route.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The plan for its current endpoints; empty until it is made.
    pub plan: ArcSwapOption<Plan>,
    /// Traffic totals of the route on its router.
    totals: OnceLock<Arc<Totals>>,
}

impl Prepared {
    /// The state of a route, created on first use. `None` only if the route has derived state of another type.
    pub fn of(route: &ResolvedRoute) -> Option<&Self> {
        route.derived.get_or_init(Prepared::default)
    }

    /// Traffic totals of the route; `find` is called once.
    pub fn totals(&self, find: impl FnOnce() -> Arc<Totals>) -> &Arc<Totals> {
        self.totals.get_or_init(find)
    }
}

/// Members that stand beside each other and have the same weight: those of one service.
#[derive(Debug)]
pub struct Span {
    endpoints: Arc<[Endpoint]>,
    first: u32,
    members: u32,
    /// Share of each of its endpoints; 0: only for clients whose cookie names one.
    weight: u32,
    /// The service's weight.
    share: u32,
    /// See [`BackendPolicy::failure`](router_table::rule::BackendPolicy::failure).
    pub failure: Option<u16>,
}

impl Span {
    /// Whether it has any members.
    pub fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Whether this member is one of its own.
    pub fn has(&self, member: usize) -> bool {
        self.number_of(member).is_some()
    }

    /// Which of its own this member is.
    fn number_of(&self, member: usize) -> Option<usize> {
        member.checked_sub(self.first as usize).filter(|number| *number < self.members as usize)
    }

    fn all(&self) -> Range<usize> {
        let first = self.first as usize;
        first..first + self.members as usize
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

/// How a route's endpoints are chosen. Endpoints are known by number, service by service: its *members*.
///
/// Of most routes this is all, in one line of a processor's cache: what 100,000 hosts have does not fit into it, and
/// each line of a route that a request reads costs as much as a hundred instructions.
#[derive(Debug)]
#[repr(align(64))]
pub struct Plan {
    /// One for each service.
    spans: OneOrMany<Span>,
    /// There if the route asks for it.
    extra: Option<Box<Extra>>,
    /// Sum of all weights: how many tickets there are.
    total: u32,
    /// The rule.
    pub balance: Balance,
    /// Services keep their shares, whatever becomes of their endpoints: a rule's, and there are several or it fails.
    pub by_share: bool,
    /// Whether some service has its own work on requests' headers.
    pub modifies_requests: bool,
}

const _: () = assert!(size_of::<Plan>() == 64);

impl Plan {
    /// The plan of a route for the endpoints that its services have in this table; `state` gives what outlives it.
    pub fn new(route: &ResolvedRoute, endpoints: &Endpoints, state: impl FnOnce() -> Arc<RouteState>) -> Self {
        let mirrors = route.rule.iter().flat_map(|rule| &rule.mirrors).map(|mirror| Mirrored {
            plan: Plan::of(route, (&mirror.cluster, endpoints), &RoutePolicy::default(), Arc::default),
            portion: Portion::new(mirror.share.0, mirror.share.1),
        });
        let mirrors: Box<[Mirrored]> = mirrors.collect();
        let cookie = Cookie::of(route);
        let state = LazyCell::new(state);
        let mut plan = Plan::of(route, (&route.cluster, endpoints), &route.policy, || Arc::clone(&state));
        let mirror_turns = mirrors.iter().any(|mirror| !mirror.portion.is_all()).then(|| Arc::clone(&state));
        if cookie.is_some() || !mirrors.is_empty() {
            let cluster = (&route.cluster, endpoints);
            let extra = plan.extra.get_or_insert_with(|| Box::new(Extra::of(route, cluster, &HashMap::new())));
            (extra.mirrors, extra.mirror_turns, extra.cookie) = (mirrors, mirror_turns, cookie);
        }
        plan
    }

    fn of(
        route: &ResolvedRoute,
        (cluster, endpoints): (&Cluster, &Endpoints),
        policy: &RoutePolicy,
        state: impl FnOnce() -> Arc<RouteState>,
    ) -> Self {
        let services = &cluster.services;
        let weights = cluster.endpoint_weights(endpoints);
        let shares = || services.iter().filter(|service| service.weight > 0);
        let by_share = route.keeps_shares(cluster);
        let active = shares().filter(|service| service.is_usable(endpoints)).count();
        let default = if active > 1 || by_share { Balance::RoundRobin } else { Balance::Random };
        let balance = policy.balance.unwrap_or(default);
        let own = |service: &ServiceEndpoints| service.policy.as_ref().and_then(|policy| policy.balance);
        let balances: Box<[Balance]> = services.iter().map(|service| own(service).unwrap_or(balance)).collect();
        let limit = policy.endpoint_connections;
        let is_counted = limit.is_some() || balances.contains(&Balance::LeastConnections);
        let limits = policy.source_limits;
        let is_limited = limits != SourceLimits::default();
        let has_turns = by_share || balance == Balance::RoundRobin;
        let state = (is_counted || is_limited || has_turns).then(state);
        let sources = state.as_ref().filter(|_| is_limited).map(|state| state.sources.get_or_init(Arc::default));
        let sources = sources.map(|sources| (Arc::clone(sources), limits));
        let occupancies = match &state {
            Some(state) if is_counted => state.occupancies(services.iter().flat_map(|service| endpoints.of(service))),
            _ => HashMap::new(),
        };
        occupancies.values().for_each(|occupancy| occupancy.set_limit(limit));

        let mut first = 0;
        let spans = services.iter().zip(weights).map(|(service, weight)| {
            let endpoints = usable(endpoints, service);
            let members = endpoints.len() as u32;
            let (share, failure) = (service.weight, service.failure());
            first += members;
            Span { endpoints, first: first - members, members, weight, share, failure }
        });
        let spans: OneOrMany<Span> = spans.collect();
        let total = spans.iter().map(|span| span.members * span.weight).sum();
        let modifies =
            |service: &ServiceEndpoints| service.policy.as_ref().is_some_and(|p| !p.request_headers.is_empty());
        // A Route's service without endpoints has no turn: the others have its share.
        let of_turns = |span: &Span| if by_share || !span.is_empty() { span.share } else { 0 };
        let turns = || Turns::new(spans.iter().map(|span| (of_turns(span), span.members as usize)));
        let is_scored = balances.iter().any(|balance| matches!(balance, Balance::Source | Balance::Hash));
        let extra = (state.is_some() || is_scored).then(|| {
            let turns = has_turns.then(turns).unwrap_or_default();
            let balances = balances.iter().any(|own| *own != balance).then_some(balances);
            Box::new(Extra { state, turns, sources, balances, ..Extra::of(route, (cluster, endpoints), &occupancies) })
        });
        Plan { spans, extra, total, balance, by_share, modifies_requests: services.iter().any(modifies) }
    }

    /// Whose share the next connection or request is, which has this key; `None` where endpoints alone are chosen between.
    pub fn next_share(&self, key: Option<Key>) -> Option<Share> {
        if !self.by_share {
            return None;
        }
        if let Some((key, extra)) = key.zip(self.extra.as_ref()).filter(|_| self.balance == Balance::Hash) {
            let services = self.spans.iter().zip(&extra.services).enumerate().filter(|(_, (span, _))| span.share > 0);
            let scored = services.map(|(index, (span, tag))| (index, score(key, *tag, span.share)));
            let (service, _) = scored.max_by(|a, b| a.1.total_cmp(&b.1))?;
            return Some(Share { service, member: None });
        }
        let turn = self.state()?.shares.fetch_add(1, Ordering::Relaxed);
        let Turn { service, endpoint } = self.turns()?.holder(turn)?;
        let share = Share { service, member: None };
        let in_turn = self.balance_of(Some(share)) == Balance::RoundRobin;
        Some(Share { member: endpoint.filter(|_| in_turn), ..share })
    }

    /// How an endpoint of a share is chosen, or of all.
    pub fn balance_of(&self, share: Option<Share>) -> Balance {
        let own = share.and_then(|share| self.extra.as_ref()?.balances.as_ref()?.get(share.service));
        own.copied().unwrap_or(self.balance)
    }

    /// What endpoints are scored with for a request that is about to be sent, where that is the rule, and the cookie that
    /// its client needs.
    pub fn key(&self, route: &ResolvedRoute, request: &Hashed<'_>) -> (Option<Key>, Option<HeaderValue>) {
        match self.balance {
            Balance::Source => (Some(Key::of_client(request.client)), None),
            // Without looking at the route's policy, which may be in no cache.
            _ if self.extra.is_none() => (None, None),
            _ => request.key(&route.policy.hash, self.cookie()),
        }
    }

    /// The service of a share.
    pub fn span(&self, share: Share) -> Option<&Span> {
        self.spans.get(share.service)
    }

    /// The plan of nothing.
    pub fn none() -> Self {
        Plan {
            spans: OneOrMany::default(),
            extra: None,
            total: 0,
            balance: Balance::Random,
            by_share: false,
            modifies_requests: false,
        }
    }

    /// All members, as numbers.
    pub fn members(&self) -> Range<usize> {
        0..self.spans.last().map_or(0, |span| span.all().end)
    }

    /// All members with their weights.
    pub fn weights(&self) -> impl Iterator<Item = (usize, u32)> {
        self.spans.iter().flat_map(|span| span.all().map(|member| (member, span.weight)))
    }

    /// The share of a member; 0: only for clients whose cookie names it.
    pub fn weight(&self, member: usize) -> u32 {
        self.spans.iter().find(|span| span.has(member)).map_or(0, |span| span.weight)
    }

    /// The endpoint that a member is, in the cluster that the plan was made from.
    pub fn target<'r>(&'r self, member: usize, cluster: &'r Cluster) -> Option<Target<'r>> {
        let mut of_services = self.spans.iter().zip(&cluster.services);
        let of_member = |(span, service): (&'r Span, &'r ServiceEndpoints)| {
            Some((service, span.endpoints.get(span.number_of(member)?)?))
        };
        let (service, endpoint) = of_services.find_map(of_member)?;
        Some(Target { service: &service.service, endpoint, policy: service.policy.as_ref() })
    }

    /// What is kept of each member, if anything is.
    pub fn kept(&self) -> &[Member] {
        self.extra.as_ref().map_or(&[], |extra| &extra.members)
    }

    /// What is counted, if the rule or a limit needs it.
    pub fn state(&self) -> Option<&RouteState> {
        self.extra.as_ref()?.state.as_deref()
    }

    /// Whose turn it is when, if the rule needs it.
    pub fn turns(&self) -> Option<&Turns> {
        Some(&self.extra.as_ref()?.turns)
    }

    /// The number of the next request among those of which a mirror gets a part. Requests of all workers count, and of
    /// all versions of the route; those of rules whose mirrors get all requests do not.
    pub fn next_mirror_turn(&self) -> u64 {
        let counted = self.extra.as_ref().and_then(|extra| extra.mirror_turns.as_ref());
        counted.map_or(0, |state| state.mirrored.fetch_add(1, Ordering::Relaxed))
    }

    /// How the endpoints of mirrors are chosen.
    pub fn mirrors(&self) -> &[Mirrored] {
        self.extra.as_ref().map_or(&[], |extra| &extra.mirrors)
    }

    fn cookie(&self) -> Option<&Cookie> {
        self.extra.as_ref()?.cookie.as_ref()
    }

    /// Lets a client's connection or request through, if it keeps to the route's limits; what is returned is to be kept
    /// as long as it is under way.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn admit(&self, client: IpAddr) -> Result<Option<Visit>, TooMany> {
        match self.extra.as_ref().and_then(|extra| extra.sources.as_ref()) {
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
                return Some((span.first + ticket / span.weight) as usize);
            }
            ticket -= tickets;
        }
        None
    }

    /// Takes the route's cookie out of a request, if it names an endpoint, which the client should stay with.
    pub fn take_cookie(&self, headers: &mut HeaderMap) -> Option<Tag> {
        self.cookie().filter(|cookie| cookie.stands_for == StandsFor::Endpoint)?.take(headers)
    }

    /// The cookie that makes a client stay with a member; `None` for a route without affinity, or with one that goes by
    /// the client's name.
    pub fn cookie_for(&self, member: usize) -> Option<HeaderValue> {
        let cookie = self.cookie().filter(|cookie| cookie.stands_for == StandsFor::Endpoint)?;
        let member = self.kept().get(member)?;
        member.cookie.get_or_init(|| cookie.value(member.tag)).clone()
    }

    /// Puts the cookie of [`Plan::cookie_for`] or [`Plan::key`] into a response, when one is due.
    pub fn set_cookie(&self, headers: &mut HeaderMap, value: Option<HeaderValue>) {
        if let Some(cookie) = self.cookie() {
            cookie.set(headers, value);
        }
    }
}

/// A service's endpoints, unless it cannot be used.
fn usable(endpoints: &Endpoints, service: &ServiceEndpoints) -> Arc<[Endpoint]> {
    let key = service.key.as_ref().filter(|_| service.failure().is_none());
    key.and_then(|key| endpoints.list(key)).map(Arc::clone).unwrap_or_default()
}

#[cfg(test)]
mod tests;

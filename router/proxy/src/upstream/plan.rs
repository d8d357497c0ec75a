//! What balancing needs to know about a route, computed once for each version of the route and of its endpoints.

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
use router_table::table::{Cluster, Endpoint, Endpoints, ResolvedRoute, WeightedService};

use super::affinity::{Cookie, StandsFor};
use super::hashing::{HashInput, HashKey, score};
use super::tag::Tag;
use super::target::EndpointTarget;
use super::weighted_round_robin::{Portion, Turn, Turns};
use crate::limits::{TooMany, Visit};
use extra::Extra;

pub use extra::{MemberState, Mirrored, RouteState};

/// State of the proxy for one version of a route.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The plan for its current endpoints; empty until it is made.
    pub plan: ArcSwapOption<BalancingPlan>,
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

/// Consecutive members of equal weight: the endpoints of one service.
#[derive(Debug)]
pub struct MemberSpan {
    endpoints: Arc<[Endpoint]>,
    first: u32,
    members: u32,
    /// Weight of each of its endpoints; 0: only for clients whose cookie names one.
    weight: u32,
    /// The service's weight.
    share: u32,
    /// See [`BackendPolicy::failure`](router_table::rule::BackendPolicy::failure).
    pub failure: Option<u16>,
}

impl MemberSpan {
    /// True if it has no members.
    pub fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// True if it contains this member.
    pub fn has(&self, member: usize) -> bool {
        self.number_of(member).is_some()
    }

    /// Position of a member in this span.
    fn number_of(&self, member: usize) -> Option<usize> {
        member.checked_sub(self.first as usize).filter(|number| *number < self.members as usize)
    }

    fn all(&self) -> Range<usize> {
        let first = self.first as usize;
        first..first + self.members as usize
    }
}

/// The service drawn for a connection or request of a rule.
#[derive(Clone, Copy, Debug)]
pub struct MemberShare {
    /// Index of the service.
    service: usize,
    /// The member whose turn it is, for balancing rules with turns.
    pub member: Option<usize>,
}

/// How a route's endpoints are chosen. Endpoints are numbered, service by service: the *members*.
///
/// Most routes need nothing else, and it fits one cache line of the processor: the plans of 100,000 hosts do not fit
/// into the cache, and each line of a route that a request reads costs as much as a hundred instructions.
#[derive(Debug)]
#[repr(align(64))]
pub struct BalancingPlan {
    /// One for each service.
    spans: OneOrMany<MemberSpan>,
    /// Present if the route needs it.
    extra: Option<Box<Extra>>,
    /// Sum of all weights: the number of tickets.
    total: u32,
    /// The balancing rule.
    pub balance: Balance,
    /// True if services keep their shares whatever the state of their endpoints: for rules with several services, or
    /// with one that fails.
    pub by_share: bool,
    /// True if a service modifies the headers of requests.
    pub modifies_requests: bool,
}

const _: () = assert!(size_of::<BalancingPlan>() == 64);

impl BalancingPlan {
    /// The plan of a route for the endpoints of its services in this table; `state` returns the state that outlives the
    /// plan.
    pub fn new(route: &ResolvedRoute, endpoints: &Endpoints, state: impl FnOnce() -> Arc<RouteState>) -> Self {
        let mirrors = route.rule.iter().flat_map(|rule| &rule.mirrors).map(|mirror| Mirrored {
            plan: BalancingPlan::of(route, (&mirror.cluster, endpoints), &RoutePolicy::default(), Arc::default),
            portion: Portion::new(mirror.share.0, mirror.share.1),
        });
        let mirrors: Box<[Mirrored]> = mirrors.collect();
        let cookie = Cookie::of(route);
        let state = LazyCell::new(state);
        let mut plan = BalancingPlan::of(route, (&route.cluster, endpoints), &route.policy, || Arc::clone(&state));
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
        let own = |service: &WeightedService| service.policy.as_ref().and_then(|policy| policy.balance);
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
            MemberSpan { endpoints, first: first - members, members, weight, share, failure }
        });
        let spans: OneOrMany<MemberSpan> = spans.collect();
        let total = spans.iter().map(|span| span.members * span.weight).sum();
        let modifies =
            |service: &WeightedService| service.policy.as_ref().is_some_and(|p| !p.request_headers.is_empty());
        // A Route's service without endpoints gets no turn: the others take its share.
        let of_turns = |span: &MemberSpan| if by_share || !span.is_empty() { span.share } else { 0 };
        let turns = || Turns::new(spans.iter().map(|span| (of_turns(span), span.members as usize)));
        let is_scored = balances.iter().any(|balance| matches!(balance, Balance::Source | Balance::Hash));
        let extra = (state.is_some() || is_scored).then(|| {
            let turns = has_turns.then(turns).unwrap_or_default();
            let balances = balances.iter().any(|own| *own != balance).then_some(balances);
            Box::new(Extra { state, turns, sources, balances, ..Extra::of(route, (cluster, endpoints), &occupancies) })
        });
        BalancingPlan { spans, extra, total, balance, by_share, modifies_requests: services.iter().any(modifies) }
    }

    /// The service for the next connection or request, given its key; `None` if only endpoints are chosen.
    pub fn next_share(&self, key: Option<HashKey>) -> Option<MemberShare> {
        if !self.by_share {
            return None;
        }
        if let Some((key, extra)) = key.zip(self.extra.as_ref()).filter(|_| self.balance == Balance::Hash) {
            let services = self.spans.iter().zip(&extra.services).enumerate().filter(|(_, (span, _))| span.share > 0);
            let scored = services.map(|(index, (span, tag))| (index, score(key, *tag, span.share)));
            let (service, _) = scored.max_by(|a, b| a.1.total_cmp(&b.1))?;
            return Some(MemberShare { service, member: None });
        }
        let turn = self.state()?.shares.fetch_add(1, Ordering::Relaxed);
        let Turn { service, endpoint } = self.turns()?.holder(turn)?;
        let share = MemberShare { service, member: None };
        let in_turn = self.balance_of(Some(share)) == Balance::RoundRobin;
        Some(MemberShare { member: endpoint.filter(|_| in_turn), ..share })
    }

    /// The balancing rule for the endpoints of a share, or for all endpoints.
    pub fn balance_of(&self, share: Option<MemberShare>) -> Balance {
        let own = share.and_then(|share| self.extra.as_ref()?.balances.as_ref()?.get(share.service));
        own.copied().unwrap_or(self.balance)
    }

    /// The key by which endpoints are scored for a request, if the rule hashes, and the cookie to set for its client.
    pub fn key(&self, route: &ResolvedRoute, request: &HashInput<'_>) -> (Option<HashKey>, Option<HeaderValue>) {
        match self.balance {
            Balance::Source => (Some(HashKey::of_client(request.client)), None),
            // Avoids reading the route's policy, which may not be in the cache.
            _ if self.extra.is_none() => (None, None),
            _ => request.key(&route.policy.hash, self.cookie()),
        }
    }

    /// The service of a share.
    pub fn span(&self, share: MemberShare) -> Option<&MemberSpan> {
        self.spans.get(share.service)
    }

    /// A plan without members.
    pub fn none() -> Self {
        BalancingPlan {
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

    /// Weight of a member; 0: only for clients whose cookie names it.
    pub fn weight(&self, member: usize) -> u32 {
        self.spans.iter().find(|span| span.has(member)).map_or(0, |span| span.weight)
    }

    /// The endpoint of a member, in the cluster that the plan was made from.
    pub fn target<'r>(&'r self, member: usize, cluster: &'r Cluster) -> Option<EndpointTarget<'r>> {
        let mut of_services = self.spans.iter().zip(&cluster.services);
        let of_member = |(span, service): (&'r MemberSpan, &'r WeightedService)| {
            Some((service, span.endpoints.get(span.number_of(member)?)?))
        };
        let (service, endpoint) = of_services.find_map(of_member)?;
        Some(EndpointTarget { service: &service.service, endpoint, policy: service.policy.as_ref() })
    }

    /// State of each member; empty if the plan needs none.
    pub fn kept(&self) -> &[MemberState] {
        self.extra.as_ref().map_or(&[], |extra| &extra.members)
    }

    /// Counters, if the rule or a limit needs them.
    pub fn state(&self) -> Option<&RouteState> {
        self.extra.as_ref()?.state.as_deref()
    }

    /// Round-robin turns, if the rule needs them.
    pub fn turns(&self) -> Option<&Turns> {
        Some(&self.extra.as_ref()?.turns)
    }

    /// Number of the next request to be sampled for mirrors that receive a part of the requests. Requests of all
    /// workers count, and of all versions of the route; requests of rules whose mirrors receive all requests do not.
    pub fn next_mirror_turn(&self) -> u64 {
        let counted = self.extra.as_ref().and_then(|extra| extra.mirror_turns.as_ref());
        counted.map_or(0, |state| state.mirrored.fetch_add(1, Ordering::Relaxed))
    }

    /// Plans for the endpoints of mirrors.
    pub fn mirrors(&self) -> &[Mirrored] {
        self.extra.as_ref().map_or(&[], |extra| &extra.mirrors)
    }

    fn cookie(&self) -> Option<&Cookie> {
        self.extra.as_ref()?.cookie.as_ref()
    }

    /// Admits a client's connection or request within the route's limits. The caller keeps the returned value until the
    /// connection or request ends.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn admit(&self, client: IpAddr) -> Result<Option<Visit>, TooMany> {
        match self.extra.as_ref().and_then(|extra| extra.sources.as_ref()) {
            Some((sources, limits)) => sources.admit(limits, client, Instant::now()),
            None => Ok(None),
        }
    }

    /// The number of tickets; each member has as many as its weight.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// The member with this ticket.
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

    /// Removes the route's cookie from a request if it stands for an endpoint; returns the tag of that endpoint.
    pub fn take_cookie(&self, headers: &mut HeaderMap) -> Option<Tag> {
        self.cookie().filter(|cookie| cookie.stands_for == StandsFor::Endpoint)?.take(headers)
    }

    /// The cookie that binds a client to a member; `None` for a route without affinity, or whose cookie identifies the
    /// client.
    pub fn cookie_for(&self, member: usize) -> Option<HeaderValue> {
        let cookie = self.cookie().filter(|cookie| cookie.stands_for == StandsFor::Endpoint)?;
        let member = self.kept().get(member)?;
        member.cookie.get_or_init(|| cookie.value(member.tag)).clone()
    }

    /// Sets the cookie of [`BalancingPlan::cookie_for`] or [`BalancingPlan::key`] in a response, if there is one.
    pub fn set_cookie(&self, headers: &mut HeaderMap, value: Option<HeaderValue>) {
        if let Some(cookie) = self.cookie() {
            cookie.set(headers, value);
        }
    }
}

/// A service's endpoints; none if the service is unusable.
fn usable(endpoints: &Endpoints, service: &WeightedService) -> Arc<[Endpoint]> {
    let key = service.key.as_ref().filter(|_| service.failure().is_none());
    key.and_then(|key| endpoints.list(key)).map(Arc::clone).unwrap_or_default()
}

#[cfg(test)]
mod tests;

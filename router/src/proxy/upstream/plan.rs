//! What choosing needs to know of a route, worked out once per version of it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use http::{HeaderMap, HeaderValue};
use router_core::policy::{Balance, SourceLimits};
use router_core::table::{Endpoint, ResolvedRoute, ServiceEndpoints};

use super::affinity::{Cookie, Tag};
use super::choose::Target;
use super::occupancy::{Line, Occupancy};
use super::turns::Turns;
use crate::proxy::counters::Totals;
use crate::proxy::limits::{Sources, TooMany, Visit};

/// What is counted for a route, and outlives its versions.
#[derive(Debug, Default)]
pub struct RouteState {
    /// How many choices were made in turn.
    pub turn: AtomicU32,
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
struct Span {
    first: usize,
    members: u32,
    weight: u32,
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
    cookie: Option<Cookie>,
    /// There if clients have limits.
    sources: Option<(Arc<Sources>, SourceLimits)>,
    /// What the route has served on its router, as soon as it is known.
    totals: OnceLock<Arc<Totals>>,
}

impl Plan {
    /// The plan of a route; `state` gives what outlives it.
    pub fn new(route: &ResolvedRoute, state: impl FnOnce() -> Arc<RouteState>) -> Self {
        let services = &route.cluster.services;
        let shares = route.cluster.endpoint_weights();
        let weights = || shares.iter().map(|weight| u32::from(*weight));

        let active = shares.iter().zip(services).filter(|(weight, s)| **weight > 0 && !s.endpoints.is_empty()).count();
        let balance = route.policy.balance.unwrap_or(if active > 1 { Balance::RoundRobin } else { Balance::Random });
        let limit = route.policy.endpoint_connections;
        let is_counted = limit.is_some() || balance == Balance::LeastConnections;
        let limits = route.policy.source_limits;
        let is_limited = limits != SourceLimits::default();
        let state = (is_counted || is_limited || balance == Balance::RoundRobin).then(state);
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
        for (at, (service, weight)) in services.iter().zip(weights()).enumerate() {
            spans.push(Span { first: members.len(), members: service.endpoints.len() as u32, weight });
            members.extend(service.endpoints.iter().enumerate().map(|(index, endpoint)| Member {
                service: at,
                endpoint: index,
                weight,
                tag: Tag::of(&route.id, endpoint.address),
                occupancy: occupancies.get(&endpoint.address).cloned(),
                cookie: OnceLock::new(),
            }));
        }
        let weight = |service: &ServiceEndpoints| u16::try_from(service.weight).unwrap_or(u16::MAX);
        let turns = || Turns::new(services.iter().map(|service| (weight(service), service.endpoints.len())));
        let total = spans.iter().map(|span| span.members * span.weight).sum();
        Plan {
            members: members.into(),
            balance,
            state,
            spans: spans.into(),
            total,
            turns: (balance == Balance::RoundRobin).then(turns).unwrap_or_default(),
            cookie: Cookie::of(route),
            sources,
            totals: OnceLock::new(),
        }
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
    /// The service that it belongs to, and its endpoint, in the route that the plan was made from.
    pub fn of<'r>(&self, route: &'r ResolvedRoute) -> Option<Target<'r>> {
        let service = route.cluster.services.get(self.service)?;
        Some(Target { service: &service.service, endpoint: service.endpoints.get(self.endpoint)? })
    }
}

#[cfg(test)]
mod tests;

//! Parts that few plans need: affinity, turns, counters, limits, mirrors.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::HeaderValue;
use router_table::policy::{Balance, SourceLimits};
use router_table::table::{Cluster, Endpoint, Endpoints, ResolvedRoute};

use super::{BalancingPlan, usable};
use crate::limits::ClientTable;
use crate::upstream::affinity::Cookie;
use crate::upstream::concurrency_limit::{Occupancy, WaitQueue};
use crate::upstream::tag::Tag;
use crate::upstream::weighted_round_robin::{Portion, Turns};

/// Counters of a route that outlive its versions.
#[derive(Debug, Default)]
pub struct RouteState {
    /// Number of round-robin choices.
    pub turn: AtomicU32,
    /// Number of times that a service was drawn.
    pub shares: AtomicU32,
    /// Number of requests of which a mirror receives a part.
    pub mirrored: AtomicU64,
    /// Queue for any endpoint of the route.
    pub line: Arc<WaitQueue>,
    /// Clients' rates and connections, if the route limits them.
    pub sources: OnceLock<Arc<ClientTable>>,
    /// Load of endpoints, if it is counted.
    pub occupancies: Mutex<HashMap<SocketAddr, Arc<Occupancy>>>,
}

impl RouteState {
    /// Occupancies of these endpoints. Those of other endpoints are kept as long as they are in use: an endpoint may
    /// return.
    pub fn occupancies<'e>(
        &self,
        endpoints: impl Iterator<Item = &'e Endpoint>,
    ) -> HashMap<SocketAddr, Arc<Occupancy>> {
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

/// State of a member (one endpoint of one service of a route), for routes that need more than shares.
#[derive(Debug)]
pub struct MemberState {
    /// Its value in cookies, and its identity when keys are scored.
    pub tag: Tag,
    /// Its load, if the route needs it counted.
    pub occupancy: Option<Arc<Occupancy>>,
    /// The cookie that names it, created on first use.
    pub cookie: OnceLock<Option<HeaderValue>>,
}

/// What choosing needs beside chance and weight.
#[derive(Debug, Default)]
pub struct Extra {
    /// All members.
    pub members: Box<[MemberState]>,
    /// Present if the rule or a limit needs it.
    pub state: Option<Arc<RouteState>>,
    /// Empty unless the rule needs it.
    pub turns: Turns,
    /// How the endpoints of mirrors are chosen.
    pub mirrors: Box<[Mirrored]>,
    /// Present if a mirror receives a part of the requests: counts them.
    pub mirror_turns: Option<Arc<RouteState>>,
    /// Present for a route with affinity.
    pub cookie: Option<Cookie>,
    /// Identity of each service when keys are hashed over services.
    pub services: Box<[Tag]>,
    /// Balancing rule of each service's endpoints, unless all use the route's.
    pub balances: Option<Box<[Balance]>>,
    /// Present if clients have limits.
    pub sources: Option<(Arc<ClientTable>, SourceLimits)>,
}

impl Extra {
    /// The members of one of the route's clusters. A key has the same meaning for every rule that hashes, so a client
    /// of one rule keeps its endpoint in the others.
    pub fn of(
        route: &ResolvedRoute,
        (cluster, endpoints): (&Cluster, &Endpoints),
        occupancies: &HashMap<SocketAddr, Arc<Occupancy>>,
    ) -> Self {
        let hashes = !route.policy.hash.is_empty();
        let lists: Vec<_> = cluster.services.iter().map(|service| usable(endpoints, service)).collect();
        let members = lists.iter().flat_map(|list| list.iter()).map(|endpoint| MemberState {
            tag: if hashes {
                Tag::of_text(&endpoint.address.to_string())
            } else {
                Tag::of(&route.id, endpoint.address)
            },
            occupancy: occupancies.get(&endpoint.address).cloned(),
            cookie: OnceLock::new(),
        });
        let services = cluster.services.iter().filter(|_| hashes).map(|service| Tag::of_text(&service.service));
        Extra { members: members.collect(), services: services.collect(), ..Extra::default() }
    }
}

/// How copies of a rule's requests are sent to one of its mirrors.
#[derive(Debug)]
pub struct Mirrored {
    /// Plan for the mirror's endpoints.
    pub plan: BalancingPlan,
    /// Portion of the requests that is copied.
    pub portion: Portion,
}

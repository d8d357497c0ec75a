//! What few plans have beside shares: stickiness, turns, counting, limits, mirrors.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::HeaderValue;
use router_table::policy::{Balance, SourceLimits};
use router_table::table::{Cluster, Endpoint, Endpoints, ResolvedRoute};

use super::{Plan, usable};
use crate::limits::Sources;
use crate::upstream::affinity::Cookie;
use crate::upstream::concurrency_limit::{Occupancy, WaitQueue};
use crate::upstream::tag::Tag;
use crate::upstream::weighted_round_robin::{Portion, Turns};

/// What is counted for a route, and outlives its versions.
#[derive(Debug, Default)]
pub struct RouteState {
    /// How many choices were made in turn.
    pub turn: AtomicU32,
    /// How many times it was asked which service's share a connection or request is.
    pub shares: AtomicU32,
    /// How many requests there were of which a mirror gets a part.
    pub mirrored: AtomicU64,
    /// Those who wait for any endpoint.
    pub line: Arc<WaitQueue>,
    /// What its clients do, if they have limits.
    pub sources: OnceLock<Arc<Sources>>,
    /// What endpoints have to do, where that is counted.
    pub occupancies: Mutex<HashMap<SocketAddr, Arc<Occupancy>>>,
}

impl RouteState {
    /// Those of these endpoints. Those of others are kept as long as they are in use: an endpoint may come back.
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

/// What is kept of a member, one endpoint of one service of a route, where a route asks for more than a share.
#[derive(Debug)]
pub struct Member {
    /// What stands for it in a cookie, and what a key is scored with.
    pub tag: Tag,
    /// What it has to do, if the route asks for counting.
    pub occupancy: Option<Arc<Occupancy>>,
    /// The cookie that names it, as soon as one was asked for.
    pub cookie: OnceLock<Option<HeaderValue>>,
}

/// What choosing takes beside chance and weight.
#[derive(Debug, Default)]
pub struct Extra {
    /// All of them.
    pub members: Box<[Member]>,
    /// There if the rule or a limit needs it.
    pub state: Option<Arc<RouteState>>,
    /// Empty unless the rule needs it.
    pub turns: Turns,
    /// How the endpoints of mirrors are chosen.
    pub mirrors: Box<[Mirrored]>,
    /// There if one of them gets a part of the requests: whose turns are counted.
    pub mirror_turns: Option<Arc<RouteState>>,
    /// There for a route with affinity.
    pub cookie: Option<Cookie>,
    /// What stands for each service where keys are hashed with them.
    pub services: Box<[Tag]>,
    /// How endpoints of each service are chosen, if not all as the route says.
    pub balances: Option<Box<[Balance]>>,
    /// There if clients have limits.
    pub sources: Option<(Arc<Sources>, SourceLimits)>,
}

impl Extra {
    /// The members of a cluster of this route, and nothing else. A key means the same for every rule that hashes, so the
    /// clients of one stay with their endpoints in the others too.
    pub fn of(
        route: &ResolvedRoute,
        (cluster, endpoints): (&Cluster, &Endpoints),
        occupancies: &HashMap<SocketAddr, Arc<Occupancy>>,
    ) -> Self {
        let hashes = !route.policy.hash.is_empty();
        let lists: Vec<_> = cluster.services.iter().map(|service| usable(endpoints, service)).collect();
        let members = lists.iter().flat_map(|list| list.iter()).map(|endpoint| Member {
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

/// How copies of a rule's requests go to one of its mirrors.
#[derive(Debug)]
pub struct Mirrored {
    /// Which endpoint.
    pub plan: Plan,
    /// Of how many requests.
    pub portion: Portion,
}

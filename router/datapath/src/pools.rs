//! Pools and endpoints: the endpoints to which a route's connections are dialed, under ids that are never reused.
//!
//! A route's map entries change only when its endpoints, their shares or the routes to them change. So the registry
//! stores what each route has, and a journal of changes: a change of one route costs work for one route only.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use router_common::maps::{MAX_ENDPOINTS, POOL_PROXY_V2, POOL_TOLD};
use router_listener::{ListenerState, OwnAddresses};
use router_model::names::HostMatch;
use router_table::table::{Endpoints, ResolvedRoute};
use tracing::Level;

use super::alias_table;
use super::egress_routes::{Obstacle, Path, Paths};
use super::image::{EndpointEntry, MapImage, PoolEntry, PoolSlots, RelayReason, SlotEntry};

/// Pools of all routes that the kernel may steer, and the endpoints in them.
#[derive(Debug)]
pub struct Pools<P> {
    /// Source of the routes to endpoints.
    pub paths: P,
    /// Where the router itself listens, and the addresses of this host.
    own: (OwnAddresses, BTreeSet<IpAddr>),
    pools: HashMap<u32, HeldPool>,
    endpoints: HashMap<u32, Used>,
    by_address: HashMap<SocketAddr, u32>,
    /// Number of endpoints in use by maximum segment size in bytes.
    segments: BTreeMap<u16, usize>,
    slots: usize,
    last_pool: u32,
    last_endpoint: u32,
    relayed: Arc<BTreeMap<u32, RelayReason>>,
    journal: Journal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HeldPool {
    entry: PoolEntry,
    slots: PoolSlots,
}

#[derive(Debug)]
struct Used {
    entry: EndpointEntry,
    pools: usize,
}

/// Previous entries of changed routes and endpoints.
#[derive(Debug, Default)]
struct Journal {
    pools: BTreeMap<u32, Option<HeldPool>>,
    endpoints: BTreeMap<u32, Option<EndpointEntry>>,
}

impl<P: Paths> Pools<P> {
    /// No pools yet.
    pub fn new(paths: P) -> Self {
        Pools {
            paths,
            own: Default::default(),
            pools: HashMap::new(),
            endpoints: HashMap::new(),
            by_address: HashMap::new(),
            segments: BTreeMap::new(),
            slots: 0,
            last_pool: 0,
            last_endpoint: 0,
            relayed: Arc::default(),
            journal: Journal::default(),
        }
    }

    /// Sets the router's own listening addresses and the addresses of this host; pools that exist already are not
    /// changed.
    pub fn set_own(&mut self, listeners: &[ListenerState], local: &[IpAddr]) {
        self.own = (OwnAddresses::of(listeners), local.iter().copied().collect());
    }

    /// Adopts the pools and endpoints of an earlier agent. `highest_endpoint` is the highest endpoint id in any entry.
    pub fn adopt(&mut self, image: &MapImage, highest_endpoint: u32) {
        for (id, entry) in &image.endpoints {
            self.by_address.insert(entry.address, *id);
            self.endpoints.insert(*id, Used { entry: *entry, pools: 0 });
            *self.segments.entry(entry.path.max_segment).or_default() += 1;
        }
        for (route, entry) in &image.pools {
            let Some(slots) = image.slots.get(&entry.id) else { continue };
            let whole = slots.len() == entry.slots as usize;
            // A pool that an earlier agent did not complete is rebuilt.
            if whole && slots.iter().all(|slot| self.endpoints.contains_key(&slot.endpoint)) {
                let slots = Arc::clone(slots);
                self.hold(&slots);
                self.slots += slots.len();
                self.pools.insert(*route, HeldPool { entry: *entry, slots });
            }
        }
        let pools = image.pools.values().map(|entry| entry.id).chain(image.slots.keys().copied());
        self.last_pool = pools.max().unwrap_or_default().max(self.last_pool);
        let endpoints = image.endpoints.keys().copied().max().unwrap_or_default();
        self.last_endpoint = endpoints.max(highest_endpoint).max(self.last_endpoint);
        let unused: Vec<u32> =
            self.endpoints.iter().filter(|(_, used)| used.pools == 0).map(|(endpoint, _)| *endpoint).collect();
        unused.into_iter().for_each(|endpoint| self.forget_endpoint(endpoint));
        self.journal = Journal::default();
    }

    /// Sets a route's pool to its resolved endpoints.
    pub fn put(&mut self, route: u32, resolved: &ResolvedRoute, endpoints: &Endpoints) {
        let flags = self.flags(resolved);
        let wanted = self.slots_of(resolved, endpoints);
        self.note(route, wanted.as_ref().err().cloned());
        let wanted = wanted.unwrap_or_default();
        let unchanged = |held: &HeldPool| held.entry.flags == flags && held.slots == wanted;
        if self.pools.get(&route).is_some_and(unchanged) {
            return;
        }
        self.last_pool = self.last_pool.wrapping_add(1).max(1);
        // What does not fit is relayed: the kernel passes up connections of routes without endpoints.
        let room = MAX_ENDPOINTS.saturating_sub(self.slots);
        // The new pool is added before the old one is released, so that endpoints in both keep their ids.
        let fits = if wanted.len() <= room { Arc::clone(&wanted) } else { PoolSlots::default() };
        let entry = PoolEntry { id: self.last_pool, slots: fits.len() as u32, flags };
        self.hold(&fits);
        self.slots += fits.len();
        let old = self.pools.insert(route, HeldPool { entry, slots: fits });
        self.journal.pools.entry(route).or_insert(old.clone());
        old.into_iter().for_each(|old| self.release(&old.slots));
        self.forget_unused(&wanted);
    }

    /// Records why a route is relayed; `None`: it is not.
    fn note(&mut self, route: u32, relayed: Option<RelayReason>) {
        if self.relayed.get(&route) != relayed.as_ref() {
            let all = Arc::make_mut(&mut self.relayed);
            match relayed {
                Some(why) => all.insert(route, why),
                None => all.remove(&route),
            };
        }
    }

    /// Routes that the kernel could steer but that are relayed, by id, with the reason.
    pub fn relayed(&self) -> &Arc<BTreeMap<u32, RelayReason>> {
        &self.relayed
    }

    /// `POOL_*` bits of a route. Dials are reported to the agent only if it needs the name for the log line at the
    /// connection's end, or logs all decisions.
    fn flags(&self, route: &ResolvedRoute) -> u32 {
        let proxy = if route.proxy_protocol { POOL_PROXY_V2 } else { 0 };
        let named = matches!(route.host, HostMatch::Wildcard(_)) || tracing::enabled!(target: "kernel", Level::DEBUG);
        proxy | if named { POOL_TOLD } else { 0 }
    }

    /// Removes a route's pool.
    pub fn remove(&mut self, route: u32) {
        self.note(route, None);
        if let Some(old) = self.pools.remove(&route) {
            self.release(&old.slots);
            self.journal.pools.entry(route).or_insert(Some(old));
        }
    }

    /// Removes the pools of all other routes.
    pub fn retain(&mut self, routes: &BTreeSet<u32>) {
        let gone: Vec<u32> = self.pools.keys().copied().filter(|route| !routes.contains(route)).collect();
        gone.into_iter().for_each(|route| self.remove(route));
    }

    /// Writes all pools, slots and endpoints into an image, and begins a new journal.
    pub fn fill(&mut self, image: &mut MapImage) {
        image.pools = self.pools.iter().map(|(route, held)| (*route, held.entry)).collect();
        image.slots = self.pools.values().map(|held| (held.entry.id, Arc::clone(&held.slots))).collect();
        image.endpoints = self.endpoints.iter().map(|(id, used)| (*id, used.entry)).collect();
        self.journal = Journal::default();
    }

    /// Writes the entries changed since the last journal into two images, with their previous and their present values,
    /// and begins a new journal.
    pub fn changes(&mut self, gone: &mut MapImage, come: &mut MapImage) {
        let journal = std::mem::take(&mut self.journal);
        for (route, old) in journal.pools {
            for (held, image) in [(old.as_ref(), &mut *gone), (self.pools.get(&route), &mut *come)] {
                if let Some(held) = held {
                    image.pools.insert(route, held.entry);
                    image.slots.insert(held.entry.id, Arc::clone(&held.slots));
                }
            }
        }
        for (id, old) in journal.endpoints {
            gone.endpoints.extend(old.map(|old| (id, old)));
            come.endpoints.extend(self.endpoints.get(&id).map(|used| (id, used.entry)));
        }
    }

    /// Source addresses of dials.
    pub fn sources(&self) -> BTreeSet<IpAddr> {
        self.endpoints.values().map(|used| used.entry.path.source).collect()
    }

    /// The addresses of all endpoints.
    pub fn addresses(&self) -> HashSet<SocketAddr> {
        self.by_address.keys().copied().collect()
    }

    /// The smallest maximum segment size of all endpoints, in bytes; 0 without endpoints.
    pub fn max_segment(&self) -> u16 {
        self.segments.keys().next().copied().unwrap_or_default()
    }

    /// The slots of a route's endpoints. An endpoint of several services has one slot, with the sum of its shares.
    /// Unreachable endpoints have none, nor have the router's own addresses, which would loop back to it. If an
    /// endpoint is reachable only by the relay, the route has no slots at all, so that each endpoint gets its share;
    /// nor has a rule with a share that no endpoint can serve.
    fn slots_of(&mut self, resolved: &ResolvedRoute, endpoints: &Endpoints) -> Result<PoolSlots, RelayReason> {
        let mut shares: BTreeMap<SocketAddr, (Path, u32)> = BTreeMap::new();
        for (endpoint, weight) in resolved.weighted_endpoints(endpoints) {
            let address = SocketAddr::new(endpoint.address.ip().to_canonical(), endpoint.address.port());
            let (own, local) = &self.own;
            if own.has(address, |ip| ip.is_loopback() || local.contains(&ip)) {
                continue;
            }
            match self.paths.path(address) {
                Ok(path) => {
                    let share = &mut shares.entry(address).or_insert((path, 0)).1;
                    *share = share.saturating_add(weight);
                }
                Err(Obstacle::NoRoute) => {}
                Err(obstacle) => return Err(RelayReason { endpoint: address, obstacle }),
            }
        }
        let weights: Vec<u32> = shares.values().map(|(_, weight)| *weight).collect();
        let columns = alias_table::columns(&weights);
        let slots = shares.into_iter().zip(columns).map(|((address, (path, _)), (threshold, alias))| SlotEntry {
            endpoint: self.endpoint(EndpointEntry { address, path }),
            threshold,
            alias,
        });
        Ok(slots.collect())
    }

    /// The id of an endpoint; sets its entry to the newest route.
    fn endpoint(&mut self, entry: EndpointEntry) -> u32 {
        let known = self.by_address.get(&entry.address).copied();
        let id = known.unwrap_or_else(|| {
            self.last_endpoint = self.last_endpoint.wrapping_add(1).max(1);
            self.by_address.insert(entry.address, self.last_endpoint);
            self.last_endpoint
        });
        let old = self.endpoints.get(&id).map(|used| used.entry);
        if old != Some(entry) {
            self.journal.endpoints.entry(id).or_insert(old);
            let pools = self.endpoints.get(&id).map_or(0, |used| used.pools);
            self.endpoints.insert(id, Used { entry, pools });
            *self.segments.entry(entry.path.max_segment).or_default() += 1;
            old.into_iter().for_each(|old| self.uncount(old.path.max_segment));
        }
        id
    }

    fn hold(&mut self, slots: &PoolSlots) {
        for slot in slots.iter() {
            if let Some(used) = self.endpoints.get_mut(&slot.endpoint) {
                used.pools += 1;
            }
        }
    }

    fn release(&mut self, slots: &PoolSlots) {
        self.slots -= slots.len();
        for slot in slots.iter() {
            if let Some(used) = self.endpoints.get_mut(&slot.endpoint) {
                used.pools -= 1;
            }
        }
        self.forget_unused(slots);
    }

    /// Deletes those of these endpoints that no pool contains.
    fn forget_unused(&mut self, slots: &PoolSlots) {
        for slot in slots.iter() {
            if self.endpoints.get(&slot.endpoint).is_some_and(|used| used.pools == 0) {
                self.forget_endpoint(slot.endpoint);
            }
        }
    }

    fn forget_endpoint(&mut self, id: u32) {
        if let Some(used) = self.endpoints.remove(&id) {
            self.journal.endpoints.entry(id).or_insert(Some(used.entry));
            self.by_address.remove(&used.entry.address);
            self.uncount(used.entry.path.max_segment);
        }
    }

    fn uncount(&mut self, segment: u16) {
        if let Some(count) = self.segments.get_mut(&segment) {
            *count -= 1;
            if *count == 0 {
                self.segments.remove(&segment);
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Per-client limits of a route: `haproxy.router.openshift.io/rate-limit-connections` and the annotations that go with
//! it (docs/openshift.md#annotations-of-routes).
//!
//! As in OpenShift's router, a limit belongs to a route and applies to a whole client address. Rates use sliding
//! windows of 3 s and 10 s. Rejected attempts count, so a client that keeps retrying stays limited. On routes that
//! carry requests each request counts as a connection, because HAProxy applies these rules in its backend, once per
//! request. A limit of N admits N; HAProxy's comparison rejects the Nth.
//!
//! A rejected request gets a 429 instead of a reset: other requests of the connection may be in progress, and the
//! client can back off. A rejected passthrough connection is reset, because there is no protocol to answer in.

use std::collections::hash_map::RandomState;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use dashmap::DashMap;
use dashmap::mapref::one::RefMut;
use router_table::policy::SourceLimits;

/// The window of `rate-tcp`, in ms.
const CONNECTIONS_WINDOW: u64 = 3_000;
/// The window of `rate-http`, in ms.
const REQUESTS_WINDOW: u64 = 10_000;
/// Most addresses known of a route, as many as OpenShift's stick table holds.
const MAX_SOURCES: usize = 100_000;
/// Shards of the map; few, because each route with limits has a map of its own.
const SHARDS: usize = 16;
/// Most entries that one eviction looks up.
const MAX_LOOKUPS: usize = 32;

/// The clients of a route, by address. Outlives versions of the route.
///
/// At capacity a new address replaces one that the CLOCK algorithm selects (second chance: an address seen again since
/// the hand last passed it stays). Addresses are added and removed only while `ring` is locked. Lock order: `ring`,
/// then a shard of `by_address`; a thread that holds a reference into the map locks nothing else.
#[derive(Debug)]
pub struct ClientTable {
    start: Instant,
    by_address: DashMap<IpAddr, ClientUsage>,
    ring: Mutex<Ring>,
    capacity: usize,
}

/// The addresses of the map, each in one slot. Grows up to the capacity.
#[derive(Debug, Default)]
struct Ring {
    slots: Vec<IpAddr>,
    /// Slot that the next eviction looks at first.
    hand: usize,
}

/// Times are in milliseconds after `ClientTable::start`.
#[derive(Clone, Copy, Debug, Default)]
struct ClientUsage {
    /// Connections or requests in progress. Above 0, the entry is not evicted.
    active: u32,
    /// Whether the address was seen again since the hand passed it or since it was added.
    referenced: bool,
    connections: Window,
    requests: Window,
    last: u64,
}

/// A client has exceeded one of the route's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client address exceeds the route's limits")]
pub struct TooMany;

/// A connection or request that counts as in progress until it is dropped.
#[derive(Debug)]
pub struct Visit {
    sources: Arc<ClientTable>,
    client: IpAddr,
}

impl Default for ClientTable {
    fn default() -> Self {
        Self::with_capacity(MAX_SOURCES)
    }
}

impl ClientTable {
    fn with_capacity(capacity: usize) -> Self {
        let by_address = DashMap::with_hasher_and_shard_amount(RandomState::new(), SHARDS);
        ClientTable { start: Instant::now(), by_address, ring: Mutex::default(), capacity }
    }

    /// Counts a connection or request of a client. Returns a visit if the route limits concurrent connections.
    ///
    /// # Errors
    /// [`TooMany`], when one of the limits was reached before.
    pub fn admit(
        self: &Arc<Self>,
        limits: &SourceLimits,
        client: IpAddr,
        now: Instant,
    ) -> Result<Option<Visit>, TooMany> {
        let client = client.to_canonical();
        let now = self.ms(now);
        let known = self.by_address.get_mut(&client).map(|mut source| {
            source.referenced = true;
            source
        });
        // Without room the client is not counted: admitting too much is better than locking it out.
        let Some(mut source) = known.or_else(|| self.insert(client)) else { return Ok(None) };
        source.last = now;
        let before = [
            (limits.connections, source.connections.add(now, CONNECTIONS_WINDOW)),
            (limits.requests, source.requests.add(now, REQUESTS_WINDOW)),
            (limits.concurrent, source.active),
        ];
        if before.iter().any(|(limit, before)| limit.is_some_and(|limit: NonZeroU32| *before >= limit.get())) {
            return Err(TooMany);
        }
        if limits.concurrent.is_none() {
            return Ok(None);
        }
        source.active = source.active.saturating_add(1);
        Ok(Some(Visit { sources: Arc::clone(self), client }))
    }

    /// Adds an address. `None` if the map is full and the eviction finds no idle entry.
    fn insert(&self, client: IpAddr) -> Option<RefMut<'_, IpAddr, ClientUsage>> {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have added it meanwhile.
        if !self.by_address.contains_key(&client) {
            if ring.slots.len() < self.capacity {
                ring.slots.push(client);
            } else {
                *self.evict(&mut ring)? = client;
            }
        }
        Some(self.by_address.entry(client).or_default())
    }

    /// Removes an idle entry and returns its slot: the first without a reference, else the one last seen the longest
    /// ago of those looked up.
    fn evict<'r>(&self, ring: &'r mut Ring) -> Option<&'r mut IpAddr> {
        let mut oldest: Option<(u64, usize)> = None;
        for _ in 0..MAX_LOOKUPS.min(ring.slots.len()) {
            let slot = ring.hand;
            ring.hand = (slot + 1) % ring.slots.len();
            let removed = self.by_address.remove_if_mut(ring.slots.get(slot)?, |_, source| {
                let idle = source.active == 0;
                let referenced = std::mem::take(&mut source.referenced);
                if idle && referenced && oldest.is_none_or(|(last, _)| source.last < last) {
                    oldest = Some((source.last, slot));
                }
                idle && !referenced
            });
            if removed.is_some() {
                return ring.slots.get_mut(slot);
            }
        }
        let slot = ring.slots.get_mut(oldest?.1)?;
        self.by_address.remove_if(slot, |_, source| source.active == 0)?;
        Some(slot)
    }

    fn ms(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let now = self.sources.ms(Instant::now());
        if let Some(mut source) = self.sources.by_address.get_mut(&self.client) {
            source.active = source.active.saturating_sub(1);
            source.last = now;
        }
    }
}

/// Approximate number of events within the last `period`: those of the current period, plus the share of the previous
/// one that still lies within, assuming an even distribution (HAProxy's frequency counters).
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    began: u64,
    current: u32,
    previous: u32,
}

impl Window {
    /// Counts an event and returns the number before it.
    fn add(&mut self, now: u64, period: u64) -> u32 {
        let elapsed = now.saturating_sub(self.began);
        if elapsed >= 2 * period {
            *self = Window { began: now, current: 0, previous: 0 };
        } else if elapsed >= period {
            *self = Window { began: self.began + period, current: 0, previous: self.current };
        }
        let left = period - now.saturating_sub(self.began).min(period);
        let before = u64::from(self.current) + u64::from(self.previous) * left / period;
        self.current = self.current.saturating_add(1);
        u32::try_from(before).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests;

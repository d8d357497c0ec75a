//! What one client address may ask of one route: `haproxy.router.openshift.io/rate-limit-connections` and the
//! annotations that go with it (docs/openshift.md#annotations-of-routes).
//!
//! As in OpenShift's router, what counts is the route's and by the whole address; rates are over sliding windows of 3 s
//! and 10 s, and refused attempts count for them: who goes on hammering stays out. On routes that carry requests a
//! request counts as a connection, because it is one for HAProxy's backend, whose rules these are. A limit of N lets N
//! through; HAProxy's comparison refuses the Nth already, which nobody who sets a limit expects.
//!
//! Refused requests are answered 429 instead of being cut off: other requests of the same connection may be under way,
//! and a client that is told can wait. Relayed connections are reset: there, nothing can be said.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use router_table::policy::SourceLimits;

/// The window of `rate-tcp`, in ms.
const CONNECTIONS_WINDOW: u64 = 3_000;
/// The window of `rate-http`, in ms.
const REQUESTS_WINDOW: u64 = 10_000;
/// After how long an address without connections is forgotten, in ms; longer than two windows.
const FORGET: u64 = 30_000;
/// Most addresses that are known of a route, as many as OpenShift's table has.
const MAX_SOURCES: usize = 100_000;
const SHARDS: usize = 16;
/// How many addresses of a full shard are looked at for one to forget.
const SAMPLE: usize = 32;

/// The clients of a route, by address. Outlives versions of the route.
#[derive(Debug)]
pub struct Sources {
    start: Instant,
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
    capacity: usize,
}

/// A part of the clients, so that those who come at the same time seldom wait for each other.
#[derive(Debug, Default)]
struct Shard {
    by_address: HashMap<IpAddr, Source>,
    /// When it was last looked through for those to forget.
    cleaned: u64,
}

/// Times are in milliseconds after `Sources::start`.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    /// Connections, or requests under way.
    active: u32,
    connections: Window,
    requests: Window,
    last: u64,
}

/// A client has asked for more than the limits allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this address has more than the route allows")]
pub struct TooMany;

/// A connection or request that counts as under way until it is dropped.
#[derive(Debug)]
pub struct Visit {
    sources: Arc<Sources>,
    client: IpAddr,
}

impl Default for Sources {
    fn default() -> Self {
        Self::with_capacity(MAX_SOURCES)
    }
}

impl Sources {
    fn with_capacity(sources: usize) -> Self {
        let (start, hasher) = (Instant::now(), RandomState::new());
        Sources { start, hasher, shards: Default::default(), capacity: sources.div_ceil(SHARDS) }
    }

    /// Counts a connection, or a request, of a client. There is a visit to keep if connections at the same time are
    /// limited.
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
        let mut shard = self.shard(client).lock().unwrap_or_else(PoisonError::into_inner);
        // Every one of 100,000 others has something under way: better one too many than one that is kept out by them.
        let Some(source) = shard.source(client, now, self.capacity) else { return Ok(None) };
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

    fn shard(&self, client: IpAddr) -> &Mutex<Shard> {
        // Less than the number of shards, of which there is one at least.
        let index = (self.hasher.hash_one(client) % SHARDS as u64) as usize;
        let [first, ..] = &self.shards;
        self.shards.get(index).unwrap_or(first)
    }

    fn ms(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }
}

impl Shard {
    /// The entry of a client; `None` when there is no room for it.
    fn source(&mut self, client: IpAddr, now: u64, capacity: usize) -> Option<&mut Source> {
        if self.by_address.len() >= capacity && !self.by_address.contains_key(&client) {
            self.make_room(now, capacity);
            if self.by_address.len() >= capacity {
                return None;
            }
        }
        Some(self.by_address.entry(client).or_default())
    }

    fn make_room(&mut self, now: u64, capacity: usize) {
        // All are looked at once a second at most.
        if now.saturating_sub(self.cleaned) >= 1_000 {
            self.cleaned = now;
            self.by_address.retain(|_, source| source.active > 0 || now.saturating_sub(source.last) < FORGET);
        }
        if self.by_address.len() >= capacity {
            let idle = self.by_address.iter().filter(|(_, source)| source.active == 0).take(SAMPLE);
            let oldest = idle.min_by_key(|(_, source)| source.last).map(|(address, _)| *address);
            oldest.map(|address| self.by_address.remove(&address));
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let now = self.sources.ms(Instant::now());
        let mut shard = self.sources.shard(self.client).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = shard.by_address.get_mut(&self.client) {
            source.active = source.active.saturating_sub(1);
            source.last = now;
        }
    }
}

/// Events of the last `period`, approximately: those of this period, and of the one before the part that still counts,
/// as if they had come evenly (HAProxy's frequency counters).
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    began: u64,
    current: u32,
    previous: u32,
}

impl Window {
    /// Counts one; how many there were before it.
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

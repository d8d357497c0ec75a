//! Passive health checks: after several failed connection attempts in a row an address is ejected. Each further
//! ejection lasts twice as long. When an ejection expires, a single connection probes the address.
//!
//! TLS handshakes with an address are tracked separately for each [`TlsPeer`], so that a route with a wrong server name
//! cannot eject the address for other routes. A rejected certificate or a TLS alert does not count: it costs no time,
//! and the route's trust configuration may be wrong.
//!
//! Only addresses that failed recently have an entry; a healthy address costs nothing. If no other endpoint is left,
//! `choose` uses ejected addresses all the same. Endpoints that the backend's health checks ([`probes`](super::probes))
//! found unhealthy are stored here, too, so that a single look-up covers both.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use router_listener::{OwnAddresses, is_local};
use router_table::rule::HealthCheck;

use super::target::{EndpointTarget, TlsPeer};
use crate::listeners::loop_detection::Returned;
use crate::upstream::bucket::{MAX_AGE, PoolKey, Wire};

/// Consecutive failures that eject an address.
const THRESHOLD: u32 = 3;
/// Duration of the first ejection.
const FIRST_REST: Duration = Duration::from_secs(1);
/// Longest ejection.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// How long the probing connection may take before another one probes.
const TRIAL: Duration = Duration::from_secs(5);
/// After this time without a failure an entry is removed.
const FORGET: Duration = Duration::from_secs(300);

/// A step of the connection set-up whose failures are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConnectStage {
    /// TCP connection to an address.
    Tcp(SocketAddr),
    /// TLS handshake with a peer at an address.
    Tls(SocketAddr, TlsPeer),
}

impl ConnectStage {
    /// Address of the endpoint.
    pub fn address(&self) -> &SocketAddr {
        match self {
            ConnectStage::Tcp(address) | ConnectStage::Tls(address, _) => address,
        }
    }
}

/// An endpoint with an active health check. Endpoints are the same if protocol, peer and check are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checked {
    /// Endpoint and protocol.
    pub key: PoolKey,
    /// Parameters of the check.
    pub check: Arc<HealthCheck>,
}

impl Checked {
    /// The active health check of an endpoint, if its backend has one.
    pub fn of(target: EndpointTarget<'_>) -> Option<Checked> {
        let check = target.policy?.health_check.clone()?;
        let wire = match target.peer() {
            Some(peer) => Wire::Tls(peer),
            None if target.endpoint.h2c => Wire::Http2,
            None => Wire::Http1,
        };
        Some(Checked { key: PoolKey { address: target.endpoint.address, wire, keep: MAX_AGE }, check })
    }
}

#[derive(Clone, Debug, Default)]
struct HealthState {
    failed: HashMap<ConnectStage, Arc<Failures>>,
    /// Whether an entry is about a TLS handshake.
    has_tls: bool,
    ill: HashSet<Checked>,
}

impl HealthState {
    fn is_empty(&self) -> bool {
        self.failed.is_empty() && self.ill.is_empty()
    }
}

/// Health of endpoints: recent failures and results of active checks.
#[derive(Debug)]
pub struct Health {
    start: Instant,
    known: ArcSwap<HealthState>,
    /// Locked while entries are added or removed.
    writing: Mutex<()>,
    /// Addresses that the router itself listens on; never used as endpoints.
    pub own: ArcSwap<OwnAddresses>,
    /// Connections to endpoints, to detect endpoints that lead back to this router.
    pub returned: Returned,
}

/// Times are in milliseconds after `Health::start`.
#[derive(Debug, Default)]
struct Failures {
    in_a_row: AtomicU32,
    last: AtomicU64,
    rests_until: AtomicU64,
    on_trial: AtomicBool,
}

impl Failures {
    fn is_ejected(&self, now: u64) -> bool {
        self.rests_until.load(Ordering::Relaxed) > now
    }
}

impl Default for Health {
    fn default() -> Self {
        Health {
            start: Instant::now(),
            known: ArcSwap::default(),
            writing: Mutex::default(),
            own: ArcSwap::default(),
            returned: Returned::default(),
        }
    }
}

impl Health {
    /// A view of the current state; `None` when no entry exists.
    pub fn view(&self) -> Option<HealthView> {
        let known = self.known.load();
        (!known.is_empty()).then(|| HealthView { known, now: self.ms(Instant::now()) })
    }

    /// Whether an address leads to the router itself.
    pub fn is_own(&self, address: SocketAddr) -> bool {
        self.own.load().has(address, is_local) || self.returned.is_known(address)
    }

    /// Records that a step failed or timed out.
    pub fn failed(&self, step: &ConnectStage, now: Instant) {
        let (now, failures) = (self.ms(now), self.failures(step));
        failures.last.store(now, Ordering::Relaxed);
        let was_on_trial = failures.on_trial.swap(false, Ordering::Relaxed);
        if failures.is_ejected(now) && !was_on_trial {
            // The attempt began before the ejection, or the address was chosen for lack of others.
            return;
        }
        let in_a_row = failures.in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if let Some(longer) = in_a_row.checked_sub(THRESHOLD) {
            let rest = FIRST_REST.saturating_mul(1 << longer.min(16)).min(LONGEST_REST);
            failures.rests_until.store(now.saturating_add(ms(rest)), Ordering::Relaxed);
        }
    }

    /// Extends the ejection of an address to end this long after `now`, so that client connections do not probe it.
    pub fn extend_ejection(&self, address: SocketAddr, now: Instant, rest: Duration) {
        if let Some(failures) = self.known.load().failed.get(&ConnectStage::Tcp(address))
            && failures.in_a_row.load(Ordering::Relaxed) >= THRESHOLD
        {
            failures.on_trial.store(false, Ordering::Relaxed);
            failures.rests_until.fetch_max(self.ms(now).saturating_add(ms(rest)), Ordering::Relaxed);
        }
    }

    /// Records that a step succeeded.
    pub fn succeeded(&self, step: &ConnectStage) {
        if self.known.load().failed.contains_key(step) {
            self.change(|known| drop(known.failed.remove(step)));
        }
    }

    /// Stores the result of an active health check.
    pub fn checked(&self, endpoint: &Checked, is_ill: bool) {
        if self.known.load().ill.contains(endpoint) != is_ill {
            self.change(|known| {
                if is_ill {
                    known.ill.insert(endpoint.clone());
                } else {
                    known.ill.remove(endpoint);
                }
            });
        }
    }

    /// Removes these addresses, and entries without a recent failure.
    pub fn forget(&self, gone: &HashSet<SocketAddr>, now: Instant) {
        let before = self.ms(now).saturating_sub(ms(FORGET));
        let is_old = |failures: &Failures| failures.last.load(Ordering::Relaxed) < before;
        let is_known =
            |(step, failures): (&ConnectStage, &Arc<Failures>)| !gone.contains(step.address()) && !is_old(failures);
        if !self.known.load().failed.iter().all(is_known) {
            self.change(|known| known.failed.retain(|step, failures| is_known((step, failures))));
        }
    }

    fn failures(&self, step: &ConnectStage) -> Arc<Failures> {
        if let Some(failures) = self.known.load().failed.get(step) {
            return Arc::clone(failures);
        }
        let mut failures = Arc::default();
        self.change(|known| failures = Arc::clone(known.failed.entry(step.clone()).or_default()));
        failures
    }

    fn change(&self, change: impl FnOnce(&mut HealthState)) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = HealthState::clone(&self.known.load());
        change(&mut known);
        known.has_tls = known.failed.keys().any(|step| matches!(step, ConnectStage::Tls(..)));
        self.known.store(Arc::new(known));
    }

    fn ms(&self, now: Instant) -> u64 {
        ms(now.saturating_duration_since(self.start))
    }
}

/// State of ejections at one moment.
pub struct HealthView {
    known: Guard<Arc<HealthState>>,
    now: u64,
}

impl HealthView {
    /// The view at another moment, for tests.
    #[cfg(test)]
    pub fn at(mut self, health: &Health, now: Instant) -> Self {
        self.now = health.ms(now);
        self
    }

    /// Whether an endpoint is unhealthy according to its backend's active health check.
    pub fn is_ill(&self, target: EndpointTarget<'_>) -> bool {
        !self.known.ill.is_empty() && Checked::of(target).is_some_and(|checked| self.known.ill.contains(&checked))
    }

    /// Whether the address, or TLS with it, is ejected. `peer` returns the TLS peer, if any.
    pub fn is_ejected(&self, address: SocketAddr, peer: impl FnOnce() -> Option<TlsPeer>) -> bool {
        self.failures(address, peer).into_iter().flatten().any(|failures| failures.is_ejected(self.now))
    }

    /// What is ejected, as text, and for how long.
    pub fn ejection(
        &self,
        address: SocketAddr,
        peer: impl FnOnce() -> Option<TlsPeer>,
    ) -> Option<(&'static str, Duration)> {
        let [tcp, tls] = self.failures(address, peer);
        let steps = [("connecting", tcp), ("TLS", tls)];
        let (step, failures) =
            steps.into_iter().find(|(_, failures)| failures.is_some_and(|it| it.is_ejected(self.now)))?;
        let until = failures?.rests_until.load(Ordering::Relaxed);
        Some((step, Duration::from_millis(until.saturating_sub(self.now))))
    }

    /// Whether the caller may connect: the endpoint is not ejected, or its ejection has expired and the caller is the
    /// first one since.
    pub fn may_connect(&self, address: SocketAddr, peer: impl FnOnce() -> Option<TlsPeer>) -> bool {
        let failures = self.failures(address, peer);
        let failures = || failures.into_iter().flatten();
        // A caller that may not use one step must not claim the probe of the other.
        !failures().any(|failures| failures.is_ejected(self.now)) && failures().all(|failures| self.is_first(failures))
    }

    fn failures(&self, address: SocketAddr, peer: impl FnOnce() -> Option<TlsPeer>) -> [Option<&Arc<Failures>>; 2] {
        let known = &self.known;
        let peer = if known.has_tls { peer() } else { None };
        let tls = peer.and_then(|peer| known.failed.get(&ConnectStage::Tls(address, peer)));
        [known.failed.get(&ConnectStage::Tcp(address)), tls]
    }

    fn is_first(&self, failures: &Failures) -> bool {
        let until = failures.rests_until.load(Ordering::Relaxed);
        if until == 0 {
            return true;
        }
        let next = self.now.saturating_add(ms(TRIAL));
        let is_first = until <= self.now
            && failures.rests_until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first {
            failures.on_trial.store(true, Ordering::Relaxed);
        }
        is_first
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

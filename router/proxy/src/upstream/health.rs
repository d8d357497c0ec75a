//! Passive health: an address that several times in a row could not be connected to rests, each time for twice as
//! long. When a rest is over, one connection finds out for all.
//!
//! The same holds for TLS with an address, for each [`Peer`] by itself: one who asks for a name that the endpoint does
//! not know must not make it rest for others. A certificate that is refused counts for nothing, nor does whatever else
//! is said in a handshake: that costs no time, and it is the route's trust that does not fit.
//!
//! An address that connects costs nothing here: only those that failed last are known. Addresses that rest are used all
//! the same when there is nothing else to choose; that is for `choose` to see.
//! So are endpoints that are ill by the health checks of their backend ([`probes`](super::probes)): these are known here
//! as well, so that one look is enough.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use router_listener::{OwnAddresses, is_local};
use router_table::rule::HealthCheck;

use super::target::{Peer, Target};
use crate::listeners::returned::Returned;
use crate::upstream::bucket::{MAX_AGE, PoolKey, Wire};

/// Failures in a row after which an address rests.
const THRESHOLD: u32 = 3;
/// The first rest.
const FIRST_REST: Duration = Duration::from_secs(1);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// How long the one that finds out may take, before somebody else does.
const TRIAL: Duration = Duration::from_secs(5);
/// After how long without failure an address is forgotten: nobody connects to it any more.
const FORGET: Duration = Duration::from_secs(300);

/// What can fail of a connection, each for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// To connect to an address.
    Tcp(SocketAddr),
    /// The TLS handshake behind that, with whom it is to be.
    Tls(SocketAddr, Peer),
}

impl Step {
    /// The endpoint.
    pub fn address(&self) -> &SocketAddr {
        match self {
            Step::Tcp(address) | Step::Tls(address, _) => address,
        }
    }
}

/// An endpoint as a backend asks it for its health: what is spoken counts, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checked {
    /// The endpoint.
    pub key: PoolKey,
    /// How it is asked.
    pub check: Arc<HealthCheck>,
}

impl Checked {
    /// What is asked of an endpoint, if its backend wants it to be.
    pub fn of(target: Target<'_>) -> Option<Checked> {
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
struct Known {
    failed: HashMap<Step, Arc<Failures>>,
    /// Whether a handshake is among them.
    has_tls: bool,
    ill: HashSet<Checked>,
}

impl Known {
    fn is_empty(&self) -> bool {
        self.failed.is_empty() && self.ill.is_empty()
    }
}

/// What is known of what failed last.
#[derive(Debug)]
pub struct Health {
    start: Instant,
    known: ArcSwap<Known>,
    /// Held to put addresses in and take them out.
    writing: Mutex<()>,
    /// Where the router itself listens: never an endpoint, however well it answers.
    pub own: ArcSwap<OwnAddresses>,
    /// Connections that were made, and endpoints whose connections came back.
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
    fn rest(&self, now: u64) -> bool {
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
    /// Who rests; `None` when nobody has failed lately.
    pub fn view(&self) -> Option<View> {
        let known = self.known.load();
        (!known.is_empty()).then(|| View { known, now: self.ms(Instant::now()) })
    }

    /// Whether an address leads to the router itself.
    pub fn is_own(&self, address: SocketAddr) -> bool {
        self.own.load().has(address, is_local) || self.returned.is_known(address)
    }

    /// A step has failed, or was not made in time.
    pub fn failed(&self, step: &Step, now: Instant) {
        let (now, failures) = (self.ms(now), self.failures(step));
        failures.last.store(now, Ordering::Relaxed);
        let was_on_trial = failures.on_trial.swap(false, Ordering::Relaxed);
        if failures.rest(now) && !was_on_trial {
            // Begun before the rest, or chosen for lack of others: it is no news.
            return;
        }
        let in_a_row = failures.in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if let Some(longer) = in_a_row.checked_sub(THRESHOLD) {
            let rest = FIRST_REST.saturating_mul(1 << longer.min(16)).min(LONGEST_REST);
            failures.rests_until.store(now.saturating_add(ms(rest)), Ordering::Relaxed);
        }
    }

    /// Lets an address that has come to rest do so for this long from now: somebody else finds out.
    pub fn extend_rest(&self, address: SocketAddr, now: Instant, rest: Duration) {
        if let Some(failures) = self.known.load().failed.get(&Step::Tcp(address))
            && failures.in_a_row.load(Ordering::Relaxed) >= THRESHOLD
        {
            failures.on_trial.store(false, Ordering::Relaxed);
            failures.rests_until.fetch_max(self.ms(now).saturating_add(ms(rest)), Ordering::Relaxed);
        }
    }

    /// A step was made.
    pub fn succeeded(&self, step: &Step) {
        if self.known.load().failed.contains_key(step) {
            self.change(|known| drop(known.failed.remove(step)));
        }
    }

    /// What its health checks say of an endpoint.
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

    /// Forgets these addresses, and those that nobody has connected to for long.
    pub fn forget(&self, gone: &HashSet<SocketAddr>, now: Instant) {
        let before = self.ms(now).saturating_sub(ms(FORGET));
        let is_old = |failures: &Failures| failures.last.load(Ordering::Relaxed) < before;
        let is_known = |(step, failures): (&Step, &Arc<Failures>)| !gone.contains(step.address()) && !is_old(failures);
        if !self.known.load().failed.iter().all(is_known) {
            self.change(|known| known.failed.retain(|step, failures| is_known((step, failures))));
        }
    }

    fn failures(&self, step: &Step) -> Arc<Failures> {
        if let Some(failures) = self.known.load().failed.get(step) {
            return Arc::clone(failures);
        }
        let mut failures = Arc::default();
        self.change(|known| failures = Arc::clone(known.failed.entry(step.clone()).or_default()));
        failures
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = Known::clone(&self.known.load());
        change(&mut known);
        known.has_tls = known.failed.keys().any(|step| matches!(step, Step::Tls(..)));
        self.known.store(Arc::new(known));
    }

    fn ms(&self, now: Instant) -> u64 {
        ms(now.saturating_duration_since(self.start))
    }
}

/// Who rests at a moment.
pub struct View {
    known: Guard<Arc<Known>>,
    now: u64,
}

impl View {
    /// The same at another moment, for tests of what time does.
    #[cfg(test)]
    pub fn at(mut self, health: &Health, now: Instant) -> Self {
        self.now = health.ms(now);
        self
    }

    /// Whether an endpoint is ill, by the health checks that its backend asks for.
    pub fn is_ill(&self, target: Target<'_>) -> bool {
        !self.known.ill.is_empty() && Checked::of(target).is_some_and(|checked| self.known.ill.contains(&checked))
    }

    /// Whether an endpoint rests, or TLS with it; `peer` is asked whom that would be with.
    pub fn rests(&self, address: SocketAddr, peer: impl FnOnce() -> Option<Peer>) -> bool {
        self.failures(address, peer).into_iter().flatten().any(|failures| failures.rest(self.now))
    }

    /// What of an endpoint rests, in words, and for how long.
    pub fn rest(&self, address: SocketAddr, peer: impl FnOnce() -> Option<Peer>) -> Option<(&'static str, Duration)> {
        let [tcp, tls] = self.failures(address, peer);
        let steps = [("connecting", tcp), ("TLS", tls)];
        let (step, failures) = steps.into_iter().find(|(_, failures)| failures.is_some_and(|it| it.rest(self.now)))?;
        let until = failures?.rests_until.load(Ordering::Relaxed);
        Some((step, Duration::from_millis(until.saturating_sub(self.now))))
    }

    /// Whether the caller may connect to an endpoint: it does not rest, or its rest is over and the caller is the first
    /// to come after it.
    pub fn may_connect(&self, address: SocketAddr, peer: impl FnOnce() -> Option<Peer>) -> bool {
        let failures = self.failures(address, peer);
        let failures = || failures.into_iter().flatten();
        // Nobody is to find out about one step who may not take the other.
        !failures().any(|failures| failures.rest(self.now)) && failures().all(|failures| self.is_first(failures))
    }

    fn failures(&self, address: SocketAddr, peer: impl FnOnce() -> Option<Peer>) -> [Option<&Arc<Failures>>; 2] {
        let known = &self.known;
        let peer = if known.has_tls { peer() } else { None };
        let tls = peer.and_then(|peer| known.failed.get(&Step::Tls(address, peer)));
        [known.failed.get(&Step::Tcp(address)), tls]
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

//! Counters of each route, for the admin API and the metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use router_model::names::{RouteId, RouterName};
use router_table::table::RoutingTable;

use router_table::flag::Flag;

/// Interval between log messages about lost copies of a route.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Counters of a route on a router since it was admitted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCounters {
    /// Router that served it.
    pub router: RouterName,
    /// The route.
    pub route: RouteId,
    /// Relayed connections or proxied requests that have ended.
    pub served: u64,
    /// Those that failed (any flag but `-`).
    pub failed: u64,
    /// Payload or body bytes from clients.
    pub bytes_in: u64,
    /// Payload or body bytes to clients.
    pub bytes_out: u64,
    /// Mirrored requests.
    pub copies: u64,
    /// Mirrored requests without a response.
    pub copies_lost: u64,
}

type CounterKey = (RouterName, RouteId);

/// Counters of a route.
#[derive(Debug, Default)]
pub struct Totals {
    served: AtomicU64,
    failed: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    copies: AtomicU64,
    copies_lost: AtomicU64,
    untold: Mutex<UnreportedLosses>,
}

/// Lost copies that were not logged yet.
#[derive(Debug, Default)]
struct UnreportedLosses {
    count: u64,
    last: Option<Instant>,
}

/// Counters of all routes. Bounded by the routing table: the counters of removed routes are dropped.
#[derive(Debug, Default)]
pub struct Counters {
    by_route: RwLock<BTreeMap<CounterKey, Arc<Totals>>>,
}

impl Totals {
    /// Counts a connection or request that has ended.
    pub fn add(&self, bytes_in: u64, bytes_out: u64, flag: Flag) {
        self.served.fetch_add(1, Ordering::Relaxed);
        let more =
            [(&self.failed, u64::from(flag != Flag::Fine)), (&self.bytes_in, bytes_in), (&self.bytes_out, bytes_out)];
        for (total, more) in more.into_iter().filter(|(_, more)| *more > 0) {
            total.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl Totals {
    /// Counts a mirrored request.
    pub fn add_copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a mirrored request without a response. Returns the number of those not logged yet, if a message is due:
    /// at most once per `TELL_EVERY`.
    pub fn lose_copy(&self, now: Instant) -> Option<u64> {
        self.copies_lost.fetch_add(1, Ordering::Relaxed);
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.count += 1;
        let is_due = untold.last.is_none_or(|last| now.saturating_duration_since(last) >= TELL_EVERY);
        is_due.then(|| std::mem::replace(&mut *untold, UnreportedLosses { count: 0, last: Some(now) }).count)
    }
}

impl Counters {
    /// The counters of a route. Takes a lock and compares many names, so frequent callers keep the result.
    pub fn totals(&self, router: &RouterName, route: &RouteId) -> Arc<Totals> {
        let key = (router.clone(), route.clone());
        let known = self.by_route.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        known.unwrap_or_else(|| {
            let mut by_route = self.by_route.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(by_route.entry(key).or_default())
        })
    }

    /// Removes routes that the table lacks.
    pub fn retain(&self, table: &RoutingTable) {
        let mut by_route = self.by_route.write().unwrap_or_else(PoisonError::into_inner);
        by_route
            .retain(|(router, route), _| table.router(router).is_some_and(|router| router.routes.get(route).is_some()));
    }

    /// All counters, by router and route.
    pub fn snapshot(&self) -> Vec<RouteCounters> {
        let by_route = self.by_route.read().unwrap_or_else(PoisonError::into_inner);
        by_route
            .iter()
            .map(|((router, route), totals)| RouteCounters {
                router: router.clone(),
                route: route.clone(),
                served: totals.served.load(Ordering::Relaxed),
                failed: totals.failed.load(Ordering::Relaxed),
                bytes_in: totals.bytes_in.load(Ordering::Relaxed),
                bytes_out: totals.bytes_out.load(Ordering::Relaxed),
                copies: totals.copies.load(Ordering::Relaxed),
                copies_lost: totals.copies_lost.load(Ordering::Relaxed),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_copies_are_logged_at_intervals() {
        let (totals, start) = (Totals::default(), Instant::now());
        let lose = |after: u64| totals.lose_copy(start + Duration::from_secs(after));
        assert_eq!([lose(0), lose(1), lose(59), lose(60), lose(61)], [Some(1), None, None, Some(3), None]);
        assert_eq!(lose(300), Some(2));
        assert_eq!(totals.copies_lost.load(Ordering::Relaxed), 6);
    }
}

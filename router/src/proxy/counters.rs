//! What each route has served, for the admin API and the metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use router_core::model::{RouteId, RouterName};
use router_core::table::RoutingTable;

use super::access::Flag;

/// Totals of one route on one router since it was admitted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCounters {
    /// Router that served it.
    pub router: RouterName,
    /// The route.
    pub route: RouteId,
    /// Relayed connections or proxied requests that have ended.
    pub served: u64,
    /// Those of them that did not end well (any flag but `-`).
    pub failed: u64,
    /// Payload or body bytes from clients.
    pub bytes_in: u64,
    /// Payload or body bytes to clients.
    pub bytes_out: u64,
}

type Key = (RouterName, RouteId);

/// Totals of one route while they grow.
#[derive(Debug, Default)]
pub struct Totals {
    served: AtomicU64,
    failed: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// Counters of all routes. Bounded by the routing table: routes that leave it lose theirs.
#[derive(Debug, Default)]
pub struct Counters {
    by_route: RwLock<BTreeMap<Key, Arc<Totals>>>,
}

impl Totals {
    /// Counts one connection or request that has ended.
    pub fn add(&self, bytes_in: u64, bytes_out: u64, flag: Flag) {
        self.served.fetch_add(1, Ordering::Relaxed);
        let more =
            [(&self.failed, u64::from(flag != Flag::Fine)), (&self.bytes_in, bytes_in), (&self.bytes_out, bytes_out)];
        for (total, more) in more.into_iter().filter(|(_, more)| *more > 0) {
            total.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl Counters {
    /// The totals of a route. Takes a lock and many comparisons: whoever counts often keeps them.
    pub fn totals(&self, router: &RouterName, route: &RouteId) -> Arc<Totals> {
        let key = (router.clone(), route.clone());
        let known = self.by_route.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        known.unwrap_or_else(|| {
            let mut by_route = self.by_route.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(by_route.entry(key).or_default())
        })
    }

    /// Forgets routes that the table does not have.
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
            })
            .collect()
    }
}

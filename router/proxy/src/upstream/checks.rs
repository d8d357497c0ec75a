//! Active health checks of OpenShift routes (`healthCheckInterval`,
//! `router.openshift.io/haproxy.health.check.interval`): the router connects to the endpoints of routes with several
//! endpoints at intervals, so that no client request has to discover a failure or a recovery.
//!
//! A check is a TCP connection that is opened and reset, as HAProxy's. Three consecutive failures eject the address
//! (`health`); the first success ends the ejection. An address is checked once for all its routes, at their shortest
//! interval. At most [`MAX_RATE`] checks begin per second: with very many endpoints, intervals become longer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use router_table::table::{Endpoint, Endpoints, ResolvedRoute, RouterTable, RoutingTable, WeightedService};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::balancer::Balancer;
use crate::dial;
use crate::relay;

/// Most checks that begin within a second.
const MAX_RATE: usize = 1_000;
/// Checks that are due within this time begin together.
const STEP: Duration = Duration::from_millis(20);
/// Most concurrent checks; further ones are delayed.
const MAX_AT_ONCE: usize = 256;
/// Longest timeout of a check, whatever its interval.
const PATIENCE: Duration = Duration::from_secs(5);
/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// Checks the endpoints of the newest table; never returns.
pub async fn run(balancer: Arc<Balancer>, mut tables: watch::Receiver<Arc<RoutingTable>>) {
    let mut table = Arc::clone(&tables.borrow_and_update());
    let mut schedule = Schedule::default();
    schedule.follow(&RoutingTable::default(), &table, Instant::now());
    let mut under_way = JoinSet::new();
    let mut follows = true;
    loop {
        // Due time of the next checks, if concurrency allows any.
        let wake = schedule.next().filter(|_| under_way.len() < MAX_AT_ONCE);
        tokio::select! {
            changed = tables.changed(), if follows => {
                follows = changed.is_ok();
                if follows {
                    let newer = Arc::clone(&tables.borrow_and_update());
                    schedule.follow(&table, &newer, Instant::now());
                    table = newer;
                }
            }
            Some(_) = under_way.join_next() => {}
            () = until(wake) => {
                for (address, interval) in schedule.due(Instant::now(), MAX_AT_ONCE - under_way.len()) {
                    under_way.spawn(check(Arc::clone(&balancer), address, interval));
                }
            }
        }
    }
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

async fn check(balancer: Arc<Balancer>, address: SocketAddr, interval: Duration) {
    let endpoint = Endpoint { address, target: None, h2c: false };
    match dial::connect(&balancer.health, &endpoint, interval.min(PATIENCE)).await {
        // No data was sent, so a reset loses nothing and leaves no port in TIME_WAIT.
        Ok(stream) => relay::reset_on_close(&stream),
        // Client connections do not probe the address before the next check has ended.
        Err(_) => balancer.health.extend_ejection(address, std::time::Instant::now(), 2 * interval.max(PATIENCE)),
    }
}

/// Checked addresses and their due times.
#[derive(Debug, Default)]
struct Schedule {
    watched: HashMap<SocketAddr, CheckedAddress>,
    by_time: BTreeSet<(Instant, SocketAddr)>,
    /// No check begins before this.
    not_before: Option<Instant>,
}

#[derive(Debug)]
struct CheckedAddress {
    /// Number of endpoints of routes with each interval.
    intervals: BTreeMap<Duration, usize>,
    next: Instant,
}

impl CheckedAddress {
    fn interval(&self) -> Duration {
        self.intervals.first_key_value().map_or(PATIENCE, |(interval, _)| *interval)
    }
}

impl Schedule {
    /// Applies the changes between two tables. Cost is proportional to the change.
    fn follow(&mut self, before: &RoutingTable, now_table: &RoutingTable, now: Instant) {
        let both = before.routers.iter().filter_map(|old| Some((old, now_table.router(&old.name)?)));
        let retimed: Vec<_> = both.filter(|(old, new)| interval_of(old) != interval_of(new)).collect();
        // Additions first, so that an unchanged address keeps its due time.
        for (old, new) in &retimed {
            new.routes.values().for_each(|route| self.add(route, (new, &now_table.endpoints), now));
            old.routes.values().for_each(|route| self.remove(route, (old, &before.endpoints)));
        }
        let is_retimed = |router: &RouterTable| retimed.iter().any(|(old, _)| old.name == router.name);
        for change in now_table.route_changes(before) {
            if change.old.or(change.new).is_some_and(|(router, _)| is_retimed(router)) {
                continue;
            }
            change.new.into_iter().for_each(|(router, route)| self.add(route, (router, &now_table.endpoints), now));
            change.old.into_iter().for_each(|(router, route)| self.remove(route, (router, &before.endpoints)));
        }
    }

    /// Due time of the next check.
    fn next(&self) -> Option<Instant> {
        let (first, _) = self.by_time.first()?;
        Some(self.not_before.map_or(*first, |not_before| not_before.max(*first)))
    }

    /// Takes up to `most` due addresses, with their intervals.
    fn due(&mut self, now: Instant, most: usize) -> Vec<(SocketAddr, Duration)> {
        let per_step = MAX_RATE / (1_000 / STEP.as_millis() as usize);
        let mut due = Vec::new();
        while due.len() < most.min(per_step)
            && let Some((_, address)) = self.by_time.first().copied().filter(|(at, _)| *at <= now)
        {
            self.by_time.pop_first();
            if let Some(watched) = self.watched.get_mut(&address) {
                watched.next = now + watched.interval();
                self.by_time.insert((watched.next, address));
                due.push((address, watched.interval()));
            }
        }
        self.not_before = Some(now + STEP);
        due
    }

    fn add(&mut self, route: &ResolvedRoute, of: (&RouterTable, &Endpoints), now: Instant) {
        let Some((interval, addresses)) = checked(route, of) else { return };
        for address in addresses {
            let watched = self.watched.entry(address).or_insert_with(|| {
                // Random phase: otherwise all addresses of a new table would be due at the same time.
                let part = f64::from(dial::random_below(1 << 20)) / f64::from(1 << 20);
                let next = now + interval.mul_f64(part);
                self.by_time.insert((next, address));
                CheckedAddress { intervals: BTreeMap::new(), next }
            });
            *watched.intervals.entry(interval).or_default() += 1;
            if watched.next > now + interval {
                self.by_time.remove(&(watched.next, address));
                watched.next = now + interval;
                self.by_time.insert((watched.next, address));
            }
        }
    }

    fn remove(&mut self, route: &ResolvedRoute, of: (&RouterTable, &Endpoints)) {
        let Some((interval, addresses)) = checked(route, of) else { return };
        for address in addresses {
            let Some(watched) = self.watched.get_mut(&address) else { continue };
            if let Some(count) = watched.intervals.get_mut(&interval) {
                *count -= 1;
                if *count == 0 {
                    watched.intervals.remove(&interval);
                }
            }
            if watched.intervals.is_empty() {
                self.by_time.remove(&(watched.next, address));
                self.watched.remove(&address);
            }
        }
    }
}

/// The checked addresses of a route and their interval; `None` for a route with a single endpoint.
fn checked<'r>(
    route: &'r ResolvedRoute,
    (router, endpoints): (&RouterTable, &'r Endpoints),
) -> Option<(Duration, impl Iterator<Item = SocketAddr> + use<'r>)> {
    let services = &route.cluster.services;
    let active: usize =
        services.iter().filter(|service| service.weight > 0).map(|service| endpoints.of(service).len()).sum();
    let interval = route.policy.health_check.unwrap_or(interval_of(router)).max(SHORTEST);
    // Backends with their own health check are left to `probes`.
    let has_own = |service: &&WeightedService| service.policy.as_ref().is_some_and(|own| own.health_check.is_some());
    let plain = services.iter().filter(move |service| !has_own(service));
    let addresses = plain.flat_map(|service| endpoints.of(service)).map(|endpoint| endpoint.address);
    (active > 1).then_some((interval, addresses))
}

fn interval_of(router: &RouterTable) -> Duration {
    router.policy.timeouts.health_check
}

#[cfg(test)]
mod tests;

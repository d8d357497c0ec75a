//! Active health checks: endpoints of routes that have several are connected to at intervals
//! (`healthCheckInterval`, `router.openshift.io/haproxy.health.check.interval`), so that no client has to find out that
//! one does not answer, nor that it does again.
//!
//! A check is a TCP connection that is made and reset, as HAProxy's. Three in a row that fail let the address rest
//! (`health`), the first one that does not ends that. An address is checked once for all routes that have it, at the
//! shortest of their intervals, and there are no more than [`MAX_RATE`] checks a second: with very many endpoints,
//! intervals become longer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use router_table::table::{Endpoint, Endpoints, ResolvedRoute, RouterTable, RoutingTable, ServiceEndpoints};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::balancer::Balancer;
use crate::dial;
use crate::relay;

/// Most checks that begin within a second.
const MAX_RATE: usize = 1_000;
/// Checks begin together that are due within this time.
const STEP: Duration = Duration::from_millis(20);
/// Most checks at the same time: beyond it, those that are due wait.
const MAX_AT_ONCE: usize = 256;
/// How long a check waits, whatever its interval.
const PATIENCE: Duration = Duration::from_secs(5);
/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// Checks the endpoints of the tables as they come; ends never.
pub async fn run(balancer: Arc<Balancer>, mut tables: watch::Receiver<Arc<RoutingTable>>) {
    let mut table = Arc::clone(&tables.borrow_and_update());
    let mut schedule = Schedule::default();
    schedule.follow(&RoutingTable::default(), &table, Instant::now());
    let mut under_way = JoinSet::new();
    let mut follows = true;
    loop {
        // The next step; no further than those that are under way allow.
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
        // Nothing was said, so nothing is lost, and no port is kept waiting.
        Ok(stream) => relay::reset_on_close(&stream),
        // Until the next check has come to its end, no client need find out.
        Err(_) => balancer.health.extend_rest(address, std::time::Instant::now(), 2 * interval.max(PATIENCE)),
    }
}

/// What is checked, and when next.
#[derive(Debug, Default)]
struct Schedule {
    watched: HashMap<SocketAddr, Watched>,
    by_time: BTreeSet<(Instant, SocketAddr)>,
    /// Nothing begins before this.
    not_before: Option<Instant>,
}

#[derive(Debug)]
struct Watched {
    /// For how many endpoints of routes.
    intervals: BTreeMap<Duration, usize>,
    next: Instant,
}

impl Watched {
    fn interval(&self) -> Duration {
        self.intervals.first_key_value().map_or(PATIENCE, |(interval, _)| *interval)
    }
}

impl Schedule {
    /// Follows from one table to the next. Costs what has changed.
    fn follow(&mut self, before: &RoutingTable, now_table: &RoutingTable, now: Instant) {
        let both = before.routers.iter().filter_map(|old| Some((old, now_table.router(&old.name)?)));
        let retimed: Vec<_> = both.filter(|(old, new)| interval_of(old) != interval_of(new)).collect();
        // First in, so that what stays keeps its turn.
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

    /// When something is due next.
    fn next(&self) -> Option<Instant> {
        let (first, _) = self.by_time.first()?;
        Some(self.not_before.map_or(*first, |not_before| not_before.max(*first)))
    }

    /// What is due, `most` at most, with its interval.
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
                // Spread over the interval, or all that come with one table would always be due together.
                let part = f64::from(dial::random_below(1 << 20)) / f64::from(1 << 20);
                let next = now + interval.mul_f64(part);
                self.by_time.insert((next, address));
                Watched { intervals: BTreeMap::new(), next }
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

/// The addresses of a route that are checked and how often; `None` unless there are several to choose from.
fn checked<'r>(
    route: &'r ResolvedRoute,
    (router, endpoints): (&RouterTable, &'r Endpoints),
) -> Option<(Duration, impl Iterator<Item = SocketAddr> + use<'r>)> {
    let services = &route.cluster.services;
    let active: usize =
        services.iter().filter(|service| service.weight > 0).map(|service| endpoints.of(service).len()).sum();
    let interval = route.policy.health_check.unwrap_or(interval_of(router)).max(SHORTEST);
    // Those that want more than a connection are asked by `probes`.
    let has_own = |service: &&ServiceEndpoints| service.policy.as_ref().is_some_and(|own| own.health_check.is_some());
    let plain = services.iter().filter(move |service| !has_own(service));
    let addresses = plain.flat_map(|service| endpoints.of(service)).map(|endpoint| endpoint.address);
    (active > 1).then_some((interval, addresses))
}

fn interval_of(router: &RouterTable) -> Duration {
    router.policy.timeouts.health_check
}

#[cfg(test)]
mod tests;

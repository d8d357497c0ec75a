//! Reports the kernel's decisions and ends as the proxy reports its own: one access-log line per connection, and the
//! route's counters.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use router_access_log::{AccessLog, Flag, KernelConnection};
use router_common::hostname::field_text;
use router_common::maps::{DecisionEvent, FlowEnd, FlowKey};
use router_common::verdict::{FlowEndReason, Reason, Verdict};
use router_model::names::{HostMatch, RouteId, RouterName};
use router_table::table::{ResolvedRoute, RouterTable, RoutingTable};

use super::address::address;
use super::dump::verdict;
use super::image::{MapImage, RouteLabel};

/// Most names of live connections to wildcard hosts that are kept; beyond that the log has the wildcard.
const NAMES: usize = 1 << 16;
/// Most ends found by the sweep that wait to be reported.
const SWEPT: usize = 1 << 16;
/// Most removed routes whose names are kept for connections that may still end.
const GONE: usize = 1 << 12;

/// Numbers of connections that the kernel passed to the agent, by route id and reason code.
pub type RelayedCounts = Arc<Mutex<BTreeMap<(u32, u16), u64>>>;

/// Reports the kernel's decisions and ends of connections.
pub struct Reporter {
    access: AccessLog,
    table: Arc<RoutingTable>,
    /// Intended content of the maps: gives the route of an id.
    wanted: Arc<Mutex<MapImage>>,
    relayed: RelayedCounts,
    names: ServerNames,
    gone: RemovedRoutes,
    swept: VecDeque<FlowEnd>,
}

/// A route, as log lines name it.
#[derive(Clone, Debug)]
struct Named {
    router: RouterName,
    route: RouteId,
    /// `None`: unknown, for a route that an earlier agent served.
    host: Option<HostMatch>,
}

impl Reporter {
    /// A reporter that writes to this log.
    pub fn new(access: AccessLog, wanted: Arc<Mutex<MapImage>>) -> Self {
        Reporter {
            access,
            table: Arc::default(),
            wanted,
            relayed: RelayedCounts::default(),
            names: ServerNames::default(),
            gone: RemovedRoutes::default(),
            swept: VecDeque::new(),
        }
    }

    /// The log that it writes to.
    pub fn log(&self) -> &AccessLog {
        &self.access
    }

    /// Numbers of the connections that the agent took over.
    pub fn relayed(&self) -> RelayedCounts {
        Arc::clone(&self.relayed)
    }

    /// Replaces the table. The names of removed routes are kept while their connections may live; `gone` are the ids
    /// and labels of these routes.
    pub fn follow<'l>(&mut self, table: &Arc<RoutingTable>, gone: impl Iterator<Item = (u32, &'l RouteLabel)>) {
        for (id, label) in gone {
            self.relayed.lock().unwrap_or_else(PoisonError::into_inner).retain(|(route, _), _| *route != id);
            let host = resolved(&self.table, label).map(|(_, route)| route.host.clone());
            let router = [&self.table, table].into_iter().find_map(|table| router(table, label.router));
            let router = router.map_or_else(|| RouterName("-".into()), |router| router.name.clone());
            self.gone.insert(id, Named { router, route: label.route.clone(), host });
        }
        self.table = Arc::clone(table);
    }

    /// The tunnel timeout of a route, if it has its own.
    pub fn tunnel_timeout(&self, route: u32) -> Option<Duration> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, route) = resolved(&self.table, wanted.routes.get(&route)?)?;
        route.tunnel_timeout()
    }

    /// Reports a decision: counts a relayed connection, and logs a dropped one.
    pub fn decided(&mut self, event: &DecisionEvent) {
        let reason = Reason::from_code(event.verdict.reason);
        let (client, listener) = ends_of(&event.flow);
        tracing::debug!(
            target: "kernel",
            %client,
            %listener,
            host = field_text(&event.host),
            verdict = verdict(event.verdict.verdict),
            reason = reason.map_or("unknown", Reason::text),
            route = event.verdict.route,
            bytes = event.verdict.bytes,
            segments = event.segments,
        );
        let (Some(reason), route) = (reason, event.verdict.route) else { return };
        match reason.verdict() {
            Verdict::Steer => {
                let wildcard =
                    self.named(route).is_some_and(|named| matches!(named.host, Some(HostMatch::Wildcard(_))));
                if wildcard {
                    self.names.insert(event.flow, field_text(&event.host));
                }
            }
            Verdict::Pass if route != 0 => {
                let mut relayed = self.relayed.lock().unwrap_or_else(PoisonError::into_inner);
                *relayed.entry((route, reason as u16)).or_default() += 1;
            }
            Verdict::Pass => {}
            // The kernel has reset the client, and the proxy has no socket for it: no other line is written.
            Verdict::Drop => {
                let Some(named) = self.named(route) else { return };
                self.access.carried(&KernelConnection {
                    router: &named.router,
                    client,
                    listener,
                    host: field_text(&event.host),
                    route: &named.route,
                    endpoint: None,
                    bytes_in: 0,
                    bytes_out: 0,
                    retries: 0,
                    flag: Flag::SourceNotAllowed,
                    duration: Duration::ZERO,
                });
            }
        }
    }

    /// Reports the end of a connection that the kernel carried.
    pub fn ended(&mut self, end: &FlowEnd) {
        let flag = FlowEndReason::from_code(end.reason).map_or(Flag::Fine, flag);
        self.line(end, flag);
    }

    /// Queues an end that the sweep found. The queue limits the rate: after an overflow of the ring the sweep may find
    /// more ends at once than fit in the log's queue. Reports it at once if this queue is full.
    pub fn swept(&mut self, end: FlowEnd) {
        if self.swept.len() < SWEPT {
            self.swept.push_back(end);
        } else {
            self.ended(&end);
        }
    }

    /// Takes the oldest queued ends, `most` at most.
    pub fn take_swept(&mut self, most: usize) -> Vec<FlowEnd> {
        self.swept.drain(..most.min(self.swept.len())).collect()
    }

    /// Reports the end of a connection that is no longer carried because the router ends.
    pub fn given_up(&mut self, end: &FlowEnd) {
        self.line(end, Flag::ClientGone);
    }

    fn line(&mut self, end: &FlowEnd, flag: Flag) {
        let name = self.names.remove(&end.client);
        let Some(named) = self.named(end.route) else {
            tracing::debug!(route = end.route, "a connection of an unknown route has ended");
            return;
        };
        let (client, listener) = ends_of(&end.client);
        let (_, endpoint) = ends_of(&end.backend);
        self.access.carried(&KernelConnection {
            router: &named.router,
            client,
            listener,
            host: &name.or_else(|| named.host.map(|host| host.to_string())).unwrap_or_else(|| "-".to_owned()),
            route: &named.route,
            endpoint: Some(endpoint),
            bytes_in: end.bytes_in,
            bytes_out: end.bytes_out,
            retries: end.retries.into(),
            flag,
            duration: Duration::from_nanos(end.ended_ns.saturating_sub(end.started_ns)),
        });
    }

    fn named(&self, id: u32) -> Option<Named> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(label) = wanted.routes.get(&id) else { return self.gone.by_id.get(&id).cloned() };
        let (router, route) = resolved(&self.table, label)?;
        Some(Named { router: router.clone(), route: label.route.clone(), host: Some(route.host.clone()) })
    }
}

fn resolved<'t>(table: &'t RoutingTable, label: &RouteLabel) -> Option<(&'t RouterName, &'t Arc<ResolvedRoute>)> {
    let router = router(table, label.router)?;
    Some((&router.name, router.routes.get(&label.route)?))
}

fn router(table: &RoutingTable, id: u32) -> Option<&Arc<RouterTable>> {
    table.routers.iter().find(|router| router.id == id)
}

/// Source and destination address of a flow key.
fn ends_of(key: &FlowKey) -> (SocketAddr, SocketAddr) {
    (
        SocketAddr::new(address(&key.source), key.source_port),
        SocketAddr::new(address(&key.destination), key.destination_port),
    )
}

/// The access log's flag for the end of a connection, as the relay would write it.
fn flag(reason: FlowEndReason) -> Flag {
    match reason {
        FlowEndReason::Finished => Flag::Fine,
        FlowEndReason::ClientReset | FlowEndReason::Replaced => Flag::ClientGone,
        FlowEndReason::BackendReset => Flag::UpstreamClosed,
        FlowEndReason::Refused => Flag::UpstreamConnectFailure,
        FlowEndReason::Idle => Flag::Idle,
        FlowEndReason::Silent => Flag::UpstreamConnectTimeout,
        FlowEndReason::OtherHost => Flag::Misdirected,
        FlowEndReason::Fragmented => Flag::Fragmented,
        FlowEndReason::Unfollowed => Flag::BadRequest,
        FlowEndReason::HostRule => Flag::HostRule,
    }
}

/// Server names by connection; the newest [`NAMES`] are kept.
#[derive(Debug, Default)]
struct ServerNames {
    by_flow: HashMap<FlowKey, (u64, Box<str>)>,
    order: VecDeque<(u64, FlowKey)>,
    next: u64,
}

impl ServerNames {
    fn insert(&mut self, flow: FlowKey, name: &str) {
        self.next += 1;
        self.by_flow.insert(flow, (self.next, name.into()));
        self.order.push_back((self.next, flow));
        // `order` may contain entries of names that were removed or replaced.
        while self.order.len() > NAMES {
            let Some((number, oldest)) = self.order.pop_front() else { break };
            if self.by_flow.get(&oldest).is_some_and(|(newest, _)| *newest == number) {
                self.by_flow.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, flow: &FlowKey) -> Option<String> {
        self.by_flow.remove(flow).map(|(_, name)| name.into())
    }
}

/// Removed routes; the newest [`GONE`] are kept.
#[derive(Debug, Default)]
struct RemovedRoutes {
    by_id: HashMap<u32, Named>,
    order: VecDeque<u32>,
}

impl RemovedRoutes {
    fn insert(&mut self, id: u32, named: Named) {
        // Ids are never reused, so none is in `order` twice.
        if self.by_id.insert(id, named).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > GONE {
            let Some(oldest) = self.order.pop_front() else { break };
            self.by_id.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> FlowKey {
        FlowKey { source: [1; 16], destination: [2; 16], source_port: port, destination_port: 443 }
    }

    #[test]
    fn names_are_remembered_up_to_a_bound_and_the_newest_of_a_tuple_counts() {
        let mut names = ServerNames::default();
        names.insert(key(1), "first.test");
        names.insert(key(1), "second.test");
        assert_eq!(names.remove(&key(1)).as_deref(), Some("second.test"));
        assert_eq!(names.remove(&key(1)), None);
        for round in 0..3 {
            for port in 0..u16::MAX {
                names.insert(key(port), &format!("{port}.{round}.test"));
            }
        }
        assert!(names.by_flow.len() <= NAMES && names.order.len() <= NAMES, "{}", names.order.len());
        assert_eq!(names.remove(&key(7)).as_deref(), Some("7.2.test"));
    }

    #[test]
    fn every_end_has_a_word_and_only_a_finished_connection_is_fine() {
        for reason in FlowEndReason::ALL {
            assert_eq!(flag(reason) == Flag::Fine, reason == FlowEndReason::Finished, "{reason:?}");
        }
    }
}

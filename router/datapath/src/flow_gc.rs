//! The sweep: reports and deletes connections that have ended or were never established, once a second.

use std::collections::HashMap as Memo;
use std::io;
use std::time::Duration;

use aya::maps::{HashMap, Map, MapData, MapError};
use router_common::maps::{FirstFlight, Flow, FlowEnd, FlowKey, LaterHead, STATE_CLOSING, ShortFlight};
use router_common::verdict::FlowEndReason;
use router_sys::abi::Raw;
use router_sys::batch::MapWalk;
use rustix::time::ClockId;

use super::clock::clock;
use super::flows::{
    FlowAction, due, end_of, has_lingered, has_settled, is_client, judge, needs_backend, other_direction,
};
use super::host::Lost;
use super::resets::Resets;

/// Most entries read in one round; a larger map takes several.
const ROUND: usize = 200_000;
/// Every n-th pass also searches entries without their other direction, which costs a look-up for each idle entry.
const ORPHAN_PASSES: u64 = 16;
/// A map with more entries is swept only every [`REST`], unless an entry is due before: the walk is the agent's largest
/// work under load, and the room of ended connections is not needed at once.
const CROWDED: usize = 10_000;
/// Well below every limit of [`super::flows`], so that a connection that reaches one was seen before, and is ended
/// within a second.
const REST: Duration = Duration::from_secs(3);
/// Age at which an incomplete first flight is deleted; the proxy gives up after 5 s.
const FLIGHT_LIFE: Duration = Duration::from_secs(10);

/// The maps that the sweep cleans.
pub struct Sweeper {
    flows: HashMap<MapData, Raw<FlowKey>, Raw<Flow>>,
    hellos: HashMap<MapData, Raw<FlowKey>, Raw<FirstFlight>>,
    short_hellos: HashMap<MapData, Raw<FlowKey>, Raw<ShortFlight>>,
    later_heads: HashMap<MapData, Raw<FlowKey>, Raw<LaterHead>>,
    walk: MapWalk<FlowKey, Flow>,
    passes: u64,
    /// Connections that have not ended, counted so far in this pass.
    seen: usize,
    live: Option<usize>,
    pass: Pass,
    /// The next pass begins no earlier than this.
    idle_until: Duration,
    resets: Resets,
}

/// Findings of a pass through the map so far.
#[derive(Debug, Default)]
struct Pass {
    began: Duration,
    entries: usize,
    /// Earliest time at which a live connection is to be ended.
    due: Option<Duration>,
}

impl Pass {
    /// The earliest useful time of the next pass.
    fn idle_until(&self) -> Duration {
        if self.entries <= CROWDED {
            return self.began;
        }
        let rested = self.began + REST;
        self.due.map_or(rested, |due| due.min(rested))
    }
}

impl Sweeper {
    /// A sweeper of `flows`, `hellos`, `short_hellos` and `later_heads`.
    ///
    /// # Errors
    /// If a map does not have this build's layout.
    pub fn new(flows: Map, hellos: Map, short_hellos: Map, later_heads: Map) -> Result<Self, MapError> {
        Ok(Sweeper {
            walk: MapWalk::new(&flows)?,
            flows: HashMap::try_from(flows)?,
            hellos: HashMap::try_from(hellos)?,
            short_hellos: HashMap::try_from(short_hellos)?,
            later_heads: HashMap::try_from(later_heads)?,
            passes: 0,
            seen: 0,
            live: None,
            pass: Pass::default(),
            idle_until: Duration::ZERO,
            resets: Resets::default(),
        })
    }

    /// Number of connections that had not ended in the last complete pass; `None` before it.
    pub fn live(&self) -> Option<usize> {
        self.live
    }

    /// Restarts the count.
    pub fn recount(&mut self) {
        (self.seen, self.live) = (0, None);
        self.idle_until = Duration::ZERO;
        self.walk.restart();
    }

    /// The highest route id and endpoint id in connections' entries: an id must not be assigned again while an entry
    /// has it, even if its route or endpoint was removed from the other maps.
    ///
    /// # Errors
    /// The system call's.
    pub fn highest_ids(&mut self) -> io::Result<(u32, u32)> {
        let (mut route, mut endpoint) = (0, 0);
        self.walk.all(|_, flow| {
            route = flow.route.max(route);
            endpoint = flow.endpoint.max(endpoint);
        })?;
        Ok((route, endpoint))
    }

    /// One round. `idle` returns the tunnel timeout of a route; `ended` is called for each connection that is ended
    /// here, or whose end was not reported yet.
    ///
    /// # Errors
    /// The system call's; the next round continues.
    pub fn sweep(&mut self, idle: impl Fn(u32) -> Duration, mut ended: impl FnMut(FlowEnd)) -> io::Result<()> {
        let now = clock(ClockId::Monotonic);
        if !self.walk.is_under_way() {
            if now < self.idle_until {
                self.sweep_flights();
                return Ok(());
            }
            self.pass = Pass { began: now, ..Pass::default() };
        }
        let mut timeouts = Memo::new();
        let mut looked_at = 0;
        while looked_at < ROUND {
            let orphans = self.passes.is_multiple_of(ORPHAN_PASSES);
            let (mut over, mut candidates, mut lonely) = (Vec::new(), Vec::new(), Vec::new());
            let (seen, pass) = (&mut self.seen, &mut self.pass);
            let round = self.walk.step(|key, flow| {
                looked_at += 1;
                pass.entries += 1;
                if has_lingered(flow, now) {
                    over.push((*key, flow.started_ns));
                    return;
                }
                if !is_client(flow) {
                    if orphans && has_settled(flow, now) {
                        lonely.push((*key, *flow));
                    }
                    return;
                }
                *seen += usize::from(flow.state != STATE_CLOSING);
                let idle = *timeouts.entry(flow.route).or_insert_with(|| idle(flow.route));
                if needs_backend(flow, now, idle) {
                    candidates.push((*key, flow.started_ns, idle));
                } else if let Some(due) = due(flow, idle) {
                    pass.due = Some(pass.due.map_or(due, |first| first.min(due)));
                }
            })?;
            if !candidates.is_empty() {
                // Some may stay because of the other direction's entry, and be due at any time.
                self.pass.due = Some(now);
            }
            for (key, started) in over {
                self.remove_own(&key, started);
            }
            for (key, started, idle) in candidates {
                if let Some(end) = self.settle(&key, started, now, idle) {
                    ended(end);
                }
            }
            for (key, flow) in lonely {
                self.remove_orphan(&key, &flow);
            }
            if round {
                self.live = Some(std::mem::take(&mut self.seen));
                self.passes += 1;
                self.idle_until = self.pass.idle_until();
                break;
            }
        }
        self.sweep_flights();
        Ok(())
    }

    /// Whether the kernel program carries a client's connection.
    pub fn carries(&self, client: &FlowKey) -> bool {
        self.get(client).is_some_and(|flow| is_client(&flow) && flow.state != STATE_CLOSING)
    }

    /// End records of all connections that have not ended, for when none is carried any more.
    ///
    /// # Errors
    /// The system call's.
    pub fn living(&mut self) -> io::Result<Vec<FlowEnd>> {
        let now = clock(ClockId::Monotonic);
        let mut living = Vec::new();
        self.walk.all(|key, flow| {
            if is_client(flow) && flow.state != STATE_CLOSING {
                living.push((*key, *flow));
            }
        })?;
        let end = |(key, client): (FlowKey, Flow)| {
            end_of(&key, &client, self.partner(&client).as_ref(), now, FlowEndReason::Replaced)
        };
        Ok(living.into_iter().map(end).collect())
    }

    /// Ends a connection that the host's rules stop; returns its end record, `None` if it has ended already. Later
    /// packets of its client are subject to the host's rules themselves.
    pub fn end(&mut self, lost: &Lost) -> Option<FlowEnd> {
        let client =
            self.get(&lost.client).filter(|client| is_client(client) && client.started_ns == lost.started_ns)?;
        if client.state == STATE_CLOSING {
            return None;
        }
        let backend = self.partner(&client);
        self.remove(&lost.client, lost.started_ns);
        if let Some(backend) = &backend {
            self.remove(&other_direction(&client), lost.started_ns);
            if lost.silent {
                self.resets.send_to_endpoint(&client, backend);
            } else {
                self.resets.send(&lost.client, &client, backend);
            }
        }
        self.forget_flight(&lost.client);
        let now = clock(ClockId::Monotonic);
        Some(end_of(&lost.client, &client, backend.as_ref(), now, FlowEndReason::HostRule))
    }

    /// Judges a connection by its current entries, and deletes it if it has ended; returns its end if that is to be
    /// reported.
    fn settle(&mut self, key: &FlowKey, started: u64, now: Duration, idle: Duration) -> Option<FlowEnd> {
        // The client may have begun another connection since.
        let client = self.get(key).filter(|client| is_client(client) && client.started_ns == started)?;
        let backend = self.partner(&client);
        let fate = judge(&client, backend.as_ref(), now, idle);
        if fate == FlowAction::Keep {
            return None;
        }
        self.remove(key, started);
        if let Some(backend) = &backend {
            self.remove(&other_direction(&client), started);
            if matches!(fate, FlowAction::End(FlowEndReason::Idle | FlowEndReason::Fragmented)) {
                self.resets.send(key, &client, backend);
            }
        }
        self.forget_flight(key);
        match fate {
            FlowAction::End(reason) => Some(end_of(key, &client, backend.as_ref(), now, reason)),
            FlowAction::Keep | FlowAction::Forget => None,
        }
    }

    /// Deletes an entry of a connection. A dial may have taken its port over since it was read; the deleted entry is
    /// then the new connection's, whose SYN is still in flight, and is restored.
    fn remove(&mut self, key: &FlowKey, started: u64) {
        const NOEXIST: u64 = 1; // BPF_NOEXIST (linux/bpf.h)
        // No entry: the program has deleted it in the meantime.
        if let Some(taken) = self.walk.take(key)
            && taken.started_ns != started
            && let Err(error) = self.flows.insert(Raw(*key), Raw(taken), NOEXIST)
        {
            tracing::warn!(%error, "cannot restore the entry of a newer connection");
        }
    }

    /// Deletes an entry if it is still of the connection that began at this time.
    fn remove_own(&mut self, key: &FlowKey, started: u64) {
        if self.get(key).is_some_and(|flow| flow.started_ns == started) {
            self.remove(key, started);
        }
    }

    fn remove_orphan(&mut self, key: &FlowKey, flow: &Flow) {
        let same = |other: &Flow| other.started_ns == flow.started_ns;
        if self.get(key).as_ref().is_some_and(same) && !self.get(&other_direction(flow)).as_ref().is_some_and(same) {
            self.remove(key, flow.started_ns);
        }
    }

    fn get(&self, key: &FlowKey) -> Option<Flow> {
        self.flows.get(&Raw(*key), 0).ok().map(|Raw(flow)| flow)
    }

    /// The other direction's entry; `None` if it belongs to another connection, which has taken the port over.
    fn partner(&self, client: &Flow) -> Option<Flow> {
        self.get(&other_direction(client)).filter(|backend| backend.started_ns == client.started_ns)
    }

    /// Deletes old first flights and partial heads of later requests, except those of carried connections.
    fn sweep_flights(&mut self) {
        let now = clock(ClockId::Boottime);
        let old = |started| now.saturating_sub(Duration::from_nanos(started)) > FLIGHT_LIFE;
        let long = self.hellos.iter().map(|entry| entry.map(|(key, Raw(flight))| (key, flight.started_ns)));
        let short = self.short_hellos.iter().map(|entry| entry.map(|(key, Raw(flight))| (key, flight.started_ns)));
        let later = self.later_heads.iter().map(|entry| entry.map(|(key, Raw(head))| (key, head.read_ns)));
        let over: Vec<_> = long
            .chain(short)
            .chain(later)
            .filter_map(Result::ok)
            .filter(|(Raw(key), started)| old(*started) && self.get(key).is_none())
            .map(|(Raw(key), _)| key)
            .collect();
        over.iter().for_each(|key| self.forget_flight(key));
    }

    fn forget_flight(&mut self, key: &FlowKey) {
        // The program has deleted it in the meantime.
        let _ = self.hellos.remove(&Raw(*key));
        let _ = self.short_hellos.remove(&Raw(*key));
        let _ = self.later_heads.remove(&Raw(*key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::{CONFIRM_LIMIT, DIAL_LIMIT};

    #[test]
    fn a_full_map_is_not_swept_until_an_entry_is_due() {
        let began = Duration::from_secs(100);
        let idle_until = |entries, due| Pass { began, entries, due }.idle_until();
        assert_eq!(idle_until(CROWDED, None), began, "every second");
        assert_eq!(idle_until(CROWDED + 1, None), began + REST);
        let (soon, late) = (began + REST / 2, began + REST * 2);
        assert_eq!(idle_until(CROWDED + 1, Some(soon)), soon);
        assert_eq!(idle_until(CROWDED + 1, Some(late)), began + REST);
        // A connection that begins during the pause is seen before it is due.
        assert!(REST < DIAL_LIMIT && REST < CONFIRM_LIMIT);
    }
}

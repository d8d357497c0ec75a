//! Recording decisions and ends: per connection, per route, per reason, and as events for the agent.

use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP};
use aya_ebpf::btf_maps::RingBuf;
use aya_ebpf::helpers::bpf_ktime_get_boot_ns;
use aya_ebpf::helpers::generated::bpf_ringbuf_query;
use router_common::decide::ConnectionDecision;
use router_common::hostname::NAME_FIELD;
use router_common::maps::{
    ConnVerdict, DecisionEvent, FLOW_REPORTED, Flow, FlowEnd, FlowKey, ListenerOwner, SIDE_CLIENT,
};
use router_common::verdict::{DialCounter, Verdict};

use crate::copy;
use crate::log;
use crate::maps::{self, events, flow_ends, reason_stats, route_stats};

const EVENTS_LOST: u32 = 0;

/// The input that led to a decision.
pub struct InputSummary<'a> {
    /// Bytes of the first flight.
    pub bytes: u32,
    /// Segments that carried them.
    pub segments: u32,
    /// The name, if one was read.
    pub host: Option<&'a [u8; NAME_FIELD]>,
}

/// Records a decision; if `reports`, also as an event for the agent.
#[inline(always)]
pub fn decision(
    flow: &FlowKey,
    listener: ListenerOwner,
    decision: ConnectionDecision,
    read: InputSummary<'_>,
    reports: bool,
) {
    let verdict = ConnVerdict {
        // SAFETY: the helper has no precondition.
        at_ns: unsafe { bpf_ktime_get_boot_ns() },
        router: listener.router,
        route: decision.route,
        bytes: read.bytes,
        reason: decision.reason as u16,
        verdict: decision.verdict() as u8,
        protocol: listener.protocol,
    };
    if let Some(decided) = maps::next_verdict() {
        decided.flow = *flow;
        decided.segments = read.segments;
        decided.verdict = verdict;
        log::decided(read.host.is_some());
    }
    count_reason(decision.reason as u32);
    count_route(&decision);
    if !reports {
        return;
    }
    let Some(mut entry) = events.reserve(0) else {
        return count_reason(EVENTS_LOST);
    };
    let event: *mut DecisionEvent = entry.as_mut_ptr();
    // SAFETY: the reservation has room for a whole `DecisionEvent`, aligned to 8; each field is written through a raw
    // pointer before submission.
    unsafe {
        (&raw mut (*event).flow).write(*flow);
        (&raw mut (*event).segments).write(read.segments);
        (&raw mut (*event).verdict).write(verdict);
        copy::write_name(&raw mut (*event).host, read.host);
    }
    entry.submit(wakeup(&events));
}

/// Whether submitting an entry wakes the agent. It reads its rings a few times a second, because waking it for every
/// connection would cost more than the connection. The entry that fills a quarter of the ring wakes it, and so do those
/// that fill the other quarters.
#[inline(always)]
fn wakeup<T, const BYTES: usize>(ring: &'static RingBuf<T, BYTES>) -> u64 {
    let quarter = const { BYTES as u64 / 4 };
    // The kernel prepends 8 bytes to every entry, and aligns entries to 8.
    let entry = const { (size_of::<T>() as u64 + 8 + 7) & !7 };
    // SAFETY: the address of the static stands for the map, and is relocated when the map is loaded.
    let waiting = unsafe { bpf_ringbuf_query((&raw const *ring).cast_mut().cast(), BPF_RB_AVAIL_DATA as u64) };
    // `waiting` includes this entry, which is reserved already, and perhaps one of another CPU.
    let fills_one = waiting >= quarter && waiting % quarter < 2 * entry;
    if fills_one { BPF_RB_FORCE_WAKEUP as u64 } else { BPF_RB_NO_WAKEUP as u64 }
}

/// Counts a decision by its reason.
#[inline(always)]
pub fn count_reason(code: u32) {
    if let Some(counter) = reason_stats.get_ptr_mut(code) {
        // SAFETY: this CPU's own slot, and programs of one CPU do not interrupt one another.
        unsafe { *counter += 1 };
    }
}

#[inline(always)]
fn count_route(decision: &ConnectionDecision) {
    // The agent adds the entry with the route; without one nothing is counted.
    let Some(stats) = route_stats.get_ptr_mut(decision.route) else { return };
    // SAFETY: as in `count_reason`.
    let stats = unsafe { &mut *stats };
    match decision.verdict() {
        Verdict::Steer => stats.steer += 1,
        Verdict::Pass => stats.pass += 1,
        Verdict::Drop => stats.drop += 1,
    }
}

/// Counts and reports the end of a connection that ends now, given its two entries in any order.
#[inline(always)]
pub fn end(one: &mut Flow, other: &mut Flow) {
    let from_client = one.side == SIDE_CLIENT;
    count_end(if from_client { one } else { other }, if from_client { other } else { one });
    report_end(one, other, DialCounter::EndsLate);
}

/// Reports the end of a connection that has ended, unless it was reported: its entries are about to be replaced or
/// removed.
#[inline(always)]
pub fn last_of(one: &mut Flow, other: &mut Flow) {
    if (one.own | other.own) & FLOW_REPORTED == 0 {
        report_end(one, other, DialCounter::EndsLost);
    }
}

#[inline(never)]
fn report_end(one: &mut Flow, other: &mut Flow, untold: DialCounter) {
    let from_client = one.side == SIDE_CLIENT;
    let Some(mut entry) = flow_ends.reserve(0) else { return maps::count(untold) };
    let (client, backend) = if from_client { (&*one, &*other) } else { (&*other, &*one) };
    let event: *mut FlowEnd = entry.as_mut_ptr();
    // SAFETY: the reservation has room for a whole FlowEnd, aligned to 8; every field is written before submission.
    unsafe {
        (&raw mut (*event).client).write(backend.rewrite.to.reversed());
        (&raw mut (*event).backend).write(client.rewrite.to);
        (&raw mut (*event).started_ns).write(client.started_ns);
        (&raw mut (*event).ended_ns).write(one.ended_ns);
        (&raw mut (*event).bytes_in).write(client.bytes);
        (&raw mut (*event).bytes_out).write(backend.bytes);
        (&raw mut (*event).packets_in).write(client.packets);
        (&raw mut (*event).packets_out).write(backend.packets);
        (&raw mut (*event).router).write(client.router);
        (&raw mut (*event).route).write(client.route);
        (&raw mut (*event).endpoint).write(client.endpoint);
        (&raw mut (*event).reason).write(one.end);
        (&raw mut (*event).protocol).write(client.protocol);
        (&raw mut (*event).retries).write(client.retries);
        (&raw mut (*event).pad).write(0);
    }
    entry.submit(wakeup(&flow_ends));
    maps::mark(one, FLOW_REPORTED, 0);
    maps::mark(other, FLOW_REPORTED, 0);
}

#[inline(always)]
fn count_end(client: &Flow, backend: &Flow) {
    let Some(stats) = route_stats.get_ptr_mut(client.route) else { return };
    // SAFETY: as in `count_reason`.
    let stats = unsafe { &mut *stats };
    stats.ended += 1;
    stats.bytes_in += client.bytes;
    stats.bytes_out += backend.bytes;
}

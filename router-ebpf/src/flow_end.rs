//! The end of a connection that the kernel carries.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use router_common::maps::{FLOW_IN_HEAD, Flow, FlowKey, SIDE_CLIENT, STATE_CLOSING};
use router_common::verdict::FlowEndReason;

use crate::connections;
use crate::log;
use crate::maps;
use crate::telemetry;

/// Ends a connection. Both entries stay for retransmitted packets, until the agent or a dial needs their room.
#[inline(never)]
pub fn finish(flow: &mut Flow, other: &mut Flow, reason: FlowEndReason) {
    if !maps::claim_end(if flow.side == SIDE_CLIENT { &mut *flow } else { &mut *other }) {
        return;
    }
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    flow.end = reason as u8;
    other.end = reason as u8;
    flow.ended_ns = now;
    other.ended_ns = now;
    flow.state = STATE_CLOSING;
    other.state = STATE_CLOSING;
    connections::flow_ended(flow, other);
    telemetry::end(flow, other);
    log::ended(flow, other);
}

/// Deletes a first payload that is no longer needed.
#[inline(always)]
pub fn forget_flight(key: &FlowKey, flow: &Flow, from_client: bool) {
    if from_client {
        maps::forget_first_flight(key);
    } else {
        maps::forget_first_flight(&flow.rewrite.to.reversed());
    }
}

/// Ends a connection, unless it has ended, and deletes its entries. Nothing is done if a dial on another CPU takes its port
/// over: that deletes the client's entry.
#[inline(always)]
pub fn finish_and_forget(key: &FlowKey, client: &mut Flow, backend: &mut Flow, reason: FlowEndReason) {
    // Before the end, after which any dial may.
    if !maps::claim_port(backend, client.started_ns) {
        return;
    }
    if client.state != STATE_CLOSING {
        finish(client, backend, reason);
    }
    telemetry::last_of(client, backend);
    forget(key, client);
}

/// Deletes all entries of a connection, given its client's key and entry. The port must not be another connection's.
#[inline(always)]
pub fn forget(key: &FlowKey, client: &Flow) {
    let backend = client.rewrite.to.reversed();
    forget_client(key, client);
    maps::remove_flow(&backend);
}

/// Deletes the entries of a connection with its client's key.
#[inline(always)]
pub fn forget_client(key: &FlowKey, client: &Flow) {
    maps::forget_first_flight(key);
    if client.own & FLOW_IN_HEAD != 0 {
        maps::forget_later_head(key);
    }
    maps::remove_flow(key);
}

//! Established connections: translate, redirect, and see them end.

use aya_ebpf::bindings::TC_ACT_SHOT;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use router_common::maps::{
    FLOW_ACROSS, FLOW_ASKED, FLOW_CLEARTEXT, FLOW_FIN, FLOW_FIN_ACKED, FLOW_REPORTED, Flow, SIDE_CLIENT, STATE_CLOSING,
    STATE_CONFIRMING, STATE_DIALING, STATE_ESTABLISHED,
};
use router_common::packet::{ACK, FIN, RST, SYN, Segment};
use router_common::requests::is_content;
use router_common::translate::{translate, translate_across};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::connecting;
use crate::flow_end::{finish, forget, forget_flight};
use crate::maps;
use crate::next_hop;
use crate::pipelined;
use crate::skb::Skb;
use crate::telemetry;

/// A reset counts as the end only this close after the last byte that was seen of its sender (RFC 5961 §3 wants it
/// exact, and the receiver of the packet sees to that; some packets before it may have been lost on their way here).
const RESET_WINDOW: u32 = 1 << 16;

/// Nanoseconds after which an endpoint that has said nothing since a client's SYN has forgotten the connection, or is gone:
/// the client sends its SYN again after 1 s and 3 s (RFC 6298 §2.1), and a host that lives answers each with a challenge,
/// though at most two a second (Linux, `tcp_invalid_ratelimit`).
const UNANSWERED: u64 = 2_500_000_000;

/// Nanoseconds by which a packet may come behind one that was sent after it: what a path that is bad can do.
const REORDERED: u64 = 100_000_000;

/// A packet of a connection that the kernel carries. `None`: the entry was of an old connection, and is gone.
#[inline(always)]
pub fn packet(skb: &mut Skb, segment: &Segment, flow: &mut Flow) -> Option<i32> {
    if is_plain(segment, flow) {
        return Some(forward(skb, segment, flow));
    }
    match unusual(skb, segment, flow) {
        FORWARD => {
            let before = flow.last_ns;
            let action = forward(skb, segment, flow);
            if segment.flags & SYN != 0 {
                // No sign of life: whoever sent it has forgotten the connection, or was never part of it.
                flow.last_ns = before;
            }
            Some(action)
        }
        GONE => None,
        action => Some(action as i32),
    }
}

/// Whether nothing can come of the packet but its translation.
#[inline(always)]
fn is_plain(segment: &Segment, flow: &Flow) -> bool {
    flow.state == STATE_ESTABLISHED
        && segment.flags & (SYN | FIN | RST) == 0
        && flow.peer & FLOW_FIN == 0
        && (flow.own & (FLOW_CLEARTEXT | FLOW_ASKED) == 0 || says_nothing(segment, flow))
}

/// Whether nothing of a packet of clear text is looked at.
#[inline(always)]
fn says_nothing(segment: &Segment, flow: &Flow) -> bool {
    let end = segment.seq.wrapping_add(segment.payload_len);
    segment.payload_len == 0 || is_content(flow.judged, &flow.content, end)
}

/// [`unusual`]: translate the packet.
const FORWARD: u32 = 0x1_0000;
/// [`unusual`]: the entry is gone.
const GONE: u32 = 0x1_0001;

#[inline(always)]
fn forward(skb: &mut Skb, segment: &Segment, flow: &mut Flow) -> i32 {
    note(segment, flow);
    let across_families = flow.own & FLOW_ACROSS != 0;
    if !(if across_families { across(skb, segment, flow) } else { within(skb, segment, flow) }) {
        maps::count(DialCounter::Untranslated);
        return TC_ACT_SHOT;
    }
    next_hop::send_at(skb, &flow.rewrite.to, flow.interface, flow.last_ns)
}

#[inline(always)]
fn note(segment: &Segment, flow: &mut Flow) {
    // SAFETY: the helper has no precondition.
    flow.last_ns = unsafe { bpf_ktime_get_coarse_ns() };
    flow.packets += 1;
    flow.bytes += segment.payload_len as u64;
    let end = segment.seq.wrapping_add(segment.payload_len);
    if end.wrapping_sub(flow.next_seq) <= i32::MAX as u32 {
        flow.next_seq = end;
    }
    if segment.flags & ACK != 0 {
        flow.acked = segment.ack;
    }
}

/// What a segment that has been carried in fragments says of its connection.
#[inline(never)]
pub fn told_in_fragments(segment: &Segment, flow: &mut Flow) {
    note(segment, flow);
    if flow.state == STATE_ESTABLISHED
        && !is_plain(segment, flow)
        && let Some(other) = maps::flow(&flow.rewrite.to.reversed())
        && other.started_ns == flow.started_ns
    {
        fins(segment, flow, other);
    }
}

// Functions of their own: what they need of the stack is free again after them.

/// Translates a packet to one of the same version of IP.
#[inline(never)]
pub fn within(skb: &mut Skb, segment: &Segment, flow: &Flow) -> bool {
    translate(skb, segment, &flow.rewrite)
}

#[inline(never)]
fn across(skb: &mut Skb, segment: &Segment, flow: &Flow) -> bool {
    translate_across(skb, segment, &flow.rewrite)
}

/// Everything that happens to a connection but for plain data.
#[inline(never)]
fn unusual(skb: &Skb, segment: &Segment, flow: &mut Flow) -> u32 {
    let from_client = flow.side == SIDE_CLIENT;
    if from_client && segment.flags & (SYN | ACK) == SYN && begins_anew(segment, flow) {
        return GONE;
    }
    let dialing = flow.state == STATE_DIALING || flow.state == STATE_CONFIRMING;
    let Some(other) = maps::flow(&flow.rewrite.to.reversed()) else {
        return if dialing { TC_ACT_SHOT as u32 } else { FORWARD };
    };
    if other.started_ns != flow.started_ns {
        // The client has begun another connection, and this entry is of the one before.
        return GONE;
    }
    if dialing {
        let next = connecting::next(skb, segment, flow, other, from_client);
        if next != connecting::CARRY {
            return connecting::act(skb, segment, flow, other, next) as u32;
        }
        if is_plain(segment, flow) {
            return FORWARD;
        }
    }
    if flow.own & FLOW_CLEARTEXT != 0 && segment.payload_len != 0 && segment.flags & RST == 0 {
        let action = requests(skb, segment, flow, other);
        if action != FORWARD {
            return action;
        }
    }
    if flow.own & FLOW_ASKED != 0 && segment.payload_len != 0 {
        pipelined::answered(skb, segment, flow, other);
    }
    if segment.flags & RST != 0 {
        if flow.state != STATE_CLOSING && segment.seq.wrapping_sub(flow.next_seq) < RESET_WINDOW {
            finish(flow, other, if from_client { FlowEndReason::ClientReset } else { FlowEndReason::BackendReset });
            forget_flight(&segment.flow, flow, from_client);
        }
        return FORWARD;
    }
    if flow.state == STATE_CLOSING {
        if ended_by(flow, from_client) && lives_on(segment, flow) {
            // Whoever sent that reset was not this side.
            flow.claims = 0;
            other.claims = 0;
            flow.state = STATE_ESTABLISHED;
            other.state = STATE_ESTABLISHED;
        }
        return FORWARD;
    }
    fins(segment, flow, other);
    FORWARD
}

/// Payload of a client of clear text. A function of its own: what it needs of the stack is free again after it.
#[inline(never)]
fn requests(skb: &Skb, segment: &Segment, client: &mut Flow, backend: &mut Flow) -> u32 {
    match pipelined::look(skb, segment, client, backend) {
        pipelined::GOES_ON => FORWARD,
        pipelined::EARLY => TC_ACT_SHOT as u32,
        why => {
            pipelined::end(client, backend, why);
            pipelined::reset(skb, segment, client, backend) as u32
        }
    }
}

/// Whether the connection ended by a reset of this side.
#[inline(always)]
fn ended_by(flow: &Flow, from_client: bool) -> bool {
    let reset = if from_client { FlowEndReason::ClientReset } else { FlowEndReason::BackendReset };
    flow.end == reset as u8
}

/// Whether a packet can come from nobody who has sent the reset that ended the connection: it has data, or it comes when
/// nothing that was sent before the reset is still on its way.
#[inline(always)]
fn lives_on(segment: &Segment, flow: &Flow) -> bool {
    // SAFETY: the helper has no precondition.
    segment.payload_len != 0 || unsafe { bpf_ktime_get_ns() }.wrapping_sub(flow.ended_ns) > REORDERED
}

/// A SYN of the client on a tuple that has an entry: whether it begins a new connection. On a connection that lives it
/// does not: the endpoint answers it with a challenge (RFC 5961 §4), and a client that has really begun anew answers
/// that with a reset. An endpoint that answers none does not live.
#[inline(always)]
fn begins_anew(segment: &Segment, client: &mut Flow) -> bool {
    let dialing = client.state == STATE_DIALING && segment.seq.wrapping_add(1) != first_byte(client, segment);
    if client.state != STATE_CLOSING && !dialing && !is_unanswered(client) {
        return false;
    }
    if client.state == STATE_CLOSING && client.own & FLOW_REPORTED != 0 {
        // All is told; the endpoint's entry lingers by itself.
        maps::remove_flow(&segment.flow);
        return true;
    }
    if let Some(backend) = maps::flow(&client.rewrite.to.reversed()) {
        if client.state != STATE_CLOSING {
            finish(client, backend, FlowEndReason::Replaced);
        }
        telemetry::last_of(client, backend);
    }
    forget(&segment.flow, client);
    true
}

/// Whether the endpoint has said nothing for long since the first of several SYNs, the time of which stands where that of
/// the end will.
#[inline(always)]
fn is_unanswered(client: &mut Flow) -> bool {
    if client.state != STATE_ESTABLISHED {
        return false;
    }
    let Some(backend) = maps::flow(&client.rewrite.to.reversed()) else { return false };
    // The clock of `last_ns`, which is behind the other one by a tick.
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    if client.ended_ns == 0 || backend.last_ns >= client.ended_ns {
        client.ended_ns = now;
        return false;
    }
    now.wrapping_sub(client.ended_ns) > UNANSWERED
}

/// Sequence number of the first byte of the client that is being dialed for.
#[inline(always)]
fn first_byte(client: &Flow, segment: &Segment) -> u32 {
    match maps::dialed_flight(&segment.flow) {
        Some(flight) => flight.dial.handshake.client_isn.wrapping_add(1),
        None => client.next_seq,
    }
}

/// Follows the FINs: once both sides have sent one and acknowledged the other's, the connection has ended.
#[inline(always)]
fn fins(segment: &Segment, flow: &mut Flow, other: &mut Flow) {
    let end = segment.seq.wrapping_add(segment.payload_len).wrapping_add(1);
    // Nothing follows a FIN: one before what the other side has acknowledged is not this side's.
    let acked = other.acked.wrapping_add(other.rewrite.delta_ack);
    let mut seen = 0;
    if segment.flags & FIN != 0 && end.wrapping_sub(acked) <= i32::MAX as u32 {
        flow.fin_end = end;
        seen |= FLOW_FIN;
    }
    if flow.peer & FLOW_FIN != 0 && segment.flags & ACK != 0 {
        let acked = segment.ack.wrapping_add(flow.rewrite.delta_ack);
        if acked.wrapping_sub(other.fin_end) <= i32::MAX as u32 {
            seen |= FLOW_FIN_ACKED;
        }
    }
    if seen == 0 {
        return;
    }
    // The last packets of both sides may be on several CPUs now. Each writes to the other side's entry first, so the one
    // that is last to write to its own sees all.
    maps::mark(other, 0, seen);
    let (own, peer) = maps::mark(flow, seen, 0);
    const BOTH: u8 = FLOW_FIN | FLOW_FIN_ACKED;
    if own & BOTH == BOTH && peer & BOTH == BOTH {
        finish(flow, other, FlowEndReason::Finished);
    }
}

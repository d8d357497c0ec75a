//! Established connections: translates and redirects their packets, and detects their end.

use aya_ebpf::bindings::TC_ACT_SHOT;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use router_common::maps::{
    FLOW_ACROSS, FLOW_ASKED, FLOW_CLEARTEXT, FLOW_COUNTED, FLOW_FIN, FLOW_FIN_ACKED, FLOW_REPORTED, Flow, SIDE_CLIENT,
    STATE_CLOSING, STATE_CONFIRMING, STATE_DIALING, STATE_ESTABLISHED,
};
use router_common::packet::{ACK, FIN, RST, SYN, Segment};
use router_common::requests::is_content;
use router_common::translate::{translate, translate_across};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::connecting;
use crate::connections;
use crate::cookie_handshake;
use crate::flow_end::{finish, finish_and_forget, forget_client, forget_flight};
use crate::maps;
use crate::next_hop;
use crate::pipelined;
use crate::skb::Skb;

/// A reset counts as the end only this close after the last byte that was seen of its sender. (RFC 5961 §3 requires an
/// exact match, which the packet's receiver checks; packets before it may have been lost before they reached this
/// host.)
const RESET_WINDOW: u32 = 1 << 16;

/// Bytes between packets of one connection, nearly always.
const NEAR: u32 = 1 << 20;

/// Nanoseconds without a packet from the endpoint after a client's SYN until the connection counts as dead. The client
/// retransmits its SYN after 1 s and 3 s (RFC 6298 §2.1), and a live endpoint answers each with a challenge ACK, though
/// at most two a second (Linux, `tcp_invalid_ratelimit`).
const UNANSWERED: u64 = 2_500_000_000;

/// Nanoseconds by which a path may reorder packets.
const REORDERED: u64 = 100_000_000;

/// Handles a packet of a carried connection. `None`: the entry belonged to an older connection and was deleted.
#[inline(always)]
pub fn packet(skb: &mut Skb, segment: &Segment, flow: &mut Flow) -> Option<i32> {
    if is_plain(segment, flow) {
        return Some(forward(skb, segment, flow));
    }
    // Here, as the frames of `unusual` and of a check are too large together.
    if cookie_handshake::is_bare(segment)
        && may_be_of_another(segment, flow)
        && cookie_handshake::acknowledges_one(skb, segment)
    {
        replace(segment, flow);
        return None;
    }
    match unusual(skb, segment, flow) {
        FORWARD => {
            let before = flow.last_ns;
            let action = forward(skb, segment, flow);
            if segment.flags & SYN != 0 {
                // Not a sign of life: its sender does not know the connection.
                flow.last_ns = before;
            }
            Some(action)
        }
        GONE => None,
        action => Some(action as i32),
    }
}

/// True if the packet needs translation only.
#[inline(always)]
pub fn is_plain(segment: &Segment, flow: &Flow) -> bool {
    flow.state == STATE_ESTABLISHED
        && segment.flags & (SYN | FIN | RST) == 0
        && flow.peer & FLOW_FIN == 0
        && !is_far(segment, flow)
        && (flow.own & (FLOW_CLEARTEXT | FLOW_ASKED) == 0 || says_nothing(segment, flow))
}

/// True if a packet is far from what its sender was seen to send: it may be of another connection, whose SYN was answered with
/// a cookie before it got here.
#[inline(always)]
fn is_far(segment: &Segment, flow: &Flow) -> bool {
    let is_apart = |number: u32, seen: u32| number.wrapping_sub(seen).wrapping_add(NEAR) > 2 * NEAR;
    is_apart(segment.seq, flow.next_seq) || is_apart(segment.ack, flow.acked)
}

/// True if a client's packet may be of another connection than the entry. Once that has ended, any may that does not repeat its
/// beginning: two cookies for the same addresses and ports differ by as much as the SYNs' numbers.
#[inline(never)]
fn may_be_of_another(segment: &Segment, client: &Flow) -> bool {
    if client.side != SIDE_CLIENT || client.state != STATE_CLOSING && !is_far(segment, client) {
        return false;
    }
    // Else the endpoint's port has another connection, and the client's entry is outdated.
    let is_beside = |backend: &Flow| {
        let acked = segment.ack.wrapping_add(client.rewrite.delta_ack);
        backend.started_ns == client.started_ns && acked != backend.judged
    };
    maps::flow(&client.rewrite.to.reversed()).is_none_or(|backend| is_beside(backend))
}

/// True if no byte of this clear-text packet needs inspection.
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

/// Records a packet.
#[inline(always)]
pub fn note(segment: &Segment, flow: &mut Flow) {
    // SAFETY: the helper has no precondition.
    flow.last_ns = unsafe { bpf_ktime_get_coarse_ns() };
    flow.packets += 1;
    flow.bytes += segment.payload_len as u64;
    let end = segment.seq.wrapping_add(segment.payload_len);
    // A RST may be forged, and would move the window of resets.
    if segment.flags & RST == 0 && end.wrapping_sub(flow.next_seq) <= i32::MAX as u32 {
        flow.next_seq = end;
    }
    if segment.flags & ACK != 0 {
        flow.acked = segment.ack;
    }
}

/// Updates the connection's state from a segment that was carried in fragments.
#[inline(never)]
pub fn update_from_fragments(segment: &Segment, flow: &mut Flow) {
    note(segment, flow);
    if flow.state == STATE_ESTABLISHED
        && !is_plain(segment, flow)
        && let Some(other) = maps::flow(&flow.rewrite.to.reversed())
        && other.started_ns == flow.started_ns
    {
        fins(segment, flow, other);
    }
}

// Separate functions: their stack frames are free again after they return.

/// Translates a packet to one of the same version of IP.
#[inline(never)]
pub fn within(skb: &mut Skb, segment: &Segment, flow: &Flow) -> bool {
    translate(skb, segment, &flow.rewrite)
}

#[inline(never)]
fn across(skb: &mut Skb, segment: &Segment, flow: &Flow) -> bool {
    translate_across(skb, segment, &flow.rewrite)
}

/// Handles every packet of a connection that is not plain data.
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
        // The client has begun a new connection; this entry belongs to the previous one.
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
            // The RST was forged.
            if (flow.claims | other.claims) & FLOW_COUNTED != 0 && !is_counted_again(flow, other, from_client) {
                return TC_ACT_SHOT as u32;
            }
            flow.claims &= FLOW_COUNTED;
            other.claims &= FLOW_COUNTED;
            flow.state = STATE_ESTABLISHED;
            other.state = STATE_ESTABLISHED;
        }
        return FORWARD;
    }
    fins(segment, flow, other);
    FORWARD
}

/// Inspects payload of a clear-text client. A separate function: its stack frame is free again after it returns.
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

/// True if a connection that had ended has a place among its source's again.
#[inline(always)]
fn is_counted_again(flow: &Flow, other: &Flow, from_client: bool) -> bool {
    let backend = if from_client { other } else { flow };
    connections::flow_resumed(backend)
}

/// True if a RST of this side ended the connection.
#[inline(always)]
fn ended_by(flow: &Flow, from_client: bool) -> bool {
    let reset = if from_client { FlowEndReason::ClientReset } else { FlowEndReason::BackendReset };
    flow.end == reset as u8
}

/// True if this packet proves that the RST which ended the connection was forged: it has data, or it arrives too late
/// to have been sent before the RST.
#[inline(always)]
fn lives_on(segment: &Segment, flow: &Flow) -> bool {
    // SAFETY: the helper has no precondition.
    segment.payload_len != 0 || unsafe { bpf_ktime_get_ns() }.wrapping_sub(flow.ended_ns) > REORDERED
}

/// True if a client's SYN for a tuple with an entry begins a new connection. On a live connection it does not: the
/// endpoint answers with a challenge ACK (RFC 5961 §4), and a client that has begun anew resets that. An endpoint that
/// sends no challenge ACK is dead.
#[inline(always)]
fn begins_anew(segment: &Segment, client: &mut Flow) -> bool {
    let dialing = client.state == STATE_DIALING && segment.seq.wrapping_add(1) != first_byte(client, segment);
    if client.state != STATE_CLOSING && !dialing && !is_unanswered(client) {
        return false;
    }
    replace(segment, client);
    true
}

/// Deletes the entries of a connection, as its client has begun another one.
#[inline(never)]
fn replace(segment: &Segment, client: &mut Flow) {
    if client.state == STATE_CLOSING && client.own & FLOW_REPORTED != 0 {
        // The end is reported; the agent removes the endpoint's entry later.
        maps::remove_flow(&segment.flow);
        return;
    }
    match maps::flow(&client.rewrite.to.reversed()) {
        Some(backend) if backend.started_ns == client.started_ns => {
            finish_and_forget(&segment.flow, client, backend, FlowEndReason::Replaced);
        }
        // The port is another connection's.
        _ => forget_client(&segment.flow, client),
    }
}

/// True if the endpoint has sent nothing for [`UNANSWERED`] since the first of several SYNs. `ended_ns` holds the time
/// of that SYN until the connection ends.
#[inline(always)]
fn is_unanswered(client: &mut Flow) -> bool {
    if client.state != STATE_ESTABLISHED {
        return false;
    }
    let Some(backend) = maps::flow(&client.rewrite.to.reversed()) else { return false };
    // The same clock as `last_ns`: up to a tick behind `bpf_ktime_get_ns`.
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    if client.ended_ns == 0 || backend.last_ns >= client.ended_ns {
        client.ended_ns = now;
        return false;
    }
    now.wrapping_sub(client.ended_ns) > UNANSWERED
}

/// Sequence number of the first payload byte of a client whose dial is in progress.
#[inline(always)]
fn first_byte(client: &Flow, segment: &Segment) -> u32 {
    match maps::dialed_flight(&segment.flow) {
        Some(flight) => flight.dial.handshake.client_isn.wrapping_add(1),
        None => client.next_seq,
    }
}

/// Tracks FINs: the connection has ended when each side has sent one and acknowledged the other's.
#[inline(always)]
fn fins(segment: &Segment, flow: &mut Flow, other: &mut Flow) {
    let end = segment.seq.wrapping_add(segment.payload_len).wrapping_add(1);
    // No data follows a FIN: a FIN before data that the other side has acknowledged is forged.
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
    // Several CPUs may handle the last packets of both sides at once. Each writes the other side's entry first, so the
    // last one to write its own sees all flags.
    maps::mark(other, 0, seen);
    let (own, peer) = maps::mark(flow, seen, 0);
    const BOTH: u8 = FLOW_FIN | FLOW_FIN_ACKED;
    if own & BOTH == BOTH && peer & BOTH == BOTH {
        finish(flow, other, FlowEndReason::Finished);
    }
}

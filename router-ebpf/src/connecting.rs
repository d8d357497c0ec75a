//! A connection between its SYN to the endpoint and the endpoint's acknowledgement of the first payload. Lost packets
//! of that time are retransmitted from here: the payload is in `short_hellos` or `hellos`.

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use aya_ebpf::helpers::bpf_ktime_get_ns;
use router_common::maps::{
    Dial, FLIGHT_HEADROOM, Flow, Handshake, OPTION_SCALE, OPTION_TIMESTAMPS, SIDE_CLIENT, STATE_CONFIRMING,
    STATE_DIALING, STATE_ESTABLISHED, ShortFlight,
};
use router_common::options::TcpOptions;
use router_common::packet::{ACK, FIN, PSH, Packet, RST, SYN, Segment};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::connect;
use crate::craft::compose;
use crate::flow_end;
use crate::log;
use crate::maps;
use crate::next_hop;
use crate::options::read as read_options;
use crate::reject::swapped;
use crate::retry;
use crate::scratch::Scratch;
use crate::skb::Skb;

/// Nanoseconds until an endpoint without an answer is replaced when the client retransmits. The client does so after
/// 0.2 s or more, and doubles the interval, so the first endpoint gets three SYNs and each other endpoint one.
const GIVEN: u64 = 1_000_000_000;
/// Most source ports given up between two retransmissions of the client: an endpoint that answers every SYN with an
/// unexpected packet would otherwise loop for ever.
const MAX_MOVES: u8 = 64;
/// The smallest payload of a segment made here: the default of 536 bytes (RFC 9293 §3.7.1), less timestamps.
const MIN_SEGMENT: u32 = 524;
/// Segments of the longest payload at [`MIN_SEGMENT`].
const MAX_SEGMENTS: u32 = 9;

// Actions on a packet. `next` chooses one and `act` performs it: two steps, because all active frames share 512 bytes
// of stack.

/// Translate it like any other.
pub const CARRY: u32 = 0;
/// Drop it.
const DROP: u32 = 1;
/// Turn it into a retransmission of the SYN.
const SYN_AGAIN: u32 = 2;
/// Turn it into the first payload.
const PAYLOAD: u32 = 3;
/// Pass a copy up the stack, to which it belongs, and turn it into the SYN from another port.
const NEXT_PORT: u32 = 4;
/// Turn it into the SYN to another endpoint, or into a reset to the client.
const NEXT_ENDPOINT: u32 = 5;
/// Pass it up the stack: it belongs to another connection.
const NOT_OURS: u32 = 6;

/// Chooses the action on a packet, given both entries. Loads the first flight into the working memory if the action
/// needs it.
#[inline(always)]
pub fn next(skb: &Skb, segment: &Segment, flow: &mut Flow, other: &mut Flow, from_client: bool) -> u32 {
    if flow.state == STATE_DIALING {
        if from_client {
            from_client_dialing(segment, flow, other)
        } else {
            from_backend_dialing(skb, segment, flow, other)
        }
    } else if from_client {
        from_client_unconfirmed(segment)
    } else {
        from_backend_unconfirmed(segment, flow, other)
    }
}

/// Performs the action.
#[inline(always)]
pub fn act(skb: &Skb, segment: &Segment, flow: &mut Flow, other: &mut Flow, next: u32) -> i32 {
    if next == DROP {
        return TC_ACT_SHOT;
    }
    if next == NOT_OURS {
        return TC_ACT_OK;
    }
    let from_client = flow.side == SIDE_CLIENT;
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    memory.key = if from_client { segment.flow } else { flow.rewrite.to.reversed() };
    if next == NEXT_ENDPOINT {
        return retry::dial(skb);
    }
    if next == NEXT_PORT {
        return retry::dial_from_another_port(skb);
    }
    let client = if from_client { flow } else { other };
    if next == SYN_AGAIN {
        memory.client.rewrite.to = client.rewrite.to;
        memory.client.interface = client.interface;
        return connect::syn(skb);
    }
    payload(skb, client)
}

/// A packet of the endpoint during the dial. If it does not answer the SYN, it belongs to another connection with the
/// same addresses and ports (a challenge ACK, RFC 5961 §4, or data): one that the host forwards, or one that only the
/// endpoint still has, which the stack then resets with the expected number.
#[inline(never)]
fn from_backend_dialing(skb: &Skb, segment: &Segment, backend: &mut Flow, client: &mut Flow) -> u32 {
    let key = backend.rewrite.to.reversed();
    let Some(memory) = maps::scratch_memory() else { return DROP };
    let Some(flight) = maps::dialed_flight(&key) else { return DROP };
    if segment.flags & ACK == 0 || segment.ack != flight.dial.isn.wrapping_add(1) {
        maps::count(DialCounter::Challenged);
        let moves = flight.dial.moves < MAX_MOVES
            && maps::read_dialed_flight(memory, flight)
            && maps::claim_dial(client, backend.started_ns);
        return if moves { NEXT_PORT } else { NOT_OURS };
    }
    if segment.flags & RST != 0 {
        if !maps::read_dialed_flight(memory, flight) || !maps::claim_dial(client, backend.started_ns) {
            return DROP;
        }
        if let Some(state) = maps::state_of_endpoint(backend.endpoint) {
            state.refused += 1;
        }
        return NEXT_ENDPOINT;
    }
    if segment.flags & SYN == 0 {
        // It has overtaken the SYN-ACK, and will be retransmitted.
        return DROP;
    }
    if !maps::claim_dial(client, backend.started_ns) {
        // Another CPU handles the same answer, or gives the endpoint up.
        return DROP;
    }
    answered(skb, segment, client, backend, &mut flight.dial);
    if maps::read_dialed_flight(memory, flight) { PAYLOAD } else { DROP }
}

/// Completes the translation from the endpoint's SYN-ACK.
#[inline(always)]
fn answered(skb: &Skb, segment: &Segment, client: &mut Flow, backend: &mut Flow, dial: &mut Dial) {
    let options = read_options(skb, segment);
    if let Some(macs) = skb.load::<12>(0) {
        dial.macs = swapped(&macs);
    }
    dial.via = skb.interface();
    dial.backend_isn = segment.seq;
    dial.backend_tsval = options.tsval;
    if options.mss != 0 && (dial.max_segment == 0 || options.mss < dial.max_segment) {
        dial.max_segment = options.mss;
    }
    remember_segment(client.endpoint, options.mss);
    let handshake = &dial.handshake;
    let delta = segment.seq.wrapping_sub(handshake.listener_isn);
    client.rewrite.delta_ack = delta;
    backend.rewrite.delta_seq = delta.wrapping_neg();
    backend.next_seq = segment.seq.wrapping_add(1);
    backend.judged = backend.next_seq;
    backend.acked = segment.ack;
    windows(client, backend, handshake, &options);
    if handshake.options & options.present & OPTION_TIMESTAMPS != 0 {
        // The listener's timestamp clock (ms, as in Linux) has advanced since its SYN-ACK; for the client it must never
        // go back (RFC 7323 §5).
        // SAFETY: the helper has no precondition.
        let elapsed = (unsafe { bpf_ktime_get_ns() }.wrapping_sub(handshake.answered_ns) / 1_000_000) as u32;
        let now = handshake.listener_tsval.wrapping_add(elapsed).wrapping_add(1);
        let delta = now.wrapping_sub(options.tsval);
        backend.rewrite.delta_tsval = delta;
        client.rewrite.delta_tsecr = delta.wrapping_neg();
    }
    client.state = STATE_CONFIRMING;
    backend.state = STATE_CONFIRMING;
}

/// Each side scales windows with the shift that its own peer announced in the handshake (RFC 7323 §2.2): the client's
/// peer was the listener.
#[inline(always)]
fn windows(client: &mut Flow, backend: &mut Flow, handshake: &Handshake, options: &TcpOptions) {
    if handshake.options & OPTION_SCALE == 0 {
        return;
    }
    backend.rewrite.shift_down = handshake.listener_shift;
    if options.present & OPTION_SCALE != 0 {
        backend.rewrite.shift_up = options.shift;
    } else {
        // The endpoint scales neither its own windows nor the client's.
        client.rewrite.shift_up = handshake.client_shift;
    }
}

#[inline(always)]
fn remember_segment(endpoint: u32, mss: u16) {
    if let Some(state) = maps::state_of_endpoint(endpoint)
        && mss != 0
        && (state.max_segment == 0 || (mss as u32) < state.max_segment)
    {
        state.max_segment = mss as u32;
    }
}

/// Sends the first payload in the working memory, in as many segments as the endpoint's maximum segment size requires.
/// `skb` may be any packet of the connection.
#[inline(never)]
fn payload(skb: &Skb, client: &Flow) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let dial = &memory.flight.dial;
    let via = dial.via;
    let stamped = dial.handshake.options & OPTION_TIMESTAMPS != 0;
    let total = dial.prefix + memory.flight.received;
    let announced = if dial.max_segment == 0 { 536 } else { dial.max_segment as u32 };
    let room = if stamped { announced.wrapping_sub(12) } else { announced };
    let room = (if room < MIN_SEGMENT || room > announced { MIN_SEGMENT } else { room }) & !3;
    // Copies leave by the interface that the endpoint's SYN-ACK came in on, to the neighbour that sent it; for the
    // last segment the kernel finds the neighbour itself.
    if total > room && !skb.put_ethernet(0, &dial.macs) {
        return TC_ACT_SHOT;
    }
    let mut sent = 0;
    let mut turn = 0;
    while turn < MAX_SEGMENTS {
        turn += 1;
        let left = total.wrapping_sub(sent);
        let last = left <= room;
        if !one_segment(skb, client, sent, if last { left } else { room }) {
            return TC_ACT_SHOT;
        }
        if last {
            let to = &client.rewrite.to;
            return if total > room {
                next_hop::send_last(skb, to, client.interface)
            } else {
                next_hop::send(skb, to, client.interface)
            };
        }
        // A segment that cannot be sent is lost; the client retransmits all of it.
        let _ = skb.send_copy(via);
        sent += room;
    }
    TC_ACT_SHOT
}

/// Turns the packet into the segment of `len` bytes from offset `sent`.
#[inline(never)]
fn one_segment(skb: &Skb, client: &Flow, sent: u32, len: u32) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let Scratch { wanted, flight, .. } = memory;
    let dial = &flight.dial;
    wanted.begin(skb, &client.rewrite.to);
    wanted.seq = dial.isn.wrapping_add(1).wrapping_add(sent);
    wanted.ack = dial.backend_isn.wrapping_add(1);
    wanted.flags = ACK | PSH;
    wanted.window = dial.window;
    wanted.start = FLIGHT_HEADROOM.wrapping_sub(dial.prefix).wrapping_add(sent);
    wanted.len = len;
    if dial.handshake.options & OPTION_TIMESTAMPS != 0 {
        wanted.timestamps(dial.tsval, dial.backend_tsval);
    }
    compose(skb)
}

/// A packet of the client during the dial.
#[inline(never)]
fn from_client_dialing(segment: &Segment, client: &mut Flow, backend: &mut Flow) -> u32 {
    let key = &segment.flow;
    let Some(memory) = maps::scratch_memory() else { return DROP };
    let Some(flight) = maps::dialed_flight(key) else { return DROP };
    if segment.flags & RST != 0 {
        if segment.seq == client.next_seq {
            flow_end::finish_and_forget(key, client, backend, FlowEndReason::ClientReset);
        }
        return DROP;
    }
    if segment.payload_len == 0 || segment.seq.wrapping_sub(client.next_seq) <= i32::MAX as u32 {
        // A bare acknowledgement, or data behind the first payload, which the client will retransmit.
        return DROP;
    }
    // SAFETY: the helper has no precondition.
    let waited = unsafe { bpf_ktime_get_ns() }.wrapping_sub(client.started_ns);
    if !maps::read_dialed_flight(memory, flight) {
        return DROP;
    }
    if waited >= GIVEN && retry::may_be(&flight.dial, client.route) {
        // Another CPU may handle the endpoint's answer.
        return if maps::claim_dial(client, backend.started_ns) { NEXT_ENDPOINT } else { DROP };
    }
    // The endpoint's interface may have changed: the pod was recreated, or the route has changed.
    if let Some(endpoint) = maps::endpoint(client.endpoint) {
        client.interface = endpoint.interface;
    }
    flight.dial.moves = 0;
    maps::count(DialCounter::SynAgain);
    SYN_AGAIN
}

/// A packet of the endpoint after its SYN-ACK, before its acknowledgement of the first payload.
#[inline(never)]
fn from_backend_unconfirmed(segment: &Segment, backend: &mut Flow, client: &mut Flow) -> u32 {
    let key = backend.rewrite.to.reversed();
    let Some(flight) = maps::dialed_flight(&key) else { return CARRY };
    let dial = &flight.dial;
    if segment.flags & SYN != 0 {
        return again(flight);
    }
    let begin = dial.isn.wrapping_add(1).wrapping_add(dial.prefix);
    let acked = segment.ack.wrapping_sub(begin);
    if segment.flags & ACK != 0 && acked <= i32::MAX as u32 && acked >= flight.received {
        client.state = STATE_ESTABLISHED;
        backend.state = STATE_ESTABLISHED;
        // Two CPUs may handle the acknowledgement and the answer at once.
        if maps::take_dialed_flight(&key) {
            maps::count(DialCounter::Confirmed);
            log::carried();
        }
        return CARRY;
    }
    // An acknowledgement within the PROXY header covers no byte of the client.
    let nothing = segment.payload_len == 0 && segment.flags & (RST | FIN) == 0;
    if acked > i32::MAX as u32 && nothing { DROP } else { CARRY }
}

/// A packet of the client after the endpoint's SYN-ACK, before the acknowledgement of the first payload.
#[inline(never)]
fn from_client_unconfirmed(segment: &Segment) -> u32 {
    let Some(flight) = maps::dialed_flight(&segment.flow) else { return CARRY };
    let end = flight.dial.handshake.client_isn.wrapping_add(1).wrapping_add(flight.received);
    let before = segment.seq.wrapping_sub(end) > i32::MAX as u32;
    if segment.payload_len == 0 || !before { CARRY } else { again(flight) }
}

/// Retransmits the first payload.
#[inline(always)]
fn again(flight: &ShortFlight) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return DROP };
    maps::count(DialCounter::PayloadAgain);
    if maps::read_dialed_flight(memory, flight) { PAYLOAD } else { DROP }
}

//! Open connections of sources: what counts them, and what takes them off again.
//!
//! A connection is counted when its client has shown that it received the SYN-ACK: nobody takes another's places. It is
//! counted once, at whatever packet or socket comes first, and taken off by whoever ends it (`router_common::gate::connection`).

use core::mem::offset_of;

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::programs::TcContext;
use router_common::gate::connection::{self, FLOW};
use router_common::gate::source_count::{self, Counted, Counts, UNLIMITED};
use router_common::gate::source_key;
use router_common::keyed_hash::hash;
use router_common::maps::{
    FLOW_COUNTED, Flow, FlowKey, GATE_COUNT_SETS, GATE_OBSERVE, GateConnection, GatePolicy, HANDSHAKE_COMPLETE,
    HANDSHAKE_COUNTED, HANDSHAKE_DECIDED, HANDSHAKE_REFUSED, SIDE_CLIENT,
};
use router_common::packet::{ACK, RST, SYN, Segment};
use router_common::verdict::Reason;

use crate::gate_record::rejected;
use crate::gate_words::{KernelSet, KernelWord};
use crate::maps;
use crate::scratch::Scratch;
use crate::skb::Skb;

/// What became of a connection that is to be counted.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Outcome {
    /// It is counted, now or since earlier.
    Counted = 0,
    /// It is not: there is no limit, or no room.
    Uncounted = 1,
    /// Its source has as many as it may.
    Refused = 2,
}

/// Whether a segment from a client to a listener with a limit may go on; if not, it is counted and to be dropped. The headers
/// are read from per-CPU memory.
#[inline(always)]
pub fn may_go_on(skb: &Skb) -> bool {
    // SAFETY: the context is the one that the kernel gave.
    unsafe { sluice_connection(skb.0.skb.skb) != 0 }
}

/// A global function in the kernel's sense: the verifier checks it once, separately from its callers.
///
/// # Safety
/// `ctx` is the program's context.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn sluice_connection(ctx: *mut __sk_buff) -> u32 {
    let Some(segment) = maps::segment_memory() else { return 1 };
    let refused = if segment.flags & (SYN | ACK) == SYN { is_full(&segment.flow) } else { is_refused(segment) };
    if refused {
        rejected(&Skb(TcContext::new(ctx)), &segment.flow, Reason::SourceConnections, false);
    }
    !refused as u32
}

/// Whether a SYN is of a source that has as many connections as it may. On interfaces with the gate, that has dropped it.
#[inline(always)]
fn is_full(flow: &FlowKey) -> bool {
    let Some(policy) = policy(flow) else { return false };
    let hash = source_hash(policy, &flow.source);
    let Some(set) = maps::gate_count_set(hash as u32) else { return false };
    policy.flags & GATE_OBSERVE == 0
        && source_count::count(&KernelSet(set), hash) >= policy.source_connections
        && maps::gate_connection(flow).is_none()
}

/// Counts the connection of a segment that proves that its client received the SYN-ACK, unless it is counted.
#[inline(always)]
fn is_refused(segment: &Segment) -> bool {
    let Some(handshake) = maps::handshake(&segment.flow) else { return false };
    const OVER: u8 = HANDSHAKE_COUNTED | HANDSHAKE_DECIDED;
    if handshake.state & HANDSHAKE_COMPLETE == 0 || handshake.state & OVER == OVER {
        return false;
    }
    if segment.ack != handshake.listener_isn.wrapping_add(1) || segment.flags & ACK == 0 {
        return false;
    }
    if segment.flags & RST != 0 {
        // It ends a request socket, for which no program is called.
        if segment.seq == handshake.client_isn.wrapping_add(1) {
            let_go(&segment.flow, 0);
        }
        return false;
    }
    let Some(memory) = maps::scratch_memory() else { return false };
    memory.key = segment.flow;
    let outcome = sluice_count(0);
    if outcome == Outcome::Counted as u32 {
        handshake.state |= HANDSHAKE_COUNTED;
    }
    if outcome == Outcome::Refused as u32 {
        handshake.state |= HANDSHAKE_REFUSED;
    }
    outcome == Outcome::Refused as u32
}

/// Counts a connection, with what holds it, unless it is counted; `always`: beyond the limit, too.
#[inline(never)]
pub fn count(client: &FlowKey, holder: u64, always: bool) -> Outcome {
    if holder == 0 && maps::gate_connection(client).is_some() || holder != 0 && hold(client, holder) {
        return Outcome::Counted;
    }
    let Some(policy) = policy(client) else { return Outcome::Uncounted };
    let is_unlimited = always || policy.flags & GATE_OBSERVE != 0;
    let limit = if is_unlimited { UNLIMITED } else { policy.source_connections };
    let id = policy.id;
    let hash = source_hash(policy, &client.source);
    let Some(set) = maps::gate_count_set(hash as u32) else { return Outcome::Uncounted };
    let index = match source_count::take(&KernelSet(set), hash, limit) {
        Counted::In(index) => index,
        Counted::NoRoom => return Outcome::Uncounted,
        // Another packet of the connection may have counted it meanwhile.
        Counted::Full if maps::gate_connection(client).is_some() => return Outcome::Counted,
        Counted::Full => return if is_unlimited { Outcome::Uncounted } else { Outcome::Refused },
    };
    let connection = GateConnection {
        state: connection::begun(client, holder),
        // SAFETY: the helper has no precondition.
        at_ns: unsafe { bpf_ktime_get_ns() },
        count: (hash as u32 & (GATE_COUNT_SETS as u32 - 1)) << 3 | index,
        policy: id,
    };
    if maps::add_gate_connection(client, &connection) {
        return Outcome::Counted;
    }
    KernelSet(set).subtract_one(index);
    if holder == 0 && maps::gate_connection(client).is_some() || holder != 0 && hold(client, holder) {
        Outcome::Counted
    } else {
        Outcome::Uncounted
    }
}

/// The policy of the listener, if it limits connections.
#[inline(always)]
fn policy(client: &FlowKey) -> Option<&'static GatePolicy> {
    maps::gate_policy_at(&client.destination, client.destination_port).filter(|policy| policy.source_connections != 0)
}

/// Whether a packet that cannot be read might complete a handshake past the limit; if so, it is counted and to be dropped.
#[inline(never)]
pub fn might_pass_unread(skb: &Skb, client: &FlowKey) -> bool {
    let is_limited = maps::listener(&client.destination, client.destination_port).is_some_and(|to| to.is_limited != 0);
    let might = is_limited
        && maps::handshake(client).is_none_or(|handshake| handshake.state & HANDSHAKE_COUNTED == 0)
        && policy(client).is_some_and(|policy| policy.flags & GATE_OBSERVE == 0);
    if might {
        rejected(skb, client, Reason::IpOptions, false);
    }
    might
}

/// Hash of a source. A separate function: its stack frame is free again after it returns.
#[inline(never)]
fn source_hash(policy: &GatePolicy, source: &[u8; 16]) -> u64 {
    // Without settings the programs see no packets.
    let secret = maps::settings().map_or([0; 2], |settings| settings.secret);
    hash(secret, &source_key(policy, source))
}

/// Adds what holds a connection; `false`: it is not counted.
#[inline(never)]
fn hold(client: &FlowKey, holder: u64) -> bool {
    maps::gate_connection(client).is_some_and(|entry| connection::hold(&word(entry), client, holder))
}

/// Removes what holds a connection, or with 0 nothing; if nothing is left, takes it off its source's number.
#[inline(always)]
pub fn let_go(client: &FlowKey, holder: u64) {
    if let Some(entry) = maps::gate_connection(client)
        && connection::let_go(&word(entry), client, holder)
    {
        remove(client, entry);
    }
}

/// What happens to the flow entries of a counted connection.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum FlowStep {
    /// They are about to be made; `false`: the connection has been given up meanwhile.
    Begin = 0,
    /// They could not be made, and the connection goes on in a socket.
    Withdraw = 1,
    /// They have ended.
    End = 2,
    /// There are none: the connection is rejected.
    Reject = 3,
}

/// Notes a step of the connection with [`Scratch::key`].
#[inline(always)]
pub fn of_flow(step: FlowStep) -> bool {
    sluice_flow_step(step as u32) != 0
}

/// Notes that the flow entries of a connection have ended. Not inlined, so that the verifier follows its caller once.
#[inline(never)]
pub fn flow_ended(one: &Flow, other: &Flow) {
    if (one.claims | other.claims) & FLOW_COUNTED != 0 && remember(if one.side == SIDE_CLIENT { other } else { one }) {
        of_flow(FlowStep::End);
    }
}

/// Counts a connection again whose flow entries had ended, given its endpoint's; `false`: its source has as many as it may.
#[inline(always)]
pub fn flow_resumed(backend: &Flow) -> bool {
    !remember(backend) || sluice_count(FLOW) != Outcome::Refused as u32
}

/// Builds the connection's key in the working memory, not on the stack: many frames are active here.
#[inline(always)]
fn remember(backend: &Flow) -> bool {
    let Some(Scratch { key, .. }) = maps::scratch_memory() else { return false };
    let to = &backend.rewrite.to;
    (key.source, key.destination) = (to.destination, to.source);
    (key.source_port, key.destination_port) = (to.destination_port, to.source_port);
    true
}

/// Counts the connection with [`Scratch::key`], unless it is counted; an [`Outcome`]. A global function in the kernel's sense:
/// the verifier checks it once, separately from its callers.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn sluice_count(holder: u64) -> u32 {
    let Some(Scratch { key, .. }) = maps::scratch_memory() else { return Outcome::Uncounted as u32 };
    count(key, holder, false) as u32
}

/// Likewise.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn sluice_flow_step(step: u32) -> u32 {
    const BEGIN: u32 = FlowStep::Begin as u32;
    const END: u32 = FlowStep::End as u32;
    const WITHDRAW: u32 = FlowStep::Withdraw as u32;
    let Some(Scratch { key, flight, .. }) = maps::scratch_memory() else { return 1 };
    let goes_on = match step {
        BEGIN if flight.dial.handshake.state & HANDSHAKE_COUNTED == 0 => true,
        BEGIN => hold(key, FLOW),
        WITHDRAW => unhold(key),
        _ => {
            let_go(key, if step == END { FLOW } else { 0 });
            true
        }
    };
    goes_on as u32
}

/// Flow entries do not hold the connection any more; its socket will. `false`: it is not counted.
#[inline(never)]
fn unhold(client: &FlowKey) -> bool {
    maps::gate_connection(client).is_some_and(|entry| connection::unhold(&word(entry), client, FLOW))
}

/// Ends a connection as the agent found it; `false`: it has changed since.
#[inline(always)]
pub fn end(client: &FlowKey, state: u64, at_ns: u64) -> bool {
    let Some(entry) = maps::gate_connection(client) else { return false };
    // SAFETY: `maps` gives a pointer to a live value; the kernel keeps its memory until the program ends.
    let is_same = unsafe { (&raw const (*entry).at_ns).read_volatile() } == at_ns;
    let ended = is_same && connection::end(&word(entry), state);
    if ended {
        remove(client, entry);
    }
    ended
}

#[inline(always)]
fn remove(client: &FlowKey, entry: *mut GateConnection) {
    // SAFETY: as in `end`; who has ended the entry reads it before anybody may use its memory again.
    let place = unsafe { (&raw const (*entry).count).read_volatile() };
    maps::remove_gate_connection(client);
    if let Some(set) = maps::gate_count_set(place >> 3) {
        KernelSet(set).subtract_one(place & 7);
    }
}

#[inline(always)]
fn word(entry: *mut GateConnection) -> KernelWord {
    const { assert!(offset_of!(GateConnection, state) == 0) };
    KernelWord(entry.cast())
}

//! From SYN to verdict: gathering a connection's first payload, over as many segments as it comes in.

use core::ffi::c_void;
use core::ptr::null_mut;

use aya_ebpf::bindings::TC_ACT_OK;
use aya_ebpf::helpers::bpf_ktime_get_boot_ns;
use aya_ebpf::helpers::generated::bpf_loop;
use router_common::decide::{self, Decision};
use router_common::http;
use router_common::maps::{FlowKey, Handshake, Listener, MAX_FLIGHT, PROTOCOL_TLS};
use router_common::packet::{ACK, FIN, RST, SYN, Segment};
use router_common::tls;
use router_common::verdict::{Reason, Verdict};

use crate::maps::{self, Scratch};
use crate::record::{self, Read};
use crate::reject;
use crate::skb::Skb;
use crate::tables::KernelTables;
use crate::words;

/// Handles a segment from a client to a listener; the result is a TC action.
#[inline(always)]
pub fn segment(skb: &Skb, segment: &Segment, listener: Listener) -> i32 {
    let flow = &segment.flow;
    if segment.flags & (SYN | ACK) == SYN {
        maps::forget_first_flight(flow);
        maps::set_handshake(flow, Handshake { client_isn: segment.seq, decided: 0 });
        return TC_ACT_OK;
    }
    if segment.flags & (FIN | RST) != 0 && segment.payload_len == 0 {
        maps::forget_first_flight(flow);
        return TC_ACT_OK;
    }
    if segment.payload_len == 0 {
        return TC_ACT_OK;
    }
    let Some(handshake) = maps::handshake(flow) else {
        return pass(flow, listener, Reason::NoHandshake);
    };
    if handshake.decided != 0 {
        return TC_ACT_OK;
    }
    gather(skb, segment, listener, handshake.client_isn)
}

/// A function of its own, called from many places: inlined, it would be most of the program.
#[inline(never)]
fn pass(flow: &FlowKey, listener: Listener, reason: Reason) -> i32 {
    maps::forget_first_flight(flow);
    record::decision(flow, listener, Decision::of(reason), Read { bytes: 0, segments: 0, host: None });
    TC_ACT_OK
}

#[inline(always)]
fn gather(skb: &Skb, segment: &Segment, listener: Listener, client_isn: u32) -> i32 {
    let flow = &segment.flow;
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    match maps::first_flight(flow) {
        Some(begun) => words::copy(&mut memory.flight, begun),
        None => {
            words::zero(&mut memory.flight);
            // SAFETY: the helper has no precondition.
            memory.flight.started_ns = unsafe { bpf_ktime_get_boot_ns() };
        }
    }
    // Bytes of this segment that were seen before, in sequence space (RFC 9293 §3.4: modulo 2³²).
    let expected = client_isn.wrapping_add(1).wrapping_add(memory.flight.received);
    let seen = expected.wrapping_sub(segment.seq);
    if seen > i32::MAX as u32 {
        return pass(flow, listener, Reason::OutOfOrder);
    }
    if seen >= segment.payload_len {
        return TC_ACT_OK;
    }
    let room = MAX_FLIGHT - memory.flight.received;
    let fresh = segment.payload_len - seen;
    let len = if fresh < room { fresh } else { room };
    if !skb.load_into(segment.payload + seen, &mut memory.payload, len) {
        return pass(flow, listener, Reason::Unreadable);
    }
    memory.flight.received += len;
    memory.flight.segments += 1;
    match parse(memory, listener.protocol, len) {
        PARSE_MORE if fresh < room => keep(flow, listener),
        PARSE_MORE => pass(flow, listener, decide::too_long(listener.protocol)),
        PARSE_DONE => complete(skb, segment, listener),
        PARSE_BAD => pass(flow, listener, decide::malformed(listener.protocol)),
        _ => pass(flow, listener, Reason::Unreadable),
    }
}

#[inline(always)]
fn keep(flow: &FlowKey, listener: Listener) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    if maps::keep_first_flight(flow, &memory.flight) {
        return TC_ACT_OK;
    }
    pass(flow, listener, Reason::MapFull)
}

#[inline(always)]
fn complete(skb: &Skb, segment: &Segment, listener: Listener) -> i32 {
    let flow = &segment.flow;
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    let Scratch { flight, exact, wildcard, .. } = memory;
    exact.router = listener.router;
    words::copy_name(&mut exact.host, &flight.host.exact);
    wildcard.router = listener.router;
    words::copy_name(&mut wildcard.host, &flight.host.wildcard);
    let tables = KernelTables { exact, wildcard, client: &flow.client };
    let decision = if listener.protocol == PROTOCOL_TLS {
        decide::tls(flight.hello.hello(), &tables)
    } else {
        decide::http(flight.head.head(), &tables)
    };
    maps::forget_first_flight(flow);
    let read = Read { bytes: flight.received, segments: flight.segments, host: Some(&flight.host.exact) };
    record::decision(flow, listener, decision, read);
    match decision.verdict() {
        // Dialing from here is the next stage; until then the agent's relay steers.
        Verdict::Steer | Verdict::Pass => TC_ACT_OK,
        Verdict::Drop => reject::reset_both(skb, segment),
    }
}

// Results of `parse`, as numbers, because they pass through memory.
const PARSE_MORE: u32 = 0;
const PARSE_DONE: u32 = 1;
const PARSE_BAD: u32 = 2;

/// Where the parser is in the payload. It lives in map memory, not on the stack: the verifier follows every value of
/// a stack slot from one turn of the loop to the next, and would follow `at` through all 4,096.
#[repr(C)]
pub struct ParseLoop {
    at: u32,
    len: u32,
    outcome: u32,
    protocol: u32,
}

/// Runs the parser over `len` bytes of the scratch payload.
#[inline(always)]
fn parse(memory: &mut Scratch, protocol: u8, len: u32) -> u32 {
    memory.parse = ParseLoop { at: 0, len, outcome: PARSE_MORE, protocol: protocol as u32 };
    // SAFETY: the callback has the signature that the helper expects and does not use its context.
    unsafe {
        bpf_loop(len, parse_step as unsafe extern "C" fn(u32, *mut c_void) -> i64 as *mut c_void, null_mut(), 0);
    }
    memory.parse.outcome
}

/// One parser step. 1 ends the loop.
unsafe extern "C" fn parse_step(_: u32, _: *mut c_void) -> i64 {
    let Some(memory) = maps::scratch_memory() else { return 1 };
    let Scratch { parse, flight, payload, .. } = memory;
    let at = parse.at;
    if at >= parse.len {
        return 1;
    }
    // The mask is the bound that the verifier sees; `at < len <= MAX_FLIGHT` makes it a no-op.
    let byte = payload[(at & (MAX_FLIGHT - 1)) as usize];
    if parse.protocol == PROTOCOL_TLS as u32 {
        let step = flight.hello.step(&mut flight.host, byte, parse.len - at);
        parse.at = at + step.consumed;
        parse.outcome = match step.progress {
            tls::Progress::Incomplete => return 0,
            tls::Progress::Complete => PARSE_DONE,
            tls::Progress::Invalid(_) => PARSE_BAD,
        };
    } else {
        parse.at = at + 1;
        parse.outcome = match flight.head.step(&mut flight.host, byte) {
            http::Progress::Incomplete => return 0,
            http::Progress::Complete => PARSE_DONE,
            http::Progress::Invalid(_) => PARSE_BAD,
        };
    }
    1
}

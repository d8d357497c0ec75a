//! From SYN to verdict: gathering a connection's first payload, over as many segments as it comes in.

use core::ffi::c_void;
use core::ptr::null_mut;

use aya_ebpf::bindings::{__sk_buff, TC_ACT_OK, TC_ACT_SHOT};
use aya_ebpf::helpers::bpf_ktime_get_boot_ns;
use aya_ebpf::helpers::generated::bpf_loop;
use aya_ebpf::programs::TcContext;
use router_common::decide::{self, ConnectionDecision};
use router_common::http;
use router_common::maps::{
    FLIGHT_HEADROOM, FlowKey, HANDSHAKE_COMPLETE, HANDSHAKE_COUNTED, HANDSHAKE_DECIDED, HANDSHAKE_GATHERING,
    HANDSHAKE_REFUSED, Handshake, ListenerOwner, MAX_FLIGHT, OPTION_TIMESTAMPS, PROTOCOL_TLS,
};
use router_common::packet::{ACK, FIN, RST, SYN, Segment};
use router_common::tls;
use router_common::verdict::{DialCounter, Reason, Verdict};

use crate::connect;
use crate::connections::{self, FlowStep};
use crate::cookie_handshake;
use crate::copy;
use crate::craft::{compose, is_damaged};
use crate::handshake;
use crate::known_sockets;
use crate::log;
use crate::maps;
use crate::next_hop;
use crate::options::read as read_options;
use crate::reject;
use crate::scratch::{ParseLoop, Scratch};
use crate::skb::Skb;
use crate::tables::KernelTables;
use crate::telemetry::{self, InputSummary};
use crate::verifier;

/// The smallest first segment that is held, in bytes. Behind a smaller one, or any of clear text, the client may wait
/// with its next write for an acknowledgement (RFC 9293 §3.7.4, Nagle), which only the stack sends. A hello is one
/// write.
const HOLD_FROM: u32 = 512;
/// Most segments held for one first flight; the initial window is ten (RFC 6928 §2).
const MAX_HELD: u32 = 8;

/// Handles a segment from a client to a listener; the result is a TC action.
#[inline(always)]
pub fn segment(skb: &Skb, segment: &Segment, listener: ListenerOwner) -> i32 {
    let is_syn = segment.flags & (SYN | ACK) == SYN;
    if !is_syn {
        cookie_handshake::completed(skb, segment, &listener);
    }
    if listener.is_limited != 0 && !connections::may_go_on(skb) {
        return TC_ACT_SHOT;
    }
    // Not below: that frame and those of composing an answer are too large together.
    if is_syn && let Some(action) = cookie_handshake::answered(skb, segment, &listener) {
        return action;
    }
    known_sockets::record(&segment.flow);
    let packed = (listener.max_segment as u32) << 16 | listener.protocol as u32;
    // SAFETY: the context is the one that the kernel gave.
    unsafe { sluice_first_flight(skb.0.skb.skb, listener.router, packed) }
}

/// A global function in the kernel's sense: the verifier checks it once, separately from its callers, and its frame is
/// not part of the fast path's. Its arguments may only be the context and numbers, so the listener is packed into
/// `packed`, and the headers are read from per-CPU memory.
///
/// # Safety
/// `ctx` is the program's context.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn sluice_first_flight(ctx: *mut __sk_buff, router: u32, packed: u32) -> i32 {
    let skb = Skb(TcContext::new(ctx));
    let Some(segment) = maps::segment_memory() else { return TC_ACT_OK };
    let (protocol, max_segment) = (packed as u8, (packed >> 16) as u16);
    read(&skb, segment, ListenerOwner { router, protocol, is_limited: 0, max_segment })
}

#[inline(always)]
fn read(skb: &Skb, segment: &Segment, listener: ListenerOwner) -> i32 {
    let flow = &segment.flow;
    if segment.flags & (SYN | ACK) == SYN {
        handshake::begun(skb, segment);
        return TC_ACT_OK;
    }
    if segment.flags & (FIN | RST) != 0 && segment.payload_len == 0 {
        maps::forget_gathered_flight(flow);
        return TC_ACT_OK;
    }
    let handshake = maps::handshake(flow);
    if segment.payload_len == 0 {
        return if handshake.is_some_and(|handshake| handshake::is_only_ended(handshake, segment)) {
            TC_ACT_SHOT
        } else {
            TC_ACT_OK
        };
    }
    let Some(handshake) = handshake else {
        return pass(flow, listener, Reason::NoHandshake);
    };
    if handshake.state & HANDSHAKE_DECIDED != 0 {
        return TC_ACT_OK;
    }
    gather(skb, segment, listener, handshake)
}

/// Passes a connection to the stack, and so to the agent, for a reason. Not inlined: it has many callers.
#[inline(never)]
pub fn pass(flow: &FlowKey, listener: ListenerOwner, reason: Reason) -> i32 {
    maps::forget_gathered_flight(flow);
    maps::set_decided(flow);
    telemetry::decision(
        flow,
        listener,
        ConnectionDecision::of(reason),
        InputSummary { bytes: 0, segments: 0, host: None },
        true,
    );
    TC_ACT_OK
}

#[inline(always)]
fn gather(skb: &Skb, segment: &Segment, listener: ListenerOwner, handshake: &mut Handshake) -> i32 {
    let flow = &segment.flow;
    if is_damaged(skb, segment) {
        // The stack drops and counts it.
        return TC_ACT_OK;
    }
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    let begun = if handshake.state & HANDSHAKE_GATHERING != 0 { maps::gathered_flight(flow) } else { None };
    match begun {
        Some(begun) => {
            if !maps::read_gathered_flight(memory, begun) {
                return pass(flow, listener, Reason::Unreadable);
            }
        }
        None => {
            copy::zero_parsers(&mut memory.flight);
            // SAFETY: the helper has no precondition.
            memory.flight.started_ns = unsafe { bpf_ktime_get_boot_ns() };
        }
    }
    // Bytes of this segment that were read before, in sequence space (RFC 9293 §3.4: modulo 2³²).
    let received = memory.flight.received;
    let expected = handshake.client_isn.wrapping_add(1).wrapping_add(received);
    let seen = expected.wrapping_sub(segment.seq);
    if seen > i32::MAX as u32 {
        return pass(flow, listener, Reason::OutOfOrder);
    }
    if seen >= segment.payload_len {
        return went_up_again(segment, expected);
    }
    let large = listener.protocol == PROTOCOL_TLS && segment.payload_len >= HOLD_FROM;
    let hold = memory.flight.went_up == 0 && (received != 0 || large) && holds(handshake);
    let room = MAX_FLIGHT - received;
    let fresh = segment.payload_len - seen;
    let len = if fresh < room { fresh } else { room };
    let at = (FLIGHT_HEADROOM + (verifier::opaque(received) & (MAX_FLIGHT - 1))) as usize;
    // SAFETY: 4,096 bytes follow every such position of the scratch memory.
    let loaded =
        unsafe { skb.load_to(segment.payload + seen, (&raw mut memory.flight.bytes).cast::<u8>().add(at), len) };
    if !loaded {
        return pass(flow, listener, Reason::Unreadable);
    }
    memory.flight.received = received + len;
    memory.flight.segments += 1;
    match parse(memory, listener.protocol, received, len) {
        PARSE_MORE if fresh < room => more(skb, segment, listener, handshake, hold),
        PARSE_MORE => give_up(skb, segment, listener, decide::too_long(listener.protocol)),
        PARSE_DONE => complete(skb, segment, listener, handshake, fresh <= room),
        PARSE_BAD => give_up(skb, segment, listener, decide::malformed(listener.protocol)),
        _ => give_up(skb, segment, listener, Reason::Unreadable),
    }
}

/// Handles a retransmission of bytes that were read before: a later segment was lost, and the client waits for an
/// acknowledgement before it sends that again. From here on every segment goes up, and this program reads copies.
#[inline(never)]
fn went_up_again(segment: &Segment, expected: u32) -> i32 {
    if let Some(flight) = maps::gathered_flight(&segment.flow) {
        let before = expected.wrapping_sub(segment.seq).wrapping_sub(segment.payload_len);
        let end = flight.received.wrapping_sub(before);
        if end > flight.went_up && end <= flight.received {
            flight.went_up = end;
        }
    }
    TC_ACT_OK
}

/// True if segments of an incomplete first flight are held here instead of in a socket: if all that a dial needs is
/// known, and the client sends the next one without an acknowledgement.
#[inline(always)]
fn holds(handshake: &Handshake) -> bool {
    handshake.state & (HANDSHAKE_COMPLETE | HANDSHAKE_REFUSED) == HANDSHAKE_COMPLETE
        && maps::settings().is_some_and(|settings| settings.dial != 0)
}

/// Stores the incomplete first flight; holds the segment, or lets it go up.
#[inline(always)]
fn more(skb: &Skb, segment: &Segment, listener: ListenerOwner, handshake: &mut Handshake, hold: bool) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    let many = memory.flight.segments >= MAX_HELD;
    if hold && many {
        return give_up(skb, segment, listener, decide::too_long(listener.protocol));
    }
    if !hold {
        memory.flight.went_up = memory.flight.received;
    }
    if !maps::keep_gathered_flight(&segment.flow, &memory.flight) {
        return give_up(skb, segment, listener, Reason::MapFull);
    }
    handshake.state |= HANDSHAKE_GATHERING;
    if hold { TC_ACT_SHOT } else { TC_ACT_OK }
}

/// Passes a connection up before its first flight is complete.
#[inline(always)]
fn give_up(skb: &Skb, segment: &Segment, listener: ListenerOwner, reason: Reason) -> i32 {
    // Every caller records the same; only what goes up differs.
    let action = up(skb, segment);
    pass(&segment.flow, listener, reason);
    action
}

/// Decides about a complete first flight, and dials, passes or drops.
#[inline(always)]
fn complete(skb: &Skb, segment: &Segment, listener: ListenerOwner, handshake: &mut Handshake, whole: bool) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    memory.key = segment.flow;
    decide(memory, segment, listener);
    let steer = memory.decision.verdict() as u8 == Verdict::Steer as u8;
    let mut why = OFF;
    if steer {
        why = if whole { connect::begin(skb, segment, listener, handshake) } else { TOO_LONG };
        if why == connect::CHOSEN && maps::is_fragmenting(&segment.flow.source) {
            why = Reason::Fragments as u32;
        }
        if why == connect::CHOSEN && !next_hop::leads_back(skb, &segment.flow) {
            why = Reason::OtherWayBack as u32;
        }
        if why == connect::CHOSEN {
            if !connections::of_flow(FlowStep::Begin) {
                // It was given up meanwhile. The client sends again, and is counted again.
                handshake.state = handshake.state & !HANDSHAKE_COUNTED | HANDSHAKE_REFUSED;
                return TC_ACT_SHOT;
            }
            memory.arrived = skb.interface();
            why = connect::enter(skb);
        }
    }
    // What the kernel cannot carry goes up, with the reason.
    if why == TOO_LONG {
        memory.decision.reason = decide::too_long(listener.protocol);
    } else if steer && why != connect::ENTERED && why != OFF {
        memory.decision.reason = connect::reason(why);
        connections::of_flow(FlowStep::Withdraw);
    }
    settle(segment, listener, why == connect::ENTERED);
    if why == connect::ENTERED {
        log::dialed();
        return connect::send(skb, segment);
    }
    match memory.decision.verdict() {
        Verdict::Steer | Verdict::Pass => up(skb, segment),
        Verdict::Drop => {
            connections::of_flow(FlowStep::Reject);
            reject::reset_both(skb, segment)
        }
    }
}

#[inline(never)]
fn decide(memory: &mut Scratch, segment: &Segment, listener: ListenerOwner) {
    let Scratch { flight, exact, wildcard, decision, .. } = memory;
    exact.router = listener.router;
    copy::copy_name(&mut exact.host, &flight.host.exact);
    wildcard.router = listener.router;
    copy::copy_name(&mut wildcard.host, &flight.host.wildcard);
    let tables = KernelTables { exact, wildcard, client: &segment.flow.source };
    *decision = if listener.protocol == PROTOCOL_TLS {
        decide::tls(flight.hello.hello(), &tables)
    } else {
        decide::http(flight.head.head(), flight.received, &tables)
    };
}

/// Records a decision, and deletes the state that only led to it.
#[inline(never)]
fn settle(segment: &Segment, listener: ListenerOwner, dialed: bool) {
    let flow = &segment.flow;
    let Some(memory) = maps::scratch_memory() else { return };
    let flight = &memory.flight;
    let read = InputSummary { bytes: flight.received, segments: flight.segments, host: Some(&flight.host.exact) };
    telemetry::decision(flow, listener, memory.decision, read, !dialed || flight.dial.told != 0);
    if dialed {
        maps::forget_handshake(flow);
        maps::count(DialCounter::Dialed);
    } else {
        maps::forget_gathered_flight(flow);
        maps::set_decided(flow);
    }
}

// Results of a dial are reason codes, except these.
const TOO_LONG: u32 = u32::MAX;
const OFF: u32 = connect::OFF;

/// Passes the segment up the stack, preceded by the held bytes.
#[inline(always)]
fn up(skb: &Skb, segment: &Segment) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    // Nothing was held: there is one segment, or the earlier ones have gone up.
    if memory.flight.segments < 2 || memory.flight.went_up != 0 {
        return TC_ACT_OK;
    }
    whole(skb, segment)
}

/// Rebuilds the segment with all bytes of the first flight. If that fails, the client retransmits, and the connection
/// is already decided.
#[inline(never)]
fn whole(skb: &Skb, segment: &Segment) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let Some(handshake) = maps::handshake(&segment.flow) else { return TC_ACT_SHOT };
    let options = read_options(skb, segment);
    let Scratch { wanted, flight, .. } = memory;
    wanted.begin(skb, &segment.flow);
    wanted.seq = handshake.client_isn.wrapping_add(1);
    wanted.ack = segment.ack;
    wanted.flags = segment.flags;
    wanted.window = segment.window;
    wanted.len = flight.received;
    if options.present & OPTION_TIMESTAMPS != 0 {
        wanted.timestamps(options.tsval, options.tsecr);
    }
    if compose(skb) { TC_ACT_OK } else { TC_ACT_SHOT }
}

// Results of `parse`, as numbers, because they are stored in map memory.
pub const PARSE_MORE: u32 = 0;
pub const PARSE_DONE: u32 = 1;
pub const PARSE_BAD: u32 = 2;
/// [`parse`]: the bytes are content of a request.
pub const CONTENT: u8 = u8::MAX;

impl ParseLoop {
    /// Bytes that were read.
    #[inline(always)]
    pub fn read(&self) -> u32 {
        self.at
    }
}

/// Runs the parser over the `len` bytes after the first `begin` of the first flight.
#[inline(always)]
pub fn parse(memory: &mut Scratch, protocol: u8, begin: u32, len: u32) -> u32 {
    memory.parse = ParseLoop { at: 0, len, begin, outcome: PARSE_MORE, protocol: protocol as u32 };
    // SAFETY: the callback has the signature that the helper expects and does not use its context.
    unsafe {
        bpf_loop(len, parse_step as unsafe extern "C" fn(u32, *mut c_void) -> i64 as *mut c_void, null_mut(), 0);
    }
    // Volatile: the callback writes it through a reference of its own, which the compiler may take for another place.
    // SAFETY: a field of `memory`, written above.
    unsafe { (&raw const memory.parse.outcome).read_volatile() }
}

/// Parser steps per iteration: calling the callback costs as much as one step.
const STEPS: u32 = 2;

/// Callback of `bpf_loop`: [`STEPS`] parser steps. 1 ends the loop.
unsafe extern "C" fn parse_step(_: u32, _: *mut c_void) -> i64 {
    let Some(memory) = maps::scratch_memory() else { return 1 };
    let mut turn = 0;
    while turn < STEPS {
        turn += 1;
        if !step(memory) {
            return 1;
        }
    }
    0
}

/// One parser step. `false`: that was the last.
#[inline(always)]
fn step(memory: &mut Scratch) -> bool {
    let Scratch { parse, flight, content, .. } = memory;
    let at = parse.at;
    if at >= parse.len {
        return false;
    }
    // The mask is the bound that the verifier sees; `begin + len <= MAX_FLIGHT` makes it a no-op.
    let place = (FLIGHT_HEADROOM + ((parse.begin + at) & (MAX_FLIGHT - 1))) as usize;
    if parse.protocol == PROTOCOL_TLS as u32 {
        // SAFETY: the slack follows the bytes; bytes beyond `len` may have any value.
        let next = unsafe { (&raw const flight.bytes).cast::<u8>().add(place).cast::<[u8; 4]>().read() };
        let step = flight.hello.step(&mut flight.host, next, parse.len - at);
        parse.at = at + step.consumed;
        parse.outcome = match step.progress {
            tls::Progress::Incomplete => return true,
            tls::Progress::Complete => PARSE_DONE,
            tls::Progress::Invalid(_) => PARSE_BAD,
        };
    } else if parse.protocol == CONTENT as u32 {
        let (free, left) = (content.free(), (parse.len - at) as u64);
        if free != 0 {
            let passed = if free < left { free } else { left };
            content.pass(passed);
            parse.at = at + passed as u32;
            return true;
        }
        parse.at = at + 1;
        if !content.step(flight.bytes[place]) {
            parse.outcome = PARSE_BAD;
        } else if content.is_over() {
            parse.outcome = PARSE_DONE;
        } else {
            return true;
        }
    } else {
        parse.at = at + 1;
        parse.outcome = match flight.head.step(&mut flight.host, flight.bytes[place]) {
            http::Progress::Incomplete => return true,
            http::Progress::Complete => PARSE_DONE,
            http::Progress::Invalid(_) => PARSE_BAD,
        };
    }
    false
}

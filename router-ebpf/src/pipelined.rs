//! Later requests of a clear-text connection that the kernel carries. HTTP/1.1 is routed by request: a request for
//! another host must not stay on this connection, and a reset makes the client repeat it on a new one (RFC 9110 §9.2.2,
//! RFC 9112 §9.3.1).
//!
//! The program tracks where requests begin: it skips content by its length or chunk by chunk, and reads each head over
//! as many segments as it has. Segments of a head are forwarded as they arrive, except the one that completes a head
//! for another host: no endpoint gets a complete request that is not its own. Bytes that cannot be a request, and a
//! head that leaves the end of its content open, end the connection too.
//!
//! Segments are inspected in sequence. Data behind a gap is dropped, and retransmitted, unless it is known to be
//! content.

use aya_ebpf::bindings::{__sk_buff, TC_ACT_SHOT};
use aya_ebpf::programs::TcContext;
use router_common::http::HeadHost;
use router_common::maps::{
    FLIGHT_HEADROOM, FLOW_ASKED, FLOW_CLEARTEXT, FLOW_IN_HEAD, FLOW_SWITCHED, Flow, MAX_FLIGHT, PROTOCOL_HTTP,
};
use router_common::packet::{ACK, Packet, RST, Segment};
use router_common::requests::{self, SegmentPosition};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::copy;
use crate::craft::{compose, is_damaged};
use crate::first_flight::{CONTENT, PARSE_BAD, PARSE_DONE, parse};
use crate::flow_end;
use crate::maps::{self, http_be};
use crate::next_hop;
use crate::reject::swapped;
use crate::scratch::Scratch;
use crate::skb::Skb;

/// Most parts read of one segment: heads, chunked contents, or 4,096 bytes of them.
const MAX_PARTS: u32 = 64;
/// First bytes of the response that switches to another protocol (RFC 9112 §4, RFC 9110 §15.2.2).
const SWITCHES: [u8; 12] = *b"HTTP/1.1 101";

// Numbers, because the verifier tracks them through calls.
/// The segment goes to the endpoint.
pub const GOES_ON: u32 = 0;
/// Data before it is missing, or its partial head does not fit in the map. It is dropped, and will be retransmitted.
pub const EARLY: u32 = 1;
/// It completes a request for a host of another route.
const FOR_ANOTHER: u32 = 2;
/// It contains bytes that cannot be a request, or a request whose end is undetermined.
const UNFOLLOWED: u32 = 3;
/// There is more to read.
const AGAIN: u32 = 4;

/// Inspects a client's segment, given both entries. Steps follow one another instead of nesting: active frames share
/// 512 bytes.
#[inline(always)]
pub fn look(skb: &Skb, segment: &Segment, client: &mut Flow, backend: &Flow) -> u32 {
    match place(segment, client, backend) {
        // The endpoint would drop it, and could get other bytes in its place.
        AGAIN if is_damaged(skb, segment) => EARLY,
        AGAIN => {
            let read = parts(skb, client);
            keep(segment, client, read)
        }
        done => done,
    }
}

/// Finds the first byte of a segment to read; loads its position, a partial head, and the rest of content into the
/// working memory.
#[inline(never)]
fn place(segment: &Segment, client: &mut Flow, backend: &Flow) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return UNFOLLOWED };
    if client.peer & FLOW_SWITCHED != 0 {
        maps::unmark(client, FLOW_CLEARTEXT, 0);
        return GOES_ON;
    }
    let acked = backend.acked.wrapping_add(backend.rewrite.delta_ack);
    let from = match requests::place(&mut client.judged, &mut client.content, acked, segment.seq, segment.payload_len) {
        SegmentPosition::Passes => return GOES_ON,
        SegmentPosition::Early => return EARLY,
        SegmentPosition::From(from) => from,
    };
    if client.peer & FLOW_ASKED != 0 {
        // A request, or another protocol: the response decides. Content before it is not held, as the endpoint may wait
        // for it.
        return if from == 0 { EARLY } else { UNFOLLOWED };
    }
    memory.later_at = from;
    memory.content = client.content;
    memory.content.pass(client.content.free());
    copy::zero_parsers(&mut memory.flight);
    if client.own & FLOW_IN_HEAD != 0 {
        let Some(begun) = maps::later_head(&segment.flow) else { return UNFOLLOWED };
        maps::read_later_head(memory, begun);
    }
    AGAIN
}

/// Reads heads and contents, from the position in the working memory on.
#[inline(never)]
fn parts(skb: &Skb, client: &Flow) -> u32 {
    let mut part = 0;
    while part < MAX_PARTS {
        part += 1;
        // SAFETY: the context is the one that the kernel gave.
        let read = unsafe { sluice_later_request(skb.0.skb.skb, client.router, client.route) };
        if read != AGAIN {
            return read;
        }
    }
    UNFOLLOWED
}

/// Reads the next part of a head or of content. A global function in the kernel's sense, with the position in map
/// memory: the verifier checks it once, not for each part and each state that the earlier ones may leave.
///
/// # Safety
/// `ctx` is the program's context.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn sluice_later_request(ctx: *mut __sk_buff, router: u32, route: u32) -> u32 {
    let skb = Skb(TcContext::new(ctx));
    let (Some(memory), Some(segment)) = (maps::scratch_memory(), maps::segment_memory()) else { return UNFOLLOWED };
    let from = memory.later_at;
    if from >= segment.payload_len {
        return GOES_ON;
    }
    let left = segment.payload_len - from;
    let free = memory.content.free();
    if free != 0 {
        let passed = if free < left as u64 { free as u32 } else { left };
        memory.content.pass(passed as u64);
        memory.later_at = from + passed;
        return AGAIN;
    }
    let len = if left < MAX_FLIGHT { left } else { MAX_FLIGHT };
    // SAFETY: 4,096 bytes follow that position of the scratch memory.
    let loaded = unsafe {
        let to = (&raw mut memory.flight.bytes).cast::<u8>().add(FLIGHT_HEADROOM as usize);
        skb.load_to(segment.payload + from, to, len)
    };
    if !loaded {
        return UNFOLLOWED;
    }
    let is_head = memory.content.is_over();
    let outcome = parse(memory, if is_head { PROTOCOL_HTTP } else { CONTENT }, 0, len);
    memory.later_at = from + memory.parse.read();
    if outcome == PARSE_BAD {
        return UNFOLLOWED;
    }
    if is_head && outcome == PARSE_DONE {
        let head = memory.flight.head.head();
        if !requests::can_follow(&head) {
            return UNFOLLOWED;
        }
        if is_for_another(memory, router, route) {
            return FOR_ANOTHER;
        }
        memory.content = requests::content(&head);
        copy::zero_parsers(&mut memory.flight);
    }
    AGAIN
}

/// Stores a partial head, or deletes a completed one, and records the segment as inspected.
#[inline(never)]
fn keep(segment: &Segment, client: &mut Flow, read: u32) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return UNFOLLOWED };
    if read != GOES_ON {
        return read;
    }
    // An empty line may precede a request (RFC 9112 §2.2).
    if !memory.flight.head.is_empty() {
        if !maps::keep_later_head(&segment.flow, memory) {
            return EARLY;
        }
        maps::mark(client, FLOW_IN_HEAD, 0);
    } else if client.own & FLOW_IN_HEAD != 0 {
        maps::unmark(client, FLOW_IN_HEAD, 0);
        maps::forget_later_head(&segment.flow);
    }
    client.judged = segment.seq.wrapping_add(segment.payload_len);
    client.content = memory.content;
    GOES_ON
}

/// Inspects the first response of an endpoint after a request to switch protocols.
#[inline(never)]
pub fn answered(skb: &Skb, segment: &Segment, backend: &mut Flow, client: &mut Flow) {
    if segment.seq != backend.judged {
        // Data before it will be retransmitted.
        return;
    }
    let begin = if segment.payload_len < 12 { None } else { skb.load::<12>(segment.payload) };
    maps::unmark(backend, FLOW_ASKED, 0);
    if begin.is_some_and(|begin| begin == SWITCHES) {
        maps::mark(client, 0, FLOW_SWITCHED);
    }
    maps::unmark(client, 0, FLOW_ASKED);
}

/// True if the head that was read is for a host of another route.
#[inline(always)]
fn is_for_another(memory: &mut Scratch, router: u32, route: u32) -> bool {
    if memory.flight.head.head().host as u8 != HeadHost::Name as u8 {
        return true;
    }
    let Scratch { flight, exact, wildcard, .. } = memory;
    exact.router = router;
    copy::copy_name(&mut exact.host, &flight.host.exact);
    wildcard.router = router;
    copy::copy_name(&mut wildcard.host, &flight.host.wildcard);
    // SAFETY: only the agent writes this map, and replaces whole values; one integer is read.
    let found = unsafe { http_be.get(&*exact).or_else(|| http_be.get(&*wildcard)) };
    found.is_none_or(|host| host.route != route)
}

/// Records the end of the connection. A separate function, so that its frame is not active while the resets are made.
#[inline(never)]
pub fn end(client: &mut Flow, backend: &mut Flow, why: u32) {
    let (counter, reason) = if why == FOR_ANOTHER {
        (DialCounter::OtherHost, FlowEndReason::OtherHost)
    } else {
        (DialCounter::Unfollowed, FlowEndReason::Unfollowed)
    };
    maps::count(counter);
    flow_end::finish(client, backend, reason);
}

/// Ends the connection: a reset to the client, and one to the endpoint.
#[inline(never)]
pub fn reset(skb: &Skb, segment: &Segment, client: &Flow, backend: &Flow) -> i32 {
    // If the client's reset is lost, the endpoint resets its next packet.
    let _ = to_client(skb, segment, backend);
    to_backend(skb, client)
}

#[inline(never)]
fn to_client(skb: &Skb, segment: &Segment, backend: &Flow) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let Scratch { wanted, .. } = memory;
    wanted.begin(skb, &backend.rewrite.to);
    wanted.seq = segment.ack;
    wanted.ack = segment.seq.wrapping_add(segment.payload_len);
    wanted.flags = RST | ACK;
    turn_back(skb) && compose(skb) && skb.send_copy(skb.interface())
}

/// Exchanges the Ethernet addresses. A separate function, so that its frame is not active while the packet is made.
#[inline(never)]
fn turn_back(skb: &Skb) -> bool {
    let Some(macs) = skb.load::<12>(0) else { return false };
    skb.put_ethernet(0, &swapped(&macs))
}

#[inline(never)]
fn to_backend(skb: &Skb, client: &Flow) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let Scratch { wanted, .. } = memory;
    wanted.begin(skb, &client.rewrite.to);
    // The number that it expects next (RFC 5961 §3.2), behind the last byte sent to it, whatever the segment repeats.
    wanted.seq = client.next_seq.wrapping_add(client.rewrite.delta_seq);
    wanted.flags = RST;
    if compose(skb) { next_hop::send(skb, &client.rewrite.to, client.interface) } else { TC_ACT_SHOT }
}

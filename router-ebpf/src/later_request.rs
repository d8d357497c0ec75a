//! Later requests of a clear-text connection that the kernel carries. HTTP/1.1 routes by request: one for another host
//! does not belong on this connection, and a reset makes the client send it on a new one (RFC 9110 §9.2.2, RFC 9112
//! §9.3.1).
//!
//! What is looked at is a segment that begins with a request, and whatever requests follow one another from there, over
//! as many segments as they come in. A head goes on to the endpoint as it comes, but for the segment that completes one
//! for another host: no endpoint has a whole request that is not its own. Content is not followed, so a request that
//! begins behind content within a segment is not seen.
//!
//! Segments are looked at in the order of their numbers. Where one is missing, those behind it that may belong to a head
//! which begins in it are dropped and come again; content goes on, so that the endpoint tells the client what is missing.

use aya_ebpf::bindings::{__sk_buff, TC_ACT_SHOT};
use aya_ebpf::programs::TcContext;
use router_common::http::HeadHost;
use router_common::maps::{FLIGHT_HEADROOM, FLOW_IN_HEAD, Flow, MAX_FLIGHT, PROTOCOL_HTTP};
use router_common::packet::{ACK, Packet, RST, Segment};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::carry;
use crate::compose::compose;
use crate::first_flight::{PARSE_DONE, PARSE_MORE, parse};
use crate::maps::{self, Scratch, http_be};
use crate::next_hop;
use crate::reject::swapped;
use crate::skb::Skb;
use crate::words;

/// Where a request's method has ended at the latest (the registered ones have at most 17 bytes, RFC 9110 §16.1.1).
const METHOD: u32 = 20;
/// Bytes behind what is missing that may be the rest of a head: more than nearly all heads have. One that is longer, and
/// of which a part went by unread, ends the connection.
const HEAD_BEHIND: u32 = MAX_FLIGHT;
/// Most heads, and parts of 4,096 bytes of them, that are read of one segment: all of one that was merged.
const MAX_PARTS: u32 = 16;

// Numbers, because they pass through calls that the verifier follows.
/// The segment goes to the endpoint.
pub const GOES_ON: u32 = 0;
/// A request for a host of another route ends in it, or something that may be one.
const FOR_ANOTHER: u32 = 1;
/// Something is missing before it, or there is no room for what was read of it. It is dropped, and comes again.
pub const EARLY: u32 = 2;
/// A request has begun that does not end in it.
const BEGUN: u32 = 3;
/// What looked like the begin of a request is none.
const CONTENT: u32 = 4;
/// There is more to read.
const AGAIN: u32 = 5;

/// [`place`]: the segment goes on with a head that has begun.
const IN_HEAD: u32 = 6;
/// [`place`]: a request may begin in it.
const MAY_BEGIN: u32 = 7;
/// [`place`]: nothing begins in it.
const NOTHING: u32 = 8;

/// What becomes of a client's segment, given both entries. In steps one after the other, and not one below the other: their
/// frames share the same 512 bytes.
#[inline(always)]
pub fn look(skb: &Skb, segment: &Segment, client: &mut Flow, backend: &Flow) -> u32 {
    let mut next = place(skb, segment, client, backend);
    if next == IN_HEAD {
        let read = heads(skb, client);
        if read != CONTENT {
            return keep(segment, client, read);
        }
        next = begin(skb, segment, client);
    }
    match next {
        MAY_BEGIN => {
            let read = heads(skb, client);
            keep(segment, client, read)
        }
        NOTHING => keep(segment, client, GOES_ON),
        done => done,
    }
}

/// Where in a segment there may be something to read: the position is in the working memory, and what was read of a head
/// that has begun.
#[inline(never)]
fn place(skb: &Skb, segment: &Segment, client: &mut Flow, backend: &Flow) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return GOES_ON };
    let in_head = client.own & FLOW_IN_HEAD != 0;
    // What the endpoint has acknowledged went by here, some of it perhaps while something before it was missing.
    let acked = backend.acked.wrapping_add(backend.rewrite.delta_ack);
    if is_after(acked, client.judged) && !is_after(acked, client.next_seq) {
        if in_head {
            return FOR_ANOTHER;
        }
        client.judged = acked;
    }
    let end = segment.seq.wrapping_add(segment.payload_len);
    if !is_after(end, client.judged) {
        // Sent again.
        return GOES_ON;
    }
    if is_after(segment.seq, client.judged) {
        let near = segment.seq.wrapping_sub(client.judged) < HEAD_BEHIND;
        return if in_head || near || may_be_request(skb, segment, 0) { EARLY } else { GOES_ON };
    }
    if in_head {
        let Some(begun) = maps::later_head(&segment.flow) else { return FOR_ANOTHER };
        maps::read_later_head(memory, begun);
        memory.later_at = client.judged.wrapping_sub(segment.seq);
        return IN_HEAD;
    }
    begin(skb, segment, client)
}

/// Whether a request may begin where everything before was looked at.
#[inline(never)]
fn begin(skb: &Skb, segment: &Segment, client: &Flow) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return FOR_ANOTHER };
    let from = client.judged.wrapping_sub(segment.seq);
    if !may_be_request(skb, segment, from) {
        return NOTHING;
    }
    words::zero_parsers(&mut memory.flight);
    memory.later_at = from;
    MAY_BEGIN
}

/// Whether a sequence number is behind another one (RFC 9293 §3.4: modulo 2³²).
#[inline(always)]
fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).wrapping_sub(1) < i32::MAX as u32
}

/// Reads one head after the other from the position in the working memory on.
#[inline(never)]
fn heads(skb: &Skb, client: &Flow) -> u32 {
    let mut part = 0;
    while part < MAX_PARTS {
        part += 1;
        // SAFETY: the context is the one that the kernel gave.
        let read = unsafe { sluice_later_request(skb.0.skb.skb, client.router, client.route) };
        if read != AGAIN {
            return read;
        }
    }
    FOR_ANOTHER
}

/// Reads a part of a head, from where the reader is on. A global function in the kernel's sense, and the position lies in
/// memory: the verifier walks through it once, not once for each part and all that may have come of the ones before.
///
/// # Safety
/// `ctx` is the program's context.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn sluice_later_request(ctx: *mut __sk_buff, router: u32, route: u32) -> u32 {
    let skb = Skb(TcContext::new(ctx));
    let (Some(memory), Some(segment)) = (maps::scratch_memory(), maps::segment_memory()) else { return FOR_ANOTHER };
    part(&skb, segment, memory, router, route)
}

#[inline(always)]
fn part(skb: &Skb, segment: &Segment, memory: &mut Scratch, router: u32, route: u32) -> u32 {
    let from = memory.later_at;
    if from >= segment.payload_len {
        return BEGUN;
    }
    let left = segment.payload_len - from;
    let len = if left < MAX_FLIGHT { left } else { MAX_FLIGHT };
    // SAFETY: 4,096 bytes follow that position of the scratch memory.
    let loaded = unsafe {
        let to = (&raw mut memory.flight.bytes).cast::<u8>().add(FLIGHT_HEADROOM as usize);
        skb.load_to(segment.payload + from, to, len)
    };
    if !loaded {
        return FOR_ANOTHER;
    }
    match parse(memory, PROTOCOL_HTTP, 0, len) {
        PARSE_DONE if is_for_another(memory, router, route) => FOR_ANOTHER,
        PARSE_DONE => {
            let from = from + memory.parse.read();
            memory.later_at = from;
            if from >= segment.payload_len || !may_be_request(skb, segment, from) {
                return GOES_ON;
            }
            words::zero_parsers(&mut memory.flight);
            AGAIN
        }
        PARSE_MORE => {
            memory.later_at = from + len;
            AGAIN
        }
        _ if memory.flight.head.has_line() => FOR_ANOTHER,
        _ => CONTENT,
    }
}

/// Keeps what was read of a request that has begun, or forgets it; the segment was looked at then.
#[inline(never)]
fn keep(segment: &Segment, client: &mut Flow, read: u32) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return FOR_ANOTHER };
    if read == FOR_ANOTHER {
        return FOR_ANOTHER;
    }
    // A line that is empty may stand before a request, and behind content.
    if read == BEGUN && !memory.flight.head.is_empty() {
        if !maps::keep_later_head(&segment.flow, memory) {
            return EARLY;
        }
        client.own |= FLOW_IN_HEAD;
    } else if client.own & FLOW_IN_HEAD != 0 {
        client.own &= !FLOW_IN_HEAD;
        maps::forget_later_head(&segment.flow);
    }
    client.judged = segment.seq.wrapping_add(segment.payload_len);
    GOES_ON
}

/// Whether the head that was read is for a host of another route.
#[inline(always)]
fn is_for_another(memory: &mut Scratch, router: u32, route: u32) -> bool {
    if memory.flight.head.head().host as u8 != HeadHost::Name as u8 {
        return true;
    }
    let Scratch { flight, exact, wildcard, .. } = memory;
    exact.router = router;
    words::copy_name(&mut exact.host, &flight.host.exact);
    wildcard.router = router;
    words::copy_name(&mut wildcard.host, &flight.host.wildcard);
    // SAFETY: the agent alone writes this map and replaces values as a whole; one number is read.
    let found = unsafe { http_be.get(&*exact).or_else(|| http_be.get(&*wildcard)) };
    found.is_none_or(|host| host.route != route)
}

/// Whether a word and a space stand at a position of it, as nearly no content begins, or an empty line, which may be
/// before a request (RFC 9112 §2.2); of what is too short for a word the first letter counts.
#[inline(always)]
fn may_be_request(skb: &Skb, segment: &Segment, from: u32) -> bool {
    let begins = |first: u8| first.is_ascii_uppercase() || first == b'\r';
    if segment.payload_len - from < METHOD {
        return skb.load::<1>(segment.payload + from).is_some_and(|[first]| begins(first));
    }
    let Some(begin) = skb.load::<{ METHOD as usize }>(segment.payload + from) else { return false };
    if !begins(begin[0]) {
        return false;
    }
    let mut i = 1;
    while i < METHOD as usize {
        if begin[i] == b' ' || begin[i] == b'\n' {
            return true;
        }
        i += 1;
    }
    false
}

/// Ends the connection: a reset to the client, and one to the endpoint.
#[inline(never)]
pub fn reset(skb: &Skb, segment: &Segment, client: &mut Flow, backend: &mut Flow) -> i32 {
    maps::count(DialCounter::OtherHost);
    carry::finish(client, backend, FlowEndReason::OtherHost);
    // A client that does not get its reset gets one from the endpoint, for whatever it sends next.
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

/// Exchanges the Ethernet addresses. A function of its own: its frame is not above those that make the packet.
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
    // What it expects next, whatever the segment repeats (RFC 5961 §3.2).
    wanted.seq = client.judged.wrapping_add(client.rewrite.delta_seq);
    wanted.flags = RST;
    if compose(skb) { next_hop::send(skb, &client.rewrite.to, client.interface) } else { TC_ACT_SHOT }
}

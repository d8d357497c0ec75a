//! Later requests of a clear-text connection that the kernel carries. HTTP/1.1 routes by request: one for another host
//! does not belong on this connection, and a reset makes the client send it on a new one (RFC 9110 §9.2.2, RFC 9112
//! §9.3.1).
//!
//! What is looked at is a segment that begins with a complete request head. A client that puts a request elsewhere in a
//! segment gets its answer from the endpoint that it is connected to, and from nobody else.

use aya_ebpf::bindings::TC_ACT_SHOT;
use router_common::http::HeadHost;
use router_common::maps::{FLIGHT_HEADROOM, Flow, MAX_FLIGHT, PROTOCOL_HTTP};
use router_common::packet::{ACK, Packet, RST, Segment};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::carry;
use crate::compose::compose;
use crate::first_flight::{PARSE_DONE, parse};
use crate::maps::{self, Scratch, http_be};
use crate::reject::swapped;
use crate::skb::Skb;
use crate::words;

/// Where a request's method has ended at the latest (the registered ones have at most 17 bytes, RFC 9110 §16.1.1).
const METHOD: usize = 20;

/// Whether a segment of the client begins a request for a host of another route.
#[inline(never)]
pub fn is_for_another(skb: &Skb, segment: &Segment, client: &Flow) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    if !may_be_request(skb, segment) {
        return false;
    }
    let len = if segment.payload_len < MAX_FLIGHT { segment.payload_len } else { MAX_FLIGHT };
    words::zero_parsers(&mut memory.flight);
    // SAFETY: 4,096 bytes follow that position of the scratch memory.
    let loaded = unsafe {
        let to = (&raw mut memory.flight.bytes).cast::<u8>().add(FLIGHT_HEADROOM as usize);
        skb.load_to(segment.payload, to, len)
    };
    if !loaded || parse(memory, PROTOCOL_HTTP, 0, len) != PARSE_DONE {
        return false;
    }
    if memory.flight.head.head().host as u8 != HeadHost::Name as u8 {
        return true;
    }
    let Scratch { flight, exact, wildcard, .. } = memory;
    exact.router = client.router;
    words::copy_name(&mut exact.host, &flight.host.exact);
    wildcard.router = client.router;
    words::copy_name(&mut wildcard.host, &flight.host.wildcard);
    // SAFETY: the agent alone writes this map and replaces values as a whole; one number is read.
    let found = unsafe { http_be.get(&*exact).or_else(|| http_be.get(&*wildcard)) };
    found.is_none_or(|host| host.route != client.route)
}

/// Whether it begins with a word and a space, as nearly no body does.
#[inline(always)]
fn may_be_request(skb: &Skb, segment: &Segment) -> bool {
    let Some(begin) = skb.load::<METHOD>(segment.payload) else { return false };
    if !begin[0].is_ascii_uppercase() {
        return false;
    }
    let mut i = 1;
    while i < METHOD {
        if begin[i] == b' ' {
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
    to_backend(skb, segment, client)
}

#[inline(never)]
fn to_client(skb: &Skb, segment: &Segment, backend: &Flow) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let Some(macs) = skb.load::<12>(0) else { return false };
    let Scratch { wanted, .. } = memory;
    wanted.begin(skb, &backend.rewrite.to);
    wanted.seq = segment.ack;
    wanted.ack = segment.seq.wrapping_add(segment.payload_len);
    wanted.flags = RST | ACK;
    skb.put(0, &swapped(&macs)) && compose(skb) && skb.send_copy(skb.interface())
}

#[inline(never)]
fn to_backend(skb: &Skb, segment: &Segment, client: &Flow) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let Scratch { wanted, .. } = memory;
    wanted.begin(skb, &client.rewrite.to);
    wanted.seq = segment.seq.wrapping_add(client.rewrite.delta_seq);
    wanted.flags = RST;
    if compose(skb) { skb.send(client.interface) } else { TC_ACT_SHOT }
}

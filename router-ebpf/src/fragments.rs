//! Packets of carried connections that come in fragments, each of which goes on by itself: the first is translated as any
//! segment, the others have nothing to be translated but their addresses. What the segment says of its connection is
//! noted when the last one tells how long it is.
//!
//! Where fragments cannot be carried the connection is given up: the agent resets it within a second or a few, and
//! further ones of its client are relayed, as long as it fragments. That is so for
//!
//! - requests of clear text, and answers to those that ask for another protocol, which have to be read as a whole;
//! - first fragments without all of the TCP header;
//! - connections from one version of IP to the other, whose fragments differ;
//! - a packet that its sender sends again and again in fragments. They may come in another order: of those before the
//!   first nobody knows whose they are.

use aya_ebpf::bindings::TC_ACT_SHOT;
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use router_common::maps::{
    FLOW_ACROSS, FLOW_ASKED, FLOW_CLEARTEXT, FLOW_SWITCHED, Flow, FlowKey, Fragmented, SIDE_CLIENT, STATE_ESTABLISHED,
};
use router_common::packet::{ETHERNET, Packet, RST, SYN};
use router_common::translate::{identify, translate_later};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::established;
use crate::maps;
use crate::next_hop;
use crate::odd::fragment_data;
use crate::scratch::Scratch;
use crate::skb::{self, Skb};

/// Nanoseconds for which a host waits for more of a packet (Linux, `ipfrag_time`).
const WAITS: u64 = 30_000_000_000;
/// How often a packet in fragments may be sent: with the times between doubling from 0.2 s on (RFC 6298 §5.5; Linux'
/// least is 0.2 s), the last comes some 6 s after the first.
const TIMES: u32 = 6;

/// A packet's first fragment.
#[inline(never)]
pub fn first(skb: &mut Skb) -> i32 {
    let Some(flow) = begun(skb) else {
        maps::count(DialCounter::LostFragments);
        return TC_ACT_SHOT;
    };
    let Some(segment) = maps::segment_memory() else { return TC_ACT_SHOT };
    if !established::within(skb, segment, flow) {
        maps::count(DialCounter::Untranslated);
        return TC_ACT_SHOT;
    }
    send(skb)
}

/// Another one.
#[inline(never)]
pub fn later(skb: &mut Skb) -> i32 {
    if !readdressed(skb) {
        maps::count(DialCounter::Untranslated);
        return TC_ACT_SHOT;
    }
    ended(skb);
    send(skb)
}

/// Sends a fragment that was translated, as one of the packet in the working memory.
#[inline(never)]
fn send(skb: &mut Skb) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let (v6, id) = (memory.extensions.v6 != 0, memory.fragmented.id);
    if !identify(skb, v6, id) {
        maps::count(DialCounter::Untranslated);
        return TC_ACT_SHOT;
    }
    next_hop::send(skb, &memory.fragmented.to, memory.fragmented.interface)
}

/// Reads and remembers a first fragment: the entry of its connection, if it is to be carried.
#[inline(never)]
fn begun(skb: &Skb) -> Option<&'static Flow> {
    let memory = maps::scratch_memory()?;
    let Scratch { extensions, key, fragment, fragmented, .. } = memory;
    let flow = maps::flow(key)?;
    let Some(segment) = skb::first_fragment(skb, extensions.v6 != 0) else {
        // The TCP header is not all in it: it comes again like that.
        give_up(key, flow);
        return None;
    };
    // Before the first payload has arrived, everything is sent again as it is.
    if flow.state != STATE_ESTABLISHED || segment.flags & (SYN | RST) != 0 {
        return None;
    }
    let is_request = flow.side == SIDE_CLIENT && flow.own & FLOW_CLEARTEXT != 0 && flow.peer & FLOW_SWITCHED == 0;
    let is_awaited = flow.own & FLOW_ASKED != 0;
    if is_request || is_awaited || flow.own & FLOW_ACROSS != 0 || maps::times_fragmented(key, segment.seq) > TIMES {
        give_up(key, flow);
        return None;
    }
    *fragmented = Fragmented {
        flow: segment.flow,
        to: flow.rewrite.to,
        seq: segment.seq,
        ack: segment.ack,
        flags: segment.flags as u32,
        header: segment.payload - segment.tcp,
        id: maps::next_fragment_id(),
        interface: flow.interface,
        // SAFETY: the helper has no precondition.
        until_ns: unsafe { bpf_ktime_get_coarse_ns() }.wrapping_add(WAITS),
    };
    maps::set_fragmented(fragment, fragmented);
    Some(flow)
}

/// Leaves a connection to the agent, which resets both of its ends.
#[inline(always)]
fn give_up(key: &FlowKey, flow: &mut Flow) {
    let from_client = flow.side == SIDE_CLIENT;
    let reversed = flow.rewrite.to.reversed();
    maps::relay_fragmenting(if from_client { &key.source } else { &reversed.source });
    let client = if from_client { Some(flow) } else { maps::flow(&reversed) };
    if let Some(client) = client
        && client.end == 0
    {
        client.end = FlowEndReason::Fragmented as u8;
        maps::count(DialCounter::Fragmented);
    }
}

#[inline(never)]
fn readdressed(skb: &mut Skb) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    translate_later(skb, memory.extensions.v6 != 0, &memory.fragmented.flow, &memory.fragmented.to)
}

/// Notes what the segment says, if this is its last fragment.
#[inline(never)]
fn ended(skb: &Skb) {
    let (Some(memory), Some(segment)) = (maps::scratch_memory(), maps::segment_memory()) else { return };
    let Scratch { extensions, fragmented, .. } = memory;
    let v6 = extensions.v6 != 0;
    // The next hop is chosen by it, too.
    segment.v6 = v6;
    if extensions.more != 0 {
        return;
    }
    let Some(end) = end_of_packet(skb, v6) else { return };
    let total = extensions.offset.wrapping_add(end.wrapping_sub(fragment_data(v6)));
    let Some(flow) = maps::flow(&fragmented.flow) else { return };
    segment.flow = fragmented.flow;
    segment.seq = fragmented.seq;
    segment.ack = fragmented.ack;
    segment.flags = fragmented.flags as u8;
    segment.payload_len = total.wrapping_sub(fragmented.header) & 0xffff;
    established::told_in_fragments(segment, flow);
}

/// Where IP says that the packet ends; what is behind it is padding, as of Ethernet.
#[inline(always)]
fn end_of_packet(skb: &Skb, v6: bool) -> Option<u32> {
    let at = if v6 { ETHERNET + 4 } else { ETHERNET + 2 };
    let length = u16::from_be_bytes(skb.load::<2>(at)?) as u32;
    Some(if v6 { ETHERNET + 40 + length } else { ETHERNET + length })
}

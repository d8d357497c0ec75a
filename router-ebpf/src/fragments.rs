//! Packets of carried connections that arrive in fragments. Each fragment is forwarded by itself. The first is
//! translated like any segment; of the others only the addresses are. The connection's state is updated when the last
//! fragment gives the segment's length.
//!
//! Where fragments cannot be carried, the connection is given up: the agent resets it within one to a few seconds, and
//! further connections of its client are relayed while the client fragments. This applies to
//!
//! - clear-text requests, and responses to requests to switch protocols, which must be read as a whole;
//! - first fragments without the whole TCP header;
//! - connections between the two versions of IP, whose fragments differ;
//! - a packet that its sender retransmits in fragments repeatedly. Its fragments may be reordered: those that precede
//!   the first one cannot be assigned to a connection.

use aya_ebpf::bindings::TC_ACT_SHOT;
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use router_common::maps::{
    FLOW_ACROSS, FLOW_ASKED, FLOW_CLEARTEXT, FLOW_SWITCHED, Flow, FlowKey, Fragmented, SIDE_CLIENT, STATE_ESTABLISHED,
};
use router_common::packet::{ETHERNET, Packet, RST, SYN};
use router_common::translate::{identify, translate_later};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::established;
use crate::irregular_segments::fragment_data;
use crate::maps;
use crate::next_hop;
use crate::scratch::Scratch;
use crate::skb::{self, Skb};

/// Nanoseconds for which a host waits for the other fragments of a packet (Linux, `ipfrag_time`).
const WAITS: u64 = 30_000_000_000;
/// Most transmissions of one packet in fragments. The interval doubles from 0.2 s on (RFC 6298 §5.5; 0.2 s is Linux'
/// minimum), so the last is some 6 s after the first.
const TIMES: u32 = 6;

/// Handles a packet's first fragment.
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

/// Handles a later fragment of a packet whose first one is in the working memory.
#[inline(never)]
pub fn later(skb: &mut Skb) -> i32 {
    if !readdressed(skb) {
        maps::count(DialCounter::Untranslated);
        return TC_ACT_SHOT;
    }
    ended(skb);
    send(skb)
}

/// Sends a translated fragment of the packet in the working memory.
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

/// Reads and records a first fragment. Returns its connection's entry, or `None` if the fragment must be dropped.
#[inline(never)]
fn begun(skb: &Skb) -> Option<&'static Flow> {
    let memory = maps::scratch_memory()?;
    let Scratch { extensions, key, fragment, fragmented, .. } = memory;
    let flow = maps::flow(key)?;
    let Some(segment) = skb::first_fragment(skb, extensions.v6 != 0) else {
        // The TCP header is incomplete, and would be in a retransmission.
        give_up(key, flow);
        return None;
    };
    // Before the first payload has arrived, every packet is retransmitted unchanged.
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

/// Marks a connection for the agent, which resets both of its ends.
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

/// Updates the connection's state from the segment, if this is its last fragment.
#[inline(never)]
fn ended(skb: &Skb) {
    let (Some(memory), Some(segment)) = (maps::scratch_memory(), maps::segment_memory()) else { return };
    let Scratch { extensions, fragmented, .. } = memory;
    let v6 = extensions.v6 != 0;
    // The choice of the next hop depends on it, too.
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
    established::update_from_fragments(segment, flow);
}

/// Offset of the packet's end by its IP header, in bytes; bytes behind it are padding, as in Ethernet.
#[inline(always)]
fn end_of_packet(skb: &Skb, v6: bool) -> Option<u32> {
    let at = if v6 { ETHERNET + 4 } else { ETHERNET + 2 };
    let length = u16::from_be_bytes(skb.load::<2>(at)?) as u32;
    Some(if v6 { ETHERNET + 40 + length } else { ETHERNET + length })
}

//! Forwarding established connections from one network card to another, without a socket buffer (`--xdp-forward`).
//!
//! Only what TC would translate and redirect, by the same functions on the same entries; whatever is in doubt is left to it,
//! unchanged. Interfaces are those that the agent permits.

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS};
use aya_ebpf::helpers::generated::{bpf_ktime_get_coarse_ns, bpf_redirect};
use aya_ebpf::programs::XdpContext;
use router_common::gate::arrival::Arrival;
use router_common::maps::{FLOW_ACROSS, Flow};
use router_common::packet::{ETHERNET, FIN, Packet, RST, SYN, Segment, read_copied};
use router_common::translate::{is_pseudo_sum, translate};
use router_common::verdict::DialCounter;

use super::packet::XdpPacket;
use super::packet_mut::write;
use crate::established::{is_plain, note};
use crate::maps;
use crate::next_hop;

/// Offset of the checksum in the TCP header (RFC 9293 §3.1).
const CHECKSUM: u32 = 16;

/// Handles a packet that the gate has read and let pass. A function of its own, as `read`.
#[inline(never)]
pub fn packet(ctx: &XdpContext) -> u32 {
    let Some(arrival) = maps::gate_arrival() else { return XDP_PASS };
    // SAFETY: the context is the one that the kernel gave.
    let from = unsafe { (*ctx.ctx).ingress_ifindex };
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    if !is_regular(arrival) || !is_open(from, now) {
        return XDP_PASS;
    }
    let Some(flow) = maps::flow(&arrival.flow) else { return XDP_PASS };
    let Some(segment) = maps::segment_memory() else { return XDP_PASS };
    let to = flow.interface;
    if to == from || flow.own & FLOW_ACROSS != 0 || !is_open(to, now) || !reads(ctx, from, segment) {
        return XDP_PASS;
    }
    let packet = XdpPacket::new(ctx);
    let Some(macs) = next_hop::lately_resolved(&flow.rewrite.to, to, now, packet.len()) else { return XDP_PASS };
    if !is_plain(segment, flow) {
        return XDP_PASS;
    }
    note(segment, flow);
    if !translated(ctx, segment, flow) || !write(ctx, 0, macs) {
        maps::count(DialCounter::Untranslated);
        return XDP_DROP;
    }
    maps::count(DialCounter::XdpForwarded);
    // SAFETY: no pointer is passed.
    unsafe { bpf_redirect(to, 0) as u32 }
}

/// True if TC would read the packet as a segment, and nothing about it begins or ends a connection.
#[inline(always)]
fn is_regular(arrival: &Arrival) -> bool {
    let is_odd = arrival.is_malformed || arrival.is_fragment || arrival.has_options;
    arrival.ip == ETHERNET && !is_odd && arrival.flags & (SYN | FIN | RST) == 0
}

#[inline(always)]
fn is_open(interface: u32, now: u64) -> bool {
    maps::gate_forward(interface).is_some_and(|forward| now < forward.until_ns)
}

/// Reads the segment; `false` if it is in several buffers, of another host, or left to hardware in part.
#[inline(never)]
fn reads(ctx: &XdpContext, from: u32, to: &mut Segment) -> bool {
    let packet = XdpPacket::new(ctx);
    let Some(forward) = maps::gate_forward(from) else { return false };
    if !packet.is_linear() || packet.load::<6>(0) != Some(forward.hardware) || read_copied(&packet, to).is_err() {
        return false;
    }
    packet.load::<2>(to.tcp + CHECKSUM).is_some_and(|field| !is_pseudo_sum(to, field))
}

/// A separate function: its stack frame is free again after it returns.
#[inline(never)]
fn translated(ctx: &XdpContext, segment: &Segment, flow: &Flow) -> bool {
    translate(&mut XdpPacket::new(ctx), segment, &flow.rewrite)
}

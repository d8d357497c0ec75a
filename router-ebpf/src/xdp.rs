//! The gate: an XDP program that rejects packets to listeners, answers SYNs of a flood, and forwards established connections,
//! before the kernel makes socket buffers of their packets.
//!
//! `router_common::gate` decides. A packet to no listener with a policy passes after its headers were read and one entry
//! was looked up, or three if it is a SYN. Rejected packets are dropped without an answer, counted by reason, and some of them recorded.

mod answer;
mod flooded;
mod forward;
mod packet;
mod packet_mut;
mod release;
mod state;

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS};
use aya_ebpf::bindings::xdp_md;
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use aya_ebpf::macros::xdp;
use aya_ebpf::programs::XdpContext;
use router_common::gate::arrival::{self, Arrival};
use router_common::gate::rejection;
use router_common::maps::GATE_OBSERVE;
use router_common::packet::{ACK, SYN};

use crate::gate_record::rejected;
use crate::maps;
use crate::scratch::Flooded;

use packet::XdpPacket;
use state::KernelGate;

/// XDP.
#[xdp(frags)]
pub fn sluice_gate(ctx: XdpContext) -> u32 {
    let Some(arrival) = maps::gate_arrival() else { return XDP_PASS };
    if !read(&ctx, arrival) {
        return XDP_PASS;
    }
    if arrival.flags & (SYN | ACK) != SYN {
        return if is_dropped(&ctx) { XDP_DROP } else { forward::packet(&ctx) };
    }
    // SAFETY: the helper has no precondition. A tick is far below the windows of the pressure.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    let is_open = Flooded::known(&ctx, arrival, now).is_some_and(|known| known.is_open != 0);
    if !is_open && is_dropped(&ctx) {
        XDP_DROP
    } else if arrival.is_malformed {
        XDP_PASS
    } else {
        answer::syn(&ctx, now)
    }
}

/// The same as a component of libxdp's dispatcher. It answers no SYN: older dispatchers have no slots for programs that change
/// packets (Linux 6.13 checks that), and could not carry this one on.
#[unsafe(no_mangle)]
#[unsafe(link_section = "freplace")]
pub extern "C" fn sluice_chained(ctx: *mut xdp_md) -> u32 {
    let ctx = XdpContext::new(ctx);
    let Some(arrival) = maps::gate_arrival() else { return XDP_PASS };
    if read(&ctx, arrival) && is_dropped(&ctx) { XDP_DROP } else { XDP_PASS }
}

/// Whether the listener's policy rejects the packet that was read, and drops it. A function of its own, as `read`.
#[inline(never)]
fn is_dropped(ctx: &XdpContext) -> bool {
    let Some(arrival) = maps::gate_arrival() else { return false };
    let arrival = &*arrival;
    let Some(policy) = maps::gate_policy(&arrival.flow.destination, arrival.flow.destination_port) else {
        return false;
    };
    let Some(mut state) = KernelGate::new() else { return false };
    let Some(reason) = rejection(arrival, &policy, &mut state) else { return false };
    let is_observed = policy.flags & GATE_OBSERVE != 0;
    rejected(&XdpPacket::new(ctx), &arrival.flow, reason, is_observed);
    !is_observed
}

/// Reads a packet's headers; `false`, and nothing is written, if they are none that the gate decides about. A function of its
/// own, so that its stack is free again when the gate decides; to map memory, of which the verifier knows no values: else it
/// would follow the decision once for each kind of headers.
#[inline(never)]
fn read(ctx: &XdpContext, to: &mut Arrival) -> bool {
    let Some(arrival) = arrival::read(&XdpPacket::new(ctx)) else { return false };
    *to = arrival;
    true
}

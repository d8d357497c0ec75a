//! The gate: an XDP program that rejects packets to listeners before the kernel makes socket buffers of them.
//!
//! `router_common::gate` decides. A packet to no listener with a policy passes after its headers were read and one entry
//! was looked up. Rejected packets are dropped without an answer, and counted by reason.

mod packet;
mod state;

use core::mem::MaybeUninit;

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS};
use aya_ebpf::macros::xdp;
use aya_ebpf::programs::XdpContext;
use router_common::gate::arrival::{self, Arrival};
use router_common::gate::rejection;
use router_common::maps::GATE_OBSERVE;

use crate::maps;
use crate::telemetry::count_reason;

use packet::XdpPacket;
use state::KernelGate;

/// XDP.
#[xdp(frags)]
pub fn sluice_gate(ctx: XdpContext) -> u32 {
    let mut arrival = MaybeUninit::uninit();
    if !read(&ctx, &mut arrival) {
        return XDP_PASS;
    }
    // SAFETY: `read` has written it.
    let arrival = unsafe { arrival.assume_init_ref() };
    let Some(policy) = maps::gate_policy(&arrival.flow.destination, arrival.flow.destination_port) else {
        return XDP_PASS;
    };
    let Some(mut state) = KernelGate::new() else { return XDP_PASS };
    match rejection(arrival, &policy, &mut state) {
        None => XDP_PASS,
        Some(reason) => {
            count_reason(reason as u32);
            if policy.flags & GATE_OBSERVE != 0 { XDP_PASS } else { XDP_DROP }
        }
    }
}

/// Reads a packet's headers; `false`, and nothing is written, if they are none that the gate decides about. A function of its
/// own, so that its stack is free again when the gate decides.
#[inline(never)]
fn read(ctx: &XdpContext, to: &mut MaybeUninit<Arrival>) -> bool {
    let read = arrival::read(&XdpPacket::new(ctx));
    if let Some(arrival) = read {
        to.write(arrival);
    }
    read.is_some()
}

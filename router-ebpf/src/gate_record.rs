//! Rejected packets: counted by reason, and some of them recorded.

use aya_ebpf::helpers::{bpf_get_prandom_u32, bpf_ktime_get_ns};
use router_common::maps::{FlowKey, GATE_HEAD};
use router_common::packet::Packet;
use router_common::verdict::Reason;

use crate::maps;
use crate::telemetry::count_reason;
use crate::verifier::at_most;

/// A packet of which the first bytes are recorded.
pub trait Head: Packet {
    /// Copies the packet's first bytes, as many as `length`; `false`: there are not so many.
    ///
    /// # Safety
    /// `to` points to a map's value, and `length` is at most its size.
    unsafe fn copy_head(&self, to: *mut [u8; GATE_HEAD], length: u32) -> bool;
}

/// Counts a rejected packet, and records it if it is the one that the window's record has.
#[inline(always)]
pub fn rejected(packet: &impl Head, flow: &FlowKey, reason: Reason, is_observed: bool) {
    count_reason(reason as u32);
    let Some(sampler) = maps::gate_sampler() else { return };
    // SAFETY: the helper has no precondition.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the helper has no precondition.
    let is_chosen = sampler.chooses(now_ns, || unsafe { bpf_get_prandom_u32() });
    let Some(entry) = maps::gate_drop(sampler.window) else { return };
    // SAFETY: `maps` gives a pointer to a live value of this CPU; each field is written through a raw pointer.
    unsafe {
        if is_chosen {
            // A reader that copies the value meanwhile finds no record.
            (&raw mut (*entry).window).write_volatile(0);
            (&raw mut (*entry).begin_ns).write(sampler.begin_ns);
            (&raw mut (*entry).flow).write(*flow);
            (&raw mut (*entry).reason).write(reason as u16);
            (&raw mut (*entry).is_observed).write(is_observed as u8);
            let most = if packet.len() < GATE_HEAD as u32 { packet.len() } else { GATE_HEAD as u32 };
            let length = at_most::<GATE_HEAD>(most);
            let is_copied = packet.copy_head(&raw mut (*entry).head, length);
            (&raw mut (*entry).length).write(if is_copied { length as u8 } else { 0 });
            (&raw mut (*entry).window).write_volatile(sampler.window);
        }
        (&raw mut (*entry).packets).write(sampler.packets);
    }
}

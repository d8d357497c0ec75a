//! The record of rejected packets.

use aya_ebpf::helpers::bpf_get_prandom_u32;
use router_common::gate::arrival::Arrival;
use router_common::maps::GATE_HEAD;
use router_common::verdict::Reason;

use crate::maps;
use crate::xdp::packet::XdpPacket;

/// Counts a rejected packet, and records it if it is the one that the window's record has.
#[inline(always)]
pub fn rejected(packet: &XdpPacket<'_>, arrival: &Arrival, reason: Reason, is_observed: bool, now_ns: u64) {
    let Some(sampler) = maps::gate_sampler() else { return };
    // SAFETY: the helper has no precondition.
    let is_chosen = sampler.chooses(now_ns, || unsafe { bpf_get_prandom_u32() });
    let Some(entry) = maps::gate_drop(sampler.window) else { return };
    // SAFETY: `maps` gives a pointer to a live value of this CPU; each field is written through a raw pointer.
    unsafe {
        if is_chosen {
            // A reader that copies the value meanwhile finds no record.
            (&raw mut (*entry).window).write_volatile(0);
            (&raw mut (*entry).begin_ns).write(sampler.begin_ns);
            (&raw mut (*entry).flow).write(arrival.flow);
            (&raw mut (*entry).reason).write(reason as u16);
            (&raw mut (*entry).is_observed).write(is_observed as u8);
            let length = packet.copy_first::<GATE_HEAD>(&raw mut (*entry).head);
            (&raw mut (*entry).length).write(length as u8);
            (&raw mut (*entry).window).write_volatile(sampler.window);
        }
        (&raw mut (*entry).packets).write(sampler.packets);
    }
}

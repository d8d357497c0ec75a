//! Connections that the kernel carries.

use core::mem::offset_of;

use aya_ebpf::bindings::{BPF_EXIST, BPF_NOEXIST};
use router_common::maps::{Flow, FlowKey};

use super::definitions::flows;
use crate::atomic::fetch_or;

/// Whether this program, and no other, is to end a connection, given its client's entry.
#[inline(always)]
pub fn claim_end(client: &mut Flow) -> bool {
    claim(client, 1 << 24)
}

/// Whether this program, and no other, may have the port of a connection that has ended, given its endpoint's entry.
#[inline(always)]
pub fn claim_port(backend: &mut Flow) -> bool {
    claim(backend, 1 << 25)
}

/// Sets a bit of the word that ends with `Flow::claims`; whether it was not set.
#[inline(always)]
fn claim(flow: &mut Flow, bit: u32) -> bool {
    const {
        assert!(offset_of!(Flow, end) % 4 == 0 && offset_of!(Flow, claims) == offset_of!(Flow, end) + 3);
    }
    // SAFETY: the word of `end`, `protocol`, `retries` and `claims`, whose last byte is what is changed.
    unsafe { fetch_or(&raw mut flow.end, bit) & bit == 0 }
}

/// Sets `FLOW_*` bits of [`Flow::own`] and [`Flow::peer`]; both as they are afterwards. Atomic, as packets of one direction
/// may be on several CPUs, and a full barrier.
#[inline(always)]
pub fn mark(flow: &mut Flow, own: u8, peer: u8) -> (u8, u8) {
    // SAFETY: the word of `marks`.
    let before = unsafe { fetch_or(&raw mut flow.state, marks(own, peer)) };
    (own | (before >> 16) as u8, peer | (before >> 24) as u8)
}

/// Clears `FLOW_*` bits of [`Flow::own`] and [`Flow::peer`], as [`mark`] sets them.
#[inline(always)]
pub fn unmark(flow: &mut Flow, own: u8, peer: u8) {
    // SAFETY: the word of `marks`, in which every other bit is kept.
    unsafe {
        core::arch::asm!(
            "w0 = atomic_fetch_and((u32 *)(r1 + 0), w0)",
            inout("r0") u64::from(!marks(own, peer)) => _,
            in("r1") &raw mut flow.state,
        );
    }
}

/// Bits of the word of `state`, `side`, `own` and `peer`.
#[inline(always)]
const fn marks(own: u8, peer: u8) -> u32 {
    const {
        assert!(offset_of!(Flow, state) % 4 == 0);
        assert!(offset_of!(Flow, own) == offset_of!(Flow, state) + 2);
        assert!(offset_of!(Flow, peer) == offset_of!(Flow, state) + 3);
    }
    (own as u32) << 16 | (peer as u32) << 24
}

/// An entry of the connections that the kernel carries.
#[inline(always)]
pub fn flow(key: &FlowKey) -> Option<&'static mut Flow> {
    let flow = flows.get_ptr_mut(key)?;
    // SAFETY: each field has one writer (see `Flow`), and every field is an integer of the machine's size or less.
    Some(unsafe { &mut *flow })
}

/// Makes an entry. `false`: there is one, or no room.
#[inline(always)]
pub fn add_flow(key: &FlowKey, flow: &Flow) -> bool {
    flows.insert(key, flow, BPF_NOEXIST as u64).is_ok()
}

/// Makes an entry in the place of the one that there is. `false`: there is none any more, or no room.
#[inline(always)]
pub fn replace_flow(key: &FlowKey, flow: &Flow) -> bool {
    flows.insert(key, flow, BPF_EXIST as u64).is_ok()
}

/// Deletes an entry.
#[inline(always)]
pub fn remove_flow(key: &FlowKey) {
    // A missing entry is what is wanted.
    let _ = flows.remove(key);
}

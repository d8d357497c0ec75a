//! Flow entries of the connections that the kernel carries.

use core::mem::offset_of;

use aya_ebpf::bindings::{BPF_EXIST, BPF_NOEXIST};
use router_common::maps::{Flow, FlowKey};

use super::definitions::flows;
use crate::atomic::fetch_or;

/// Claims the end of a connection, given its client's entry; true for one caller only.
#[inline(always)]
pub fn claim_end(client: &mut Flow) -> bool {
    claim(client, 1 << 24)
}

/// Claims the port of a connection that has ended, given its endpoint's entry; true for one caller only.
#[inline(always)]
pub fn claim_port(backend: &mut Flow) -> bool {
    claim(backend, 1 << 25)
}

/// Sets a bit of the word that ends with `Flow::claims`; true if it was not set.
#[inline(always)]
fn claim(flow: &mut Flow, bit: u32) -> bool {
    const {
        assert!(offset_of!(Flow, end) % 4 == 0 && offset_of!(Flow, claims) == offset_of!(Flow, end) + 3);
    }
    // SAFETY: the word of `end`, `protocol`, `retries` and `claims`, of which only the last byte changes.
    unsafe { fetch_or(&raw mut flow.end, bit) & bit == 0 }
}

/// Sets `FLOW_*` bits of [`Flow::own`] and [`Flow::peer`]; returns both as they are afterwards. Atomic, because several
/// CPUs may handle packets of one direction; a full barrier.
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

/// The entry of one direction of a carried connection.
#[inline(always)]
pub fn flow(key: &FlowKey) -> Option<&'static mut Flow> {
    let flow = flows.get_ptr_mut(key)?;
    // SAFETY: each field has one writer (see `Flow`), and every field is an integer of the machine's size or less.
    Some(unsafe { &mut *flow })
}

/// Adds an entry. `false`: the key exists, or the map is full.
#[inline(always)]
pub fn add_flow(key: &FlowKey, flow: &Flow) -> bool {
    flows.insert(key, flow, BPF_NOEXIST as u64).is_ok()
}

/// Replaces an existing entry. `false`: it does not exist any more, or memory is short.
#[inline(always)]
pub fn replace_flow(key: &FlowKey, flow: &Flow) -> bool {
    flows.insert(key, flow, BPF_EXIST as u64).is_ok()
}

/// Deletes an entry.
#[inline(always)]
pub fn remove_flow(key: &FlowKey) {
    // A missing entry is no error.
    let _ = flows.remove(key);
}

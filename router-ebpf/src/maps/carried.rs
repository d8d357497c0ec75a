//! Connections that the kernel carries.

use core::mem::offset_of;

use aya_ebpf::bindings::{BPF_EXIST, BPF_NOEXIST};
use router_common::maps::{Flow, FlowKey};

use super::flows;

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

/// Sets a bit of the word that ends with `Flow::claims`, atomically; whether it was not set.
#[inline(always)]
fn claim(flow: &mut Flow, bit: u64) -> bool {
    const {
        assert!(offset_of!(Flow, end) % 4 == 0 && offset_of!(Flow, claims) == offset_of!(Flow, end) + 3);
    }
    let mut before = bit;
    // SAFETY: the word of `end`, `protocol`, `retries` and `claims`, whose last byte is what is changed.
    unsafe {
        core::arch::asm!(
            "w0 = atomic_fetch_or((u32 *)(r1 + 0), w0)",
            inout("r0") before,
            in("r1") &raw mut flow.end,
        );
    }
    before & bit == 0
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

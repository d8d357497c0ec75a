//! Flow entries of the connections that the kernel carries.

use core::mem::offset_of;

use aya_ebpf::bindings::{BPF_EXIST, BPF_NOEXIST};
use router_common::maps::{FLOW_DIAL_CLAIMED, FLOW_END_CLAIMED, FLOW_PORT_CLAIMED, Flow, FlowKey};

use super::definitions::flows;
use crate::atomic::{fetch_and, fetch_or};

/// Claims the end of a connection, given its client's entry; true for one caller only.
#[inline(always)]
pub fn claim_end(client: &mut Flow) -> bool {
    claim(client, FLOW_END_CLAIMED)
}

/// Claims the port of the connection that began at that time, given its endpoint's entry; true for one caller only. Who
/// has it may replace or delete both entries of the connection.
#[inline(always)]
pub fn claim_port(backend: &mut Flow, started_ns: u64) -> bool {
    claim_of(backend, FLOW_PORT_CLAIMED, started_ns)
}

/// Claims the dial that began at that time, given its client's entry; true for one caller only. Who has it continues
/// with the endpoint that answered, or gives the dial up.
#[inline(always)]
pub fn claim_dial(client: &mut Flow, started_ns: u64) -> bool {
    claim_of(client, FLOW_DIAL_CLAIMED, started_ns)
}

/// [`claim`] for the connection that began at that time. Another CPU may have deleted its entry after this one found
/// it; the memory is then of any other.
#[inline(always)]
fn claim_of(flow: &mut Flow, bit: u8, started_ns: u64) -> bool {
    if !claim(flow, bit) {
        return false;
    }
    // SAFETY: a field of `flow`; volatile, because it may have changed.
    let is_same = unsafe { (&raw const flow.started_ns).read_volatile() } == started_ns;
    if !is_same {
        // SAFETY: as in `claim`.
        unsafe { fetch_and(&raw mut flow.end, !claims(bit)) };
    }
    is_same
}

/// Sets a bit of `Flow::claims`; true if it was not set.
#[inline(always)]
fn claim(flow: &mut Flow, bit: u8) -> bool {
    const {
        assert!(offset_of!(Flow, end) % 4 == 0 && offset_of!(Flow, claims) == offset_of!(Flow, end) + 3);
    }
    // SAFETY: the word of `end`, `protocol`, `retries` and `claims`, of which only the last byte changes.
    unsafe { fetch_or(&raw mut flow.end, claims(bit)) & claims(bit) == 0 }
}

/// A bit of `claims` in the word that ends with it.
#[inline(always)]
const fn claims(bit: u8) -> u32 {
    (bit as u32) << 24
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
    unsafe { fetch_and(&raw mut flow.state, !marks(own, peer)) };
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

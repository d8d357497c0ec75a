//! Typed access to the maps.

mod carried;
mod definitions;
mod flights;
mod fragments;

use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::btf_maps::lpm_trie::Key;
use router_common::maps::{
    ALLOW_ROUTE_BITS, AllowNet, Config, Decided, Endpoint, EndpointState, FlowKey, HANDSHAKE_DECIDED, Handshake,
    Listener, ListenerKey, MAX_VERDICTS, Pool, Slot, SlotKey,
};
use router_common::packet::Segment;
use router_common::verdict::DialCounter;

use crate::scratch::{Hop, Scratch};

pub use carried::*;
use definitions::{
    allowlists, clashes, config, dial_stats, endpoint_state, endpoints, handshakes, headers, listeners, next_hops,
    peers, pools, scratch, slots, taken, verdicts,
};
pub use definitions::{edge_reencrypt, events, flow_ends, http_be, reason_stats, route_stats, sni_passthrough, tcp_be};
pub use flights::*;
pub use fragments::*;

/// The listener at an address, if it is one of ours.
#[inline(always)]
pub fn listener(address: &[u8; 16], port: u16) -> Option<Listener> {
    let key = ListenerKey { address: *address, port, pad: 0 };
    // SAFETY: the agent alone writes listeners, and replaces a value as a whole; it is copied out at once.
    unsafe { listeners.get(&key) }.copied()
}

/// This CPU's working memory.
#[inline(always)]
pub fn scratch_memory() -> Option<&'static mut Scratch> {
    let memory = scratch.get_ptr_mut(0)?;
    // SAFETY: per-CPU, one entry, and TC programs of one CPU do not interrupt one another; the one caller of this
    // function in a run, and the callback that it passes control to, never use two of these references in turns.
    Some(unsafe { &mut *memory })
}

/// This CPU's memory of the packet's headers: written once in a run, by whoever reads them, then only read.
#[inline(always)]
pub fn segment_memory() -> Option<&'static mut Segment> {
    let memory = headers.get_ptr_mut(0)?;
    // SAFETY: as for `scratch_memory`; the functions that read the headers again write the same.
    Some(unsafe { &mut *memory })
}

/// This CPU's next hop at a place.
#[inline(always)]
pub fn hop(place: u32) -> Option<&'static mut Hop> {
    let hop = next_hops.get_ptr_mut(place)?;
    // SAFETY: as for `scratch_memory`.
    Some(unsafe { &mut *hop })
}

/// Whether a route's allow-list has this client.
#[inline(always)]
pub fn source_allowed(route: u32, client: &[u8; 16]) -> bool {
    let net = AllowNet { route: route.to_be_bytes(), address: *client };
    allowlists.get(&Key::new(ALLOW_ROUTE_BITS + 128, net)).is_some()
}

/// What is known of a connection's handshake.
#[inline(always)]
pub fn handshake(flow: &FlowKey) -> Option<&'static mut Handshake> {
    let handshake = handshakes.get_ptr_mut(flow)?;
    // SAFETY: written by this connection's packets only, which one CPU at a time handles but for reordering; a torn
    // value costs one relayed connection.
    Some(unsafe { &mut *handshake })
}

/// Remembers a handshake.
#[inline(always)]
pub fn set_handshake(flow: &FlowKey, handshake: &Handshake) {
    // An LRU map makes room by itself; failing under memory pressure means that the connection is relayed.
    let _ = handshakes.insert(flow, handshake, BPF_ANY as u64);
}

/// Remembers that a connection has its verdict: nothing more of it is read.
#[inline(always)]
pub fn set_decided(flow: &FlowKey) {
    match handshake(flow) {
        Some(handshake) => handshake.state |= HANDSHAKE_DECIDED,
        None => set_handshake(flow, &Handshake { state: HANDSHAKE_DECIDED, ..Handshake::default() }),
    }
}

/// Forgets a handshake.
#[inline(always)]
pub fn forget_handshake(flow: &FlowKey) {
    // A missing entry is what is wanted.
    let _ = handshakes.remove(flow);
}

/// This CPU's next place in the record of verdicts.
#[inline(always)]
pub fn next_verdict() -> Option<&'static mut Decided> {
    let memory = scratch_memory()?;
    let place = memory.decided & (MAX_VERDICTS as u32 - 1);
    memory.decided = memory.decided.wrapping_add(1);
    let decided = verdicts.get_ptr_mut(place)?;
    // SAFETY: as for `scratch_memory`.
    Some(unsafe { &mut *decided })
}

/// Until when packets may be handed to the other end of an interface; 0 for never.
#[inline(always)]
pub fn peer_until(interface: u32) -> u64 {
    // SAFETY: the agent alone writes this map, and a value is one number.
    unsafe { peers.get(&interface) }.copied().unwrap_or(0)
}

/// Whether the agent knows a connection of somebody else that packets with this key belong to.
#[inline(always)]
pub fn is_taken(back: &FlowKey) -> bool {
    taken.get_ptr(back).is_some()
}

/// Tells the agent that somebody else's SYN wanted to leave with the addresses and ports of a carried connection.
#[inline(always)]
pub fn tell_clash(back: &FlowKey) {
    // An LRU map makes room by itself; one that is not told is told with the SYN's retransmission.
    let _ = clashes.insert(back, 1, BPF_ANY as u64);
}

/// The settings.
#[inline(always)]
pub fn settings() -> Option<&'static Config> {
    config.get(0)
}

/// The pool of a route.
#[inline(always)]
pub fn pool(route: u32) -> Option<Pool> {
    // SAFETY: the agent alone writes this map and the two below, and replaces values as a whole; a value is copied out
    // at once, or a few fields of it are.
    unsafe { pools.get(&route) }.copied()
}

/// A slot of a pool.
#[inline(always)]
pub fn slot(pool: u32, index: u32) -> Option<&'static Slot> {
    // SAFETY: see `pool`.
    unsafe { slots.get(&SlotKey { pool, index }) }
}

/// An endpoint.
#[inline(always)]
pub fn endpoint(id: u32) -> Option<&'static Endpoint> {
    // SAFETY: see `pool`.
    unsafe { endpoints.get(&id) }
}

/// What is kept of an endpoint.
#[inline(always)]
pub fn state_of_endpoint(id: u32) -> Option<&'static mut EndpointState> {
    let state = endpoint_state.get_ptr_mut(id)?;
    // SAFETY: these programs alone write it after its making. Counters may lose a step when two CPUs write at once; the
    // cursor, which must not, is counted atomically.
    Some(unsafe { &mut *state })
}

/// Counts an event of dialing.
#[inline(always)]
pub fn count(what: DialCounter) {
    if let Some(counter) = dial_stats.get_ptr_mut(what as u32) {
        // SAFETY: this CPU's own slot, and programs of one CPU do not interrupt one another.
        unsafe { *counter += 1 };
    }
}

//! Typed access to the maps.

mod definitions;
mod flights;
mod flows;
mod fragments;
mod gate;

use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::btf_maps::lpm_trie::Key;
use router_common::maps::{
    AliasSlot, Config, Decided, EndpointState, FlowKey, HANDSHAKE_DECIDED, Handshake, KernelEndpoint, KernelPool,
    ListenerKey, ListenerOwner, MAX_VERDICTS, SCOPE_BITS, ScopedNet, SlotKey,
};
use router_common::packet::Segment;
use router_common::verdict::DialCounter;

use crate::copy::ListenerWords;
use crate::scratch::{NextHop, Scratch};

use definitions::{
    allowlists, clashes, config, dial_stats, endpoint_state, endpoints, handshakes, headers, listeners, next_hops,
    peers, pools, scratch, slots, taken, verdicts,
};
pub use definitions::{edge_reencrypt, events, flow_ends, http_be, reason_stats, route_stats, sni_passthrough, tcp_be};
pub use flights::*;
pub use flows::*;
pub use fragments::*;
pub use gate::*;

/// The listener at this address and port, if there is one.
#[inline(always)]
pub fn listener(address: &[u8; 16], port: u16) -> Option<ListenerOwner> {
    listener_at(&ListenerKey { address: *address, port, pad: 0 })
}

/// Likewise, by a key in words, which costs stack.
#[inline(always)]
pub fn listener_by(words: &ListenerWords) -> Option<ListenerOwner> {
    listener_at(words.key())
}

#[inline(always)]
fn listener_at(key: &ListenerKey) -> Option<ListenerOwner> {
    // SAFETY: only the agent writes listeners, and replaces whole values; the value is copied at once.
    unsafe { listeners.get(key) }.copied()
}

/// This CPU's working memory.
#[inline(always)]
pub fn scratch_memory() -> Option<&'static mut Scratch> {
    let memory = scratch.get_ptr_mut(0)?;
    // SAFETY: per-CPU, one entry, and programs of one CPU do not interrupt one another; the one caller of this
    // function in a run, and the callback that it passes control to, never use two of these references in turns.
    Some(unsafe { &mut *memory })
}

/// Headers of the current packet, in per-CPU memory: `skb::segment` writes them, later steps only read them.
#[inline(always)]
pub fn segment_memory() -> Option<&'static mut Segment> {
    let memory = headers.get_ptr_mut(0)?;
    // SAFETY: as for `scratch_memory`; the functions that read the headers again write the same.
    Some(unsafe { &mut *memory })
}

/// Entry `place` of this CPU's cache of next hops.
#[inline(always)]
pub fn hop(place: u32) -> Option<&'static mut NextHop> {
    let hop = next_hops.get_ptr_mut(place)?;
    // SAFETY: as for `scratch_memory`.
    Some(unsafe { &mut *hop })
}

/// True if the route's allow-list contains this client.
#[inline(always)]
pub fn source_allowed(route: u32, client: &[u8; 16]) -> bool {
    allowlists.get(&Key::new(SCOPE_BITS + 128, ScopedNet::of(route, *client))).is_some()
}

/// The recorded handshake of a connection.
#[inline(always)]
pub fn handshake(flow: &FlowKey) -> Option<&'static mut Handshake> {
    let handshake = handshakes.get_ptr_mut(flow)?;
    // SAFETY: only packets of this connection write it. One CPU at a time handles them, except after reordering; a torn
    // value then costs one relayed connection.
    Some(unsafe { &mut *handshake })
}

/// Records a handshake.
#[inline(always)]
pub fn set_handshake(flow: &FlowKey, handshake: &Handshake) {
    // An LRU map evicts the oldest entry. If the insertion fails for lack of memory, the connection is relayed.
    let _ = handshakes.insert(flow, handshake, BPF_ANY as u64);
}

/// Records that a connection has its verdict; its later segments are not parsed.
#[inline(always)]
pub fn set_decided(flow: &FlowKey) {
    match handshake(flow) {
        Some(handshake) => handshake.state |= HANDSHAKE_DECIDED,
        None => set_handshake(flow, &Handshake { state: HANDSHAKE_DECIDED, ..Handshake::default() }),
    }
}

/// Deletes a handshake.
#[inline(always)]
pub fn forget_handshake(flow: &FlowKey) {
    // A missing entry is no error.
    let _ = handshakes.remove(flow);
}

/// The entry of this CPU's ring of verdicts to write next.
#[inline(always)]
pub fn next_verdict() -> Option<&'static mut Decided> {
    let memory = scratch_memory()?;
    let place = memory.decided & (MAX_VERDICTS as u32 - 1);
    memory.decided = memory.decided.wrapping_add(1);
    let decided = verdicts.get_ptr_mut(place)?;
    // SAFETY: as for `scratch_memory`.
    Some(unsafe { &mut *decided })
}

/// Entry `place` of this CPU's ring of verdicts.
#[cfg(feature = "log")]
#[inline(always)]
pub fn verdict(place: u32) -> Option<&'static Decided> {
    let decided = verdicts.get_ptr(place)?;
    // SAFETY: as for `scratch_memory`.
    Some(unsafe { &*decided })
}

/// Expiry (ns, coarse monotonic clock) of the permission to use `bpf_redirect_peer` on this interface; 0 = not
/// permitted.
#[inline(always)]
pub fn peer_until(interface: u32) -> u64 {
    // SAFETY: only the agent writes this map, and a value is a single integer.
    unsafe { peers.get(&interface) }.copied().unwrap_or(0)
}

/// True if the agent found another connection of this host with this key (`taken`).
#[inline(always)]
pub fn is_taken(back: &FlowKey) -> bool {
    taken.get_ptr(back).is_some()
}

/// Reports to the agent that a SYN of another sender has the addresses and ports of a carried connection.
#[inline(always)]
pub fn report_clash(back: &FlowKey) {
    // An LRU map evicts the oldest entry; a lost report is repeated with the SYN's retransmission.
    let _ = clashes.insert(back, 1, BPF_ANY as u64);
}

/// The settings.
#[inline(always)]
pub fn settings() -> Option<&'static Config> {
    config.get(0)
}

/// The pool of a route.
#[inline(always)]
pub fn pool(route: u32) -> Option<KernelPool> {
    // SAFETY: only the agent writes this map and the two below, and replaces whole values; the caller copies the value,
    // or a few of its fields, at once.
    unsafe { pools.get(&route) }.copied()
}

/// A slot of a pool.
#[inline(always)]
pub fn slot(pool: u32, index: u32) -> Option<&'static AliasSlot> {
    // SAFETY: see `pool`.
    unsafe { slots.get(&SlotKey { pool, index }) }
}

/// An endpoint.
#[inline(always)]
pub fn endpoint(id: u32) -> Option<&'static KernelEndpoint> {
    // SAFETY: see `pool`.
    unsafe { endpoints.get(&id) }
}

/// Counters and port cursor of an endpoint.
#[inline(always)]
pub fn state_of_endpoint(id: u32) -> Option<&'static mut EndpointState> {
    let state = endpoint_state.get_ptr_mut(id)?;
    // SAFETY: after the agent has created it, only these programs write it. Counters may lose an increment when two
    // CPUs write at once; the cursor must not, and is incremented atomically.
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

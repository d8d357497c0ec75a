//! Access to the gate's maps.

use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::btf_maps::lpm_trie::Key;
use router_common::gate::arrival::Arrival;
use router_common::gate::known_sockets::Places;
use router_common::gate::sampler::Sampler;
use router_common::maps::{
    FlowKey, GATE_COUNT_SETS, GATE_SOCKET_BITS, GATE_SOCKET_COARSE_BITS, GateConnection, GateDrop, GateForward,
    GatePolicy, GatePressure, GateSet, ListenerKey, MAX_GATE_DROPS, SCOPE_BITS, ScopedNet,
};

use super::definitions::{
    cookies, gate_answers as answering, gate_arrivals, gate_conns, gate_counts, gate_drops, gate_flooded,
    gate_forwards, gate_nets, gate_policies, gate_pressure as pressures, gate_rates, gate_samplers, gate_sockets,
    gate_sockets_use, gate_sources, gate_syns,
};

use crate::copy::ListenerWords;
use crate::scratch::{CookieMemory, Flooded};

/// The policy for packets to this address and port, if there is one.
#[inline(always)]
pub fn gate_policy(address: &[u8; 16], port: u16) -> Option<GatePolicy> {
    gate_policy_by(&ListenerWords::new(address, port)).copied()
}

/// Likewise, by a key in words, in its place.
#[inline(always)]
pub fn gate_policy_by(words: &ListenerWords) -> Option<&'static GatePolicy> {
    // SAFETY: only the agent writes policies, and replaces whole values; the value is copied at once, or not read.
    unsafe { gate_policies.get(words.key()) }
}

/// Likewise, in its place.
#[inline(always)]
pub fn gate_policy_at(address: &[u8; 16], port: u16) -> Option<&'static GatePolicy> {
    // SAFETY: as for `gate_policy`; the few fields that are needed are copied at once.
    unsafe { gate_policies.get(&ListenerKey { address: *address, port, pad: 0 }) }
}

/// Whether a list has the source.
#[inline(always)]
pub fn gate_net_is_listed(list: u32, source: &[u8; 16]) -> bool {
    gate_nets.get(&Key::new(SCOPE_BITS + 128, ScopedNet::of(list, *source))).is_some()
}

/// A set of sources' token buckets.
#[inline(always)]
pub fn gate_source_set(index: u32) -> Option<*mut GateSet> {
    gate_sources.get_ptr_mut(index)
}

/// A set of recent SYNs.
#[inline(always)]
pub fn gate_syn_set(index: u32) -> Option<*mut GateSet> {
    gate_syns.get_ptr_mut(index)
}

/// The token bucket of a policy's listener.
#[inline(always)]
pub fn gate_rate(policy: u32) -> Option<*mut u64> {
    gate_rates.get_ptr_mut(&policy)
}

/// A set of numbers of connections; of `set`, the lowest bits count.
#[inline(always)]
pub fn gate_count_set(set: u32) -> Option<*mut GateSet> {
    gate_counts.get_ptr_mut(set & (GATE_COUNT_SETS as u32 - 1))
}

/// A counted connection.
#[inline(always)]
pub fn gate_connection(client: &FlowKey) -> Option<*mut GateConnection> {
    gate_conns.get_ptr_mut(client)
}

/// Adds a counted connection. `false`: it exists, or the map is full.
#[inline(always)]
pub fn add_gate_connection(client: &FlowKey, connection: &GateConnection) -> bool {
    gate_conns.insert(client, connection, BPF_NOEXIST as u64).is_ok()
}

/// Deletes a counted connection.
#[inline(always)]
pub fn remove_gate_connection(client: &FlowKey) {
    // Only who has ended it deletes it.
    let _ = gate_conns.remove(client);
}

/// The pressure on a router's listeners of one protocol ([`router_common::maps::pressure_id`]).
#[inline(always)]
pub fn gate_pressure(id: u32) -> Option<*mut GatePressure> {
    pressures.get_ptr_mut(&id)
}

/// `GATE_ANSWERS` of an interface; `None`: XDP does not answer on it.
#[inline(always)]
pub fn gate_answers(interface: u32) -> Option<u32> {
    // SAFETY: only the agent writes this map, and a value is a single integer.
    unsafe { answering.get(&interface) }.copied()
}

/// What is done with `gate_sockets`.
#[inline(always)]
pub fn gate_sockets_in_use() -> u32 {
    gate_sockets_use.get(0).copied().unwrap_or(0)
}

/// The words of a client in an entry of `gate_sockets`: the coarse one, and the fine one.
#[inline(always)]
pub fn gate_socket_words(index: u32, places: &Places) -> Option<[*mut u32; 2]> {
    const { assert!(GATE_SOCKET_BITS.is_power_of_two() && GATE_SOCKET_COARSE_BITS.is_power_of_two()) };
    let entry = gate_sockets.get_ptr_mut(index)?;
    // SAFETY: a live value of the map; only pointers to its fields are made.
    let (coarse, fine) = unsafe { (&raw mut (*entry).coarse, &raw mut (*entry).fine) };
    let at = |words: *mut u32, word: u32, bits: usize| {
        // SAFETY: within the field.
        unsafe { words.add(word as usize & (bits / 32 - 1)) }
    };
    Some([
        at(coarse.cast(), places.coarse.word, GATE_SOCKET_COARSE_BITS),
        at(fine.cast(), places.fine.word, GATE_SOCKET_BITS),
    ])
}

/// What an interface permits XDP to forward; `None`: nothing.
#[inline(always)]
pub fn gate_forward(interface: u32) -> Option<&'static GateForward> {
    // SAFETY: only the agent writes this map, and replaces whole values; they are read at once.
    unsafe { gate_forwards.get(&interface) }
}

/// This CPU's working memory for cookies.
#[inline(always)]
pub fn cookie_memory() -> Option<&'static mut CookieMemory> {
    let memory = cookies.get_ptr_mut(0)?;
    // SAFETY: as for `gate_sampler`; a callback, and the function that it is passed by, never use two references in turns.
    Some(unsafe { &mut *memory })
}

/// Entry `place` of this CPU's listeners under pressure.
#[inline(always)]
pub fn flooded(place: u32) -> Option<&'static mut Flooded> {
    let flooded = gate_flooded.get_ptr_mut(place)?;
    // SAFETY: as for `gate_sampler`; a caller never uses two references to an entry in turns.
    Some(unsafe { &mut *flooded })
}

/// This CPU's memory for the headers of a packet.
#[inline(always)]
pub fn gate_arrival() -> Option<&'static mut Arrival> {
    let arrival = gate_arrivals.get_ptr_mut(0)?;
    // SAFETY: as for `gate_sampler`.
    Some(unsafe { &mut *arrival })
}

/// This CPU's sampler of rejected packets.
#[inline(always)]
pub fn gate_sampler() -> Option<&'static mut Sampler> {
    let sampler = gate_samplers.get_ptr_mut(0)?;
    // SAFETY: this CPU's own, and the programs of one CPU do not interrupt one another; the gate asks once in a run.
    Some(unsafe { &mut *sampler })
}

/// The entry of this CPU's ring of rejected packets for this window.
#[inline(always)]
pub fn gate_drop(window: u64) -> Option<*mut GateDrop> {
    gate_drops.get_ptr_mut(window as u32 & (MAX_GATE_DROPS as u32 - 1))
}

//! Every map, and typed access to it. Names and layouts are those of `router_common::maps`.
#![allow(non_upper_case_globals, reason = "a map is named in the kernel as the static is here")]

mod carried;
mod flights;
mod fragments;

use aya_ebpf::bindings::{BPF_ANY, BPF_F_NO_PREALLOC};
use aya_ebpf::btf_maps::lpm_trie::Key;
use aya_ebpf::btf_maps::{Array, HashMap, LpmTrie, LruHashMap, PerCpuArray, PerCpuHashMap, RingBuf};
use aya_ebpf::macros::btf_map;
use router_common::maps::{
    ALLOW_ROUTE_BITS, AllowNet, Config, Decided, END_RING, EVENT_RING, Endpoint, EndpointState, Event, FirstFlight,
    Flow, FlowEnd, FlowKey, FragmentKey, Fragmented, HANDSHAKE_DECIDED, Handshake, HostKey, HostRoute, LaterHead,
    Listener, ListenerKey, MAX_ALLOW, MAX_CLASHES, MAX_ENDPOINTS, MAX_FLOWS, MAX_FRAGMENTED, MAX_HANDSHAKES,
    MAX_HELLOS, MAX_HOSTS, MAX_LATER_HEADS, MAX_LISTENERS, MAX_PEERS, MAX_TAKEN, MAX_VERDICTS, Meta, Pool, Repeated,
    RouteName, RouteStats, ShortFlight, Slot, SlotKey,
};
use router_common::packet::Segment;
use router_common::verdict::{DIAL_COUNTERS, DialCounter, REASON_CODES};

use crate::scratch::{Hop, MAX_HOPS, Scratch};

pub use carried::*;
pub use flights::*;
pub use fragments::*;

const SPARSE: usize = BPF_F_NO_PREALLOC as usize;

#[btf_map]
static listeners: HashMap<ListenerKey, Listener, MAX_LISTENERS> = HashMap::new();
#[btf_map]
pub static http_be: HashMap<HostKey, HostRoute, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static edge_reencrypt: HashMap<HostKey, HostRoute, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static tcp_be: HashMap<HostKey, HostRoute, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static sni_passthrough: HashMap<HostKey, u32, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
static allowlists: LpmTrie<AllowNet, u32, MAX_ALLOW> = LpmTrie::new();
#[btf_map]
static handshakes: LruHashMap<FlowKey, Handshake, MAX_HANDSHAKES> = LruHashMap::new();
#[btf_map]
static hellos: HashMap<FlowKey, FirstFlight, MAX_HELLOS> = HashMap::new();
#[btf_map]
static short_hellos: HashMap<FlowKey, ShortFlight, MAX_HELLOS> = HashMap::new();
#[btf_map]
static later_heads: HashMap<FlowKey, LaterHead, MAX_LATER_HEADS, SPARSE> = HashMap::new();
#[btf_map]
static verdicts: PerCpuArray<Decided, MAX_VERDICTS> = PerCpuArray::new();
#[btf_map]
pub static route_stats: PerCpuHashMap<u32, RouteStats, MAX_HOSTS, SPARSE> = PerCpuHashMap::new();
#[btf_map]
pub static reason_stats: PerCpuArray<u64, { REASON_CODES as usize }> = PerCpuArray::new();
#[btf_map]
pub static events: RingBuf<Event, EVENT_RING> = RingBuf::new();
#[btf_map]
static sluice_meta: Array<Meta, 1> = Array::new();
#[btf_map]
static flows: HashMap<FlowKey, Flow, MAX_FLOWS, SPARSE> = HashMap::new();
#[btf_map]
static fragments: LruHashMap<FragmentKey, Fragmented, MAX_FRAGMENTED> = LruHashMap::new();
#[btf_map]
static fragments_again: LruHashMap<FlowKey, Repeated, MAX_FRAGMENTED> = LruHashMap::new();
#[btf_map]
static fragment_ids: Array<u32, 1> = Array::new();
#[btf_map]
static fragmenting: LruHashMap<[u8; 16], u64, MAX_FRAGMENTED> = LruHashMap::new();
#[btf_map]
pub static flow_ends: RingBuf<FlowEnd, END_RING> = RingBuf::new();
#[btf_map]
static pools: HashMap<u32, Pool, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
static slots: HashMap<SlotKey, Slot, MAX_ENDPOINTS, SPARSE> = HashMap::new();
#[btf_map]
static endpoints: HashMap<u32, Endpoint, MAX_ENDPOINTS, SPARSE> = HashMap::new();
#[btf_map]
static endpoint_state: HashMap<u32, EndpointState, MAX_ENDPOINTS, SPARSE> = HashMap::new();
#[btf_map]
static peers: HashMap<u32, u64, MAX_PEERS, SPARSE> = HashMap::new();
#[btf_map]
static taken: HashMap<FlowKey, u32, MAX_TAKEN, SPARSE> = HashMap::new();
#[btf_map]
static clashes: LruHashMap<FlowKey, u32, MAX_CLASHES> = LruHashMap::new();
#[btf_map]
static config: Array<Config, 1> = Array::new();
#[btf_map]
static dial_stats: PerCpuArray<u64, { DIAL_COUNTERS as usize }> = PerCpuArray::new();
#[btf_map]
static routes: HashMap<u32, RouteName, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
static scratch: PerCpuArray<Scratch, 1> = PerCpuArray::new();

#[btf_map]
static next_hops: PerCpuArray<Hop, MAX_HOPS> = PerCpuArray::new();

#[btf_map]
static headers: PerCpuArray<Segment, 1> = PerCpuArray::new();

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

/// Counts up atomically; the value before. (The prebuilt `core` of this target has no atomics; the kernel has had this
/// instruction since 5.12.)
#[inline(always)]
pub fn next_step(cursor: &mut u32) -> u32 {
    let mut step: u64 = 1;
    // SAFETY: one aligned number that the reference proves writable.
    unsafe {
        core::arch::asm!(
            "w0 = atomic_fetch_add((u32 *)(r1 + 0), w0)",
            inout("r0") step,
            in("r1") &raw mut *cursor,
        );
    }
    step as u32
}

/// Counts an event of dialing.
#[inline(always)]
pub fn count(what: DialCounter) {
    if let Some(counter) = dial_stats.get_ptr_mut(what as u32) {
        // SAFETY: this CPU's own slot, and programs of one CPU do not interrupt one another.
        unsafe { *counter += 1 };
    }
}

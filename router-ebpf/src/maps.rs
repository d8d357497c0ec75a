//! Every map, and typed access to it. Names and layouts are those of `router_common::maps`.
#![allow(non_upper_case_globals, reason = "a map is named in the kernel as the static is here")]

use aya_ebpf::bindings::{BPF_ANY, BPF_F_NO_PREALLOC};
use aya_ebpf::btf_maps::lpm_trie::Key;
use aya_ebpf::btf_maps::{Array, HashMap, LpmTrie, LruHashMap, PerCpuArray, PerCpuHashMap, RingBuf};
use aya_ebpf::macros::btf_map;
use router_common::maps::{
    ALLOW_ROUTE_BITS, AllowNet, ConnVerdict, EVENT_RING, Event, FirstFlight, FlowKey, Handshake, HostKey, HostRoute,
    Listener, ListenerKey, MAX_ALLOW, MAX_FLIGHT, MAX_HANDSHAKES, MAX_HELLOS, MAX_HOSTS, MAX_LISTENERS, MAX_VERDICTS,
    Meta, RouteStats,
};
use router_common::verdict::REASON_CODES;

use crate::first_flight::ParseLoop;

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
static verdicts: LruHashMap<FlowKey, ConnVerdict, MAX_VERDICTS> = LruHashMap::new();
#[btf_map]
pub static route_stats: PerCpuHashMap<u32, RouteStats, MAX_HOSTS, SPARSE> = PerCpuHashMap::new();
#[btf_map]
pub static reason_stats: PerCpuArray<u64, { REASON_CODES as usize }> = PerCpuArray::new();
#[btf_map]
pub static events: RingBuf<Event, EVENT_RING> = RingBuf::new();
#[btf_map]
static sluice_meta: Array<Meta, 1> = Array::new();
#[btf_map]
static scratch: PerCpuArray<Scratch, 1> = PerCpuArray::new();

/// Working memory of one run; the BPF stack has 512 bytes.
#[repr(C)]
pub struct Scratch {
    /// The first flight that is read.
    pub flight: FirstFlight,
    /// Key of the name itself.
    pub exact: HostKey,
    /// Key of the wildcard that covers it.
    pub wildcard: HostKey,
    /// Where the parser is.
    pub parse: ParseLoop,
    /// Payload of the segment.
    pub payload: [u8; MAX_FLIGHT as usize],
}

/// The listener that a packet is for, if it is one of ours.
#[inline(always)]
pub fn listener(flow: &FlowKey) -> Option<Listener> {
    let key = ListenerKey { address: flow.listener, port: flow.listener_port, pad: 0 };
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

/// Whether a route's allow-list has this client.
#[inline(always)]
pub fn source_allowed(route: u32, client: &[u8; 16]) -> bool {
    let net = AllowNet { route: route.to_be_bytes(), address: *client };
    allowlists.get(&Key::new(ALLOW_ROUTE_BITS + 128, net)).is_some()
}

/// What is known of a connection's handshake.
#[inline(always)]
pub fn handshake(flow: &FlowKey) -> Option<Handshake> {
    // SAFETY: written by this program only, in runs of the same connection; a torn read costs one relayed connection.
    unsafe { handshakes.get(flow) }.copied()
}

/// Remembers a handshake.
#[inline(always)]
pub fn set_handshake(flow: &FlowKey, handshake: Handshake) {
    // An LRU map makes room by itself; failing under memory pressure means that the connection is relayed.
    let _ = handshakes.insert(flow, handshake, BPF_ANY as u64);
}

/// The first flight that was begun for a connection.
#[inline(always)]
pub fn first_flight(flow: &FlowKey) -> Option<&'static FirstFlight> {
    // SAFETY: an entry is written by runs of its own connection only; `forget` of the agent's sweep may free it for
    // another connection, and then this one is seconds old and what is read decides nothing but a relay.
    unsafe { hellos.get(flow) }
}

/// Keeps a first flight for the next segment. `false`: no room.
#[inline(always)]
pub fn keep_first_flight(flow: &FlowKey, flight: &FirstFlight) -> bool {
    hellos.insert(flow, flight, BPF_ANY as u64).is_ok()
}

/// Forgets a first flight.
#[inline(always)]
pub fn forget_first_flight(flow: &FlowKey) {
    // A missing entry is what is wanted.
    let _ = hellos.remove(flow);
}

/// Remembers a verdict.
#[inline(always)]
pub fn set_verdict(flow: &FlowKey, verdict: &ConnVerdict) {
    // A record for people: losing one harms nothing.
    let _ = verdicts.insert(flow, verdict, BPF_ANY as u64);
}

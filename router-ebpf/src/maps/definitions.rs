//! Every map. Names and layouts are those of `router_common::maps`.
#![allow(non_upper_case_globals, reason = "a map is named in the kernel as the static is here")]

use aya_ebpf::bindings::BPF_F_NO_PREALLOC;
use aya_ebpf::btf_maps::{Array, HashMap, LpmTrie, LruHashMap, PerCpuArray, PerCpuHashMap, RingBuf};
use aya_ebpf::macros::btf_map;
use router_common::gate::arrival::Arrival;
use router_common::gate::sampler::Sampler;
use router_common::maps::{
    AliasSlot, Config, Decided, DecisionEvent, END_RING, EVENT_RING, EndpointState, FirstFlight, Flow, FlowEnd,
    FlowKey, FragmentKey, Fragmented, GATE_COUNT_SETS, GATE_SOURCE_SETS, GATE_SYN_SETS, GateConnection, GateDrop,
    GateForward, GatePolicy, GatePressure, GateSet, GateSockets, Handshake, HostKey, HostRoute, KernelEndpoint,
    KernelPool, LaterHead, ListenerKey, ListenerOwner, MAX_ALLOW, MAX_CLASHES, MAX_ENDPOINTS, MAX_FLOWS,
    MAX_FRAGMENTED, MAX_GATE_ANSWERS, MAX_GATE_CONNECTIONS, MAX_GATE_DROPS, MAX_GATE_FORWARDS, MAX_GATE_NETS,
    MAX_GATE_POLICIES, MAX_HANDSHAKES, MAX_HELLOS, MAX_HOSTS, MAX_LATER_HEADS, MAX_LISTENERS, MAX_PEERS, MAX_TAKEN,
    MAX_VERDICTS, MapsMeta, Repeated, RouteName, RouteStats, ScopedNet, ShortFlight, SlotKey,
};
use router_common::packet::Segment;
use router_common::verdict::{DIAL_COUNTERS, REASON_CODES};

use crate::scratch::{CookieMemory, Flooded, MAX_FLOODED, MAX_HOPS, NextHop, Scratch};

const SPARSE: usize = BPF_F_NO_PREALLOC as usize;

#[btf_map]
pub static listeners: HashMap<ListenerKey, ListenerOwner, MAX_LISTENERS> = HashMap::new();
#[btf_map]
pub static http_be: HashMap<HostKey, HostRoute, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static edge_reencrypt: HashMap<HostKey, HostRoute, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static tcp_be: HashMap<HostKey, HostRoute, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static sni_passthrough: HashMap<HostKey, u32, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static allowlists: LpmTrie<ScopedNet, u32, MAX_ALLOW> = LpmTrie::new();
#[btf_map]
pub static handshakes: LruHashMap<FlowKey, Handshake, MAX_HANDSHAKES> = LruHashMap::new();
#[btf_map]
pub static hellos: HashMap<FlowKey, FirstFlight, MAX_HELLOS> = HashMap::new();
#[btf_map]
pub static short_hellos: HashMap<FlowKey, ShortFlight, MAX_HELLOS> = HashMap::new();
#[btf_map]
pub static later_heads: HashMap<FlowKey, LaterHead, MAX_LATER_HEADS, SPARSE> = HashMap::new();
#[btf_map]
pub static verdicts: PerCpuArray<Decided, MAX_VERDICTS> = PerCpuArray::new();
#[btf_map]
pub static route_stats: PerCpuHashMap<u32, RouteStats, MAX_HOSTS, SPARSE> = PerCpuHashMap::new();
#[btf_map]
pub static reason_stats: PerCpuArray<u64, { REASON_CODES as usize }> = PerCpuArray::new();
#[btf_map]
pub static events: RingBuf<DecisionEvent, EVENT_RING> = RingBuf::new();
#[btf_map]
pub static sluice_meta: Array<MapsMeta, 1> = Array::new();
#[btf_map]
pub static flows: HashMap<FlowKey, Flow, MAX_FLOWS, SPARSE> = HashMap::new();
#[btf_map]
pub static fragments: LruHashMap<FragmentKey, Fragmented, MAX_FRAGMENTED> = LruHashMap::new();
#[btf_map]
pub static fragments_again: LruHashMap<FlowKey, Repeated, MAX_FRAGMENTED> = LruHashMap::new();
#[btf_map]
pub static fragment_ids: Array<u32, 1> = Array::new();
#[btf_map]
pub static fragmenting: LruHashMap<[u8; 16], u64, MAX_FRAGMENTED> = LruHashMap::new();
#[btf_map]
pub static flow_ends: RingBuf<FlowEnd, END_RING> = RingBuf::new();
#[btf_map]
pub static pools: HashMap<u32, KernelPool, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static slots: HashMap<SlotKey, AliasSlot, MAX_ENDPOINTS, SPARSE> = HashMap::new();
#[btf_map]
pub static endpoints: HashMap<u32, KernelEndpoint, MAX_ENDPOINTS, SPARSE> = HashMap::new();
#[btf_map]
pub static endpoint_state: HashMap<u32, EndpointState, MAX_ENDPOINTS, SPARSE> = HashMap::new();
#[btf_map]
pub static peers: HashMap<u32, u64, MAX_PEERS, SPARSE> = HashMap::new();
#[btf_map]
pub static taken: HashMap<FlowKey, u32, MAX_TAKEN, SPARSE> = HashMap::new();
#[btf_map]
pub static clashes: LruHashMap<FlowKey, u32, MAX_CLASHES> = LruHashMap::new();
#[btf_map]
pub static config: Array<Config, 1> = Array::new();
#[btf_map]
pub static dial_stats: PerCpuArray<u64, { DIAL_COUNTERS as usize }> = PerCpuArray::new();
#[btf_map]
pub static routes: HashMap<u32, RouteName, MAX_HOSTS, SPARSE> = HashMap::new();
#[btf_map]
pub static scratch: PerCpuArray<Scratch, 1> = PerCpuArray::new();

#[btf_map]
pub static next_hops: PerCpuArray<NextHop, MAX_HOPS> = PerCpuArray::new();

#[btf_map]
pub static headers: PerCpuArray<Segment, 1> = PerCpuArray::new();

#[btf_map]
pub static gate_policies: HashMap<ListenerKey, GatePolicy, MAX_GATE_POLICIES> = HashMap::new();
#[btf_map]
pub static gate_nets: LpmTrie<ScopedNet, u32, MAX_GATE_NETS> = LpmTrie::new();
#[btf_map]
pub static gate_sources: Array<GateSet, GATE_SOURCE_SETS> = Array::new();
#[btf_map]
pub static gate_syns: Array<GateSet, GATE_SYN_SETS> = Array::new();
#[btf_map]
pub static gate_rates: HashMap<u32, u64, MAX_GATE_POLICIES> = HashMap::new();
#[btf_map]
pub static gate_conns: HashMap<FlowKey, GateConnection, MAX_GATE_CONNECTIONS, SPARSE> = HashMap::new();
#[btf_map]
pub static gate_counts: Array<GateSet, GATE_COUNT_SETS> = Array::new();
#[btf_map]
pub static gate_pressure: HashMap<u32, GatePressure, MAX_GATE_POLICIES> = HashMap::new();
#[btf_map]
pub static gate_answers: HashMap<u32, u32, MAX_GATE_ANSWERS> = HashMap::new();
#[btf_map]
pub static gate_sockets: Array<GateSockets, 3> = Array::new();
#[btf_map]
pub static gate_sockets_use: Array<u32, 1> = Array::new();
#[btf_map]
pub static gate_forwards: HashMap<u32, GateForward, MAX_GATE_FORWARDS> = HashMap::new();
#[btf_map]
pub static cookies: PerCpuArray<CookieMemory, 1> = PerCpuArray::new();
#[btf_map]
pub static gate_flooded: PerCpuArray<Flooded, MAX_FLOODED> = PerCpuArray::new();
#[btf_map]
pub static gate_drops: PerCpuArray<GateDrop, MAX_GATE_DROPS> = PerCpuArray::new();
#[btf_map]
pub static gate_arrivals: PerCpuArray<Arrival, 1> = PerCpuArray::new();
#[btf_map]
pub static gate_samplers: PerCpuArray<Sampler, 1> = PerCpuArray::new();

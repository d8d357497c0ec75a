//! Map names, at most 15 bytes each (the kernel's limit).

/// [`super::ListenerKey`] → [`super::ListenerOwner`].
pub const LISTENERS: &str = "listeners";
/// [`super::HostKey`] → [`super::HostRoute`]: hosts of clear-text requests.
pub const HTTP_BE: &str = "http_be";
/// [`super::HostKey`] → [`super::HostRoute`]: hosts of edge and re-encrypt routes.
pub const EDGE_REENCRYPT: &str = "edge_reencrypt";
/// [`super::HostKey`] → [`super::HostRoute`]: backends of passthrough hosts.
pub const TCP_BE: &str = "tcp_be";
/// [`super::HostKey`] → `u32` 1: hosts of passthrough routes.
pub const SNI_PASSTHROUGH: &str = "sni_passthrough";
/// LPM of [`super::ScopedNet`] → `u32` 1: source networks that may use a route with an allow-list.
pub const ALLOWLISTS: &str = "allowlists";
/// [`super::FlowKey`] → [`super::Handshake`], LRU: a connection whose entry is evicted is relayed.
pub const HANDSHAKES: &str = "handshakes";
/// [`super::FlowKey`] → [`super::FirstFlight`]: incomplete first flights, and long complete ones that are not
/// acknowledged.
pub const HELLOS: &str = "hellos";
/// [`super::FlowKey`] → [`super::ShortFlight`]: complete ones of at most [`super::SHORT_FLIGHT`] bytes, which most are.
/// The kernel copies whole values, so short ones are cheaper.
pub const SHORT_HELLOS: &str = "short_hellos";
/// [`super::FlowKey`] → [`super::LaterHead`]: parser state of later requests on carried clear-text connections.
pub const LATER_HEADS: &str = "later_heads";
/// Index → [`super::Decided`], per CPU: a record of the newest decisions, for diagnosis only. Each CPU overwrites its
/// entries in turn.
pub const VERDICTS: &str = "verdicts";
/// `u32` route → [`super::RouteStats`] per CPU.
pub const ROUTE_STATS: &str = "route_stats";
/// `u32` reason code → `u64` number of connections, per CPU.
pub const REASON_STATS: &str = "reason_stats";
/// Ring buffer of [`super::DecisionEvent`].
pub const EVENTS: &str = "events";
/// [`super::FlowKey`] → [`super::Flow`]: both directions of every connection that the kernel carries. Not LRU: entries
/// are never evicted.
pub const FLOWS: &str = "flows";
/// [`super::FragmentKey`] → [`super::Fragmented`], LRU: fragmented packets whose first fragment has arrived.
pub const FRAGMENTS: &str = "fragments";
/// [`super::FlowKey`] → [`super::Repeated`], LRU: fragmented packets that are retransmitted.
pub const FRAGMENTS_AGAIN: &str = "fragments_again";
/// `u32` 0 → `u32`: number of fragmented packets carried; the source of their new identifications.
pub const FRAGMENT_IDS: &str = "fragment_ids";
/// 16-byte client address → `u64` of [`crate::fragment_fallback::relayed_until`], LRU: the client's connections are
/// relayed until then, because its packets arrive in fragments that the kernel cannot carry.
pub const FRAGMENTING: &str = "fragmenting";
/// Ring buffer of [`super::FlowEnd`].
pub const FLOW_ENDS: &str = "flow_ends";
/// `u32` route → [`super::KernelPool`].
pub const POOLS: &str = "pools";
/// [`super::SlotKey`] → [`super::AliasSlot`].
pub const SLOTS: &str = "slots";
/// `u32` endpoint → [`super::KernelEndpoint`].
pub const ENDPOINTS: &str = "endpoints";
/// `u32` endpoint → [`super::EndpointState`].
pub const ENDPOINT_STATE: &str = "endpoint_state";
/// `u32` 0 → [`super::Config`].
pub const CONFIG: &str = "config";
/// `u32` [`crate::verdict::DialCounter`] → `u64`, per CPU.
pub const DIAL_STATS: &str = "dial_stats";
/// `u32` route → [`super::RouteName`].
pub const ROUTES: &str = "routes";
/// `u32` interface index of one end of a veth pair → `u64` coarse monotonic nanoseconds: until then `bpf_redirect_peer`
/// may hand packets that would leave by the interface to its peer. The agent extends the time as long as no egress hook
/// of the interface has to see the packets.
pub const PEERS: &str = "peers";
/// [`super::FlowKey`] of packets from an endpoint to an address of this host → `u32` 1: a connection of another program
/// uses these addresses and ports.
pub const TAKEN: &str = "taken";
/// [`super::FlowKey`] likewise → `u32` 1, LRU: a connection that the kernel carries uses them, and another program's
/// SYN with them was dropped.
pub const CLASHES: &str = "clashes";
/// [`super::ListenerKey`] → [`super::GatePolicy`]: what the XDP gate decides by; port 0: the address's.
pub const GATE_POLICIES: &str = "gate_policies";
/// LPM of [`super::ScopedNet`] → `u32` 1: networks of the gate's lists.
pub const GATE_NETS: &str = "gate_nets";
/// Index → [`super::GateSet`]: token buckets of sources.
pub const GATE_SOURCES: &str = "gate_sources";
/// Index → [`super::GateSet`]: SYNs that were let pass.
pub const GATE_SYNS: &str = "gate_syns";
/// `u32` policy → `u64` time at which the listener's token bucket is full, in 1/16 ns of monotonic time.
pub const GATE_RATES: &str = "gate_rates";
/// [`super::FlowKey`] → [`super::GateConnection`]: open connections of sources with a limit.
pub const GATE_CONNS: &str = "gate_conns";
/// Index → [`super::GateSet`]: numbers of open connections of sources.
pub const GATE_COUNTS: &str = "gate_counts";
/// Index → [`super::GateDrop`], per CPU: a ring of packets that were rejected lately.
pub const GATE_DROPS: &str = "gate_drops";
/// `u32` [`super::pressure_id`] → [`super::GatePressure`].
pub const GATE_PRESSURE: &str = "gate_pressure";
/// `u32` index of an interface that XDP sends back on → `u32` [`super::GATE_ANSWERS`] or [`super::GATE_ANSWERS_TAGGED`].
pub const GATE_ANSWERS: &str = "gate_answers";
/// Index → [`super::GateSockets`]: sockets that there may be, so that XDP does not look for others.
pub const GATE_SOCKETS: &str = "gate_sockets";
/// `u32` 0 → what is done with `gate_sockets` ([`super::GATE_SOCKETS_RECORDED`]); 0: nothing.
pub const GATE_SOCKETS_USE: &str = "gate_sockets_use";
/// `u32` index of an interface → [`super::GateForward`]: XDP forwards established connections between these interfaces.
pub const GATE_FORWARDS: &str = "gate_forwards";
/// `u32` 0 → [`super::MapsMeta`].
pub const META: &str = "sluice_meta";

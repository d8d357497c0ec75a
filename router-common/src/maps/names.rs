//! Map names, at most 15 bytes each (the kernel's limit).

/// [`super::ListenerKey`] → [`super::Listener`].
pub const LISTENERS: &str = "listeners";
/// [`super::HostKey`] → [`super::HostRoute`]: hosts of clear-text requests.
pub const HTTP_BE: &str = "http_be";
/// [`super::HostKey`] → [`super::HostRoute`]: hosts of edge and re-encrypt routes.
pub const EDGE_REENCRYPT: &str = "edge_reencrypt";
/// [`super::HostKey`] → [`super::HostRoute`]: backends of passthrough hosts.
pub const TCP_BE: &str = "tcp_be";
/// [`super::HostKey`] → `u32` 1: the hosts whose TLS is passed through.
pub const SNI_PASSTHROUGH: &str = "sni_passthrough";
/// LPM of [`super::AllowNet`] → `u32` 1: who may connect to a route with an allow-list.
pub const ALLOWLISTS: &str = "allowlists";
/// [`super::FlowKey`] → [`super::Handshake`], LRU: eviction only means relay.
pub const HANDSHAKES: &str = "handshakes";
/// [`super::FlowKey`] → [`super::FirstFlight`]: first flights that are not complete, and those that are complete but
/// not acknowledged, if they are long.
pub const HELLOS: &str = "hellos";
/// [`super::FlowKey`] → [`super::ShortFlight`]: those of at most [`super::SHORT_FLIGHT`] bytes, as most are. The kernel
/// copies a value as a whole.
pub const SHORT_HELLOS: &str = "short_hellos";
/// [`super::FlowKey`] → [`super::LaterHead`]: later requests on clear text that the kernel carries, as far as they were
/// read.
pub const LATER_HEADS: &str = "later_heads";
/// Place → [`super::Decided`], per CPU: a record of the newest connections, read by people only. A CPU writes its
/// places in turns.
pub const VERDICTS: &str = "verdicts";
/// `u32` route → [`super::RouteStats`] per CPU.
pub const ROUTE_STATS: &str = "route_stats";
/// `u32` reason code → `u64` connections, per CPU.
pub const REASON_STATS: &str = "reason_stats";
/// Ring buffer of [`super::Event`].
pub const EVENTS: &str = "events";
/// [`super::FlowKey`] → [`super::Flow`]: both directions of every connection that the kernel carries. Never LRU.
pub const FLOWS: &str = "flows";
/// [`super::FragmentKey`] → [`super::Fragmented`], LRU: packets of those that came in fragments, after the first one.
pub const FRAGMENTS: &str = "fragments";
/// [`super::FlowKey`] → [`super::Repeated`], LRU: packets in fragments that do not seem to arrive.
pub const FRAGMENTS_AGAIN: &str = "fragments_again";
/// `u32` 0 → `u32`: how many packets in fragments were carried, which gives each its identification.
pub const FRAGMENT_IDS: &str = "fragment_ids";
/// 16-byte client address → `u64` of [`crate::fragmenting::relayed_until`], LRU: until then its connections are relayed,
/// because their packets come in fragments that cannot be carried.
pub const FRAGMENTING: &str = "fragmenting";
/// Ring buffer of [`super::FlowEnd`].
pub const FLOW_ENDS: &str = "flow_ends";
/// `u32` route → [`super::Pool`].
pub const POOLS: &str = "pools";
/// [`super::SlotKey`] → [`super::Slot`].
pub const SLOTS: &str = "slots";
/// `u32` endpoint → [`super::Endpoint`].
pub const ENDPOINTS: &str = "endpoints";
/// `u32` endpoint → [`super::EndpointState`].
pub const ENDPOINT_STATE: &str = "endpoint_state";
/// `u32` 0 → [`super::Config`].
pub const CONFIG: &str = "config";
/// `u32` [`crate::verdict::DialCounter`] → `u64`, per CPU.
pub const DIAL_STATS: &str = "dial_stats";
/// `u32` route → [`super::RouteName`].
pub const ROUTES: &str = "routes";
/// `u32` interface → `u64` coarse monotonic nanoseconds: until then packets that would leave by the interface, one
/// end of a pair, may be handed to its other end at once. The agent goes on promising it for as long as nothing on
/// the interface wants to see them.
pub const PEERS: &str = "peers";
/// [`super::FlowKey`] of packets from an endpoint to an address of this host → `u32` 1: somebody else's connection has these
/// addresses and ports.
pub const TAKEN: &str = "taken";
/// [`super::FlowKey`] likewise → `u32` 1, LRU: a connection that the kernel carries has them, and somebody else's SYN wanted to
/// leave with them.
pub const CLASHES: &str = "clashes";
/// `u32` 0 → [`super::Meta`].
pub const META: &str = "sluice_meta";

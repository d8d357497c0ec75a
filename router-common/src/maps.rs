//! Names, keys and values of the kernel maps: the ABI between the programs, the agent and `bpftool`.
//!
//! Every struct is `repr(C)`, has no implicit padding (asserted below) and holds addresses as 16 bytes, IPv4 in its
//! IPv4-mapped form, and ports in host order, so that a dump reads as it is meant.

use core::mem::offset_of;

use crate::hostname::{HostBuilder, NAME_FIELD};
use crate::http::HeadParser;
use crate::tls::HelloParser;
use crate::translate::Translation;

/// Version of everything in this file. Pins live under `…/v<ABI>/`: programs and agents of different versions never
/// share maps.
pub const ABI: u32 = 4;

/// Map names, at most 15 bytes each (the kernel's limit).
pub mod names {
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
    /// `u32` 0 → [`super::Meta`].
    pub const META: &str = "sluice_meta";
}

/// Most entries of each route map. Not preallocated: an unused entry costs the 16 bytes of its hash bucket.
pub const MAX_HOSTS: usize = 1 << 18;
/// Most allow-list entries of all routes together.
pub const MAX_ALLOW: usize = 1 << 18;
/// Most listening addresses.
pub const MAX_LISTENERS: usize = 1024;
/// Connections whose handshake is remembered.
pub const MAX_HANDSHAKES: usize = 1 << 16;
/// First flights gathered or not yet acknowledged at a time; beyond, connections are passed up.
pub const MAX_HELLOS: usize = 1 << 12;
/// Entries of `flows`: two a connection. Not preallocated.
pub const MAX_FLOWS: usize = 1 << 19;
/// Interfaces with another end that is reached at once. Not preallocated.
pub const MAX_PEERS: usize = 1 << 12;
/// Endpoints, and slots of all pools together. Not preallocated.
pub const MAX_ENDPOINTS: usize = 1 << 18;
/// Verdicts that each CPU remembers; a power of two.
pub const MAX_VERDICTS: usize = 1 << 12;
/// Bytes of the ring of decisions, a power of two and a multiple of the page size.
pub const EVENT_RING: usize = 1 << 22;
/// Bytes of the ring of ends, likewise: room for 120,000, which is as long as an agent needs to come back when thirty
/// thousand connections a second end.
pub const END_RING: usize = 1 << 24;
/// Most bytes of a first flight that the kernel reads; a longer one is passed up.
pub const MAX_FLIGHT: u32 = 4096;
/// Most bytes of one in `short_hellos`.
pub const SHORT_FLIGHT: u32 = 832;
/// Bytes of the backend name in [`HostRoute`].
pub const BACKEND_FIELD: usize = 112;

/// The 16-byte form of an IPv4 address (RFC 4291 §2.5.5.2).
#[inline(always)]
pub const fn mapped(v4: [u8; 4]) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, v4[0], v4[1], v4[2], v4[3]]
}

/// One direction of a TCP connection, as its packets carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl FlowKey {
    /// The other direction.
    #[inline(always)]
    pub const fn reversed(&self) -> FlowKey {
        FlowKey {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }
}

/// A listening address. A listener on every address has an entry for each address of the host, so that packets which
/// the host merely forwards never match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ListenerKey {
    /// Address.
    pub address: [u8; 16],
    /// Port.
    pub port: u16,
    /// Zero.
    pub pad: u16,
}

/// What first bytes a listener expects.
pub const PROTOCOL_HTTP: u8 = 1;
/// See [`PROTOCOL_HTTP`].
pub const PROTOCOL_TLS: u8 = 2;

/// Whose a listening address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Listener {
    /// Router id: scope of host keys.
    pub router: u32,
    /// [`PROTOCOL_HTTP`] or [`PROTOCOL_TLS`].
    pub protocol: u8,
    /// Zero.
    pub pad: u8,
    /// Most payload bytes of a segment that clients may be told (TCP's MSS option): what fits the path to every
    /// endpoint. 0: as the stack says.
    pub max_segment: u16,
}

/// A host of a router: a normal name, or `*.` and a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct HostKey {
    /// Router id.
    pub router: u32,
    /// Zero.
    pub pad: u32,
    /// Name, zero-filled.
    pub host: [u8; NAME_FIELD],
}

/// The route's allow-list applies: look the client up in `allowlists`.
pub const ROUTE_ALLOW_LIST: u16 = 1;

/// What a host leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct HostRoute {
    /// Route id: scope of counters and allow-lists. For a host with several routes, that of the first.
    pub route: u32,
    /// Code of the [`crate::verdict::Reason`] that a match gives.
    pub reason: u16,
    /// `ROUTE_*` bits.
    pub flags: u16,
    /// Backend name as OpenShift spells it, zero-filled, cut at the field's size.
    pub backend: [u8; BACKEND_FIELD],
}

/// Data of an LPM key: a network that a route admits. The prefix length before it counts 32 bits for the route and up
/// to 128 of the address (IPv4 `/n` is `96 + n`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct AllowNet {
    /// Route id, big-endian, because tries compare from the first byte on.
    pub route: [u8; 4],
    /// Network address.
    pub address: [u8; 16],
}

/// Bits of an [`AllowNet`] that belong to the route.
pub const ALLOW_ROUTE_BITS: u32 = 32;

/// The SYN-ACK was seen: everything in a [`Handshake`] holds.
pub const HANDSHAKE_COMPLETE: u8 = 1;
/// The first flight has its verdict: nothing more is read.
pub const HANDSHAKE_DECIDED: u8 = 2;
/// `hellos` has first segments that came after this handshake. Without it, what stands there is an older connection's.
pub const HANDSHAKE_GATHERING: u8 = 4;

/// Both sides offered timestamps (RFC 7323 §3).
pub const OPTION_TIMESTAMPS: u8 = 1;
/// Both sides offered selective acknowledgement (RFC 2018).
pub const OPTION_SACK: u8 = 2;
/// Both sides offered window scaling (RFC 7323 §2).
pub const OPTION_SCALE: u8 = 4;
/// Both sides offered explicit congestion notification (RFC 3168 §6.1.1).
pub const OPTION_ECN: u8 = 8;

/// What SYN and SYN-ACK of a client's connection told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Handshake {
    /// Monotonic nanoseconds of the SYN-ACK.
    pub answered_ns: u64,
    /// The client's initial sequence number.
    pub client_isn: u32,
    /// The listener's.
    pub listener_isn: u32,
    /// The timestamp value that the listener told.
    pub listener_tsval: u32,
    /// The client's maximum segment size; 0 if it told none.
    pub client_mss: u16,
    /// The client's window shift.
    pub client_shift: u8,
    /// The listener's window shift.
    pub listener_shift: u8,
    /// `OPTION_*` bits: offered by the client at first, agreed on once the SYN-ACK was seen.
    pub options: u8,
    /// `HANDSHAKE_*` bits.
    pub state: u8,
    /// Zero.
    pub pad: [u8; 6],
}

/// Room before the bytes of a first flight: for the longest PROXY v2 header (16 + 36 bytes for TCP over IPv6).
pub const FLIGHT_HEADROOM: u32 = 64;

/// How a first flight's connection to an endpoint is being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Dial {
    /// The client's handshake.
    pub handshake: Handshake,
    /// Our initial sequence number towards the endpoint.
    pub isn: u32,
    /// Our timestamp value in the SYN.
    pub tsval: u32,
    /// The timestamp value of the client's segment that was turned into the SYN.
    pub client_tsval: u32,
    /// The endpoint's initial sequence number, once it answered.
    pub backend_isn: u32,
    /// The endpoint's timestamp value in its SYN-ACK.
    pub backend_tsval: u32,
    /// Pool that endpoints are taken from.
    pub pool: u32,
    /// Slots of the pool.
    pub slots: u32,
    /// Slot that was taken first.
    pub slot: u32,
    /// Endpoint that is being dialed.
    pub endpoint: u32,
    /// Bytes of the PROXY header before the client's.
    pub prefix: u32,
    /// Most payload bytes of a segment to the endpoint.
    pub max_segment: u16,
    /// The client's window, as its segment carried it.
    pub window: u16,
    /// Endpoints tried.
    pub attempts: u8,
    /// 1: the agent wants to be told.
    pub told: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Interface that the endpoint's SYN-ACK came in on.
    pub via: u32,
    /// Its Ethernet addresses, exchanged: the way back to the neighbour that sent it.
    pub macs: [u8; 12],
}

/// A first flight: gathered until its route is known, then kept until the endpoint has acknowledged all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FirstFlight {
    /// Boot-time nanoseconds of the first segment; the agent sweeps old ones that belong to no flow.
    pub started_ns: u64,
    /// Bytes taken; of a later request the sequence number after what was read of it.
    pub received: u32,
    /// Segments taken.
    pub segments: u32,
    /// Bytes that went up the stack: 0 as long as all of them are held.
    pub went_up: u32,
    /// Zero.
    pub pad: u32,
    /// The dial, once there is one.
    pub dial: Dial,
    /// What was received, after [`FLIGHT_HEADROOM`].
    pub bytes: [u8; (FLIGHT_HEADROOM + MAX_FLIGHT) as usize],
    /// The TLS parser, when the listener speaks TLS.
    pub hello: HelloParser,
    /// The HTTP parser, when it speaks HTTP.
    pub head: HeadParser,
    /// The name.
    pub host: HostBuilder,
}

/// The begin of a [`FirstFlight`]: all that is needed of a short one once it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ShortFlight {
    /// See [`FirstFlight`].
    pub started_ns: u64,
    /// See [`FirstFlight`].
    pub received: u32,
    /// See [`FirstFlight`].
    pub segments: u32,
    /// See [`FirstFlight`].
    pub went_up: u32,
    /// Zero.
    pub pad: u32,
    /// See [`FirstFlight`].
    pub dial: Dial,
    /// See [`FirstFlight`].
    pub bytes: [u8; (FLIGHT_HEADROOM + SHORT_FLIGHT) as usize],
}

/// A SYN was sent to the endpoint.
pub const STATE_DIALING: u8 = 1;
/// The first payload was sent, and is not acknowledged yet.
pub const STATE_CONFIRMING: u8 = 2;
/// Packets are translated, and nothing else happens.
pub const STATE_ESTABLISHED: u8 = 3;
/// The connection has ended; the entry lingers for repeated packets and may be taken over at any time.
pub const STATE_CLOSING: u8 = 4;

/// Entry of packets from the client.
pub const SIDE_CLIENT: u8 = 1;
/// Entry of packets from the endpoint.
pub const SIDE_BACKEND: u8 = 2;

/// This side sent a FIN ([`Flow::fin_end`] holds).
pub const FLOW_FIN: u8 = 1;
/// This side has acknowledged the other's FIN.
pub const FLOW_FIN_ACKED: u8 = 2;
/// The end was told through `flow_ends`.
pub const FLOW_REPORTED: u8 = 4;
/// Of clear text: later requests are checked.
pub const FLOW_CLEARTEXT: u8 = 8;
/// The two sides use different versions of IP.
pub const FLOW_ACROSS: u8 = 16;
/// A later request has begun, and its head is not complete: as far as it was read, it is kept like a first flight.
pub const FLOW_IN_HEAD: u8 = 32;

/// One direction of a connection that the kernel carries. The entry of the other direction has the reverse of
/// `rewrite.to` as its key. Each field has one writer: the packets of this direction, but for `peer`, `state`, `end`
/// and `ended_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// How its packets are rewritten.
    pub rewrite: Translation,
    /// Interface that they leave by.
    pub interface: u32,
    /// Route id.
    pub route: u32,
    /// Payload bytes of this direction, repeated ones included.
    pub bytes: u64,
    /// Packets of this direction (before segmentation by offload).
    pub packets: u64,
    /// Coarse monotonic nanoseconds of the last packet.
    pub last_ns: u64,
    /// Monotonic nanoseconds of the dial.
    pub started_ns: u64,
    /// Monotonic nanoseconds of the end.
    pub ended_ns: u64,
    /// Sequence number after this side's FIN, as this side counts.
    pub fin_end: u32,
    /// Sequence number after the last byte that this side was seen to send.
    pub next_seq: u32,
    /// Endpoint id.
    pub endpoint: u32,
    /// Router id.
    pub router: u32,
    /// `STATE_*`.
    pub state: u8,
    /// `SIDE_*`.
    pub side: u8,
    /// `FLOW_*` bits of this direction.
    pub own: u8,
    /// `FLOW_*` bits of the other direction, written by its packets.
    pub peer: u8,
    /// Why it ended: [`crate::verdict::FlowEndReason`]; 0 while it lives.
    pub end: u8,
    /// Protocol of the listener.
    pub protocol: u8,
    /// Zero, but for bits of the last byte: 1 in the client's entry once a program has begun to end the connection, 2 in
    /// the endpoint's once one has begun to take its port over.
    pub pad: [u8; 2],
}

/// The end of a connection that the kernel carried, as the ring buffer carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FlowEnd {
    /// Client → listener.
    pub client: FlowKey,
    /// Our address → endpoint.
    pub backend: FlowKey,
    /// Monotonic nanoseconds of the dial.
    pub started_ns: u64,
    /// Monotonic nanoseconds of the end.
    pub ended_ns: u64,
    /// Payload bytes from the client.
    pub bytes_in: u64,
    /// Payload bytes to the client.
    pub bytes_out: u64,
    /// Packets from the client.
    pub packets_in: u64,
    /// Packets to the client.
    pub packets_out: u64,
    /// Router id.
    pub router: u32,
    /// Route id.
    pub route: u32,
    /// Endpoint id.
    pub endpoint: u32,
    /// [`crate::verdict::FlowEndReason`].
    pub reason: u8,
    /// Protocol of the listener.
    pub protocol: u8,
    /// Zero.
    pub pad: [u8; 2],
}

/// The route wants a PROXY v2 header before the client's first bytes.
pub const POOL_PROXY_V2: u32 = 1;
/// The agent wants an [`Event`] of each dial, as of everything else that is decided: it needs the name.
pub const POOL_TOLD: u32 = 2;

/// The endpoints of a route: slots 0 .. `slots` of pool `id`. Ids are never given twice: a new set of slots is written
/// under a new id, then this value is replaced, then the old slots are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Pool {
    /// Pool id.
    pub id: u32,
    /// Number of slots; 0 when there is no endpoint that the kernel can dial.
    pub slots: u32,
    /// `POOL_*` bits.
    pub flags: u32,
}

/// A slot of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct SlotKey {
    /// Pool id.
    pub pool: u32,
    /// Index.
    pub index: u32,
}

/// A column of Walker's alias table (Vose 1991): a slot is drawn evenly, then a number of 32 bits decides between its
/// endpoint (below `threshold`) and that of slot `alias`. Each endpoint of the pool has one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Slot {
    /// Endpoint id.
    pub endpoint: u32,
    /// Share of the column that is this endpoint's, of 2³²; `u32::MAX` is all of it.
    pub threshold: u32,
    /// Slot that has the rest.
    pub alias: u32,
}

/// An endpoint that the kernel can dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Endpoint {
    /// Address.
    pub address: [u8; 16],
    /// Our address towards it.
    pub source: [u8; 16],
    /// Interface that leads there.
    pub interface: u32,
    /// Port.
    pub port: u16,
    /// Most payload bytes of a segment on the path (MTU less IP and TCP headers).
    pub max_segment: u16,
}

/// What the kernel keeps of an endpoint; the agent makes and deletes the entry with that of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EndpointState {
    /// Dials.
    pub dials: u64,
    /// Dials that it answered with a reset.
    pub refused: u64,
    /// Counts up by one a dial: the next source port.
    pub cursor: u32,
    /// The smallest maximum segment size that it has told; 0 for none yet.
    pub max_segment: u32,
}

/// Settings of the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// Secret of sequence numbers, timestamps and choices.
    pub secret: [u64; 2],
    /// 1: dial; 0: only decide, everything goes up.
    pub dial: u32,
    /// First source port of dials.
    pub first_port: u16,
    /// Number of them; a power of two is not needed.
    pub ports: u16,
}

/// Bytes of the name in [`RouteName`]: namespace, `/`, name.
pub const ROUTE_NAME_FIELD: usize = 320;

/// Which route an id stands for: for people, and for the next agent, which goes on with the same ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RouteName {
    /// Router id.
    pub router: u32,
    /// Zero.
    pub pad: u32,
    /// Namespace, `/`, name; zero-filled.
    pub name: [u8; ROUTE_NAME_FIELD],
}

/// What was decided about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ConnVerdict {
    /// Boot-time nanoseconds.
    pub at_ns: u64,
    /// Router id.
    pub router: u32,
    /// Route id, 0 for none.
    pub route: u32,
    /// Bytes of the first flight that were read.
    pub bytes: u32,
    /// Code of the reason.
    pub reason: u16,
    /// Code of the verdict.
    pub verdict: u8,
    /// Protocol of the listener.
    pub protocol: u8,
}

/// A decision in the record of the newest ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Decided {
    /// The connection.
    pub flow: FlowKey,
    /// Segments of the first flight.
    pub segments: u32,
    /// What was decided; `at_ns` is 0 in a place that was never written.
    pub verdict: ConnVerdict,
}

/// Counters of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RouteStats {
    /// Connections that the kernel carries.
    pub steer: u64,
    /// Connections that the agent must take.
    pub pass: u64,
    /// Connections refused.
    pub drop: u64,
    /// Connections among `steer` that have ended.
    pub ended: u64,
    /// Payload bytes of those, from clients.
    pub bytes_in: u64,
    /// Payload bytes of those, to clients.
    pub bytes_out: u64,
}

/// One decision, as the ring buffer carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// The connection.
    pub flow: FlowKey,
    /// Segments of the first flight.
    pub segments: u32,
    /// What was decided.
    pub verdict: ConnVerdict,
    /// The name that was read, zero-filled; empty when none was.
    pub host: [u8; NAME_FIELD],
}

/// About the maps themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Meta {
    /// [`ABI`].
    pub abi: u32,
    /// Process that fills the maps.
    pub pid: u32,
    /// Revision of the routing table that the maps hold.
    pub revision: u64,
}

/// Fills a fixed field with text, cut at its size.
pub fn field<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    field
}

impl HostKey {
    /// The key of `host` (a normal name, or `*.` and a domain) on a router.
    pub fn new(router: u32, host: &str) -> Self {
        HostKey { router, pad: 0, host: field(host) }
    }
}

// A struct whose size is the sum of its fields' has no padding: user space may read and write it as bytes.
const _: () = {
    assert!(size_of::<FlowKey>() == 16 + 16 + 2 + 2);
    assert!(size_of::<ListenerKey>() == 16 + 2 + 2);
    assert!(size_of::<Listener>() == 4 + 1 + 1 + 2);
    assert!(size_of::<HostKey>() == 4 + 4 + NAME_FIELD);
    assert!(size_of::<HostRoute>() == 4 + 2 + 2 + BACKEND_FIELD);
    assert!(size_of::<AllowNet>() == 4 + 16);
    assert!(size_of::<Handshake>() == 8 + 3 * 4 + 2 + 4 + 6);
    assert!(size_of::<HelloParser>() == 8 + 8 * 4 + 2 + 6);
    assert!(size_of::<HeadParser>() == 8 + 3 * 4 + 3 * 2 + 3 + 3);
    assert!(size_of::<HostBuilder>() == 2 * NAME_FIELD + 4 + 2 * 2 + 4 + 4);
    assert!(
        size_of::<FirstFlight>()
            == 8 + 4 * 4
                + size_of::<Dial>()
                + size_of::<HelloParser>()
                + size_of::<HeadParser>()
                + size_of::<HostBuilder>()
                + (FLIGHT_HEADROOM + MAX_FLIGHT) as usize
    );
    assert!(size_of::<ShortFlight>() == 8 + 4 * 4 + size_of::<Dial>() + (FLIGHT_HEADROOM + SHORT_FLIGHT) as usize);
    assert!(offset_of!(ShortFlight, received) == offset_of!(FirstFlight, received));
    assert!(offset_of!(ShortFlight, segments) == offset_of!(FirstFlight, segments));
    assert!(offset_of!(ShortFlight, went_up) == offset_of!(FirstFlight, went_up));
    assert!(offset_of!(ShortFlight, dial) == offset_of!(FirstFlight, dial));
    assert!(offset_of!(ShortFlight, bytes) == offset_of!(FirstFlight, bytes));
    assert!(size_of::<Dial>() == size_of::<Handshake>() + 10 * 4 + 2 * 2 + 4 + 16);
    assert!(size_of::<Translation>() == size_of::<FlowKey>() + 4 * 4 + 4);
    assert!(size_of::<Flow>() == size_of::<Translation>() + 2 * 4 + 5 * 8 + 4 * 4 + 8);
    assert!(size_of::<FlowEnd>() == 2 * size_of::<FlowKey>() + 6 * 8 + 3 * 4 + 4);
    assert!(size_of::<Pool>() == 3 * 4);
    assert!(size_of::<SlotKey>() == 2 * 4);
    assert!(size_of::<Slot>() == 3 * 4);
    assert!(size_of::<Endpoint>() == 16 + 16 + 4 + 2 + 2);
    assert!(size_of::<EndpointState>() == 2 * 8 + 2 * 4);
    assert!(size_of::<Config>() == 2 * 8 + 4 + 2 + 2);
    assert!(size_of::<RouteName>() == 4 + 4 + ROUTE_NAME_FIELD);
    assert!(size_of::<ConnVerdict>() == 8 + 4 + 4 + 4 + 2 + 1 + 1);
    assert!(size_of::<Decided>() == size_of::<FlowKey>() + 4 + size_of::<ConnVerdict>());
    assert!(size_of::<RouteStats>() == 6 * 8);
    assert!(size_of::<Event>() == size_of::<FlowKey>() + 4 + size_of::<ConnVerdict>() + NAME_FIELD);
    assert!(size_of::<Meta>() == 4 + 4 + 8);
};

//! Names, keys and values of the kernel maps: the ABI between the programs, the agent and `bpftool`.
//!
//! Every struct is `repr(C)`, has no implicit padding (asserted below) and holds addresses as 16 bytes, IPv4 in its
//! IPv4-mapped form, and ports in host order, so that a dump reads as it is meant.

use crate::hostname::{HostBuilder, NAME_FIELD};
use crate::http::HeadParser;
use crate::tls::HelloParser;

/// Version of everything in this file. Pins live under `…/v<ABI>/`: programs and agents of different versions never
/// share maps.
pub const ABI: u32 = 1;

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
    /// [`super::FlowKey`] → [`super::FirstFlight`]: first flights that are not complete.
    pub const HELLOS: &str = "hellos";
    /// [`super::FlowKey`] → [`super::ConnVerdict`], LRU: a record of the newest connections, read by people only.
    pub const VERDICTS: &str = "verdicts";
    /// `u32` route → [`super::RouteStats`] per CPU.
    pub const ROUTE_STATS: &str = "route_stats";
    /// `u32` reason code → `u64` connections, per CPU.
    pub const REASON_STATS: &str = "reason_stats";
    /// Ring buffer of [`super::Event`].
    pub const EVENTS: &str = "events";
    /// `u32` 0 → [`super::Meta`].
    pub const META: &str = "sluice_meta";
}

/// Most entries of each route map. Not preallocated, so unused entries cost nothing.
pub const MAX_HOSTS: usize = 1 << 20;
/// Most allow-list entries of all routes together.
pub const MAX_ALLOW: usize = 1 << 18;
/// Most listening addresses.
pub const MAX_LISTENERS: usize = 1024;
/// Connections whose handshake is remembered.
pub const MAX_HANDSHAKES: usize = 1 << 16;
/// First flights gathered at a time; beyond, connections are passed up.
pub const MAX_HELLOS: usize = 1 << 13;
/// Verdicts remembered.
pub const MAX_VERDICTS: usize = 1 << 14;
/// Bytes of the event ring, a power of two and a multiple of the page size.
pub const EVENT_RING: usize = 1 << 20;
/// Most bytes of a first flight that the kernel reads; a longer one is passed up.
pub const MAX_FLIGHT: u32 = 4096;
/// Bytes of the backend name in [`HostRoute`].
pub const BACKEND_FIELD: usize = 112;

/// The 16-byte form of an IPv4 address (RFC 4291 §2.5.5.2).
#[inline(always)]
pub const fn mapped(v4: [u8; 4]) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, v4[0], v4[1], v4[2], v4[3]]
}

/// One direction of a TCP connection: client → listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    /// Client address.
    pub client: [u8; 16],
    /// Listener address.
    pub listener: [u8; 16],
    /// Client port.
    pub client_port: u16,
    /// Listener port.
    pub listener_port: u16,
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
    pub pad: [u8; 3],
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

/// What the SYN told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Handshake {
    /// The client's initial sequence number.
    pub client_isn: u32,
    /// 1 once the first flight has its verdict: nothing more is read.
    pub decided: u32,
}

/// A first flight that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FirstFlight {
    /// Boot-time nanoseconds of the first segment; the agent sweeps old ones.
    pub started_ns: u64,
    /// Bytes taken.
    pub received: u32,
    /// Segments taken.
    pub segments: u32,
    /// The TLS parser, when the listener speaks TLS.
    pub hello: HelloParser,
    /// The HTTP parser, when it speaks HTTP.
    pub head: HeadParser,
    /// The name.
    pub host: HostBuilder,
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

/// Counters of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RouteStats {
    /// Connections that the kernel may steer.
    pub steer: u64,
    /// Connections that the agent must take.
    pub pass: u64,
    /// Connections refused.
    pub drop: u64,
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
    assert!(size_of::<Listener>() == 4 + 1 + 3);
    assert!(size_of::<HostKey>() == 4 + 4 + NAME_FIELD);
    assert!(size_of::<HostRoute>() == 4 + 2 + 2 + BACKEND_FIELD);
    assert!(size_of::<AllowNet>() == 4 + 16);
    assert!(size_of::<Handshake>() == 4 + 4);
    assert!(size_of::<HelloParser>() == 8 + 8 * 4 + 2 + 6);
    assert!(size_of::<HeadParser>() == 8 + 3 * 4 + 3 * 2 + 3 + 3);
    assert!(size_of::<HostBuilder>() == 2 * NAME_FIELD + 4 + 2 * 2 + 4 + 4);
    assert!(
        size_of::<FirstFlight>()
            == 8 + 4 + 4 + size_of::<HelloParser>() + size_of::<HeadParser>() + size_of::<HostBuilder>()
    );
    assert!(size_of::<ConnVerdict>() == 8 + 4 + 4 + 4 + 2 + 1 + 1);
    assert!(size_of::<RouteStats>() == 3 * 8);
    assert!(size_of::<Event>() == size_of::<FlowKey>() + 4 + size_of::<ConnVerdict>() + NAME_FIELD);
    assert!(size_of::<Meta>() == 4 + 4 + 8);
};

//! Names, keys and values of the kernel maps: the ABI between the programs, the agent and `bpftool`.
//!
//! Every struct is `repr(C)` and has no implicit padding, so user space may read and write it as bytes: its size is
//! asserted to be the sum of its fields' sizes. Addresses are 16 bytes, IPv4 in its IPv4-mapped form. Ports are in host
//! byte order, so that dumps are readable.

mod decisions;
mod endpoints;
mod first_flight;
mod flows;
mod gate;
mod key;
pub mod names;
mod net;
mod routes;

pub use decisions::{ConnVerdict, Decided, DecisionEvent};
pub use endpoints::*;
pub use first_flight::*;
pub use flows::*;
pub use gate::*;
pub use key::*;
pub use net::*;
pub use routes::*;

/// Version of this module's layouts. Pins are under `…/v<ABI>/`: programs and agents of different versions never share
/// maps.
pub const ABI: u32 = 9;

/// `skb->mark` of packets that the programs send: the egress program lets them pass. Reserved for this.
pub const OURS: u32 = 0x51ce_0001;

/// Most entries of each host map. Not preallocated: an unused entry costs the 16 bytes of its hash bucket.
pub const MAX_HOSTS: usize = 1 << 18;
/// Most allow-list entries of all routes together.
pub const MAX_ALLOW: usize = 1 << 18;
/// Most listening addresses.
pub const MAX_LISTENERS: usize = 1024;
/// Most tracked handshakes.
pub const MAX_HANDSHAKES: usize = 1 << 16;
/// Most first flights that are being gathered or are not acknowledged yet; further connections are passed to the stack.
pub const MAX_HELLOS: usize = 1 << 12;
/// Most later requests of clear-text connections whose heads are incomplete. Not preallocated. Beyond this, a segment
/// that begins a head is dropped, and the client retransmits it.
pub const MAX_LATER_HEADS: usize = 1 << 16;
/// Most entries of `flows`, two per connection. Not preallocated.
pub const MAX_FLOWS: usize = 1 << 19;
/// Most fragmented packets in transit. The oldest is evicted; its sender retransmits the whole packet.
pub const MAX_FRAGMENTED: usize = 1 << 12;
/// Most interfaces that permit `bpf_redirect_peer`. Not preallocated.
pub const MAX_PEERS: usize = 1 << 12;
/// Most entries of `taken`: addresses and ports of other connections, which dials must not use. Not preallocated.
pub const MAX_TAKEN: usize = 1 << 16;
/// Most entries of `clashes`: connection attempts of other programs with the addresses and ports of a carried
/// connection, until the agent has processed them.
pub const MAX_CLASHES: usize = 1 << 10;
/// Most endpoints, and most slots of all pools together. Not preallocated.
pub const MAX_ENDPOINTS: usize = 1 << 18;
/// Most policies of the gate: one of each listening address, and one of each address.
pub const MAX_GATE_POLICIES: usize = 2 * MAX_LISTENERS;
/// Most networks of the gate's lists together: a million, twice, as a list is written beside the one that it replaces. Not
/// preallocated.
pub const MAX_GATE_NETS: usize = 1 << 21;
/// Sets of token buckets: 262,144 sources that are limited at a time; a power of two.
pub const GATE_SOURCE_SETS: usize = 1 << 15;
/// Sets of recent SYNs: 131,072; a power of two.
pub const GATE_SYN_SETS: usize = 1 << 14;
/// Sets of numbers of connections: 262,144 sources with any; a power of two.
pub const GATE_COUNT_SETS: usize = 1 << 15;
/// Most connections that are counted; further ones are not. Not preallocated.
pub const MAX_GATE_CONNECTIONS: usize = 1 << 18;
/// Most interfaces between which XDP forwards.
pub const MAX_GATE_FORWARDS: usize = 1 << 10;
/// Most interfaces that XDP answers on.
pub const MAX_GATE_ANSWERS: usize = 1 << 10;
/// Records of rejected packets per CPU: of two seconds; a power of two.
pub const MAX_GATE_DROPS: usize = 1 << 9;
/// Recent verdicts recorded per CPU; a power of two.
pub const MAX_VERDICTS: usize = 1 << 12;
/// Size of the `events` ring in bytes; a power of two and a multiple of the page size.
pub const EVENT_RING: usize = 1 << 22;
/// Size of the `flow_ends` ring in bytes, likewise. It holds 120,000 records: 30,000 ended connections a second for as
/// long as an agent takes to restart.
pub const END_RING: usize = 1 << 24;
const _: () = {
    // Required by the kernel, by the programs' masks, and by connections in `flows`.
    assert!(EVENT_RING.is_power_of_two() && EVENT_RING >= 4096);
    assert!(END_RING.is_power_of_two() && END_RING >= 4096);
    assert!(MAX_VERDICTS.is_power_of_two());
    assert!(MAX_FLOWS >= 2 * MAX_HANDSHAKES && MAX_LATER_HEADS >= MAX_HELLOS && MAX_HELLOS > 0);
    assert!(MAX_HOSTS > 0 && MAX_ALLOW > 0 && MAX_ENDPOINTS > 0 && MAX_PEERS > 0 && MAX_TAKEN > 0 && MAX_CLASHES > 0);
};

/// Settings of the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Config {
    /// Secret key for sequence numbers, timestamps and random choices.
    pub secret: [u64; 2],
    /// 1: dial endpoints; 0: only decide, and pass every packet to the stack.
    pub dial: u32,
    /// First source port for dials.
    pub first_port: u16,
    /// Number of source ports; any number, not only a power of two.
    pub ports: u16,
}

/// Describes the maps themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct MapsMeta {
    /// [`ABI`].
    pub abi: u32,
    /// Process that fills the maps.
    pub pid: u32,
    /// Revision of the routing table that the maps hold.
    pub revision: u64,
}

const _: () = {
    assert!(size_of::<Config>() == 2 * 8 + 4 + 2 + 2);
    assert!(size_of::<MapsMeta>() == 4 + 4 + 8);
};

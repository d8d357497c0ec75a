//! Names, keys and values of the kernel maps: the ABI between the programs, the agent and `bpftool`.
//!
//! Every struct is `repr(C)`, has no implicit padding (its size is asserted to be the sum of its fields': user space may
//! read and write it as bytes) and holds addresses as 16 bytes, IPv4 in its IPv4-mapped form, and ports in host order, so
//! that a dump reads as it is meant.

mod decisions;
mod endpoints;
mod first_flight;
mod flows;
mod key;
pub mod names;
mod routes;

pub use decisions::{ConnVerdict, Decided, Event};
pub use endpoints::*;
pub use first_flight::*;
pub use flows::*;
pub use key::*;
pub use routes::*;

/// Version of everything in this module. Pins live under `…/v<ABI>/`: programs and agents of different versions never
/// share maps.
pub const ABI: u32 = 6;

/// Mark of packets that the programs send: egress lets them pass. Nothing else may use it.
pub const OURS: u32 = 0x51ce_0001;

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
/// Later requests of clear text whose heads have begun and not ended. Not preallocated; beyond, what begins one is dropped,
/// and its client sends it again.
pub const MAX_LATER_HEADS: usize = 1 << 16;
/// Entries of `flows`: two a connection. Not preallocated.
pub const MAX_FLOWS: usize = 1 << 19;
/// Packets in fragments that are on their way; the oldest gives way, and is sent again as a whole.
pub const MAX_FRAGMENTED: usize = 1 << 12;
/// Interfaces with another end that is reached at once. Not preallocated.
pub const MAX_PEERS: usize = 1 << 12;
/// Addresses and ports of other connections that dials leave alone. Not preallocated.
pub const MAX_TAKEN: usize = 1 << 16;
/// Connections of others that have begun with addresses and ports of carried ones and that the agent has not seen yet.
pub const MAX_CLASHES: usize = 1 << 10;
/// Endpoints, and slots of all pools together. Not preallocated.
pub const MAX_ENDPOINTS: usize = 1 << 18;
/// Verdicts that each CPU remembers; a power of two.
pub const MAX_VERDICTS: usize = 1 << 12;
/// Bytes of the ring of decisions, a power of two and a multiple of the page size.
pub const EVENT_RING: usize = 1 << 22;
/// Bytes of the ring of ends, likewise: room for 120,000, which is as long as an agent needs to come back when thirty
/// thousand connections a second end.
pub const END_RING: usize = 1 << 24;
const _: () = {
    // What the kernel, the programs' masks and a connection in `flows` want of them.
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
    /// Secret of sequence numbers, timestamps and choices.
    pub secret: [u64; 2],
    /// 1: dial; 0: only decide, everything goes up.
    pub dial: u32,
    /// First source port of dials.
    pub first_port: u16,
    /// Number of them; a power of two is not needed.
    pub ports: u16,
}

/// About the maps themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Meta {
    /// [`ABI`].
    pub abi: u32,
    /// Process that fills the maps.
    pub pid: u32,
    /// Revision of the routing table that the maps hold.
    pub revision: u64,
}

const _: () = {
    assert!(size_of::<Config>() == 2 * 8 + 4 + 2 + 2);
    assert!(size_of::<Meta>() == 4 + 4 + 8);
};

//! What the XDP gate decides by: policies of listeners, networks of their lists, and token buckets. What it rejected.

use super::key::FlowKey;

/// The policy of a listener, at its [`super::ListenerKey`]. An entry with port 0 has the policy for packets to the address
/// whose port cannot be read: later fragments, malformed headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct GatePolicy {
    /// Time between two SYNs of the listener, in units of 1/16 ns; 0: no limit.
    pub listener_interval: u64,
    /// Number of SYNs of the listener that may follow one another at once, at least 1.
    pub listener_burst: u32,
    /// Id of the policy, the scope of token buckets; never 0.
    pub id: u32,
    /// List of networks that are denied; 0: none.
    pub deny: u32,
    /// List of networks of which a source must be; 0: every source may connect.
    pub allow: u32,
    /// Time between two SYNs of one source, in units of 256 ns, at most 2³²; 0: no limit.
    pub source_interval: u32,
    /// Number of SYNs of one source that may follow one another at once, at least 1.
    pub source_burst: u32,
    /// Most open connections of one source; 0: no limit.
    pub source_connections: u32,
    /// `GATE_*` bits.
    pub flags: u32,
    /// Bits of an IPv4 address that make a source, at most 32.
    pub v4_bits: u8,
    /// Bits of an IPv6 address that make a source, at most 128.
    pub v6_bits: u8,
    /// Zero.
    pub pad: [u8; 6],
}

/// Nothing is dropped; what would be is counted.
pub const GATE_OBSERVE: u32 = 1;
/// Fragments are dropped.
pub const GATE_NO_FRAGMENTS: u32 = 2;
/// Packets with IPv4 options or IPv6 extension headers are dropped.
pub const GATE_NO_OPTIONS: u32 = 4;

/// Words of a set of token buckets: one cache line.
pub const SET_WORDS: usize = 8;

/// A set of words: token buckets of sources ([`crate::gate::source_bucket`]), recent SYNs ([`crate::gate::recent`]), or numbers
/// of connections ([`crate::gate::source_count`]).
pub type GateSet = [u64; SET_WORDS];

/// A counted connection, at its client's [`FlowKey`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct GateConnection {
    /// What it lives in ([`crate::gate::connection`]).
    pub state: u64,
    /// When it was counted, monotonic nanoseconds.
    pub at_ns: u64,
    /// Where: the number of the set, times eight, and the index of the word.
    pub count: u32,
    /// Id of the policy.
    pub policy: u32,
}

/// What the program that releases a connection reads: the connection as the agent found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct GateRelease {
    /// Its key.
    pub key: FlowKey,
    /// Zero.
    pub pad: u32,
    /// See [`GateConnection`].
    pub state: u64,
    /// See [`GateConnection`].
    pub at_ns: u64,
}

/// Whether a listener is flooded with SYNs ([`crate::gate::pressure`]): an entry of `gate_pressure`, at [`pressure_id`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct GatePressure {
    /// SYNs a second above which they are answered with cookies; 0: they never are.
    pub above: u32,
    /// Zero.
    pub pad: u32,
    /// By the SYNs that XDP sees: those of the window, and when the pressure ends.
    pub early: [u64; 2],
    /// Likewise, by the SYNs that TC sees.
    pub late: [u64; 2],
    /// When a SYN was last answered with a cookie, in nanoseconds (`CLOCK_MONOTONIC`); 0: never. Exact to a quarter of a second.
    pub answered_ns: u64,
}

/// The id of a router's listeners of one protocol, as that of their policy.
#[inline(always)]
pub const fn pressure_id(router: u32, is_tls: bool) -> u32 {
    (router << 1 | is_tls as u32) + 1
}

/// XDP answers the interface's SYNs.
pub const GATE_ANSWERS: u32 = 1;
/// XDP answers the interface's SYNs that have a VLAN tag: of others, the driver may have taken out the tag.
pub const GATE_ANSWERS_TAGGED: u32 = 2;

/// Bits of [`GateSockets::fine`], which are 32 KiB; a power of two.
pub const GATE_SOCKET_BITS: usize = 1 << 18;
/// Bits of [`GateSockets::coarse`], which are 4 KiB; a power of two.
pub const GATE_SOCKET_COARSE_BITS: usize = GATE_SOCKET_BITS / 8;
/// Addresses and ports that may have a socket: an entry of `gate_sockets`, with a bit at each of their [`places`].
///
/// [`places`]: crate::gate::known_sockets::places
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct GateSockets {
    /// A bit for each eight of `fine`: set if one of them is.
    pub coarse: [u32; GATE_SOCKET_COARSE_BITS / u32::BITS as usize],
    /// A bit for several addresses and ports.
    pub fine: [u32; GATE_SOCKET_BITS / u32::BITS as usize],
}

/// Index in `gate_sockets` of what the agent has found.
pub const GATE_SOCKETS_FOUND: u32 = 0;
/// Indices in `gate_sockets` of what the TC programs have seen since the agent has emptied it.
pub const GATE_SOCKETS_SEEN: [u32; 2] = [1, 2];
/// Of `gate_sockets_use`: the TC programs record what they see, and XDP reads nothing. Other values than this and 0 are the index
/// of what it reads beside [`GATE_SOCKETS_FOUND`].
pub const GATE_SOCKETS_RECORDED: u32 = 3;

/// An interface that XDP forwards packets from, and out of: an entry of `gate_forwards`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct GateForward {
    /// Coarse monotonic nanoseconds until which this holds; the agent extends it while nothing on the interface has to see the
    /// packets.
    pub until_ns: u64,
    /// The interface's Ethernet address: frames to others are not forwarded.
    pub hardware: [u8; 6],
    /// Zero.
    pub pad: [u8; 2],
}

/// Bytes of a rejected packet that are recorded: Ethernet with two VLAN tags, IPv6, and TCP with 60 bytes fit.
pub const GATE_HEAD: usize = 128;

/// An entry of `gate_drops`, the record of packets that were rejected ([`crate::gate::sampler`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct GateDrop {
    /// Number of the window among those of its processor, from 1 on; 0 while the entry is written, and if it never was.
    pub window: u64,
    /// When the window began, in nanoseconds (`CLOCK_MONOTONIC`). Until its end the entry may change.
    pub begin_ns: u64,
    /// Packets that were rejected in the window. The other fields are those of one of them.
    pub packets: u64,
    /// Addresses and ports; both ports are 0 if they could not be read.
    pub flow: FlowKey,
    /// Code of the [`crate::verdict::Reason`].
    pub reason: u16,
    /// 1: the policy only observes, and the packet passed.
    pub is_observed: u8,
    /// Bytes in `head`.
    pub length: u8,
    /// The packet's first bytes.
    pub head: [u8; GATE_HEAD],
}

const _: () = {
    assert!(size_of::<GateDrop>() == 3 * 8 + size_of::<FlowKey>() + 2 + 1 + 1 + GATE_HEAD);
    assert!(size_of::<GatePolicy>() == 8 + 8 * 4 + 1 + 1 + 6);
    assert!(size_of::<GateConnection>() == 2 * 8 + 2 * 4);
    assert!(size_of::<GateRelease>() == size_of::<FlowKey>() + 4 + 2 * 8);
    assert!(size_of::<GateSet>() == 64);
    assert!(size_of::<GatePressure>() == 2 * 4 + 5 * 8);
    assert!(size_of::<GateForward>() == 8 + 6 + 2);
    assert!(size_of::<GateSockets>() == (GATE_SOCKET_COARSE_BITS + GATE_SOCKET_BITS) / 8);
};

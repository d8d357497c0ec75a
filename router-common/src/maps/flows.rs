//! Connections that the kernel carries.

use super::key::{FlowKey, FlowTranslation};
use crate::http::ContentTracker;

/// The SYN to the endpoint was sent.
pub const STATE_DIALING: u8 = 1;
/// The first payload was sent to the endpoint, and is not acknowledged yet.
pub const STATE_CONFIRMING: u8 = 2;
/// Packets are only translated.
pub const STATE_ESTABLISHED: u8 = 3;
/// The connection has ended. The entry remains for retransmitted packets, and may be reused at any time.
pub const STATE_CLOSING: u8 = 4;

/// The entry is for packets from the client.
pub const SIDE_CLIENT: u8 = 1;
/// The entry is for packets from the endpoint.
pub const SIDE_BACKEND: u8 = 2;

/// This side sent a FIN ([`Flow::fin_end`] holds).
pub const FLOW_FIN: u8 = 1;
/// This side has acknowledged the other's FIN.
pub const FLOW_FIN_ACKED: u8 = 2;
/// The end was reported in `flow_ends`.
pub const FLOW_REPORTED: u8 = 4;
/// The connection is clear text: later requests are checked.
pub const FLOW_CLEARTEXT: u8 = 8;
/// The two sides use different versions of IP.
pub const FLOW_ACROSS: u8 = 16;
/// A later request has begun and its head is incomplete: `later_heads` has the parser's state.
pub const FLOW_IN_HEAD: u8 = 32;
/// In an endpoint's entry: the client has requested another protocol, and the first response decides whether it is
/// used.
pub const FLOW_ASKED: u8 = 64;
/// In an endpoint's entry: the endpoint has switched protocols.
pub const FLOW_SWITCHED: u8 = 128;

/// In [`Flow::claims`] of a client's entry: a program has begun to end the connection.
pub const FLOW_END_CLAIMED: u8 = 1;
/// In [`Flow::claims`] of an endpoint's entry: a program has begun to reuse its port, or to delete the connection.
pub const FLOW_PORT_CLAIMED: u8 = 2;
/// In [`Flow::claims`] of a client's entry: `gate_conns` has the connection.
pub const FLOW_COUNTED: u8 = 4;
/// In [`Flow::claims`] of a client's entry: a program has handled the endpoint's answer to the SYN, or has begun to give
/// the dial up.
pub const FLOW_DIAL_CLAIMED: u8 = 8;

/// One direction of a connection that the kernel carries. The key of the other direction's entry is the reverse of
/// `rewrite.to`. Each field is written by the packets of this direction alone, except `peer`, `state`, `end` and
/// `ended_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Flow {
    /// Translation of its packets.
    pub rewrite: FlowTranslation,
    /// Index of the outgoing interface.
    pub interface: u32,
    /// Route id.
    pub route: u32,
    /// Payload bytes of this direction, retransmissions included.
    pub bytes: u64,
    /// Packets of this direction, before segmentation by offload.
    pub packets: u64,
    /// Time of the last packet, coarse monotonic nanoseconds.
    pub last_ns: u64,
    /// Time of the dial, monotonic nanoseconds.
    pub started_ns: u64,
    /// Time of the end, monotonic nanoseconds. In a client's entry, while the connection is open: time of the first SYN
    /// that its endpoint has not answered, if any.
    pub ended_ns: u64,
    /// Sequence number after this side's FIN, in this side's numbering.
    pub fin_end: u32,
    /// Sequence number after the last byte seen from this side.
    pub next_seq: u32,
    /// Acknowledgement number of this side's last packet, before translation.
    pub acked: u32,
    /// In a clear-text client's entry: sequence number up to which data is complete and inspected. In an endpoint's
    /// entry: that of its first byte.
    pub judged: u32,
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
    /// [`crate::verdict::FlowEndReason`]; 0 while the connection is open. In a client's entry, while the connection is
    /// established: the reason for which the agent is to end it.
    pub end: u8,
    /// Protocol of the listener.
    pub protocol: u8,
    /// Endpoints that failed before this one.
    pub retries: u8,
    /// [`FLOW_END_CLAIMED`], [`FLOW_PORT_CLAIMED`], [`FLOW_COUNTED`] and [`FLOW_DIAL_CLAIMED`]: what one of several CPUs
    /// does alone.
    pub claims: u8,
    /// In a clear-text client's entry: remaining content of the current request after `judged`.
    pub content: ContentTracker,
}

/// The end of a connection that the kernel carried, a record of the `flow_ends` ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct FlowEnd {
    /// Client → listener.
    pub client: FlowKey,
    /// Source address → endpoint.
    pub backend: FlowKey,
    /// Time of the dial, monotonic nanoseconds.
    pub started_ns: u64,
    /// Time of the end, monotonic nanoseconds.
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
    /// Endpoints that failed before this one.
    pub retries: u8,
    /// Zero.
    pub pad: u8,
}

/// A fragmented packet of a carried connection, as its sender identifies it. Aligned like [`FlowKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(4))]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct FragmentKey {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Identification (RFC 791 §3.1, RFC 8200 §4.5).
    pub id: u32,
}

/// Values from the first fragment, which the later fragments lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Fragmented {
    /// Its connection.
    pub flow: FlowKey,
    /// Source and destination of the translated packet.
    pub to: FlowKey,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// TCP flags.
    pub flags: u32,
    /// Bytes of the TCP header.
    pub header: u32,
    /// Identification of the translated packet.
    pub id: u32,
    /// Index of the outgoing interface.
    pub interface: u32,
    /// Coarse monotonic nanoseconds until which further fragments are expected.
    pub until_ns: u64,
}

/// A fragmented packet that its sender retransmits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Repeated {
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Number of transmissions.
    pub times: u32,
}

const _: () = {
    assert!(size_of::<FragmentKey>() == 16 + 16 + 4);
    assert!(size_of::<Fragmented>() == 2 * size_of::<FlowKey>() + 6 * 4 + 8);
    assert!(size_of::<Repeated>() == 2 * 4);
    assert!(
        size_of::<Flow>() == size_of::<FlowTranslation>() + 2 * 4 + 5 * 8 + 6 * 4 + 8 + size_of::<ContentTracker>()
    );
    assert!(size_of::<FlowEnd>() == 2 * size_of::<FlowKey>() + 6 * 8 + 3 * 4 + 4);
};

//! Connections that the kernel carries.

use super::key::{FlowKey, Translation};
use crate::http::Content;

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
/// A later request has begun, and its head is not complete: `later_heads` has what was read of it.
pub const FLOW_IN_HEAD: u8 = 32;
/// Of an endpoint's entry: its first answer tells whether it switches to the protocol that the client has asked for.
pub const FLOW_ASKED: u8 = 64;
/// Of an endpoint's entry: it has switched.
pub const FLOW_SWITCHED: u8 = 128;

/// One direction of a connection that the kernel carries. The entry of the other direction has the reverse of
/// `rewrite.to` as its key. Each field has one writer: the packets of this direction, but for `peer`, `state`, `end`
/// and `ended_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
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
    /// Monotonic nanoseconds of the end. In a client's entry, while the connection lives: of the first SYN that its endpoint
    /// has not answered, if there was one.
    pub ended_ns: u64,
    /// Sequence number after this side's FIN, as this side counts.
    pub fin_end: u32,
    /// Sequence number after the last byte that this side was seen to send.
    pub next_seq: u32,
    /// Acknowledgement number of this side's last packet, before its translation.
    pub acked: u32,
    /// Of a client of clear text: the sequence number up to which nothing is missing and everything was looked at. Of an
    /// endpoint: the one of its first byte.
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
    /// Why it ended: [`crate::verdict::FlowEndReason`]; 0 while it lives. In a client's entry, while the connection is
    /// established: why the agent is to end it.
    pub end: u8,
    /// Protocol of the listener.
    pub protocol: u8,
    /// Endpoints that were tried in vain before this one.
    pub retries: u8,
    /// 1 in the client's entry once a program has begun to end the connection, 2 in the endpoint's once one has begun to
    /// take its port over.
    pub claims: u8,
    /// Of a client of clear text: what is left, behind `judged`, of the content of its request.
    pub content: Content,
}

/// The end of a connection that the kernel carried, as the ring buffer carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
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
    /// Endpoints that were tried in vain before this one.
    pub retries: u8,
    /// Zero.
    pub pad: u8,
}

/// A packet in fragments of a connection that the kernel carries, as its sender names it. Aligned as [`FlowKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(4))]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct FragmentKey {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Identification.
    pub id: u32,
}

/// What its first fragment told, which the others do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Fragmented {
    /// Its connection.
    pub flow: FlowKey,
    /// Source and destination that it leaves with.
    pub to: FlowKey,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// TCP flags.
    pub flags: u32,
    /// Bytes of the TCP header.
    pub header: u32,
    /// Identification that it leaves with.
    pub id: u32,
    /// Interface that it leaves by.
    pub interface: u32,
    /// Coarse monotonic nanoseconds until which more of it is expected.
    pub until_ns: u64,
}

/// A packet in fragments that its sender sends again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Repeated {
    /// Sequence number of the first byte.
    pub seq: u32,
    /// How many times it was sent.
    pub times: u32,
}

const _: () = {
    assert!(size_of::<FragmentKey>() == 16 + 16 + 4);
    assert!(size_of::<Fragmented>() == 2 * size_of::<FlowKey>() + 6 * 4 + 8);
    assert!(size_of::<Repeated>() == 2 * 4);
    assert!(size_of::<Flow>() == size_of::<Translation>() + 2 * 4 + 5 * 8 + 6 * 4 + 8 + size_of::<Content>());
    assert!(size_of::<FlowEnd>() == 2 * size_of::<FlowKey>() + 6 * 8 + 3 * 4 + 4);
};

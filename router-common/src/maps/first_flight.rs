//! State of a connection before its endpoint has answered.

use core::mem::offset_of;

use crate::hostname::{HostBuilder, NAME_FIELD};
use crate::http::{ContentTracker, HeadParser};
use crate::tls::HelloParser;

/// The SYN-ACK was seen: all fields of the [`Handshake`] are valid.
pub const HANDSHAKE_COMPLETE: u8 = 1;
/// The first flight has its verdict: no further bytes are read.
pub const HANDSHAKE_DECIDED: u8 = 2;
/// `hellos` has segments of this connection's first flight. Without this bit, the entry belongs to an older connection.
pub const HANDSHAKE_GATHERING: u8 = 4;
/// `gate_conns` has the connection.
pub const HANDSHAKE_COUNTED: u8 = 8;
/// A segment was dropped because its source had too many connections: the client sends them one by one, ever later.
pub const HANDSHAKE_REFUSED: u8 = 16;

/// Both sides offered timestamps (RFC 7323 §3).
pub const OPTION_TIMESTAMPS: u8 = 1;
/// Both sides offered selective acknowledgement (RFC 2018).
pub const OPTION_SACK: u8 = 2;
/// Both sides offered window scaling (RFC 7323 §2).
pub const OPTION_SCALE: u8 = 4;
/// Both sides offered explicit congestion notification (RFC 3168 §6.1.1).
pub const OPTION_ECN: u8 = 8;

/// Values from the SYN and the SYN-ACK of a client's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Handshake {
    /// Time of the SYN-ACK, monotonic nanoseconds.
    pub answered_ns: u64,
    /// The client's initial sequence number.
    pub client_isn: u32,
    /// The listener's initial sequence number.
    pub listener_isn: u32,
    /// The timestamp value in the listener's SYN-ACK.
    pub listener_tsval: u32,
    /// The client's MSS; 0 if it announced none.
    pub client_mss: u16,
    /// The client's window shift.
    pub client_shift: u8,
    /// The listener's window shift.
    pub listener_shift: u8,
    /// `OPTION_*` bits: offered by the client; after the SYN-ACK, agreed on.
    pub options: u8,
    /// `HANDSHAKE_*` bits.
    pub state: u8,
    /// Zero.
    pub pad: [u8; 6],
}

/// Most bytes of a first flight that the kernel reads; a longer one is passed to the agent.
pub const MAX_FLIGHT: u32 = 4096;
/// Most bytes of a first flight in `short_hellos`.
pub const SHORT_FLIGHT: u32 = 832;
/// Room before the bytes of a first flight, for the longest PROXY v2 header (16 + 36 bytes for TCP over IPv6).
pub const FLIGHT_HEADROOM: u32 = 64;

/// State of the dial to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Dial {
    /// The client's handshake.
    pub handshake: Handshake,
    /// Initial sequence number of the SYN to the endpoint.
    pub isn: u32,
    /// Timestamp value of that SYN.
    pub tsval: u32,
    /// Timestamp value of the client's segment that was rewritten into the SYN.
    pub client_tsval: u32,
    /// The endpoint's initial sequence number, once it has answered.
    pub backend_isn: u32,
    /// The endpoint's timestamp value in its SYN-ACK.
    pub backend_tsval: u32,
    /// Id of the endpoint pool.
    pub pool: u32,
    /// Number of slots of the pool.
    pub slots: u32,
    /// Slot that was tried first.
    pub slot: u32,
    /// Id of the endpoint that is being dialed.
    pub endpoint: u32,
    /// Length of the PROXY header before the client's bytes.
    pub prefix: u32,
    /// Most payload bytes of a segment to the endpoint.
    pub max_segment: u16,
    /// The client's window, unscaled, from its segment.
    pub window: u16,
    /// Number of endpoints tried.
    pub attempts: u8,
    /// 1: the dial is reported ([`super::POOL_TOLD`]).
    pub told: u8,
    /// Number of source ports given up because the endpoint's answer belonged to another connection.
    pub moves: u8,
    /// 1: the request asks to switch protocols (RFC 9110 §7.8).
    pub asks: u8,
    /// Index of the interface on which the endpoint's SYN-ACK arrived.
    pub via: u32,
    /// Its Ethernet addresses, swapped: those of packets to the neighbour that sent it.
    pub macs: [u8; 12],
    /// Clear text only: the content that the request announces.
    pub content: ContentTracker,
}

/// A first flight: gathered until its route is known, then kept until the endpoint has acknowledged all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct FirstFlight {
    /// Nanoseconds since boot of the first segment; the agent deletes old entries that belong to no flow.
    pub started_ns: u64,
    /// Bytes received.
    pub received: u32,
    /// Segments received.
    pub segments: u32,
    /// Bytes passed to the stack; 0 as long as all are held.
    pub went_up: u32,
    /// Zero.
    pub pad: u32,
    /// The dial, once there is one.
    pub dial: Dial,
    /// The received bytes, after [`FLIGHT_HEADROOM`].
    pub bytes: [u8; (FLIGHT_HEADROOM + MAX_FLIGHT) as usize],
    /// The TLS parser, if the listener's protocol is TLS.
    pub hello: HelloParser,
    /// The HTTP parser, if the listener's protocol is HTTP.
    pub head: HeadParser,
    /// The SNI or Host.
    pub host: HostBuilder,
}

/// Parser state of a later request's head on a clear-text connection, up to [`super::Flow::judged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct LaterHead {
    /// Nanoseconds since boot of its last segment; the agent deletes old entries that belong to no flow.
    pub read_ns: u64,
    /// The HTTP parser.
    pub head: HeadParser,
    /// The Host.
    pub host: HostBuilder,
}

/// The first fields of a [`FirstFlight`]: all that a complete, short one needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
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

const _: () = {
    assert!(size_of::<Handshake>() == 8 + 3 * 4 + 2 + 4 + 6);
    assert!(size_of::<HelloParser>() == 8 + 8 * 4 + 2 + 6);
    assert!(size_of::<HeadParser>() == 8 + (2 * 8 + 3 + 5) + 3 * 4 + 3 * 2 + 3 + 3);
    assert!(size_of::<ContentTracker>() == 8 + 4 + 1 + 3);
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
    assert!(size_of::<LaterHead>() == 8 + size_of::<HeadParser>() + size_of::<HostBuilder>());
    assert!(size_of::<ShortFlight>() == 8 + 4 * 4 + size_of::<Dial>() + (FLIGHT_HEADROOM + SHORT_FLIGHT) as usize);
    assert!(offset_of!(ShortFlight, received) == offset_of!(FirstFlight, received));
    assert!(offset_of!(ShortFlight, segments) == offset_of!(FirstFlight, segments));
    assert!(offset_of!(ShortFlight, went_up) == offset_of!(FirstFlight, went_up));
    assert!(offset_of!(ShortFlight, dial) == offset_of!(FirstFlight, dial));
    assert!(offset_of!(ShortFlight, bytes) == offset_of!(FirstFlight, bytes));
    assert!(size_of::<Dial>() == size_of::<Handshake>() + 10 * 4 + 2 * 2 + 4 + 16 + size_of::<ContentTracker>());
};

//! A connection before its endpoint has answered.

use core::mem::offset_of;

use crate::hostname::{HostBuilder, NAME_FIELD};
use crate::http::{Content, HeadParser};
use crate::tls::HelloParser;

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
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
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

/// Most bytes of a first flight that the kernel reads; a longer one is passed up.
pub const MAX_FLIGHT: u32 = 4096;
/// Most bytes of one in `short_hellos`.
pub const SHORT_FLIGHT: u32 = 832;
/// Room before the bytes of a first flight: for the longest PROXY v2 header (16 + 36 bytes for TCP over IPv6).
pub const FLIGHT_HEADROOM: u32 = 64;

/// How a first flight's connection to an endpoint is being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
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
    /// Ports that were given up because the endpoint answered for another connection.
    pub moves: u8,
    /// 1: the request asks for another protocol.
    pub asks: u8,
    /// Interface that the endpoint's SYN-ACK came in on.
    pub via: u32,
    /// Its Ethernet addresses, exchanged: the way back to the neighbour that sent it.
    pub macs: [u8; 12],
    /// Of clear text: the content that the request announces.
    pub content: Content,
}

/// A first flight: gathered until its route is known, then kept until the endpoint has acknowledged all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct FirstFlight {
    /// Boot-time nanoseconds of the first segment; the agent sweeps old ones that belong to no flow.
    pub started_ns: u64,
    /// Bytes taken.
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

/// The head of a later request on clear text, as far as it was read: up to [`super::Flow::judged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct LaterHead {
    /// Boot-time nanoseconds of its last segment; the agent sweeps old ones that belong to no flow.
    pub read_ns: u64,
    /// The HTTP parser.
    pub head: HeadParser,
    /// The name.
    pub host: HostBuilder,
}

/// The begin of a [`FirstFlight`]: all that is needed of a short one once it is complete.
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
    assert!(size_of::<Content>() == 8 + 4 + 1 + 3);
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
    assert!(size_of::<Dial>() == size_of::<Handshake>() + 10 * 4 + 2 * 2 + 4 + 16 + size_of::<Content>());
};

//! Reports of decisions.

use super::key::FlowKey;
use crate::hostname::NAME_FIELD;

/// The decision about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct ConnVerdict {
    /// Time of the decision, nanoseconds since boot (`CLOCK_BOOTTIME`).
    pub at_ns: u64,
    /// Router id.
    pub router: u32,
    /// Route id, 0 for none.
    pub route: u32,
    /// Bytes read of the first flight.
    pub bytes: u32,
    /// Code of the [`crate::verdict::Reason`].
    pub reason: u16,
    /// Code of the [`crate::verdict::Verdict`].
    pub verdict: u8,
    /// Protocol of the listener, `PROTOCOL_*`.
    pub protocol: u8,
}

/// An entry of `verdicts`, the record of the newest decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Decided {
    /// The connection.
    pub flow: FlowKey,
    /// Segments of the first flight.
    pub segments: u32,
    /// The decision; `at_ns` is 0 in an entry that was never written.
    pub verdict: ConnVerdict,
}

/// One decision, a record of the `events` ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct DecisionEvent {
    /// The connection.
    pub flow: FlowKey,
    /// Segments of the first flight.
    pub segments: u32,
    /// The decision.
    pub verdict: ConnVerdict,
    /// The SNI or Host that was read, zero-filled; empty if there was none.
    pub host: [u8; NAME_FIELD],
}

const _: () = {
    assert!(size_of::<ConnVerdict>() == 8 + 4 + 4 + 4 + 2 + 1 + 1);
    assert!(size_of::<Decided>() == size_of::<FlowKey>() + 4 + size_of::<ConnVerdict>());
    assert!(size_of::<DecisionEvent>() == size_of::<FlowKey>() + 4 + size_of::<ConnVerdict>() + NAME_FIELD);
};

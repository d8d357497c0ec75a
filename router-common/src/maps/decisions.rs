//! What is told of decisions.

use super::key::FlowKey;
use crate::hostname::NAME_FIELD;

/// What was decided about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
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
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Decided {
    /// The connection.
    pub flow: FlowKey,
    /// Segments of the first flight.
    pub segments: u32,
    /// What was decided; `at_ns` is 0 in a place that was never written.
    pub verdict: ConnVerdict,
}

/// One decision, as the ring buffer carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
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

const _: () = {
    assert!(size_of::<ConnVerdict>() == 8 + 4 + 4 + 4 + 2 + 1 + 1);
    assert!(size_of::<Decided>() == size_of::<FlowKey>() + 4 + size_of::<ConnVerdict>());
    assert!(size_of::<Event>() == size_of::<FlowKey>() + 4 + size_of::<ConnVerdict>() + NAME_FIELD);
};

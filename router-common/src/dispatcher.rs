//! The configuration of libxdp's dispatcher, protocol version 2: an XDP program that calls others, which replace its slots
//! (<https://github.com/xdp-project/xdp-tools/blob/main/lib/libxdp/protocol.org>).

/// Number of slots.
pub const SLOTS: usize = 10;

/// `struct xdp_dispatcher_config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct DispatcherConfig {
    /// `XDP_DISPATCHER_MAGIC`.
    pub magic: u8,
    /// Version of the protocol.
    pub version: u8,
    /// Number of slots that are used.
    pub programs: u8,
    /// 1 if all programs handle packets in several parts.
    pub is_frags: u8,
    /// Bit set of actions after which the next program is called, for each slot.
    pub continued: [u32; SLOTS],
    /// The order of the programs, the lowest first.
    pub priorities: [u32; SLOTS],
    /// `BPF_F_XDP_HAS_FRAGS` or 0, for each slot.
    pub flags: [u32; SLOTS],
}

impl DispatcherConfig {
    /// That of a dispatcher which calls nothing.
    pub const EMPTY: DispatcherConfig = DispatcherConfig {
        magic: 0,
        version: 0,
        programs: 0,
        is_frags: 0,
        continued: [0; SLOTS],
        priorities: [0; SLOTS],
        flags: [0; SLOTS],
    };
}

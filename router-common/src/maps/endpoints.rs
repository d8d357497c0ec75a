//! The endpoints of routes.

/// A PROXY v2 header precedes the client's first bytes.
pub const POOL_PROXY_V2: u32 = 1;
/// Each dial is reported as a [`DecisionEvent`](super::DecisionEvent), like every other decision: the agent needs the
/// name.
pub const POOL_TOLD: u32 = 2;

/// The endpoints of a route: slots 0 .. `slots` of pool `id`. Ids are never reused: a new set of slots is written under
/// a new id, then this value is replaced, then the old slots are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct KernelPool {
    /// Pool id.
    pub id: u32,
    /// Number of slots; 0 if the route has no endpoint that the kernel can dial.
    pub slots: u32,
    /// `POOL_*` bits.
    pub flags: u32,
}

/// A slot of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct SlotKey {
    /// Pool id.
    pub pool: u32,
    /// Index.
    pub index: u32,
}

/// A column of Walker's alias table (Vose 1991). A slot is drawn uniformly; a random number of 32 bits then selects its
/// own endpoint (below `threshold`) or that of slot `alias`. Each endpoint of the pool has one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct AliasSlot {
    /// Endpoint id.
    pub endpoint: u32,
    /// This endpoint's share of the column, of 2³²; `u32::MAX` means all of it.
    pub threshold: u32,
    /// Slot whose endpoint has the rest.
    pub alias: u32,
}

/// An endpoint that the kernel can dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct KernelEndpoint {
    /// Address.
    pub address: [u8; 16],
    /// Source address of connections to it.
    pub source: [u8; 16],
    /// Index of the outgoing interface.
    pub interface: u32,
    /// Port.
    pub port: u16,
    /// Most payload bytes of a segment on the path (MTU minus IP and TCP headers).
    pub max_segment: u16,
}

/// Kernel-side state of an endpoint. The agent creates and deletes the entry together with that of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct EndpointState {
    /// Dials.
    pub dials: u64,
    /// Dials that the endpoint answered with a reset.
    pub refused: u64,
    /// Incremented by each dial; determines the next source port.
    pub cursor: u32,
    /// The smallest MSS that the endpoint has announced; 0 if none yet.
    pub max_segment: u32,
}

const _: () = {
    assert!(size_of::<KernelPool>() == 3 * 4);
    assert!(size_of::<SlotKey>() == 2 * 4);
    assert!(size_of::<AliasSlot>() == 3 * 4);
    assert!(size_of::<KernelEndpoint>() == 16 + 16 + 4 + 2 + 2);
    assert!(size_of::<EndpointState>() == 2 * 8 + 2 * 4);
};

//! The endpoints of routes.

/// The route wants a PROXY v2 header before the client's first bytes.
pub const POOL_PROXY_V2: u32 = 1;
/// The agent wants an [`Event`](super::Event) of each dial, as of everything else that is decided: it needs the name.
pub const POOL_TOLD: u32 = 2;

/// The endpoints of a route: slots 0 .. `slots` of pool `id`. Ids are never given twice: a new set of slots is written
/// under a new id, then this value is replaced, then the old slots are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Pool {
    /// Pool id.
    pub id: u32,
    /// Number of slots; 0 when there is no endpoint that the kernel can dial.
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

/// A column of Walker's alias table (Vose 1991): a slot is drawn evenly, then a number of 32 bits decides between its
/// endpoint (below `threshold`) and that of slot `alias`. Each endpoint of the pool has one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Slot {
    /// Endpoint id.
    pub endpoint: u32,
    /// Share of the column that is this endpoint's, of 2³²; `u32::MAX` is all of it.
    pub threshold: u32,
    /// Slot that has the rest.
    pub alias: u32,
}

/// An endpoint that the kernel can dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Endpoint {
    /// Address.
    pub address: [u8; 16],
    /// Our address towards it.
    pub source: [u8; 16],
    /// Interface that leads there.
    pub interface: u32,
    /// Port.
    pub port: u16,
    /// Most payload bytes of a segment on the path (MTU less IP and TCP headers).
    pub max_segment: u16,
}

/// What the kernel keeps of an endpoint; the agent makes and deletes the entry with that of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct EndpointState {
    /// Dials.
    pub dials: u64,
    /// Dials that it answered with a reset.
    pub refused: u64,
    /// Counts up by one a dial: the next source port.
    pub cursor: u32,
    /// The smallest maximum segment size that it has told; 0 for none yet.
    pub max_segment: u32,
}

const _: () = {
    assert!(size_of::<Pool>() == 3 * 4);
    assert!(size_of::<SlotKey>() == 2 * 4);
    assert!(size_of::<Slot>() == 3 * 4);
    assert!(size_of::<Endpoint>() == 16 + 16 + 4 + 2 + 2);
    assert!(size_of::<EndpointState>() == 2 * 8 + 2 * 4);
};

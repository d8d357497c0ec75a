//! What listens, which hosts lead where, and who may come.

use crate::hostname::NAME_FIELD;

/// A listening address. A listener on every address has an entry for each address of the host, so that packets which
/// the host merely forwards never match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct ListenerKey {
    /// Address.
    pub address: [u8; 16],
    /// Port.
    pub port: u16,
    /// Zero.
    pub pad: u16,
}

/// What first bytes a listener expects.
pub const PROTOCOL_HTTP: u8 = 1;
/// See [`PROTOCOL_HTTP`].
pub const PROTOCOL_TLS: u8 = 2;

/// Whose a listening address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Listener {
    /// Router id: scope of host keys.
    pub router: u32,
    /// [`PROTOCOL_HTTP`] or [`PROTOCOL_TLS`].
    pub protocol: u8,
    /// Zero.
    pub pad: u8,
    /// Most payload bytes of a segment that clients may be told (TCP's MSS option): what fits the path to every
    /// endpoint. 0: as the stack says.
    pub max_segment: u16,
}

/// A host of a router: a normal name, or `*.` and a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct HostKey {
    /// Router id.
    pub router: u32,
    /// Zero.
    pub pad: u32,
    /// Name, zero-filled.
    pub host: [u8; NAME_FIELD],
}

/// The route's allow-list applies: look the client up in `allowlists`.
pub const ROUTE_ALLOW_LIST: u16 = 1;

/// Bytes of the backend name in [`HostRoute`].
pub const BACKEND_FIELD: usize = 112;

/// What a host leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct HostRoute {
    /// Route id: scope of counters and allow-lists. For a host with several routes, that of the first.
    pub route: u32,
    /// Code of the [`crate::verdict::Reason`] that a match gives.
    pub reason: u16,
    /// `ROUTE_*` bits.
    pub flags: u16,
    /// Backend name as OpenShift spells it, zero-filled, cut at the field's size.
    pub backend: [u8; BACKEND_FIELD],
}

/// Data of an LPM key: a network that a route admits. The prefix length before it counts 32 bits for the route and up
/// to 128 of the address (IPv4 `/n` is `96 + n`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct AllowNet {
    /// Route id, big-endian, because tries compare from the first byte on.
    pub route: [u8; 4],
    /// Network address.
    pub address: [u8; 16],
}

/// Bits of an [`AllowNet`] that belong to the route.
pub const ALLOW_ROUTE_BITS: u32 = 32;

/// Bytes of the name in [`RouteName`]: namespace, `/`, name.
pub const ROUTE_NAME_FIELD: usize = 320;

/// Which route an id stands for: for people, and for the next agent, which goes on with the same ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct RouteName {
    /// Router id.
    pub router: u32,
    /// Zero.
    pub pad: u32,
    /// Namespace, `/`, name; zero-filled.
    pub name: [u8; ROUTE_NAME_FIELD],
}

/// Counters of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct RouteStats {
    /// Connections that the kernel carries.
    pub steer: u64,
    /// Connections that the agent must take.
    pub pass: u64,
    /// Connections refused.
    pub drop: u64,
    /// Connections among `steer` that have ended.
    pub ended: u64,
    /// Payload bytes of those, from clients.
    pub bytes_in: u64,
    /// Payload bytes of those, to clients.
    pub bytes_out: u64,
}

/// Fills a fixed field with text, cut at its size.
pub fn field<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    field
}

impl HostKey {
    /// The key of `host` (a normal name, or `*.` and a domain) on a router.
    pub fn new(router: u32, host: &str) -> Self {
        HostKey { router, pad: 0, host: field(host) }
    }
}

const _: () = {
    assert!(size_of::<ListenerKey>() == 16 + 2 + 2);
    assert!(size_of::<Listener>() == 4 + 1 + 1 + 2);
    assert!(size_of::<HostKey>() == 4 + 4 + NAME_FIELD);
    assert!(size_of::<HostRoute>() == 4 + 2 + 2 + BACKEND_FIELD);
    assert!(size_of::<AllowNet>() == 4 + 16);
    assert!(size_of::<RouteName>() == 4 + 4 + ROUTE_NAME_FIELD);
    assert!(size_of::<RouteStats>() == 6 * 8);
};

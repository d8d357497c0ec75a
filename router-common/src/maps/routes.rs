//! Listeners, hosts with their routes, and allow-lists.

use crate::hostname::NAME_FIELD;

/// A listening address. A listener on the unspecified address has an entry for each address of the host, so that
/// packets which the host only forwards never match.
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

/// Protocol of a listener: clear-text HTTP/1.
pub const PROTOCOL_HTTP: u8 = 1;
/// Protocol of a listener: TLS.
pub const PROTOCOL_TLS: u8 = 2;

/// The router and the protocol of a listening address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct ListenerOwner {
    /// Router id, the scope of host keys.
    pub router: u32,
    /// [`PROTOCOL_HTTP`] or [`PROTOCOL_TLS`].
    pub protocol: u8,
    /// 1: open connections of a source are limited ([`super::GatePolicy::source_connections`]).
    pub is_limited: u8,
    /// Upper limit of the MSS announced to clients, in bytes: what fits the path to every endpoint. 0: as the stack
    /// announces.
    pub max_segment: u16,
}

/// A host of a router: a normalised name, or `*.` and a domain.
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

/// The route has an allow-list: the client must be in `allowlists`.
pub const ROUTE_ALLOW_LIST: u16 = 1;

/// Bytes of the backend name in [`HostRoute`].
pub const BACKEND_FIELD: usize = 112;

/// The route of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct HostRoute {
    /// Route id, the scope of counters and allow-lists. For a host with several routes, that of the first.
    pub route: u32,
    /// Code of the [`crate::verdict::Reason`] of a match.
    pub reason: u16,
    /// `ROUTE_*` bits.
    pub flags: u16,
    /// Backend name as OpenShift spells it, zero-filled, cut at the field's size.
    pub backend: [u8; BACKEND_FIELD],
}

/// Bytes of the name in [`RouteName`]: namespace, `/`, name.
pub const ROUTE_NAME_FIELD: usize = 320;

/// The route of an id, for dumps, and for the next agent, which keeps the ids.
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
    /// Connections passed to the agent.
    pub pass: u64,
    /// Connections rejected.
    pub drop: u64,
    /// Connections of `steer` that have ended.
    pub ended: u64,
    /// Payload bytes of ended connections, from clients.
    pub bytes_in: u64,
    /// Payload bytes of ended connections, to clients.
    pub bytes_out: u64,
}

/// A zero-filled field with the text, truncated to its size.
pub fn field<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    field
}

impl HostKey {
    /// The key of `host` (a normalised name, or `*.` and a domain) on a router.
    pub fn new(router: u32, host: &str) -> Self {
        HostKey { router, pad: 0, host: field(host) }
    }
}

const _: () = {
    assert!(size_of::<ListenerKey>() == 16 + 2 + 2);
    assert!(size_of::<ListenerOwner>() == 4 + 1 + 1 + 2);
    assert!(size_of::<HostKey>() == 4 + 4 + NAME_FIELD);
    assert!(size_of::<HostRoute>() == 4 + 2 + 2 + BACKEND_FIELD);
    assert!(size_of::<RouteName>() == 4 + 4 + ROUTE_NAME_FIELD);
    assert!(size_of::<RouteStats>() == 6 * 8);
};

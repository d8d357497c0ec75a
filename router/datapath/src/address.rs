//! Addresses in the maps: 16 bytes, IPv4 as `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2).

use std::net::{IpAddr, Ipv6Addr};

use router_common::maps::mapped;

/// An address in its 16-byte form.
pub fn sixteen(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => mapped(v4.octets()),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// An address from its 16-byte form.
pub fn address(bytes: &[u8; 16]) -> IpAddr {
    Ipv6Addr::from(*bytes).to_canonical()
}

/// A network from its address in 16-byte form and the bits of that form.
pub fn network(bytes: &[u8; 16], bits: u32) -> String {
    match address(bytes) {
        IpAddr::V4(v4) => format!("{v4}/{}", bits.saturating_sub(96)),
        IpAddr::V6(v6) => format!("{v6}/{bits}"),
    }
}

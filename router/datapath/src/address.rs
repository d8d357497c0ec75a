//! Addresses in the maps: 16 bytes, IPv4 as `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2).

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use router_common::maps::mapped;

/// An address in its 16-byte form.
pub fn sixteen(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => mapped(v4.octets()),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// The address of a network, truncated, in its 16-byte form, and the bits of that form.
pub fn sixteen_net(net: &IpNet) -> ([u8; 16], u8) {
    let before = if net.addr().is_ipv4() { 96 } else { 0 };
    (sixteen(net.trunc().addr()), before + net.prefix_len())
}

/// An address from its 16-byte form.
pub fn address(bytes: &[u8; 16]) -> IpAddr {
    Ipv6Addr::from(*bytes).to_canonical()
}

/// A network from its address in 16-byte form and the bits of that form.
pub fn network(bytes: &[u8; 16], bits: u8) -> String {
    match address(bytes) {
        IpAddr::V4(v4) => format!("{v4}/{}", bits.saturating_sub(96)),
        IpAddr::V6(v6) => format!("{v6}/{bits}"),
    }
}

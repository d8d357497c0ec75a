//! Canonical client addresses.

use std::net::SocketAddr;

/// Converts an IPv4-mapped address (`::ffff:…`), which a dual-stack socket reports, to IPv4.
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

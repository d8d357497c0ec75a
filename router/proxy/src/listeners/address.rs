//! Client addresses in one form for both families.

use std::net::SocketAddr;

/// An IPv4 client of a socket of both families comes from `::ffff:…`; everything here compares IPv4 addresses.
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

//! Addresses of the listeners, for `status.addresses` of Gateways.

use std::collections::BTreeSet;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;

/// Maximum length of `status.addresses` (Gateway API, GatewayStatus.addresses).
const MAX_ADDRESSES: usize = 16;

/// The configured addresses. A wildcard address is replaced by the addresses of this host's interfaces at start;
/// without loopback and link-local ones, unless there are no others.
pub fn reached_at(listen: &[IpAddr]) -> Vec<IpAddr> {
    let every: Vec<IpAddr> = match listen.iter().any(IpAddr::is_unspecified) {
        true => local(),
        false => Vec::new(),
    };
    let mut reached = BTreeSet::new();
    for address in listen {
        if address.is_unspecified() {
            let of_family: Vec<IpAddr> = every.iter().copied().filter(|it| it.is_ipv4() == address.is_ipv4()).collect();
            let wide: Vec<IpAddr> = of_family.iter().copied().filter(|it| !is_narrow(*it)).collect();
            reached.extend(if wide.is_empty() { of_family } else { wide });
        } else {
            reached.insert(*address);
        }
    }
    let has_wide = reached.iter().any(|address| !is_narrow(*address));
    reached.into_iter().filter(|address| !has_wide || !is_narrow(*address)).take(MAX_ADDRESSES).collect()
}

/// Addresses of this host's interfaces; empty if the system reports an error.
fn local() -> Vec<IpAddr> {
    let interfaces = getifaddrs().inspect_err(|error| tracing::warn!(%error, "addresses of interfaces are not known"));
    let ip = |address: nix::sys::socket::SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    };
    interfaces.into_iter().flatten().filter_map(|interface| ip(interface.address?)).collect()
}

/// True for loopback and link-local addresses.
fn is_narrow(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn configured_addresses_are_reported_unchanged() {
        assert_eq!(reached_at(&[ip("127.0.0.1")]), [ip("127.0.0.1")]);
        assert_eq!(
            reached_at(&[ip("192.0.2.7"), ip("127.0.0.1"), ip("2001:db8::1")]),
            [ip("192.0.2.7"), ip("2001:db8::1")]
        );
        assert_eq!(reached_at(&[]), Vec::<IpAddr>::new());
    }

    #[test]
    fn every_address_stands_for_those_of_the_interfaces() {
        let reached = reached_at(&[ip("0.0.0.0")]);
        assert!(!reached.is_empty() && reached.iter().all(|it| it.is_ipv4() && !it.is_unspecified()), "{reached:?}");
    }
}

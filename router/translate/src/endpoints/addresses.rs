//! Filter for endpoint addresses (docs/openshift.md#endpoint-addresses): a user who may write EndpointSlices must not
//! reach the node itself or a cloud's metadata service through the router.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Allowed endpoint addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndpointAddresses {
    /// Neither loopback, link-local nor metadata addresses: for objects of a cluster.
    #[default]
    Filtered,
    /// Every unicast address, loopback included: for an operator's own folder of manifests.
    Any,
}

/// Metadata service of Azure.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
/// Metadata service of AWS over IPv6.
const AWS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// True if the router may connect to this address.
pub fn is_usable(address: IpAddr, policy: EndpointAddresses) -> bool {
    let embedded = match address {
        IpAddr::V4(v4) => Some(v4),
        // IPv4-mapped (`::ffff:a.b.c.d`) and IPv4-compatible (`::a.b.c.d`) addresses stand for the IPv4 address.
        IpAddr::V6(v6) => v6.to_ipv4(),
    };
    let unconnectable = |v4: Ipv4Addr| v4.is_unspecified() || v4.is_multicast();
    if address.is_unspecified() || address.is_multicast() || embedded.is_some_and(unconnectable) {
        return false;
    }
    if policy == EndpointAddresses::Any {
        return true;
    }
    let restricted_v4 = |v4: Ipv4Addr| v4.is_loopback() || v4.is_link_local() || v4 == AZURE;
    let restricted_v6 = match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local() || v6 == AWS,
    };
    !(restricted_v6 || embedded.is_some_and(restricted_v4))
}

//! This host's interfaces and addresses, as far as the kernel path needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};

/// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK` (linux/if_arp.h): interfaces whose packets begin with an Ethernet header.
const WITH_ETHERNET_HEADER: [&str; 2] = ["1", "772"];

/// What is there at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Interfaces that are up and have Ethernet headers: name and index.
    pub attachable: BTreeMap<String, u32>,
    /// Addresses of all interfaces.
    pub addresses: BTreeSet<IpAddr>,
}

impl Interfaces {
    /// Asks the kernel.
    ///
    /// # Errors
    /// The system call's.
    pub fn read() -> std::io::Result<Self> {
        let mut found = Interfaces::default();
        for entry in getifaddrs()? {
            if let Some(address) = entry.address.as_ref().and_then(ip_address) {
                found.addresses.insert(address);
            }
            let up = entry.flags.contains(InterfaceFlags::IFF_UP);
            if up && !found.attachable.contains_key(&entry.interface_name) && has_ethernet_header(&entry.interface_name)
            {
                // Gone between the two calls: the next look will tell.
                let Ok(index) = if_nametoindex(entry.interface_name.as_str()) else { continue };
                found.attachable.insert(entry.interface_name, index);
            }
        }
        Ok(found)
    }
}

fn ip_address(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
}

fn has_ethernet_header(interface: &str) -> bool {
    let kind = fs::read_to_string(format!("/sys/class/net/{interface}/type")).unwrap_or_default();
    // In a network namespace that was entered without its own /sys, the folder shows the interfaces of another one.
    // Then the loopback is told by its name, and any other interface is taken for Ethernet, as nearly all are.
    WITH_ETHERNET_HEADER.contains(&kind.trim()) || kind.is_empty()
}

//! This host's interfaces and addresses, as far as the kernel path needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Interfaces and addresses at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Interfaces that have Ethernet headers, no master (`IFLA_MASTER`) and a link of their own, up or down: name and
    /// index. Programs stay attached while the interface exists, so that connections survive a link that is down for a
    /// while.
    pub attachable: BTreeMap<String, u32>,
    /// All others, by name.
    pub left_alone: BTreeMap<String, LeftAlone>,
    /// Interfaces whose packets arrive on another interface of this host first (VLAN, macvlan), by index; the other one's
    /// index.
    pub above: BTreeMap<u32, u32>,
    /// Addresses of all interfaces.
    pub addresses: BTreeSet<IpAddr>,
    /// MTU of each interface in bytes, by index.
    pub mtu: BTreeMap<u32, u32>,
    /// Ethernet address of each interface that has one, by index.
    pub hardware: BTreeMap<u32, [u8; 6]>,
    /// Bonds, by index.
    pub bonds: BTreeSet<u32>,
    /// Interfaces that are one end of a veth pair (veth(4)), by index.
    pub veths: BTreeSet<u32>,
    /// Those of them whose other end is in another network namespace.
    pub pairs: BTreeMap<u32, Pair>,
}

/// Why no program is attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftAlone {
    /// It has a master, or is the lower link of a macvlan in passthru mode.
    Master,
    /// Its packets have no Ethernet header.
    NoEthernet,
    /// It has the link and the hardware address of another interface of this host (ipvlan): its frames arrive on that
    /// one first.
    SharesALink,
}

impl LeftAlone {
    /// The reason as `sluice` prints it.
    pub const fn text(self) -> &'static str {
        match self {
            LeftAlone::Master => {
                "it has a master (a bridge, a bond, a VRF, a macvlan in passthru mode, …), on which its packets arrive again"
            }
            LeftAlone::NoEthernet => "its packets have no Ethernet headers: the agent relays its connections",
            LeftAlone::SharesALink => {
                "it shares the link of another interface (ipvlan, macvtap): the agent relays its connections"
            }
        }
    }
}

/// The other end of a veth pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its index, in its own namespace.
    pub index: u32,
    /// Id of the other end's namespace in this one (ip-netns(8), `list-id`).
    pub namespace: i32,
}

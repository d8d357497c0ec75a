//! This host's interfaces and addresses, as far as the kernel path needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What is there at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Interfaces that are up and have Ethernet headers: name and index.
    pub attachable: BTreeMap<String, u32>,
    /// Addresses of all interfaces.
    pub addresses: BTreeSet<IpAddr>,
    /// MTU of each interface in bytes, by index.
    pub mtu: BTreeMap<u32, u32>,
}

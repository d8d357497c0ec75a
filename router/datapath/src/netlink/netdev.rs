//! What a driver can do for XDP, through the generic netlink family `netdev` (Documentation/netlink/specs/netdev.yaml).

use std::io;

use super::generic::{Family, attribute, find};

// linux/netdev.h
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_XDP_ACT_REDIRECT: u64 = 2;
const NETDEV_XDP_ACT_NDO_XMIT: u64 = 4;

/// The family's socket.
#[derive(Debug)]
pub struct Netdev(Family);

/// What XDP can do with an interface's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpFeatures {
    /// Frames that arrive can be redirected.
    pub redirects: bool,
    /// Frames that were redirected can leave by it, as it is set up now. Of a veth pair: because its other end has an XDP
    /// program or GRO.
    pub sends: bool,
}

impl Netdev {
    /// Opens a socket in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's, or that the kernel lacks the family (before Linux 6.3).
    pub fn open() -> io::Result<Self> {
        Family::open("netdev").map(Netdev)
    }

    /// What an interface can do.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn xdp_features(&mut self, interface: u32) -> io::Result<XdpFeatures> {
        let mut bits = 0;
        self.0.ask(NETDEV_CMD_DEV_GET, &attribute(NETDEV_A_DEV_IFINDEX, &interface.to_ne_bytes()), |answer| {
            let found = find(answer, NETDEV_A_DEV_XDP_FEATURES).and_then(|bits| bits.first_chunk());
            bits = found.map_or(0, |bits| u64::from_ne_bytes(*bits));
        })?;
        Ok(XdpFeatures { redirects: bits & NETDEV_XDP_ACT_REDIRECT != 0, sends: bits & NETDEV_XDP_ACT_NDO_XMIT != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_no_native_xdp() {
        let lo = crate::netlink::queries::Netlink::open().unwrap().interfaces().unwrap().attachable["lo"];
        assert_eq!(Netdev::open().unwrap().xdp_features(lo).unwrap(), XdpFeatures::default());
    }
}

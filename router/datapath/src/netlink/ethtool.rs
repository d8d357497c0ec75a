//! ethtool(8)'s interface features, through its generic netlink family (Documentation/networking/ethtool-netlink.rst).

use std::collections::BTreeSet;
use std::io;

use netlink_packet_core::NLA_F_NESTED;

use super::generic::{Family, attribute, find, values};

// linux/ethtool_netlink.h
const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;

/// The family's socket.
#[derive(Debug)]
pub struct Ethtool(Family);

impl Ethtool {
    /// Opens a socket in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's, or that the kernel lacks the family (before Linux 5.6).
    pub fn open() -> io::Result<Self> {
        Family::open("ethtool").map(Ethtool)
    }

    /// Names of the enabled features of an interface, as in `ethtool -k`.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn features(&mut self, interface: u32) -> io::Result<BTreeSet<String>> {
        let device = attribute(ETHTOOL_A_HEADER_DEV_INDEX, &interface.to_ne_bytes());
        let header = attribute(ETHTOOL_A_FEATURES_HEADER | NLA_F_NESTED, &device);
        let mut names = BTreeSet::new();
        self.0.ask(ETHTOOL_MSG_FEATURES_GET, &header, |answer| names = active(answer))?;
        Ok(names)
    }
}

/// Names in the answer's set of active features, which lists enabled ones only.
fn active(attributes: &[u8]) -> BTreeSet<String> {
    let bits = find(attributes, ETHTOOL_A_FEATURES_ACTIVE).and_then(|set| find(set, ETHTOOL_A_BITSET_BITS));
    let names = values(bits.unwrap_or_default()).filter_map(|(_, bit)| find(bit, ETHTOOL_A_BITSET_BIT_NAME));
    names.map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopbacks_features_are_found() {
        let lo = crate::netlink::queries::Netlink::open().unwrap().interfaces().unwrap().attachable["lo"];
        let features = Ethtool::open().unwrap().features(lo).unwrap();
        assert!(features.contains("tx-checksum-ip-generic"), "{features:?}");
    }

    #[test]
    fn an_answer_that_is_cut_short_has_fewer_features() {
        let bit = |name: &str| attribute(1, &attribute(ETHTOOL_A_BITSET_BIT_NAME, format!("{name}\0").as_bytes()));
        let bits = attribute(ETHTOOL_A_BITSET_BITS, &[bit("tx-a"), bit("tx-b")].concat());
        let whole = attribute(ETHTOOL_A_FEATURES_ACTIVE, &bits);
        assert_eq!(active(&whole), ["tx-a", "tx-b"].map(str::to_owned).into());
        for length in 0..whole.len() {
            assert!(active(&whole[..length]).len() < 2, "{length}");
        }
    }
}

//! ethtool(8)'s interface features, through its generic netlink family (Documentation/networking/ethtool-netlink.rst).

use std::collections::BTreeSet;
use std::io;

use netlink_packet_core::{NLA_F_NESTED, NlaBuffer, NlasIterator};
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::netlink::channel::{Channel, RawMessage};

// linux/genetlink.h
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Length of `struct genlmsghdr`: command, version, reserved.
const GENLMSG: usize = 4;

// linux/ethtool_netlink.h
const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;

/// A generic netlink socket, and the family's id.
#[derive(Debug)]
pub struct Ethtool {
    channel: Channel,
    family: u16,
}

impl Ethtool {
    /// Opens a socket in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's, or that the kernel lacks the family (before Linux 5.6).
    pub fn open() -> io::Result<Self> {
        let mut channel = Channel::open(NETLINK_GENERIC)?;
        let mut family = None;
        let name = attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
        channel.ask(RawMessage { kind: GENL_ID_CTRL, payload: command(CTRL_CMD_GETFAMILY, &name) }, 0, |answer| {
            let id = find(answer.payload.get(GENLMSG..).unwrap_or_default(), CTRL_ATTR_FAMILY_ID);
            family = id.and_then(|id| Some(u16::from_ne_bytes(id.first_chunk().copied()?)));
        })?;
        let family = family.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Ethtool { channel, family })
    }

    /// Names of the enabled features of an interface, as in `ethtool -k`.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn features(&mut self, interface: u32) -> io::Result<BTreeSet<String>> {
        let device = attribute(ETHTOOL_A_HEADER_DEV_INDEX, &interface.to_ne_bytes());
        let header = attribute(ETHTOOL_A_FEATURES_HEADER | NLA_F_NESTED, &device);
        let question = RawMessage { kind: self.family, payload: command(ETHTOOL_MSG_FEATURES_GET, &header) };
        let mut names = BTreeSet::new();
        self.channel.ask(question, 0, |answer| names = active(&answer.payload))?;
        Ok(names)
    }
}

fn command(command: u8, attributes: &[u8]) -> Vec<u8> {
    const VERSION: u8 = 1;
    [&[command, VERSION, 0, 0], attributes].concat()
}

/// The encoding of an attribute: length, type, value, padding to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    const HEADER: usize = 4;
    let length = HEADER + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(4));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// The value of the first attribute of a type.
fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    values(attributes).find_map(|(found, value)| (found == kind).then_some(value))
}

fn values(attributes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(attributes).map_while(Result::ok).map(|found: NlaBuffer<&[u8]>| {
        let (kind, length) = (found.kind(), found.value_length());
        let bytes = found.into_inner();
        (kind, &bytes[4..4 + length])
    })
}

/// Names in the answer's set of active features, which lists enabled ones only.
fn active(payload: &[u8]) -> BTreeSet<String> {
    let attributes = payload.get(GENLMSG..).unwrap_or_default();
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
        let whole = command(11, &attribute(ETHTOOL_A_FEATURES_ACTIVE, &bits));
        assert_eq!(active(&whole), ["tx-a", "tx-b"].map(str::to_owned).into());
        for length in 0..whole.len() {
            assert!(active(&whole[..length]).len() < 2, "{length}");
        }
    }
}

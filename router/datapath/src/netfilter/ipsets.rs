//! Contents of ipsets (ipset(8), linux/netfilter/ipset/ip_set.h), as far as rules look up addresses in them.

use std::io;

use netlink_packet_core::NLM_F_DUMP;

use super::sets::{Set, Stands};
use crate::netlink::channel::{Channel, NetlinkAttributes, RawMessage, list, push};

// `IPSET_CMD_*` of `NFNL_SUBSYS_IPSET` (linux/netfilter/nfnetlink.h).
const LIST: u16 = 6 << 8 | 7;
const GET_BY_INDEX: u16 = 6 << 8 | 15;
/// `IPSET_PROTOCOL`
const PROTOCOL: u8 = 7;
const GENERAL: usize = 4;

/// Reads the set with an index. A set with elements other than addresses and networks may contain any address.
///
/// # Errors
/// The system call's, or the kernel's.
pub fn read(channel: &mut Channel, index: u16) -> io::Result<Set> {
    let mut name = None;
    let [high, low] = index.to_be_bytes();
    let mut payload = question();
    // IPSET_ATTR_INDEX, in network byte order
    payload.extend([6_u16.to_ne_bytes(), (0x4000_u16 | 11).to_ne_bytes(), [high, low], [0, 0]].concat());
    channel.ask(RawMessage { kind: GET_BY_INDEX, payload }, 0, |answer| {
        // IPSET_ATTR_SETNAME
        name = answer.payload.get(GENERAL..).and_then(|body| NetlinkAttributes::of(body).text(2).map(str::to_owned));
    })?;
    let name = name.ok_or_else(|| io::Error::other("an ipset has no name"))?;
    let mut payload = question();
    // IPSET_ATTR_SETNAME
    push(&mut payload, 2, &name);
    let (mut elements, mut understood) = (Vec::new(), true);
    channel.ask(RawMessage { kind: LIST, payload }, NLM_F_DUMP, |answer| {
        let Some(body) = answer.payload.get(GENERAL..).map(NetlinkAttributes::of) else { return };
        // IPSET_ATTR_TYPENAME, IPSET_ATTR_ADT
        understood &= body.text(3).is_none_or(|name| matches!(name, "hash:net" | "hash:ip"));
        for (_, bytes) in list(body.bytes(8).unwrap_or_default()) {
            match element(&NetlinkAttributes::of(bytes)) {
                Some(element) => elements.push(element),
                None => understood = false,
            }
        }
    })?;
    let stands = if understood { Stands::Surely } else { Stands::Perhaps };
    Ok(Set::of_ranges(elements, stands))
}

fn question() -> Vec<u8> {
    let mut payload = vec![0; GENERAL];
    payload.extend([5_u16.to_ne_bytes(), 1_u16.to_ne_bytes(), [PROTOCOL, 0], [0, 0]].concat());
    payload
}

/// An address or a network, as its lowest and its highest address: `IPSET_ATTR_IP`, `IPSET_ATTR_CIDR`.
fn element(read: &NetlinkAttributes<'_>) -> Option<(Vec<u8>, Vec<u8>, Stands)> {
    // A range of addresses (IPSET_ATTR_IP_TO), or flags (IPSET_ATTR_CADT_FLAGS), one of which negates the element.
    if read.bytes(2).is_some() || read.word(8).unwrap_or(0) != 0 {
        return None;
    }
    let address = read.within(1)?;
    let low = address.bytes(1).filter(|bytes| bytes.len() == 4);
    let mut low = low.or_else(|| address.bytes(2).filter(|bytes| bytes.len() == 16))?.to_vec();
    let bits = read.bytes(3).and_then(|bytes| bytes.first().copied()).map_or(low.len() * 8, usize::from);
    let mut high = low.clone();
    for (at, (low, high)) in low.iter_mut().zip(&mut high).enumerate() {
        let host = 0xff_u8.checked_shr(bits.saturating_sub(at * 8).min(8) as u32).unwrap_or(0);
        (*low, *high) = (*low & !host, *high | host);
    }
    // IPSET_ATTR_TIMEOUT
    let stands = if read.bytes(6).is_some() { Stands::ForNow } else { Stands::Surely };
    Some((low, high, stands))
}

#[cfg(test)]
mod tests {
    use super::super::known_bits::{Bits, Truth};
    use super::*;

    fn network(address: &[u8], bits: u8) -> (Vec<u8>, Vec<u8>, Stands) {
        let mut bytes = ((8 + address.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(1_u16.to_ne_bytes());
        bytes.extend(((4 + address.len()) as u16).to_ne_bytes());
        bytes.extend((if address.len() == 4 { 1_u16 } else { 2 }).to_ne_bytes());
        bytes.extend(address);
        bytes.extend([5, 0, 3, 0, bits, 0, 0, 0]);
        element(&NetlinkAttributes::of(&bytes)).unwrap()
    }

    #[test]
    fn networks_have_the_addresses_in_them() {
        let elements = vec![network(&[10, 81, 0, 7], 17), network(&[192, 0, 2, 1], 32)];
        let set = Set::of_ranges(elements, Stands::Surely);
        let has = |address: [u8; 4]| set.look_up(Bits { value: &address, known: &[255; 4] }, false, |_, _| {});
        assert_eq!(has([10, 81, 127, 255]), Truth::Yes);
        assert_eq!(has([10, 81, 128, 0]), Truth::No);
        assert_eq!(has([192, 0, 2, 1]), Truth::Yes);
        assert_eq!(has([192, 0, 2, 2]), Truth::No);
        let all = network(&[0; 16], 0);
        assert_eq!(all, (vec![0; 16], vec![255; 16], Stands::Surely));
    }
}

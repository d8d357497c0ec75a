//! Fragmented packets. The first fragment has the TCP header, and with it all fields that [`super::translate`] changes.
//! Its checksum covers the whole packet, and is updated by the difference without the other fragments.

use super::addresses::{IP_CHECKSUM, addresses_difference, store_addresses};
use super::checksum::ChecksumDelta;
use super::packet_mut::PacketMut;
use crate::maps::FlowKey;
use crate::packet::ETHERNET;

/// Offset of the identification in the IPv4 header (RFC 791 §3.1), and in a fragment header after the IPv6 header (RFC
/// 8200 §4.5).
const ID4: u32 = ETHERNET + 4;
const ID6: u32 = ETHERNET + 40 + 4;

/// Writes the packet's translated addresses into a later fragment. False as for [`super::translate`].
#[inline(always)]
pub fn translate_later(packet: &mut impl PacketMut, v6: bool, from: &FlowKey, to: &FlowKey) -> bool {
    store_addresses(packet, v6, to)
        && (v6 || packet.fix_ip_checksum(IP_CHECKSUM, addresses_difference(from, to, false).folded()))
}

/// Writes another identification into a fragment: it must be unique between the packet's new addresses. False as for
/// [`super::translate`].
#[inline(always)]
pub fn identify(packet: &mut impl PacketMut, v6: bool, id: u32) -> bool {
    if v6 {
        return packet.store_counted(ID6, &id.to_be_bytes());
    }
    let Some(old) = packet.load::<2>(ID4) else { return false };
    let id = id as u16;
    let mut difference = ChecksumDelta::default();
    difference.change(u16::from_be_bytes(old) as u32, id as u32);
    packet.store(ID4, &id.to_be_bytes()) && packet.fix_ip_checksum(IP_CHECKSUM, difference.folded())
}

//! The addresses in the IP header, and their effect on the IP and TCP checksums.

use super::checksum::ChecksumDelta;
use super::packet_mut::PacketMut;
use crate::maps::FlowKey;
use crate::packet::{ETHERNET, Segment, TCP};

/// Offset of the IPv4 header checksum (RFC 791 §3.1).
pub const IP_CHECKSUM: u32 = ETHERNET + 10;
const IP4_ADDRESSES: u32 = ETHERNET + 12;
const IP6_ADDRESSES: u32 = ETHERNET + 8;

/// The difference that a change of addresses makes to a checksum, that of the IPv4 header or of the pseudo header.
/// `whole`: all 16 bytes, not only the embedded IPv4 address.
#[inline(always)]
pub fn addresses_difference(from: &FlowKey, to: &FlowKey, whole: bool) -> ChecksumDelta {
    let mut difference = ChecksumDelta::default();
    for at in [0, 4, 8, 12] {
        if whole || at == 12 {
            difference.change_bytes(word(&from.source, at), word(&to.source, at));
            difference.change_bytes(word(&from.destination, at), word(&to.destination, at));
        }
    }
    difference
}

/// Writes the addresses.
///
/// IPv6 has no header checksum to balance their change in a sum over the whole packet (`CHECKSUM_COMPLETE`), as IPv4
/// does; yet the kernel's pseudo-header update removes the change from that sum, as if there were one. So the store has
/// to add it.
#[inline(always)]
pub fn store_addresses(packet: &mut impl PacketMut, v6: bool, to: &FlowKey) -> bool {
    if v6 {
        let mut both = Words([0; 32]);
        for at in [0, 4, 8, 12] {
            both.set(at, word(&to.source, at));
            both.set(16 + at, word(&to.destination, at));
        }
        packet.store_counted(IP6_ADDRESSES, &both.0)
    } else {
        let mut both = Words([0; 8]);
        both.set(0, word(&to.source, 12));
        both.set(4, word(&to.destination, 12));
        packet.store(IP4_ADDRESSES, &both.0)
    }
}

/// True if the field of a segment's TCP checksum holds the sum of its pseudo header (RFC 9293 §3.1) and nothing else: its
/// sender has left the rest to hardware (`CHECKSUM_PARTIAL`). So does one in 65,535 complete checksums.
#[inline(always)]
pub fn is_pseudo_sum(segment: &Segment, field: [u8; 2]) -> bool {
    // A copy has the type's alignment; through the reference, addresses would be read byte by byte.
    let flow = segment.flow;
    let length = segment.payload - segment.tcp + segment.payload_len;
    let mut sum = ChecksumDelta::default();
    // As in a difference, IPv4-mapped addresses count as IPv4's.
    for at in [0, 4, 8, 12] {
        sum.add_folded(u32::from_ne_bytes(word(&flow.source, at)));
        sum.add_folded(u32::from_ne_bytes(word(&flow.destination, at)));
    }
    sum.add_folded(u32::from_ne_bytes((TCP as u32 + length).to_be_bytes()));
    sum.sum16().to_ne_bytes() == field
}

/// A buffer that is written in words of four bytes.
#[repr(C, align(8))]
pub struct Words<const N: usize>(pub [u8; N]);

impl<const N: usize> Words<N> {
    /// `at` is a constant at every call, so the compiler checks the bound.
    #[inline(always)]
    pub fn set(&mut self, at: usize, word: [u8; 4]) {
        self.0[at..at + 4].copy_from_slice(&word);
    }
}

/// Four bytes at `at`, which is a constant at every call.
#[inline(always)]
pub fn word<const N: usize>(bytes: &[u8; N], at: usize) -> [u8; 4] {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    word
}

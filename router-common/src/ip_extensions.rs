//! Headers between IP and TCP: IPv4 options (RFC 791 §3.1), IPv6 extension headers (RFC 8200 §4), and what makes a
//! packet a fragment.
//!
//! A host skips most options and extension headers, and TCP does not see them, so packets of a connection are carried
//! without them. A packet with one that a host rejects is not carried.

use crate::packet::{ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Packet, TCP};
use crate::translate::{PacketMut, ip4_checksum};

/// Protocol numbers of extension headers.
const HOP_BY_HOP: u32 = 0;
const ROUTING: u32 = 43;
const FRAGMENT: u32 = 44;
const DESTINATION: u32 = 60;
/// Options of IPv4.
const END: u8 = 0;
const NOP: u8 = 1;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;
/// Padding of one byte, in options of IPv6.
const PAD1: u8 = 0;
/// Bits of an IPv6 option's type that select the action of a host that does not know it; 0 means skip (RFC 8200 §4.2).
/// Of the options that Linux knows, those with such bits are not padding: jumbo payload and home address.
const NOT_SKIPPED: u8 = 0xc0;
/// Types of routing headers that also matter at the destination: mobile IPv6, RPL, segment routing. Linux rejects them
/// by default.
const ROUTING_TYPES: core::ops::RangeInclusive<u8> = 2..=4;
/// Most bytes of options and extension headers that are read.
const LONGEST: u32 = 2048;

/// Most calls of [`Extensions::step`]; enough for what a host accepts by default (Linux: eight options per IPv6
/// header).
pub const EXTENSION_STEPS: u32 = 64;

/// Reads one header or option per step, so that the kernel can call it in a loop that the verifier does not unroll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Extensions {
    /// Offset of the next header or option; at the end, of TCP or of the fragment's data.
    pub at: u32,
    /// End of the options that are being read.
    options_end: u32,
    /// Protocol number of the next header.
    next: u32,
    /// 1: IPv6.
    pub v6: u32,
    /// 1: a fragment.
    pub fragment: u32,
    /// Identification of the fragmented packet.
    pub id: u32,
    /// Fragment offset, in bytes.
    pub offset: u32,
    /// 1: more fragments follow (MF or M flag).
    pub more: u32,
    /// Bytes of the IPv6 fragment header, which is kept.
    kept: u32,
    /// Bytes to remove after the IP header (IPv4: after its first 20 bytes).
    pub extra: u32,
    /// 1: a host rejects the packet.
    pub refused: u32,
    /// 1: TCP was found.
    pub found: u32,
}

impl Extensions {
    /// Reads the IP header. `false`: not TCP.
    #[inline(always)]
    pub fn begin(&mut self, packet: &impl Packet) -> bool {
        *self = Extensions::default();
        match packet.load::<2>(12) {
            Some(ETHERTYPE_IPV4) => self.begin4(packet),
            Some(ETHERTYPE_IPV6) => {
                let Some([_, _, _, _, _, _, next, _]) = packet.load::<8>(ETHERNET) else { return false };
                self.v6 = 1;
                self.next = next as u32;
                self.at = ETHERNET + 40;
                self.options_end = self.at;
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    fn begin4(&mut self, packet: &impl Packet) -> bool {
        let Some(ip) = packet.load::<12>(ETHERNET) else { return false };
        let header = ((ip[0] & 0x0f) as u32) * 4;
        if ip[0] >> 4 != 4 || header < 20 || ip[9] != TCP {
            return false;
        }
        let bits = u16::from_be_bytes([ip[6], ip[7]]) as u32;
        self.is_part(u16::from_be_bytes([ip[4], ip[5]]) as u32, (bits & 0x1fff) * 8, (bits >> 13) & 1);
        self.next = TCP as u32;
        self.at = ETHERNET + 20;
        self.options_end = ETHERNET + header;
        self.extra = header - 20;
        true
    }

    #[inline(always)]
    fn is_part(&mut self, id: u32, offset: u32, more: u32) {
        self.fragment = (offset != 0 || more != 0) as u32;
        self.id = id;
        self.offset = offset;
        self.more = more;
    }

    /// Reads one header or option. `false`: all are read.
    #[inline(always)]
    pub fn step(&mut self, packet: &impl Packet) -> bool {
        if self.at > ETHERNET + 40 + LONGEST {
            return false;
        }
        if self.at < self.options_end {
            return self.option(packet);
        }
        if self.next == TCP as u32 {
            self.found = 1;
            return false;
        }
        // In a later fragment, arbitrary data follows.
        self.v6 != 0 && self.offset == 0 && self.header(packet)
    }

    #[inline(always)]
    fn option(&mut self, packet: &impl Packet) -> bool {
        let Some([kind, len]) = packet.load::<2>(self.at) else { return false };
        let left = self.options_end - self.at;
        let (alone, len) = if self.v6 != 0 {
            self.refused |= (kind & NOT_SKIPPED != 0) as u32;
            (kind == PAD1, if kind == PAD1 { 1 } else { len as u32 + 2 })
        } else {
            self.refused |= (kind == LOOSE_SOURCE_ROUTE || kind == STRICT_SOURCE_ROUTE) as u32;
            match kind {
                END => (true, left),
                NOP => (true, 1),
                _ => (false, len as u32),
            }
        };
        if !alone && (len < 2 || len > left) {
            self.refused = 1;
            self.at = self.options_end;
        } else {
            self.at += len;
        }
        true
    }

    #[inline(always)]
    fn header(&mut self, packet: &impl Packet) -> bool {
        let Some([next, len, third, fourth, i0, i1, i2, i3]) = packet.load::<8>(self.at) else { return false };
        let begin = self.at;
        let end = begin + (len as u32 + 1) * 8;
        // Headers inside a fragment cannot be removed: the fragments' offsets would no longer match.
        let within = self.fragment != 0;
        match self.next {
            HOP_BY_HOP if begin == ETHERNET + 40 => self.at = begin + 2,
            DESTINATION => self.at = begin + 2,
            ROUTING => {
                if fourth != 0 || ROUTING_TYPES.contains(&third) {
                    self.refused = 1;
                }
                self.at = end;
            }
            FRAGMENT if !within => {
                let bits = u16::from_be_bytes([third, fourth]) as u32;
                self.is_part(u32::from_be_bytes([i0, i1, i2, i3]), bits & 0xfff8, bits & 1);
                self.at = begin + 8;
            }
            _ => return false,
        }
        let is_fragment = self.next == FRAGMENT;
        self.options_end = if is_fragment { self.at } else { end };
        self.next = next as u32;
        if within {
            self.refused = 1;
        } else if is_fragment && self.fragment != 0 {
            self.kept = 8;
        } else {
            self.extra = self.options_end - (ETHERNET + 40);
        }
        true
    }

    /// Whether there is neither a fragment nor anything to remove: [`crate::packet::segment`] reads such a packet.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.fragment == 0 && self.extra == 0
    }

    /// Removes options and extension headers. [`crate::packet::segment`] reads the rest, unless it is a fragment, which
    /// then has no other headers. `false`: the packet is left broken.
    #[inline(always)]
    pub fn take_out(&self, packet: &mut impl PacketMut) -> bool {
        if self.extra == 0 {
            return true;
        }
        if !packet.take_out(self.v6 != 0, self.extra) {
            return false;
        }
        if self.v6 != 0 {
            let Some([l0, l1]) = packet.load::<2>(ETHERNET + 4) else { return false };
            let [l0, l1] = self.shorter([l0, l1]);
            let next = if self.kept != 0 { FRAGMENT as u8 } else { TCP };
            // The hop limit is stored unchanged, for an even number of bytes.
            let Some([hops]) = packet.load::<1>(ETHERNET + 7) else { return false };
            return packet.store_counted(ETHERNET + 4, &[l0, l1, next, hops]);
        }
        let Some(mut ip) = packet.load::<20>(ETHERNET) else { return false };
        [ip[2], ip[3]] = self.shorter([ip[2], ip[3]]);
        ip[0] = 0x45;
        [ip[10], ip[11]] = [0; 2];
        [ip[10], ip[11]] = ip4_checksum(&ip);
        packet.store_counted(ETHERNET, &ip)
    }

    /// The length field without the removed bytes; 0 is kept, as offload uses it for packets above 64 KiB.
    #[inline(always)]
    fn shorter(&self, length: [u8; 2]) -> [u8; 2] {
        let length = u16::from_be_bytes(length);
        (if length == 0 { 0 } else { length.wrapping_sub(self.extra as u16) }).to_be_bytes()
    }
}

#[cfg(test)]
mod tests;

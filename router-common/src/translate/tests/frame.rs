//! Frames with each checksum state of the kernel (include/linux/skbuff.h, “ip_summed”).

use std::vec;
use std::vec::Vec;

use super::super::{PacketMut, updated};
use crate::maps::{FlowKey, mapped};
use crate::packet::Packet;

/// State of the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// The field is the complete checksum (`CHECKSUM_NONE`, `CHECKSUM_UNNECESSARY`).
    Full,
    /// The field is the pseudo header's sum, not complemented; hardware adds the rest (`CHECKSUM_PARTIAL`).
    Partial,
    /// Hardware has provided the sum over everything after the Ethernet header (`CHECKSUM_COMPLETE`).
    Complete(u32),
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub bytes: Vec<u8>,
    pub sums: Sums,
}

/// All header fields except TCP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    pub v6: bool,
    pub flow: FlowKey,
    pub seq: u32,
    pub ack: u32,
    /// The four bits after the data offset.
    pub reserved: u8,
    pub flags: u8,
    pub window: u16,
    pub urgent: u16,
}

impl Default for Headers {
    fn default() -> Self {
        let flow = FlowKey { source: mapped([0; 4]), destination: mapped([0; 4]), source_port: 0, destination_port: 0 };
        Headers { v6: false, flow, seq: 0, ack: 0, reserved: 0, flags: 0, window: 0, urgent: 0 }
    }
}

impl Headers {
    /// The frame; the length of `options` is a multiple of four bytes.
    pub fn frame(&self, options: &[u8], payload: &[u8], sums: Sums) -> Frame {
        assert!(options.len() <= 40 && options.len().is_multiple_of(4), "{} bytes of options", options.len());
        let length = 20 + options.len() + payload.len();
        let mut tcp = Vec::with_capacity(length);
        tcp.extend(self.flow.source_port.to_be_bytes());
        tcp.extend(self.flow.destination_port.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([((20 + options.len()) as u8) << 2 | self.reserved, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0, 0]);
        tcp.extend(self.urgent.to_be_bytes());
        tcp.extend(options);
        tcp.extend(payload);
        let (ethertype, mut ip) = if self.v6 { (0x86dd_u16, self.ipv6(length)) } else { (0x0800, self.ipv4(length)) };
        let pseudo = self.pseudo(length);
        let field = if sums == Sums::Partial { fold(pseudo) } else { !fold(pseudo + sum(&tcp)) };
        tcp[16..18].copy_from_slice(&field.to_be_bytes());
        ip.extend(tcp);
        let sums = if let Sums::Complete(_) = sums { Sums::Complete(native_sum(&ip)) } else { sums };
        Frame { bytes: [&[2; 12][..], &ethertype.to_be_bytes(), &ip].concat(), sums }
    }

    fn ipv4(&self, length: usize) -> Vec<u8> {
        let total = ((20 + length) as u16).to_be_bytes();
        let mut ip = vec![0x45, 0, total[0], total[1], 0x12, 0x34, 0x40, 0, 64, 6, 0, 0];
        ip.extend(&self.flow.source[12..]);
        ip.extend(&self.flow.destination[12..]);
        let field = !fold(sum(&ip));
        ip[10..12].copy_from_slice(&field.to_be_bytes());
        ip
    }

    fn ipv6(&self, length: usize) -> Vec<u8> {
        let length = (length as u16).to_be_bytes();
        [&[0x60, 1, 2, 3, length[0], length[1], 6, 64][..], &self.flow.source, &self.flow.destination].concat()
    }

    /// The pseudo header (RFC 9293 §3.1, RFC 8200 §8.1).
    fn pseudo(&self, length: usize) -> u64 {
        let from = if self.v6 { 0 } else { 12 };
        sum(&self.flow.source[from..]) + sum(&self.flow.destination[from..]) + 6 + length as u64
    }
}

impl Frame {
    /// Asserts that every checksum is valid, computed from all bytes.
    pub fn assert_sums(&self) {
        let ip = &self.bytes[14..];
        let v6 = ip[0] >> 4 == 6;
        let (header, addresses) = if v6 { (40, &ip[8..40]) } else { ((ip[0] & 15) as usize * 4, &ip[12..20]) };
        assert!(v6 || fold(sum(&ip[..header])) == 0xffff, "IPv4 header checksum of {self:?}");
        let tcp = &ip[header..];
        let pseudo = sum(addresses) + 6 + tcp.len() as u64;
        if self.sums == Sums::Partial {
            assert_eq!(u16::from_be_bytes([tcp[16], tcp[17]]), fold(pseudo), "pseudo header sum of {self:?}");
        } else {
            assert_eq!(fold(pseudo + sum(tcp)), 0xffff, "TCP checksum of {self:?}");
        }
        if let Sums::Complete(kept) = self.sums {
            assert_eq!(kept % 0xffff, native_sum(ip) % 0xffff, "hardware's sum of {self:?}");
        }
    }

    /// Inserts `between` after the IP header; `next` is its first header's number (IPv6).
    pub fn with(&self, next: u8, between: &[u8]) -> Frame {
        let mut bytes = self.bytes.clone();
        let v6 = bytes[14] >> 4 == 6;
        let (begin, length) = if v6 { (54, 18) } else { (34, 16) };
        bytes.splice(begin..begin, between.iter().copied());
        let longer = u16::from_be_bytes([bytes[length], bytes[length + 1]]) + between.len() as u16;
        bytes[length..length + 2].copy_from_slice(&longer.to_be_bytes());
        if v6 {
            bytes[20] = next;
        } else {
            bytes[14] += (between.len() / 4) as u8;
            bytes[24..26].fill(0);
            let field = !fold(sum(&bytes[14..34 + between.len()]));
            bytes[24..26].copy_from_slice(&field.to_be_bytes());
        }
        let sums = if let Sums::Complete(_) = self.sums { Sums::Complete(native_sum(&bytes[14..])) } else { self.sums };
        Frame { bytes, sums }
    }

    /// Splits the frame into fragments of at most `size` bytes, a multiple of 8 (RFC 791 §3.2, RFC 8200 §4.5).
    pub fn fragments(&self, id: u32, size: usize) -> Vec<Frame> {
        let v6 = self.bytes[14] >> 4 == 6;
        let data = &self.bytes[if v6 { 54 } else { 34 }..];
        let part = |(i, part): (usize, &[u8])| {
            let bits = ((i * size) as u16, u16::from((i + 1) * size < data.len()));
            let mut bytes = self.bytes[..if v6 { 54 } else { 34 }].to_vec();
            if v6 {
                bytes[18..20].copy_from_slice(&((part.len() + 8) as u16).to_be_bytes());
                bytes[20] = 44;
                bytes.extend([6, 0]);
                bytes.extend((bits.0 | bits.1).to_be_bytes());
                bytes.extend(id.to_be_bytes());
            } else {
                bytes[16..18].copy_from_slice(&((part.len() + 20) as u16).to_be_bytes());
                bytes[18..20].copy_from_slice(&(id as u16).to_be_bytes());
                bytes[20..22].copy_from_slice(&((bits.0 / 8) | (bits.1 << 13)).to_be_bytes());
                bytes[24..26].fill(0);
                let field = !fold(sum(&bytes[14..34]));
                bytes[24..26].copy_from_slice(&field.to_be_bytes());
            }
            bytes.extend(part);
            let sums =
                if let Sums::Complete(_) = self.sums { Sums::Complete(native_sum(&bytes[14..])) } else { self.sums };
            Frame { bytes, sums }
        };
        data.chunks(size).enumerate().map(part).collect()
    }

    /// Asserts everything about a fragment that can be checked without the others.
    pub fn assert_fragment_sums(&self) {
        let ip = &self.bytes[14..];
        assert!(ip[0] >> 4 == 6 || fold(sum(&ip[..20])) == 0xffff, "IPv4 header checksum of {self:?}");
        if let Sums::Complete(kept) = self.sums {
            assert_eq!(kept % 0xffff, native_sum(ip) % 0xffff, "hardware's sum of {self:?}");
        }
    }

    fn at(&mut self, offset: u32, len: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(offset as usize..)?.get_mut(..len)
    }

    fn field(&mut self, offset: u32) -> Option<u16> {
        self.at(offset, 2).map(|field| u16::from_ne_bytes([field[0], field[1]]))
    }
}

impl Packet for Frame {
    fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        (&self.bytes[..]).load(offset)
    }

    fn len(&self) -> u32 {
        self.bytes.len() as u32
    }
}

/// Equivalents of the kernel's helpers (net/core/filter.c, net/core/utils.c).
impl PacketMut for Frame {
    /// `bpf_skb_change_proto`: adds or removes 20 bytes after the Ethernet header.
    fn change_family(&mut self, v6: bool) -> bool {
        if v6 {
            self.bytes.splice(14..14, [0xaa; 20]);
        } else {
            self.bytes.drain(14..34);
        }
        true
    }

    /// `bpf_skb_adjust_room` (`BPF_ADJ_ROOM_NET`, `BPF_F_ADJ_ROOM_NO_CSUM_RESET`).
    fn take_out(&mut self, v6: bool, len: u32) -> bool {
        let begin = if v6 { 54 } else { 34 };
        if self.bytes.len() < begin + len as usize {
            return false;
        }
        let out: Vec<u8> = self.bytes.drain(begin..begin + len as usize).collect();
        if let Sums::Complete(kept) = &mut self.sums {
            *kept = add(*kept, !native_sum(&out));
        }
        true
    }

    fn store<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool {
        self.at(offset, N).map(|to| to.copy_from_slice(bytes)).is_some()
    }

    fn store_counted<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool {
        assert!(offset.is_multiple_of(2), "bytes are counted from {offset} on");
        let Some(old) = self.load::<N>(offset) else { return false };
        if let Sums::Complete(kept) = &mut self.sums {
            *kept = add(add(*kept, !native_sum(&old)), native_sum(bytes));
        }
        self.store(offset, bytes)
    }

    /// `bpf_l3_csum_replace` with size 0.
    fn fix_ip_checksum(&mut self, offset: u32, difference: u32) -> bool {
        let Some(field) = self.field(offset) else { return false };
        self.store(offset, &updated(field.to_ne_bytes(), difference))
    }

    /// `bpf_l4_csum_replace` with size 0: `inet_proto_csum_replace_by_diff`.
    fn fix_tcp_checksum(&mut self, offset: u32, difference: u32, pseudo: bool) -> bool {
        let Some(field) = self.field(offset) else { return false };
        if self.sums == Sums::Partial {
            let fixed = !native_fold_not(add(difference, u32::from(field)));
            return !pseudo || self.store(offset, &fixed.to_ne_bytes());
        }
        if let (Sums::Complete(kept), true) = (&mut self.sums, pseudo) {
            *kept = !add(difference, !*kept);
        }
        self.store(offset, &updated(field.to_ne_bytes(), difference))
    }
}

/// The sum of big-endian words (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |byte| u64::from(*byte))).sum()
}

fn fold(sum: u64) -> u16 {
    if sum > 0xffff { fold((sum & 0xffff) + (sum >> 16)) } else { sum as u16 }
}

/// `csum_partial`: the sum of words in memory byte order.
fn native_sum(bytes: &[u8]) -> u32 {
    u32::from(u16::from_ne_bytes(fold(sum(bytes)).to_be_bytes()))
}

/// `csum_add`.
fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u32::from(carry)
}

/// `csum_fold`.
fn native_fold_not(sum: u32) -> u16 {
    !fold(u64::from(sum))
}

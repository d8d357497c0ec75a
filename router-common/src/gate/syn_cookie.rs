//! Headers of SYN cookies: the SYN-ACK that has one, and the packets that the kernel's helpers are asked about.
//!
//! A cookie is the stack's own (`bpf_tcp_gen_syncookie`), so that the stack accepts its acknowledgement. The only option is the
//! maximum segment size, which the cookie has. The stack finds the others in the timestamp that is echoed, from which it
//! subtracts an offset that only it knows; without timestamps it assumes none of them, and so does the client.

use crate::maps::{FlowKey, is_mapped};

/// Words of the longest headers: IPv6, and TCP with one option.
pub const WORDS: usize = 16;
/// Words of an IPv4 and an IPv6 header.
const V4: usize = 5;
const V6: usize = 10;
/// Bytes of the TCP header.
pub const TCP_BYTES: u32 = 24;
/// The announced window in bytes: ten segments, an initial window (RFC 6928 §2). The stack's own is at least as large.
pub const WINDOW: u16 = 14_600;
const HOP_LIMIT: u32 = 64;
const TCP: u32 = 6;
/// Bits of a cookie in which cookies of one SYN with different sizes differ (Linux, `COOKIEBITS`).
const SIZE_BITS: u32 = 24;
/// Segment sizes that a cookie can have (Linux, `msstab` of net/ipv4/syncookies.c and net/ipv6/syncookies.c).
const V4_SIZES: [u16; 4] = [536, 1300, 1440, 1460];
const V6_SIZES: [u16; 4] = [1220, 1420, 1440, 8940];

/// A packet of headers only.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// Words of the source address, in memory order.
    pub source: [u32; 4],
    /// Words of the destination address.
    pub destination: [u32; 4],
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Maximum segment size in bytes.
    pub max_segment: u16,
}

impl Headers {
    /// Writes the IP and TCP headers with their checksums, in packet order; returns the number of bytes.
    #[inline(always)]
    pub fn write(&self, to: &mut [u32; WORDS]) -> u32 {
        self.write_with::<true>(to)
    }

    /// The same without checksums, for helpers that read headers.
    #[inline(always)]
    pub fn describe(&self, to: &mut [u32; WORDS]) -> u32 {
        self.write_with::<false>(to)
    }

    #[inline(always)]
    fn write_with<const SUMS: bool>(&self, to: &mut [u32; WORDS]) -> u32 {
        let [a, b, c, _] = self.destination;
        if a | b == 0 && c == 0xffff_u32.to_be() { self.v4::<SUMS>(to) } else { self.v6::<SUMS>(to) }
    }

    /// RFC 791 §3.1: no options, and never fragmented.
    #[inline(always)]
    fn v4<const SUMS: bool>(&self, to: &mut [u32; WORDS]) -> u32 {
        let bytes = 4 * V4 as u32 + TCP_BYTES;
        let ([.., source], [.., destination]) = (self.source, self.destination);
        to[0] = (0x4500_0000 | bytes).to_be();
        to[1] = 0x4000_u32.to_be();
        to[2] = (HOP_LIMIT << 24 | TCP << 16).to_be();
        to[3] = source;
        to[4] = destination;
        if SUMS {
            let sum = to[0] as u64 + to[1] as u64 + to[2] as u64 + to[3] as u64 + to[4] as u64;
            let [high, low] = checksum(sum).to_ne_bytes();
            to[2] |= u32::from_ne_bytes([0, 0, high, low]);
        }
        self.tcp::<V4, SUMS>(to, source as u64 + destination as u64);
        bytes
    }

    /// RFC 8200 §3.
    #[inline(always)]
    fn v6<const SUMS: bool>(&self, to: &mut [u32; WORDS]) -> u32 {
        to[0] = 0x6000_0000_u32.to_be();
        to[1] = (TCP_BYTES << 16 | TCP << 8 | HOP_LIMIT).to_be();
        [to[2], to[3], to[4], to[5]] = self.source;
        [to[6], to[7], to[8], to[9]] = self.destination;
        let of = |[a, b, c, d]: [u32; 4]| a as u64 + b as u64 + c as u64 + d as u64;
        self.tcp::<V6, SUMS>(to, of(self.source) + of(self.destination));
        4 * V6 as u32 + TCP_BYTES
    }

    /// RFC 9293 §3.1. `addresses`: the sum of their words.
    #[inline(always)]
    fn tcp<const AT: usize, const SUMS: bool>(&self, to: &mut [u32; WORDS], addresses: u64) {
        let (ports, size) = (self.source_port as u32, self.max_segment as u32);
        to[AT] = (ports << 16 | self.destination_port as u32).to_be();
        to[AT + 1] = self.seq.to_be();
        to[AT + 2] = self.ack.to_be();
        to[AT + 3] = (TCP_BYTES << 26 | (self.flags as u32) << 16 | WINDOW as u32).to_be();
        to[AT + 5] = (0x0204_0000 | size).to_be();
        to[AT + 4] = 0;
        if !SUMS {
            return;
        }
        let pseudo = addresses + (TCP + TCP_BYTES).to_be() as u64;
        let fixed = to[AT] as u64 + to[AT + 1] as u64 + to[AT + 2] as u64 + to[AT + 3] as u64 + to[AT + 5] as u64;
        let [high, low] = checksum(pseudo + fixed).to_ne_bytes();
        to[AT + 4] = u32::from_ne_bytes([high, low, 0, 0]);
    }
}

/// The maximum segment size to announce on an interface with this MTU, to a listener whose clients may send segments of at most
/// `most` bytes; 0: of any size.
#[inline(always)]
pub fn announced(flow: &FlowKey, mtu: u32, most: u16) -> u16 {
    let headers = if is_mapped(&flow.destination) { 40 } else { 60 };
    let least = sizes(flow)[0] as u32;
    let fits = if mtu < headers + least { least } else { mtu - headers };
    let fits = if fits > u16::MAX as u32 { u16::MAX } else { fits as u16 };
    if most != 0 && most < fits { most } else { fits }
}

/// Sizes that cookies of a connection can have, the smallest first.
#[inline(always)]
pub fn sizes(flow: &FlowKey) -> [u16; 4] {
    if is_mapped(&flow.destination) { V4_SIZES } else { V6_SIZES }
}

/// The segment size in a cookie, given the one that the same SYN with the smallest size would have; the smallest if they are not
/// of the same minute.
#[inline(always)]
pub fn size_of(flow: &FlowKey, cookie: u32, smallest: u32) -> u16 {
    let sizes = sizes(flow);
    match cookie.wrapping_sub(smallest) & ((1 << SIZE_BITS) - 1) {
        1 => sizes[1],
        2 => sizes[2],
        3 => sizes[3],
        _ => sizes[0],
    }
}

/// The Internet checksum of a sum of words in memory order (RFC 1071 §2(B): it has their byte order).
#[inline(always)]
fn checksum(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::maps::mapped;
    use crate::options::{OPTIONS_ROOM, OptionReader, TcpOptions};
    use crate::packet::{ACK, ETHERNET, SYN, segment};

    fn flow(v6: bool, source: [u8; 16], destination: [u8; 16], ports: (u16, u16)) -> FlowKey {
        let of = |[a, b, c, d, ..]: [u8; 16], whole| if v6 { whole } else { mapped([a, b, c, d]) };
        let (source, destination) = (of(source, source), of(destination, destination));
        FlowKey { source, destination, source_port: ports.0, destination_port: ports.1 }
    }

    /// The sum of a part of a packet as RFC 1071 has it, byte by byte.
    fn sum(bytes: &[u8]) -> u32 {
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum()
    }

    fn folded(sum: u32) -> u32 {
        let once = (sum & 0xffff) + (sum >> 16);
        (once & 0xffff) + (once >> 16)
    }

    proptest! {
        #[test]
        fn headers_are_those_of_a_segment_with_one_option(
            v6: bool, source: [u8; 16], destination: [u8; 16], ports: (u16, u16), seq: u32, ack: u32, max_segment: u16
        ) {
            let flow = flow(v6, source, destination, ports);
            prop_assume!(v6 != is_mapped(&flow.destination));
            let mut words = [u32::MAX; WORDS];
            let of = |address: &[u8; 16]| [0, 4, 8, 12].map(|at| u32::from_ne_bytes(*address[at..].first_chunk().unwrap()));
            let (source, destination) = (of(&flow.source), of(&flow.destination));
            let (source_port, destination_port) = ports;
            let answer =
                Headers { source, destination, source_port, destination_port, seq, ack, flags: SYN | ACK, max_segment };
            let length = answer.write(&mut words);
            let mut described = [0; WORDS];
            prop_assert_eq!(answer.describe(&mut described), length);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take(length as usize).collect();
            let ethertype: [u8; 2] = if v6 { [0x86, 0xdd] } else { [8, 0] };
            let frame = [[2; 12].as_slice(), &ethertype, &bytes].concat();
            let read = segment(&frame.as_slice()).unwrap();
            prop_assert_eq!((read.flow, read.seq, read.ack), (flow, seq, ack));
            prop_assert_eq!((read.flags, read.window, read.payload_len), (SYN | ACK, WINDOW, 0));
            prop_assert_eq!((read.payload as usize, read.tcp as usize), (frame.len(), 14 + if v6 { 40 } else { 20 }));
            let mut reader =
                OptionReader { bytes: [0; OPTIONS_ROOM], len: 4, at: 0, begin: 0, found: TcpOptions::default() };
            reader.bytes[..4].copy_from_slice(&frame[read.tcp as usize + 20..]);
            while reader.step() {}
            prop_assert_eq!((reader.found.mss, reader.found.present), (max_segment, 0));
            let tcp = &frame[read.tcp as usize..];
            let from = if v6 { 0 } else { 12 };
            let pseudo = sum(&flow.source[from..]) + sum(&flow.destination[from..]) + 6 + tcp.len() as u32;
            prop_assert_eq!(folded(pseudo + sum(tcp)), 0xffff);
            // The helpers' headers differ in the checksums alone.
            words[if v6 { 14 } else { 9 }] &= u32::from_ne_bytes([0, 0, 255, 255]);
            if !v6 {
                words[2] &= u32::from_ne_bytes([255, 255, 0, 0]);
            }
            prop_assert_eq!(&words[..length as usize / 4], &described[..length as usize / 4]);
            if !v6 {
                prop_assert_eq!(folded(sum(&frame[ETHERNET as usize..read.tcp as usize])), 0xffff);
            }
        }
    }

    #[test]
    fn the_announced_size_fits_the_interface_and_the_listener() {
        let (v4, v6) = (flow(false, [1; 16], [2; 16], (1, 2)), flow(true, [1; 16], [2; 16], (1, 2)));
        assert_eq!((announced(&v4, 1500, 0), announced(&v6, 1500, 0)), (1460, 1440));
        assert_eq!((announced(&v4, 1500, 1400), announced(&v6, 9000, 8000)), (1400, 8000));
        assert_eq!((announced(&v4, 1500, 9000), announced(&v4, 70_000, 0)), (1460, u16::MAX));
        assert_eq!((announced(&v4, 0, 0), announced(&v6, 1280, 0), announced(&v6, 576, 0)), (536, 1220, 1220));
    }

    #[test]
    fn a_cookie_has_its_size_in_the_lower_bits() {
        let (v4, v6) = (flow(false, [1; 16], [2; 16], (1, 2)), flow(true, [1; 16], [2; 16], (1, 2)));
        // The sum wraps in the lower 24 bits alone.
        for (cookie, smallest, of_v4, of_v6) in [
            (0x1234_5678, 0x1234_5678, 536, 1220),
            (0x1234_5679, 0x1234_5678, 1300, 1420),
            (0x1200_0001, 0x12ff_ffff, 1440, 1440),
            (0x1200_0000, 0x12ff_fffd, 1460, 8940),
            (0x1300_0000, 0x1234_5678, 536, 1220),
        ] {
            assert_eq!((size_of(&v4, cookie, smallest), size_of(&v6, cookie, smallest)), (of_v4, of_v6));
        }
    }
}

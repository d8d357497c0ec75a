//! The headers of an arriving packet, as far as the gate needs them: Ethernet with VLAN tags (IEEE 802.1Q), IPv4 and IPv6
//! with options and extension headers, TCP (RFC 791, 8200, 9293).

use crate::maps::{FlowKey, mapped};
use crate::packet::{ACK, ETHERTYPE_IPV4, ETHERTYPE_IPV6, FIN, Packet, RST, SYN, TCP};

/// Ethernet types of VLAN tags.
const VLAN: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
/// Most VLAN tags.
const TAGS: usize = 2;
/// Most IPv6 extension headers before TCP; a packet with more is malformed, because its port is not read.
const EXTENSIONS: usize = 8;
/// A packet with headers that begin beyond this offset is malformed, because its port is not read.
pub const READABLE: u32 = 2047;

/// A packet to a TCP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Arrival {
    /// Addresses and ports; both ports are 0 if they cannot be read.
    pub flow: FlowKey,
    /// Bytes of the packet.
    pub len: u32,
    /// Sequence number.
    pub seq: u32,
    /// Offset of the IP header.
    pub ip: u32,
    /// Offset of the TCP header; 0 if it cannot be read.
    pub tcp: u32,
    /// Bytes of the TCP header.
    pub tcp_len: u32,
    /// TCP flags.
    pub flags: u8,
    /// No host accepts it: a header contradicts the packet's length or its own, no sender has the source address, or the
    /// flags begin and end a connection at once. Or no host sends it: its headers are more than the gate reads.
    pub is_malformed: bool,
    /// It is a fragment.
    pub is_fragment: bool,
    /// It has IPv4 options or IPv6 extension headers.
    pub has_options: bool,
}

/// Reads a packet; `None` if it is not TCP over IP, or ends before its addresses.
#[inline(always)]
pub fn read(packet: &impl Packet) -> Option<Arrival> {
    let mut at = 12;
    let mut ethertype: [u8; 2] = packet.load(at)?;
    for _ in 0..TAGS {
        if VLAN.contains(&ethertype) {
            at += 4;
            ethertype = packet.load(at)?;
        }
    }
    let mut arrival = Arrival {
        flow: FlowKey { source: [0; 16], destination: [0; 16], source_port: 0, destination_port: 0 },
        len: packet.len(),
        seq: 0,
        ip: at + 2,
        tcp: 0,
        tcp_len: 0,
        flags: 0,
        is_malformed: false,
        is_fragment: false,
        has_options: false,
    };
    match ethertype {
        ETHERTYPE_IPV4 => ipv4(packet, at + 2, &mut arrival)?,
        ETHERTYPE_IPV6 => ipv6(packet, at + 2, &mut arrival)?,
        _ => return None,
    }
    Some(arrival)
}

#[inline(always)]
fn ipv4(packet: &impl Packet, begin: u32, to: &mut Arrival) -> Option<()> {
    let ip: [u8; 20] = packet.load(begin)?;
    if ip[9] != TCP {
        return None;
    }
    let source = [ip[12], ip[13], ip[14], ip[15]];
    to.flow.source = mapped(source);
    to.flow.destination = mapped([ip[16], ip[17], ip[18], ip[19]]);
    let header = (ip[0] & 0x0f) as u32 * 4;
    let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff;
    to.is_fragment = fragment != 0;
    to.has_options = header > 20;
    let end = end(packet, begin, u16::from_be_bytes([ip[2], ip[3]]) as u32);
    // Multicast, broadcast, and this host on this network (RFC 1122 §3.2.1.3).
    let no_sender = source[0] >> 4 == 14 || source == [0xff; 4] || source == [0; 4];
    if ip[0] >> 4 != 4 || header < 20 || end < begin + header || end > packet.len() || no_sender {
        to.is_malformed = true;
        return Some(());
    }
    if fragment & 0x1fff == 0 {
        tcp(packet, begin + header, end, to);
    }
    Some(())
}

#[inline(always)]
fn ipv6(packet: &impl Packet, begin: u32, to: &mut Arrival) -> Option<()> {
    let ip: [u8; 40] = packet.load(begin)?;
    let (mut next, mut at) = (ip[6], begin + 40);
    to.flow.source = part(&ip, 8);
    to.flow.destination = part(&ip, 24);
    let length = u16::from_be_bytes([ip[4], ip[5]]) as u32;
    let end = end(packet, begin, if length == 0 { 0 } else { length + 40 });
    let no_sender = ip[8] == 0xff || to.flow.source == [0; 16];
    let is_wrong = ip[0] >> 4 != 6 || end > packet.len() || no_sender;
    let mut offset = 0;
    for _ in 0..EXTENSIONS {
        let (is_fragment, is_header) = (next == 44, matches!(next, 0 | 43 | 60));
        if !is_fragment && !is_header {
            break;
        }
        to.has_options = true;
        let Some([following, len, high, low]) = readable::<4>(packet, at) else {
            to.is_malformed = true;
            return Some(());
        };
        if is_fragment {
            let bits = u16::from_be_bytes([high, low]);
            to.is_fragment |= bits & 0xfff9 != 0;
            offset = bits & 0xfff8;
        }
        (next, at) = (following, at + if is_fragment { 8 } else { (len as u32 + 1) * 8 });
        if offset != 0 {
            break;
        }
    }
    match next {
        TCP => {}
        // More headers than are read.
        0 | 43 | 44 | 60 if offset == 0 => to.is_malformed = true,
        _ => return None,
    }
    if is_wrong || at > end || to.is_malformed {
        to.is_malformed = true;
    } else if offset == 0 {
        tcp(packet, at, end, to);
    }
    Some(())
}

/// End of an IP packet. A length of 0 is that of one of more than 64 KiB, merged by segmentation offload.
#[inline(always)]
fn end(packet: &impl Packet, begin: u32, length: u32) -> u32 {
    if length == 0 && packet.len() > 0xffff { packet.len() } else { begin + length }
}

#[inline(always)]
fn tcp(packet: &impl Packet, begin: u32, end: u32, to: &mut Arrival) {
    let Some(tcp) = readable::<14>(packet, begin) else {
        to.is_malformed = true;
        return;
    };
    to.flow.source_port = u16::from_be_bytes([tcp[0], tcp[1]]);
    to.flow.destination_port = u16::from_be_bytes([tcp[2], tcp[3]]);
    to.seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    to.flags = tcp[13];
    let header = (tcp[12] >> 4) as u32 * 4;
    (to.tcp, to.tcp_len) = (begin, header);
    // The first fragment must have the whole header (RFC 8200 §4.5; RFC 3128).
    let is_short = header < 20 || begin + header > end;
    let is_no_state = match to.flags & (SYN | FIN | RST | ACK) {
        0 | FIN => true,
        flags => flags & SYN != 0 && flags & (FIN | RST) != 0,
    };
    to.is_malformed = is_short || is_no_state || to.flow.source_port == 0;
}

/// Bytes at an offset of at most [`READABLE`].
#[inline(always)]
fn readable<const N: usize>(packet: &impl Packet, at: u32) -> Option<[u8; N]> {
    if at > READABLE { None } else { packet.load(at) }
}

#[inline(always)]
fn part(header: &[u8; 40], at: usize) -> [u8; 16] {
    header.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; 16])
}

//! Ethernet, IPv4, IPv6 and TCP headers → the fields that steering needs (RFC 791, 8200, 9293).
//!
//! Generic over [`Packet`], so that the same code reads a kernel packet and a byte slice in a test.

use crate::maps::{FlowKey, mapped};

/// Access to the bytes of a packet, starting with the Ethernet header.
pub trait Packet {
    /// `N` bytes from `offset` on; `None` if the packet is shorter.
    fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]>;
    /// Bytes in the packet.
    fn len(&self) -> u32;
    /// Whether the packet has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Packet for &[u8] {
    fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        let start = offset as usize;
        self.get(start..start.checked_add(N)?)?.try_into().ok()
    }

    fn len(&self) -> u32 {
        <[u8]>::len(self) as u32
    }
}

/// The headers of a packet, read from front to back.
pub trait Headers {
    /// `N` bytes from `offset` on, at most 20, in any part of the packet; `None` if the packet is shorter.
    fn bytes<const N: usize>(&mut self, offset: u32) -> Option<&[u8; N]>;
    /// Copies `N` bytes from `offset` on into `to`; `false` if the packet is shorter.
    fn copy<const N: usize>(&self, offset: u32, to: &mut [u8; N]) -> bool;
    /// Bytes in the packet.
    fn packet_len(&self) -> u32;
}

/// Headers of any packet; each is copied before it is read.
struct Copied<'a, P> {
    packet: &'a P,
    header: [u8; 20],
}

impl<P: Packet> Headers for Copied<'_, P> {
    fn bytes<const N: usize>(&mut self, offset: u32) -> Option<&[u8; N]> {
        let header = self.header.first_chunk_mut()?;
        *header = self.packet.load(offset)?;
        Some(header)
    }

    fn copy<const N: usize>(&self, offset: u32, to: &mut [u8; N]) -> bool {
        self.packet.load(offset).map(|bytes| *to = bytes).is_some()
    }

    fn packet_len(&self) -> u32 {
        self.packet.len()
    }
}

/// Why a packet has no readable TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTcp {
    /// Not IP, or another protocol than TCP.
    Other,
    /// A fragment, IPv4 with options, or IPv6 with extension headers; [`crate::ip_extensions`] reads them.
    Unreadable,
    /// Shorter than its headers claim.
    Short,
}

/// FIN flag (RFC 9293 §3.1).
pub const FIN: u8 = 0x01;
/// SYN flag.
pub const SYN: u8 = 0x02;
/// RST flag.
pub const RST: u8 = 0x04;
/// PSH flag.
pub const PSH: u8 = 0x08;
/// ACK flag.
pub const ACK: u8 = 0x10;
/// ECE flag (RFC 3168 §6.1).
pub const ECE: u8 = 0x40;
/// CWR flag.
pub const CWR: u8 = 0x80;

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Addresses and ports.
    pub flow: FlowKey,
    /// Whether it is IPv6.
    pub v6: bool,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window, before scaling.
    pub window: u16,
    /// Offset of the TCP header.
    pub tcp: u32,
    /// Offset of the payload.
    pub payload: u32,
    /// Bytes of payload.
    pub payload_len: u32,
}

/// Bytes of an Ethernet header (without a VLAN tag, which the kernel moves out of the packet).
pub const ETHERNET: u32 = 14;
pub(crate) const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
pub(crate) const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
pub(crate) const TCP: u8 = 6;

/// Reads the headers of a packet.
///
/// # Errors
/// Why the packet has no readable segment; such packets are left to the stack.
pub fn segment(packet: &impl Packet) -> Result<Segment, NotTcp> {
    let mut segment = Segment {
        flow: FlowKey { source: [0; 16], destination: [0; 16], source_port: 0, destination_port: 0 },
        v6: false,
        seq: 0,
        ack: 0,
        flags: 0,
        window: 0,
        tcp: 0,
        payload: 0,
        payload_len: 0,
    };
    read_copied(packet, &mut segment)?;
    Ok(segment)
}

/// Reads the headers into `to`, each copied before it is read.
///
/// # Errors
/// As [`read`].
#[inline(always)]
pub fn read_copied(packet: &impl Packet, to: &mut Segment) -> Result<(), NotTcp> {
    read(&mut Copied { packet, header: [0; 20] }, to)
}

/// Reads the headers into `to`: as a return value they would take most of the kernel program's stack.
///
/// # Errors
/// As [`segment`]; fields that were read before the error stay written.
#[inline(always)]
pub fn read(packet: &mut impl Headers, to: &mut Segment) -> Result<(), NotTcp> {
    let ethertype = *packet.bytes::<2>(12).ok_or(NotTcp::Short)?;
    if ethertype == ETHERTYPE_IPV4 {
        ipv4::<false>(packet, to)
    } else if ethertype == ETHERTYPE_IPV6 {
        ipv6::<false>(packet, to)
    } else {
        Err(NotTcp::Other)
    }
}

/// Reads the headers of a first fragment after [`crate::ip_extensions::Extensions::take_out`]. The payload is that of
/// the fragment.
///
/// # Errors
/// As [`segment`]; also if the fragment does not contain the whole TCP header.
#[inline(always)]
pub fn read_fragment(packet: &impl Packet, v6: bool, to: &mut Segment) -> Result<(), NotTcp> {
    let mut packet = Copied { packet, header: [0; 20] };
    if v6 { ipv6::<true>(&mut packet, to) } else { ipv4::<true>(&mut packet, to) }
}

/// Bytes of the fragment header (RFC 8200 §4.5).
pub const FRAGMENT_HEADER: u32 = 8;

#[inline(always)]
fn ipv4<const FRAGMENT: bool>(packet: &mut impl Headers, to: &mut Segment) -> Result<(), NotTcp> {
    let ip: &[u8; 20] = packet.bytes(ETHERNET).ok_or(NotTcp::Short)?;
    if ip[9] != TCP {
        return Err(NotTcp::Other);
    }
    // IPv4 options, the more-fragments flag, or a fragment offset.
    if ip[0] != 0x45 || !FRAGMENT && (ip[6] & 0x3f != 0 || ip[7] != 0) {
        return Err(NotTcp::Unreadable);
    }
    let total = u16::from_be_bytes(at(ip, 2)) as u32;
    to.v6 = false;
    to.flow.source = mapped(at(ip, 12));
    to.flow.destination = mapped(at(ip, 16));
    // Total length 0: a packet of more than 64 KiB, merged by segmentation offload.
    let end = if total == 0 { packet.packet_len() } else { ETHERNET + total };
    tcp(packet, ETHERNET + 20, end, to)
}

#[inline(always)]
fn ipv6<const FRAGMENT: bool>(packet: &mut impl Headers, to: &mut Segment) -> Result<(), NotTcp> {
    let ip: &[u8; 8] = packet.bytes(ETHERNET).ok_or(NotTcp::Short)?;
    match ip[6] {
        TCP if !FRAGMENT => {}
        44 if FRAGMENT => {}
        // Hop-by-hop, routing, fragment, authentication, destination options.
        0 | 43 | 44 | 51 | 60 => return Err(NotTcp::Unreadable),
        _ => return Err(NotTcp::Other),
    }
    let length = u16::from_be_bytes([ip[4], ip[5]]) as u32;
    let end = if length == 0 { packet.packet_len() } else { ETHERNET + 40 + length };
    to.v6 = true;
    if !packet.copy(ETHERNET + 8, &mut to.flow.source) || !packet.copy(ETHERNET + 24, &mut to.flow.destination) {
        return Err(NotTcp::Short);
    }
    tcp(packet, ETHERNET + 40 + if FRAGMENT { FRAGMENT_HEADER } else { 0 }, end, to)
}

#[inline(always)]
fn tcp(packet: &mut impl Headers, begin: u32, end: u32, to: &mut Segment) -> Result<(), NotTcp> {
    let len = packet.packet_len();
    let tcp: &[u8; 16] = packet.bytes(begin).ok_or(NotTcp::Short)?;
    let header = ((tcp[12] >> 4) as u32) * 4;
    let payload = begin + header;
    if header < 20 || payload > end || end > len {
        return Err(NotTcp::Short);
    }
    to.flow.source_port = u16::from_be_bytes(at(tcp, 0));
    to.flow.destination_port = u16::from_be_bytes(at(tcp, 2));
    to.seq = u32::from_be_bytes(at(tcp, 4));
    to.ack = u32::from_be_bytes(at(tcp, 8));
    to.flags = tcp[13];
    to.window = u16::from_be_bytes(at(tcp, 14));
    to.tcp = begin;
    to.payload = payload;
    to.payload_len = end - payload;
    Ok(())
}

/// `N` bytes of a header as one word: bytes that are read one by one are also assembled one by one. `N` and the
/// position are constants within the header.
#[inline(always)]
fn at<const N: usize, const LEN: usize>(header: &[u8; LEN], position: usize) -> [u8; N] {
    header.get(position..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests;

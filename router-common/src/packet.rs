//! Ethernet, IPv4, IPv6 and TCP headers → the few fields that steering needs (RFC 791, 8200, 9293).
//!
//! Generic over [`Packet`], so that the same code reads a kernel packet and a byte slice in a test.

use crate::maps::{FlowKey, mapped};

/// Access to the bytes of a packet, from the Ethernet header on.
pub trait Packet {
    /// `N` bytes from `offset` on; `None` if the packet is shorter.
    fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]>;
    /// Bytes in the packet.
    fn len(&self) -> u32;
    /// Whether there is no byte.
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

/// Why a packet holds no TCP segment that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTcp {
    /// No IP, or no TCP in it.
    Other,
    /// A fragment, or IPv6 with extension headers: the stack will put it together.
    Unreadable,
    /// Shorter than its headers say.
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
    /// Source and destination.
    pub flow: FlowKey,
    /// IPv6, not IPv4.
    pub v6: bool,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window, before scaling.
    pub window: u16,
    /// Where the TCP header begins.
    pub tcp: u32,
    /// Where the payload begins.
    pub payload: u32,
    /// Bytes of payload.
    pub payload_len: u32,
}

/// Bytes of an Ethernet header (no VLAN tag: the kernel takes it out of the packet).
pub const ETHERNET: u32 = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const TCP: u8 = 6;

/// Reads the headers.
///
/// # Errors
/// Why there is nothing to read; such packets are not ours.
#[inline(always)]
pub fn segment(packet: &impl Packet) -> Result<Segment, NotTcp> {
    let ethertype = packet.load::<2>(12).ok_or(NotTcp::Short)?;
    if ethertype == ETHERTYPE_IPV4 {
        ipv4(packet)
    } else if ethertype == ETHERTYPE_IPV6 {
        ipv6(packet)
    } else {
        Err(NotTcp::Other)
    }
}

#[inline(always)]
fn ipv4(packet: &impl Packet) -> Result<Segment, NotTcp> {
    let ip = packet.load::<20>(ETHERNET).ok_or(NotTcp::Short)?;
    if ip[9] != TCP {
        return Err(NotTcp::Other);
    }
    // More fragments, or an offset.
    if ip[6] & 0x3f != 0 || ip[7] != 0 {
        return Err(NotTcp::Unreadable);
    }
    let header = ((ip[0] & 0x0f) as u32) * 4;
    if ip[0] >> 4 != 4 || header < 20 {
        return Err(NotTcp::Short);
    }
    let total = u16::from_be_bytes([ip[2], ip[3]]) as u32;
    // Total length 0 is a packet of over 64 KiB that segmentation offload has put together.
    let end = if total == 0 { packet.len() } else { ETHERNET + total };
    let source = mapped([ip[12], ip[13], ip[14], ip[15]]);
    let destination = mapped([ip[16], ip[17], ip[18], ip[19]]);
    // Without options, as nearly always, the position is a constant.
    let at = if header == 20 { ETHERNET + 20 } else { ETHERNET + header };
    tcp(packet, at, end, false, source, destination)
}

#[inline(always)]
fn ipv6(packet: &impl Packet) -> Result<Segment, NotTcp> {
    let ip = packet.load::<8>(ETHERNET).ok_or(NotTcp::Short)?;
    match ip[6] {
        TCP => {}
        // Hop-by-hop, routing, fragment, authentication, destination options.
        0 | 43 | 44 | 51 | 60 => return Err(NotTcp::Unreadable),
        _ => return Err(NotTcp::Other),
    }
    let length = u16::from_be_bytes([ip[4], ip[5]]) as u32;
    let end = if length == 0 { packet.len() } else { ETHERNET + 40 + length };
    let source = packet.load::<16>(ETHERNET + 8).ok_or(NotTcp::Short)?;
    let destination = packet.load::<16>(ETHERNET + 24).ok_or(NotTcp::Short)?;
    tcp(packet, ETHERNET + 40, end, true, source, destination)
}

#[inline(always)]
fn tcp(
    packet: &impl Packet,
    at: u32,
    end: u32,
    v6: bool,
    source: [u8; 16],
    destination: [u8; 16],
) -> Result<Segment, NotTcp> {
    let tcp = packet.load::<16>(at).ok_or(NotTcp::Short)?;
    let header = ((tcp[12] >> 4) as u32) * 4;
    let payload = at + header;
    if header < 20 || payload > end || end > packet.len() {
        return Err(NotTcp::Short);
    }
    Ok(Segment {
        flow: FlowKey {
            source,
            destination,
            source_port: u16::from_be_bytes([tcp[0], tcp[1]]),
            destination_port: u16::from_be_bytes([tcp[2], tcp[3]]),
        },
        v6,
        seq: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
        ack: u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]]),
        flags: tcp[13],
        window: u16::from_be_bytes([tcp[14], tcp[15]]),
        tcp: at,
        payload,
        payload_len: end - payload,
    })
}

#[cfg(test)]
mod tests;

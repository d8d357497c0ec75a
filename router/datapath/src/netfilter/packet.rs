//! A partly known packet, as the rules of a host see it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::known_bits::{Bits, Truth};

/// Bytes of an IPv6 header, the longer one.
const NETWORK: usize = 40;
/// Bytes of a TCP header without options.
const TRANSPORT: usize = 20;
/// Offset of the flags in a TCP header.
const FLAGS: usize = 13;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const PROTOCOL_TCP: u8 = 6;

/// Bytes of an interface's name in the kernel (`IFNAMSIZ`).
pub const NAME: usize = 16;

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interface {
    /// Its index.
    pub index: u32,
    /// Its name, padded with zeros.
    pub name: [u8; NAME],
}

impl Interface {
    /// The interface with this index, and its name in `names`.
    pub fn of(index: u32, names: &BTreeMap<u32, String>) -> Interface {
        Interface::new(index, names.get(&index).map_or("", String::as_str))
    }

    /// The interface with this index and name.
    pub fn new(index: u32, name: &str) -> Interface {
        let mut bytes = [0; NAME];
        bytes.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        Interface { index, name: bytes }
    }
}

/// The interface that a packet arrives on, or leaves by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// None, at this hook.
    None,
    /// Not known.
    Unknown,
    /// This interface.
    Is(Interface),
}

/// State of a packet in the kernel's connection tracking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// The first packet of its connection.
    New,
    /// A later packet.
    Established,
    /// A packet of no connection that may begin with it.
    Invalid,
    /// Possibly untracked.
    Unknown,
}

/// Type of an address (`fib … type`, `-m addrtype`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// An address of this host.
    Local,
    /// A unicast address elsewhere.
    Elsewhere,
    /// Not known.
    Unknown,
}

/// Kind of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A SYN.
    Syn,
    /// A SYN-ACK.
    SynAck,
    /// A segment with ACK: data, or a FIN.
    Ack,
    /// A RST.
    Reset,
    /// Any of these.
    Unknown,
}

/// The packet.
#[derive(Clone, Copy, Debug)]
pub struct RulePacket {
    /// True for IPv6.
    pub v6: bool,
    pub(super) network: [[u8; NETWORK]; 2],
    pub(super) transport: [[u8; TRANSPORT]; 2],
    /// Input interface.
    pub input: Device,
    /// Output interface.
    pub output: Device,
    /// State in connection tracking.
    pub tracked: Tracked,
    /// True for the reply direction; `None` if not known.
    pub reply: bool,
    /// Type of the source address.
    pub source: AddressClass,
    /// Type of the destination address.
    pub destination: AddressClass,
}

impl RulePacket {
    /// A TCP packet between two addresses, as far as they are known, with the destination's version of IP. Port 0
    /// stands for an unknown port.
    pub fn new(from: Option<SocketAddr>, to: SocketAddr, segment: SegmentKind) -> RulePacket {
        let (mut network, mut transport) = ([[0; NETWORK]; 2], [[0; TRANSPORT]; 2]);
        let mut put = |at: usize, bytes: &[u8], mask: u8| {
            network[0][at..at + bytes.len()].copy_from_slice(bytes);
            network[1][at..at + bytes.len()].fill(mask);
        };
        let v6 = to.is_ipv6();
        if v6 {
            put(0, &[0x60], 0xf0);
            put(6, &[PROTOCOL_TCP], 0xff);
        } else {
            put(0, &[0x45], 0xff);
            // Not a fragment: the offset and "more fragments" are 0.
            put(6, &[0], 0x3f);
            put(7, &[0], 0xff);
            put(9, &[PROTOCOL_TCP], 0xff);
        }
        for (address, [v4_at, v6_at]) in [(from, [12, 8]), (Some(to), [16, 24])] {
            match address.map(|address| address.ip()) {
                Some(IpAddr::V4(address)) => put(v4_at, &address.octets(), 0xff),
                Some(IpAddr::V6(address)) => put(v6_at, &address.octets(), 0xff),
                None => {}
            }
        }
        for (address, at) in [(from, 0), (Some(to), 2)] {
            if let Some(port) = address.map(|address| address.port()).filter(|port| *port != 0) {
                transport[0][at..at + 2].copy_from_slice(&port.to_be_bytes());
                transport[1][at..at + 2].fill(0xff);
            }
        }
        // The ECN bits, and ACK in a RST, are unknown.
        let (flags, known) = match segment {
            SegmentKind::Syn => (SYN, 0x3f),
            SegmentKind::SynAck => (SYN | ACK, 0x3f),
            SegmentKind::Ack => (ACK, ACK | SYN | RST | 0x20),
            SegmentKind::Reset => (RST, 0x2f),
            SegmentKind::Unknown => (0, 0),
        };
        (transport[0][FLAGS], transport[1][FLAGS]) = (flags, known);
        RulePacket {
            v6,
            network,
            transport,
            input: Device::None,
            output: Device::None,
            tracked: Tracked::Unknown,
            reply: false,
            source: AddressClass::Unknown,
            destination: AddressClass::Unknown,
        }
    }

    /// The IP header; the bytes beyond its length are unknown.
    pub fn network(&self) -> Bits<'_> {
        Bits { value: &self.network[0], known: &self.network[1] }.part(0, if self.v6 { 40 } else { 20 })
    }

    /// The TCP header.
    pub fn transport(&self) -> Bits<'_> {
        Bits { value: &self.transport[0], known: &self.transport[1] }
    }

    /// Whether the source port, or the destination port, is within a range.
    pub fn port_is_within(&self, source: bool, low: u16, high: u16) -> Truth {
        let port = self.transport().part(if source { 0 } else { 2 }, 2);
        port.is_within(&low.to_be_bytes(), &high.to_be_bytes())
    }
}

/// The type of an address, given the addresses of this host.
pub fn class(address: IpAddr, local: &BTreeSet<IpAddr>) -> AddressClass {
    if address.is_loopback() || local.contains(&address) { AddressClass::Local } else { AddressClass::Elsewhere }
}

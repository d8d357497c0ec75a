//! A packet of which only some is known, as the rules of a host see it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::bits::{Bits, Truth};

/// Bytes of a header of IPv6, the longer one.
const NETWORK: usize = 40;
/// Bytes of a TCP header without options.
const TRANSPORT: usize = 20;
/// Where a TCP header has its flags.
const FLAGS: usize = 13;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const PROTOCOL_TCP: u8 = 6;

/// Bytes of an interface's name in the kernel (`IFNAMSIZ`).
pub const NAME: usize = 16;

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Its index.
    pub index: u32,
    /// Its name, filled up with zeros.
    pub name: [u8; NAME],
}

impl Link {
    /// With the name that it has among these.
    pub fn of(index: u32, names: &BTreeMap<u32, String>) -> Link {
        Link::new(index, names.get(&index).map_or("", String::as_str))
    }

    /// With this name.
    pub fn new(index: u32, name: &str) -> Link {
        let mut bytes = [0; NAME];
        bytes.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        Link { index, name: bytes }
    }
}

/// The interface that a packet comes in by, or leaves by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// There is none at this place.
    None,
    /// It is not known.
    Unknown,
    /// It is this one.
    Is(Link),
}

/// What the kernel's connection tracking calls a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// The first of its connection.
    New,
    /// A later one.
    Established,
    /// It may not be tracked.
    Unknown,
}

/// What kind of address one is (`fib … type`, `-m addrtype`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One of this host.
    Local,
    /// A unicast address elsewhere.
    Elsewhere,
    /// Not known.
    Unknown,
}

/// What a TCP segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The first of a connection.
    Syn,
    /// The answer to it.
    SynAck,
    /// One with an acknowledgement: data, or the end of the stream.
    Ack,
    /// A reset.
    Reset,
    /// Any of them.
    Unknown,
}

/// The packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Whether it is of IPv6.
    pub v6: bool,
    pub(super) network: [[u8; NETWORK]; 2],
    pub(super) transport: [[u8; TRANSPORT]; 2],
    /// Where it comes in.
    pub input: Device,
    /// Where it leaves.
    pub output: Device,
    /// What connection tracking knows.
    pub tracked: Tracked,
    /// It is of the answering direction; `None` if not known.
    pub reply: bool,
    /// Of its source.
    pub source: Class,
    /// Of its destination.
    pub destination: Class,
}

impl Packet {
    /// A TCP packet between two addresses, as far as they are known, with the destination's version of IP. A port 0
    /// is one that is not known.
    pub fn new(from: Option<SocketAddr>, to: SocketAddr, segment: Segment) -> Packet {
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
            // No fragment: the offset and "more fragments" are 0.
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
        // Bits of congestion notification, and with a reset its acknowledgement, may be either way.
        let (flags, known) = match segment {
            Segment::Syn => (SYN, 0x3f),
            Segment::SynAck => (SYN | ACK, 0x3f),
            Segment::Ack => (ACK, ACK | SYN | RST | 0x20),
            Segment::Reset => (RST, 0x2f),
            Segment::Unknown => (0, 0),
        };
        (transport[0][FLAGS], transport[1][FLAGS]) = (flags, known);
        Packet {
            v6,
            network,
            transport,
            input: Device::None,
            output: Device::None,
            tracked: Tracked::Unknown,
            reply: false,
            source: Class::Unknown,
            destination: Class::Unknown,
        }
    }

    /// Its IP header; what is beyond the header's length is not known.
    pub fn network(&self) -> Bits<'_> {
        Bits { value: &self.network[0], known: &self.network[1] }.part(0, if self.v6 { 40 } else { 20 })
    }

    /// Its TCP header.
    pub fn transport(&self) -> Bits<'_> {
        Bits { value: &self.transport[0], known: &self.transport[1] }
    }

    /// Whether its source port, or its destination port, is within a range.
    pub fn port_is_within(&self, source: bool, low: u16, high: u16) -> Truth {
        let port = self.transport().part(if source { 0 } else { 2 }, 2);
        port.is_within(&low.to_be_bytes(), &high.to_be_bytes())
    }
}

/// The class of an address, by the addresses of this host.
pub fn class(address: IpAddr, local: &BTreeSet<IpAddr>) -> Class {
    if address.is_loopback() || local.contains(&address) { Class::Local } else { Class::Elsewhere }
}

//! One client's packets, as bytes; and checks of returned packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use router_common::maps::FlowKey;
use router_common::packet::{self, ACK, RST, SYN};
use router_datapath::address::sixteen;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves the calling thread into a new network namespace, which ends with the thread.
pub fn own_network() {
    // SAFETY: NEWNET changes what network calls of this thread see, no memory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("a network namespace can be made (are you root?)");
}

/// One client's side of a connection.
pub struct Client {
    address: IpAddr,
    listener: IpAddr,
    port: u16,
    to: u16,
    isn: u32,
    sent: u32,
}

impl Client {
    /// A client on the listener's own address.
    pub fn new(address: IpAddr, port: u16, to: u16) -> Client {
        Client { address, listener: address, port, to, isn: 1000, sent: 0 }
    }

    /// A client on another address.
    pub fn from(address: IpAddr, port: u16, to: u16) -> Client {
        let listener: IpAddr = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        Client { listener, ..Client::new(address, port, to) }
    }

    /// The same, to another address.
    pub fn to(self, listener: IpAddr) -> Client {
        Client { listener, ..self }
    }

    /// With this initial sequence number.
    pub fn starting_at(self, isn: u32) -> Client {
        Client { isn, ..self }
    }

    /// The connection's key in the maps.
    pub fn flow(&self) -> FlowKey {
        FlowKey {
            source: sixteen(self.address),
            destination: sixteen(self.listener),
            source_port: self.port,
            destination_port: self.to,
        }
    }

    /// The first packet.
    pub fn syn(&mut self) -> Vec<u8> {
        self.packet(SYN, self.isn, &[])
    }

    /// The next bytes.
    pub fn data(&mut self, payload: &[u8]) -> Vec<u8> {
        let packet = self.data_at(self.sent, payload);
        self.sent += payload.len() as u32;
        packet
    }

    /// Bytes at an offset of the stream.
    pub fn data_at(&self, offset: u32, payload: &[u8]) -> Vec<u8> {
        self.packet(ACK, self.isn.wrapping_add(1).wrapping_add(offset), payload)
    }

    /// Its initial sequence number.
    pub fn isn(&self) -> u32 {
        self.isn
    }

    /// The first packet, with these options, and with data.
    pub fn syn_with(&self, options: &[u8], payload: &[u8]) -> Vec<u8> {
        self.segment_with(SYN, self.isn, 0, options, payload)
    }

    /// The acknowledgement that ends the handshake, with these options.
    pub fn ack_with(&self, ack: u32, options: &[u8]) -> Vec<u8> {
        self.segment_with(ACK, self.isn.wrapping_add(1), ack, options, &[])
    }

    /// The first bytes, which acknowledge the listener's SYN-ACK.
    pub fn data_acknowledging(&self, ack: u32, payload: &[u8]) -> Vec<u8> {
        self.segment(ACK, self.isn.wrapping_add(1), ack, payload)
    }

    fn packet(&self, flags: u8, seq: u32, payload: &[u8]) -> Vec<u8> {
        self.segment_with(flags, seq, 5000, &[], payload)
    }

    /// Any segment without options.
    pub fn segment(&self, flags: u8, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
        self.segment_with(flags, seq, ack, &[], payload)
    }

    /// Any segment.
    pub fn segment_with(&self, flags: u8, seq: u32, ack: u32, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.port.to_be_bytes());
        tcp.extend(self.to.to_be_bytes());
        tcp.extend(seq.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        tcp.extend([(5 + options.len() as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(options);
        tcp.extend(payload);
        let (source, target) = (sixteen(self.address), sixteen(self.listener));
        let sum = checksum(&source, &target, self.address.is_ipv4(), &tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());

        // Addressed to the loopback device, on which test runs receive their packets: frames to other addresses count
        // as other hosts'.
        let mut packet = vec![0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2];
        if self.address.is_ipv4() {
            packet.extend([0x08, 0x00]);
            let total = (20 + tcp.len()) as u16;
            let [l0, l1] = total.to_be_bytes();
            let mut ip = vec![0x45, 0, l0, l1, 0, 0, 0x40, 0, 64, 6, 0, 0];
            ip.extend(&source[12..]);
            ip.extend(&target[12..]);
            let sum = !fold(words(&ip));
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            packet.extend(ip);
        } else {
            packet.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            packet.extend((tcp.len() as u16).to_be_bytes());
            packet.extend([6, 64]);
            packet.extend(source);
            packet.extend(target);
        }
        packet.extend(tcp);
        packet
    }
}

/// Checks that a packet is this client's reset to the listener, with correct lengths and checksums.
pub fn assert_reset(packet: &[u8], client: &Client) {
    let read = packet::segment(&packet).expect("a TCP segment");
    assert_eq!(read.flow, client.flow());
    assert_eq!(read.flags, RST);
    assert_eq!(read.seq, client.isn.wrapping_add(1));
    assert_eq!(read.payload_len, 0);
    assert_eq!(packet.len() as u32, read.payload, "nothing follows the header");
    assert_sums(packet);
}

/// Checks the checksums of a packet.
pub fn assert_sums(packet: &[u8]) {
    let read = packet::segment(&packet).expect("a TCP segment");
    let tcp = &packet[read.tcp as usize..];
    let sum = checksum(&read.flow.source, &read.flow.destination, !read.v6, tcp);
    assert_eq!(sum, 0, "the TCP checksum");
    if !read.v6 {
        assert_eq!(!fold(words(&packet[14..read.tcp as usize])), 0, "the IPv4 header checksum");
    }
}

/// A minimal TLS 1.3 ClientHello for a name.
pub fn client_hello(name: &str) -> Vec<u8> {
    let name = name.as_bytes();
    let n = name.len() as u16;
    let mut sni = Vec::from([0, 0]);
    sni.extend((n + 5).to_be_bytes());
    sni.extend((n + 3).to_be_bytes());
    sni.push(0);
    sni.extend(n.to_be_bytes());
    sni.extend(name);
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    body.extend((sni.len() as u16).to_be_bytes());
    body.extend(sni);
    let mut message = vec![1, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    let mut record = vec![22, 3, 1];
    record.extend((message.len() as u16).to_be_bytes());
    record.extend(message);
    record
}

fn checksum(source: &[u8; 16], target: &[u8; 16], v4: bool, tcp: &[u8]) -> u16 {
    let from = if v4 { 12 } else { 0 };
    !fold(words(&source[from..]) + words(&target[from..]) + 6 + tcp.len() as u32 + words(tcp))
}

fn words(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// A frame in fragments of at most `size` bytes (RFC 791 §3.2, RFC 8200 §4.5).
pub fn fragments(frame: &[u8], id: u32, size: usize) -> Vec<Vec<u8>> {
    let v6 = frame[12..14] == [0x86, 0xdd];
    let (ip, data) = frame.split_at(if v6 { 54 } else { 34 });
    let part = |(i, part): (usize, &[u8])| {
        let (offset, more) = ((i * size) as u16, u16::from((i + 1) * size < data.len()));
        let mut ip = ip.to_vec();
        if v6 {
            ip[18..20].copy_from_slice(&(part.len() as u16 + 8).to_be_bytes());
            ip[20] = 44;
            ip.extend([6, 0]);
            ip.extend((offset | more).to_be_bytes());
            ip.extend(id.to_be_bytes());
        } else {
            ip[16..18].copy_from_slice(&(part.len() as u16 + 20).to_be_bytes());
            ip[18..20].copy_from_slice(&(id as u16).to_be_bytes());
            ip[20..22].copy_from_slice(&((offset / 8) | (more << 13)).to_be_bytes());
            sum_up(&mut ip);
        }
        [ip, part.to_vec()].concat()
    };
    data.chunks(size).enumerate().map(part).collect()
}

/// A frame with `between` behind its IP header: IPv4 options, or IPv6 headers, the first of which has the type `next`.
pub fn with(frame: &[u8], next: u8, between: &[u8]) -> Vec<u8> {
    let v6 = frame[12..14] == [0x86, 0xdd];
    let (ip, data) = frame.split_at(if v6 { 54 } else { 34 });
    let at = if v6 { 18 } else { 16 };
    let length = u16::from_be_bytes([ip[at], ip[at + 1]]) + between.len() as u16;
    let mut ip = ip.to_vec();
    ip[at..at + 2].copy_from_slice(&length.to_be_bytes());
    if v6 {
        ip[20] = next;
    } else {
        ip[14] += (between.len() / 4) as u8;
    }
    ip.extend(between);
    if !v6 {
        sum_up(&mut ip);
    }
    [ip, data.to_vec()].concat()
}

/// Recomputes the IPv4 header checksum.
fn sum_up(ip: &mut [u8]) {
    ip[24..26].fill(0);
    let sum = !fold(words(&ip[14..]));
    ip[24..26].copy_from_slice(&sum.to_be_bytes());
}

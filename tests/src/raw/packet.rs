//! TCP packets, written and parsed field by field; parsing verifies all checksums.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, bail, ensure};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};

/// Endpoints of packets.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Hardware address of this end.
    pub hardware: [u8; 6],
    /// Hardware address of the other end of the link.
    pub gateway: [u8; 6],
    /// Address of this end.
    pub local: SocketAddr,
    /// Address of the peer; port 0 until one connects.
    pub remote: SocketAddr,
}

/// A TCP packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number, with the ACK flag.
    pub ack: Option<u32>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// Window, before scaling.
    pub window: u16,
    /// Maximum segment size option.
    pub max_segment: Option<u16>,
    /// Window scale option.
    pub shift: Option<u8>,
    /// Selective acknowledgement permitted option.
    pub sack_permitted: bool,
    /// Timestamps option: value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgement option: blocks.
    pub sack: Vec<(u32, u32)>,
    /// Payload.
    pub payload: Vec<u8>,
}

impl Packet {
    /// Length in sequence space.
    pub fn length(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX) + u32::from(self.syn) + u32::from(self.fin)
    }

    /// Encodes the frame.
    ///
    /// # Errors
    /// When addresses are of two families, or the options are too long.
    pub fn write(&self, path: &Path) -> Result<Vec<u8>> {
        let ethernet = PacketBuilder::ethernet2(path.hardware, path.gateway);
        let ip = match (path.local.ip(), path.remote.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => ethernet.ipv4(from.octets(), to.octets(), 64),
            (IpAddr::V6(from), IpAddr::V6(to)) => ethernet.ipv6(from.octets(), to.octets(), 64),
            (from, to) => bail!("{from} and {to} are of two families"),
        };
        let mut tcp = ip.tcp(path.local.port(), path.remote.port(), self.seq, self.window);
        if let Some(ack) = self.ack {
            tcp = tcp.ack(ack);
        }
        if self.syn {
            tcp = tcp.syn();
        }
        if self.fin {
            tcp = tcp.fin();
        }
        if self.rst {
            tcp = tcp.rst();
        }
        if !self.payload.is_empty() {
            tcp = tcp.psh();
        }
        let tcp = tcp.options(&self.options()).context("the options do not fit")?;
        let mut frame = Vec::with_capacity(tcp.size(self.payload.len()));
        tcp.write(&mut frame, &self.payload)?;
        Ok(frame)
    }

    fn options(&self) -> Vec<TcpOptionElement> {
        let mut options = Vec::new();
        options.extend(self.max_segment.map(TcpOptionElement::MaximumSegmentSize));
        if self.sack_permitted {
            options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
        }
        options.extend(self.timestamps.map(|(value, echo)| TcpOptionElement::Timestamp(value, echo)));
        options.extend(self.shift.map(TcpOptionElement::WindowScale));
        if let Some((first, rest)) = self.sack.split_first() {
            let block = |i: usize| rest.get(i).copied();
            options.push(TcpOptionElement::SelectiveAcknowledgement(*first, [block(0), block(1), block(2)]));
        }
        options
    }

    /// Parses a frame from the other end of `path`; `None` for other frames. The second value is the source address.
    ///
    /// # Errors
    /// When the packet is for this end, and a length, checksum or option of it is wrong.
    pub fn read(frame: &[u8], path: &Path) -> Result<Option<(Packet, SocketAddr)>> {
        let Ok(sliced) = SlicedPacket::from_ethernet(frame) else { return Ok(None) };
        let (Some(net), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport) else { return Ok(None) };
        let (from, to, checksum, header_is_right): (IpAddr, IpAddr, _, _) = match net {
            NetSlice::Ipv4(ip) => {
                let header = ip.header();
                let sum = tcp.calc_checksum_ipv4(header.source(), header.destination());
                let whole = header.to_header();
                let right = same(whole.calc_header_checksum(), whole.header_checksum);
                (header.source_addr().into(), header.destination_addr().into(), sum, right)
            }
            NetSlice::Ipv6(ip) => {
                let header = ip.header();
                let sum = tcp.calc_checksum_ipv6(header.source(), header.destination());
                (header.source_addr().into(), header.destination_addr().into(), sum, true)
            }
            _ => return Ok(None),
        };
        let (from, to) = (SocketAddr::new(from, tcp.source_port()), SocketAddr::new(to, tcp.destination_port()));
        if to != path.local || (path.remote.port() != 0 && from != path.remote) {
            return Ok(None);
        }
        ensure!(header_is_right, "the IPv4 header checksum is wrong: {frame:02x?}");
        ensure!(same(checksum?, tcp.checksum()), "the TCP checksum is wrong: {frame:02x?}");
        let mut packet = Packet {
            seq: tcp.sequence_number(),
            ack: tcp.ack().then(|| tcp.acknowledgment_number()),
            syn: tcp.syn(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            window: tcp.window_size(),
            payload: tcp.payload().to_vec(),
            ..Packet::default()
        };
        for option in tcp.options_iterator() {
            match option.with_context(|| format!("an option cannot be read: {frame:02x?}"))? {
                TcpOptionElement::Noop => (),
                TcpOptionElement::MaximumSegmentSize(size) => packet.max_segment = Some(size),
                TcpOptionElement::WindowScale(shift) => packet.shift = Some(shift),
                TcpOptionElement::SelectiveAcknowledgementPermitted => packet.sack_permitted = true,
                TcpOptionElement::Timestamp(value, echo) => packet.timestamps = Some((value, echo)),
                TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                    packet.sack = [Some(first)].into_iter().chain(rest).flatten().collect();
                }
            }
        }
        Ok(Some((packet, from)))
    }
}

/// Compares checksums: in ones' complement, zero has two representations (RFC 1624 §3), and stacks write either.
fn same(left: u16, right: u16) -> bool {
    left == right || (matches!(left, 0 | 0xffff) && matches!(right, 0 | 0xffff))
}

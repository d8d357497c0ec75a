//! Resets to both ends of a connection that the agent ends: its entries are deleted, and neither end may send a packet
//! that would be answered by a reset.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use router_common::maps::{FLOW_FIN, Flow, FlowKey};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};

use super::flows::other_direction;

/// Bytes of a TCP header without options (RFC 9293 §3.1).
const TCP: usize = 20;
const PROTOCOL_TCP: u8 = 6;
const HOP_LIMIT: u8 = 64;
/// RST and ACK.
const FLAGS: u8 = 0x14;

/// Raw sockets (raw(7)), opened when the first reset is sent.
#[derive(Debug, Default)]
pub struct Resets {
    v4: Option<OwnedFd>,
    v6: Option<OwnedFd>,
    /// The failure to open them was logged.
    failure_logged: bool,
}

impl Resets {
    /// Resets both ends of a connection, given its client's key and its two deleted entries. Each reset has the
    /// sequence number that its receiver expects next (RFC 5961 §3.2).
    pub fn send(&mut self, key: &FlowKey, client: &Flow, backend: &Flow) {
        self.send_to(key, client);
        self.send_to_endpoint(client, backend);
    }

    /// Resets the endpoint only.
    pub fn send_to_endpoint(&mut self, client: &Flow, backend: &Flow) {
        self.send_to(&other_direction(client), backend);
    }

    /// Resets the sender of an entry's packets.
    fn send_to(&mut self, from: &FlowKey, flow: &Flow) {
        if let Err(error) = self.answer(from, flow)
            && !std::mem::replace(&mut self.failure_logged, true)
        {
            tracing::warn!(%error, "cannot send resets for ended connections; raw sockets need CAP_NET_RAW");
        }
    }

    /// The reset that answers the last packet of one side.
    fn answer(&mut self, from: &FlowKey, flow: &Flow) -> io::Result<()> {
        let next = if flow.own & FLOW_FIN == 0 { flow.next_seq } else { flow.fin_end };
        let to = from.reversed();
        let address = |bytes: [u8; 16]| Ipv6Addr::from(bytes).to_canonical();
        let packet = packet(&to, flow.acked, next);
        let destination = address(to.destination);
        let socket = match destination {
            IpAddr::V4(_) => opened(&mut self.v4, AddressFamily::INET)?,
            IpAddr::V6(_) => opened(&mut self.v6, AddressFamily::INET6)?,
        };
        // Port 0: the packet itself contains the port.
        match sendto(socket, &packet, SendFlags::DONTWAIT, &SocketAddr::new(destination, 0)) {
            // A rule of the host drops it, or a policy blocks it.
            Err(Errno::PERM) => Ok(()),
            sent => Ok(sent.map(drop)?),
        }
    }
}

/// A socket for packets with their IP header (`IPPROTO_RAW`).
fn opened(socket: &mut Option<OwnedFd>, family: AddressFamily) -> io::Result<&OwnedFd> {
    if socket.is_none() {
        let raw: Protocol = ipproto::RAW;
        *socket = Some(socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(raw))?);
    }
    socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// A reset with its IP header.
fn packet(to: &FlowKey, seq: u32, ack: u32) -> Vec<u8> {
    let address = |bytes: [u8; 16]| Ipv6Addr::from(bytes).to_canonical();
    let mut tcp = [0; TCP];
    tcp[..2].copy_from_slice(&to.source_port.to_be_bytes());
    tcp[2..4].copy_from_slice(&to.destination_port.to_be_bytes());
    tcp[4..8].copy_from_slice(&seq.to_be_bytes());
    tcp[8..12].copy_from_slice(&ack.to_be_bytes());
    tcp[12] = (TCP as u8 / 4) << 4;
    tcp[13] = FLAGS;
    let mut packet = Vec::with_capacity(40 + TCP);
    let addresses: Vec<u8> = match (address(to.source), address(to.destination)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            // The kernel fills in length, identification and checksum (raw(7)).
            packet.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, HOP_LIMIT, PROTOCOL_TCP, 0, 0]);
            [source.octets(), destination.octets()].concat()
        }
        _ => {
            packet.extend([0x60, 0, 0, 0, 0, TCP as u8, PROTOCOL_TCP, HOP_LIMIT]);
            [to.source, to.destination].concat()
        }
    };
    // The pseudo header (RFC 9293 §3.1, RFC 8200 §8.1), whose other fields count the same in both versions.
    let sum = [&addresses[..], &[0, PROTOCOL_TCP, 0, TCP as u8], &tcp].concat();
    tcp[16..18].copy_from_slice(&checksum(&sum).to_be_bytes());
    packet.extend(addresses);
    packet.extend(tcp);
    packet
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use router_common::maps::mapped;
    use router_common::packet::{ACK, RST, segment};

    #[test]
    fn a_reset_is_read_as_it_was_meant() {
        let v6 = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).octets();
        for (source, destination) in [(mapped([10, 0, 0, 1]), mapped([192, 0, 2, 7])), (v6(1), v6(2))] {
            let to = FlowKey { source, destination, source_port: 443, destination_port: 50_000 };
            let ip = packet(&to, 0xffff_fff0, 7);
            let is_v4 = ip[0] == 0x45;
            let mut frame = vec![0; 12];
            frame.extend(if is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] });
            frame.extend(&ip);
            if is_v4 {
                // As the kernel does.
                frame[16..18].copy_from_slice(&(ip.len() as u16).to_be_bytes());
            }
            let read = segment(&frame.as_slice()).unwrap();
            assert_eq!((read.flow, read.seq, read.ack, read.payload_len), (to, 0xffff_fff0, 7, 0));
            assert_eq!(read.flags, RST | ACK);
            let tcp = &ip[ip.len() - TCP..];
            let addresses = if is_v4 { &ip[12..20] } else { &ip[8..40] };
            assert_eq!(checksum(&[addresses, &[0, PROTOCOL_TCP, 0, TCP as u8], tcp].concat()), 0);
        }
    }
}

//! ICMP errors about packets of connections that the kernel carries.
//!
//! A packet was too big for a link on its path (RFC 1191, RFC 8201). The error must reach the packet's sender, which is
//! the client or the endpoint, never this host. It is addressed to this host, and quotes the packet as this host sent
//! it. It is forwarded to the sender, and the quoted packet is translated back to the form in which the sender sent it.
//!
//! The SYN of a dial cannot reach its endpoint, or is prohibited: that counts as a refusal, as a reset does (RFC 1122
//! §4.2.3.9; Linux ends a connection attempt on any of these errors).

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use router_common::maps::{FLOW_ACROSS, Flow, SIDE_BACKEND, STATE_DIALING, mapped};
use router_common::packet::{ETHERNET, Packet};
use router_common::translate::{ChecksumDelta, PacketMut};

use crate::maps;
use crate::retry;
use crate::skb::Skb;

const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const TCP: u8 = 6;
/// Destination unreachable, fragmentation needed (RFC 792).
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
/// Packet too big (RFC 4443 §3.2).
const TOO_BIG: [u8; 2] = [2, 0];
/// Types of errors that end a connection attempt: destination unreachable, time exceeded, parameter problem (RFC 792),
/// and the same of ICMPv6 (RFC 4443 §3).
const REFUSALS: [u8; 3] = [3, 11, 12];
const REFUSALS6: [u8; 3] = [1, 3, 4];
/// [`icmp4`], [`icmp6`]: an endpoint cannot be reached; the working memory holds the client's key and first flight.
const REFUSED: i32 = 0x1_0000;
/// Bytes of an ICMP header before the quoted packet.
const HEADER: u32 = 8;

/// Handles a packet that is not a TCP segment: an error about a carried connection, or a packet to pass up.
#[inline(always)]
pub fn packet(skb: &mut Skb) -> i32 {
    let action = if skb.is_v6() { icmp6(skb) } else { icmp4(skb) };
    if action == REFUSED { retry::dial(skb) } else { action }
}

#[inline(never)]
fn icmp4(skb: &mut Skb) -> i32 {
    const QUOTED: u32 = ETHERNET + 20 + HEADER;
    let Some(ip) = skb.load::<10>(ETHERNET) else { return TC_ACT_OK };
    if ip[0] != 0x45 || ip[9] != ICMP {
        return TC_ACT_OK;
    }
    let Some(kind) = skb.load::<2>(ETHERNET + 20) else { return TC_ACT_OK };
    let too_big = kind == FRAGMENTATION_NEEDED;
    if !too_big && !REFUSALS.contains(&kind[0]) {
        return TC_ACT_OK;
    }
    let Some(inner) = skb.load::<20>(QUOTED) else { return TC_ACT_OK };
    if inner[0] != 0x45 || inner[9] != TCP {
        return TC_ACT_OK;
    }
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    memory.key.source = mapped([inner[16], inner[17], inner[18], inner[19]]);
    memory.key.destination = mapped([inner[12], inner[13], inner[14], inner[15]]);
    if !too_big {
        return refusal(skb, QUOTED + 20);
    }
    let Some(flow) = sender(skb, QUOTED + 20) else { return TC_ACT_OK };
    if let Some([m0, m1]) = skb.load::<2>(ETHERNET + 20 + 6) {
        smaller_payload(flow, u16::from_be_bytes([m0, m1]) as u32, 40);
    }
    let Some(outer) = skb.load::<8>(ETHERNET + 12) else { return TC_ACT_SHOT };
    let to = &flow.rewrite.to;
    let [.., a, b, c, d] = to.source;
    let [.., e, f, g, h] = to.destination;
    let mut difference = ChecksumDelta::default();
    difference.change_bytes([outer[0], outer[1], outer[2], outer[3]], [a, b, c, d]);
    difference.change_bytes([outer[4], outer[5], outer[6], outer[7]], [e, f, g, h]);
    let mut quoted = ChecksumDelta::default();
    quoted.change_bytes([inner[12], inner[13], inner[14], inner[15]], [e, f, g, h]);
    quoted.change_bytes([inner[16], inner[17], inner[18], inner[19]], [a, b, c, d]);
    // The quoted IP header's checksum compensates for its addresses, so the ICMP checksum over both does not change.
    let done = skb.store(ETHERNET + 12, &[a, b, c, d, e, f, g, h])
        && skb.fix_ip_checksum(ETHERNET + 10, difference.folded())
        && skb.store(QUOTED + 12, &[e, f, g, h, a, b, c, d])
        && skb.fix_ip_checksum(QUOTED + 10, quoted.folded())
        && quoted_tcp(skb, QUOTED + 20, ETHERNET + 20 + 2, flow);
    if done { skb.send(flow.interface) } else { TC_ACT_SHOT }
}

#[inline(never)]
fn icmp6(skb: &mut Skb) -> i32 {
    const QUOTED: u32 = ETHERNET + 40 + HEADER;
    if skb.load::<1>(ETHERNET + 6) != Some([ICMP6]) {
        return TC_ACT_OK;
    }
    let Some(kind) = skb.load::<2>(ETHERNET + 40) else { return TC_ACT_OK };
    let too_big = kind == TOO_BIG;
    if !too_big && !REFUSALS6.contains(&kind[0]) {
        return TC_ACT_OK;
    }
    if skb.load::<1>(QUOTED + 6) != Some([TCP]) {
        return TC_ACT_OK;
    }
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    let Some(source) = skb.load::<16>(QUOTED + 8) else { return TC_ACT_OK };
    memory.key.destination = source;
    let Some(destination) = skb.load::<16>(QUOTED + 24) else { return TC_ACT_OK };
    memory.key.source = destination;
    if !too_big {
        return refusal(skb, QUOTED + 40);
    }
    let Some(flow) = sender(skb, QUOTED + 40) else { return TC_ACT_OK };
    if let Some(mtu) = skb.load::<4>(ETHERNET + 40 + 4) {
        smaller_payload(flow, u32::from_be_bytes(mtu), 60);
    }
    let to = &flow.rewrite.to;
    let done = replace(skb, ETHERNET + 8, &to.source, true)
        && replace(skb, ETHERNET + 24, &to.destination, true)
        && replace(skb, QUOTED + 8, &to.destination, false)
        && replace(skb, QUOTED + 24, &to.source, false)
        && quoted_tcp(skb, QUOTED + 40, ETHERNET + 40 + 2, flow);
    if done { skb.send(flow.interface) } else { TC_ACT_SHOT }
}

/// Replaces an address and updates the ICMPv6 checksum. `pseudo`: the address is part of the pseudo-header (RFC 4443
/// §2.3), not of the message.
#[inline(never)]
fn replace(skb: &mut Skb, at: u32, new: &[u8; 16], pseudo: bool) -> bool {
    let Some(old) = skb.load::<16>(at) else { return false };
    let mut difference = ChecksumDelta::default();
    let mut i = 0;
    while i < 16 {
        difference
            .change_bytes([old[i], old[i + 1], old[i + 2], old[i + 3]], [new[i], new[i + 1], new[i + 2], new[i + 3]]);
        i += 4;
    }
    let stored = if pseudo { skb.store_counted(at, new) } else { skb.store(at, new) };
    stored && skb.fix_tcp_checksum(ETHERNET + 40 + 2, difference.folded(), pseudo)
}

/// The flow entry of the quoted packet's reverse direction; the quoted addresses are in the working memory. It gives
/// the sender's addresses and the offset to its sequence numbers.
#[inline(never)]
fn sender(skb: &Skb, tcp: u32) -> Option<&'static mut Flow> {
    let memory = maps::scratch_memory()?;
    let [p0, p1, q0, q1] = skb.load::<4>(tcp)?;
    memory.key.source_port = u16::from_be_bytes([q0, q1]);
    memory.key.destination_port = u16::from_be_bytes([p0, p1]);
    let flow = maps::flow(&memory.key)?;
    // Between IP versions the size that fits differs by the length of the headers; the sender's own path MTU discovery
    // must find it.
    if flow.own & FLOW_ACROSS == 0 { Some(flow) } else { None }
}

/// [`REFUSED`] if the quoted packet, whose addresses are in the working memory, is the SYN of a dial in progress. Only
/// a host that has seen the SYN knows its sequence number (RFC 5927 §4.1).
#[inline(never)]
fn refusal(skb: &Skb, tcp: u32) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_OK };
    let Some([p0, p1, q0, q1, s0, s1, s2, s3]) = skb.load::<8>(tcp) else { return TC_ACT_OK };
    memory.key.source_port = u16::from_be_bytes([q0, q1]);
    memory.key.destination_port = u16::from_be_bytes([p0, p1]);
    let Some(backend) = maps::flow(&memory.key) else { return TC_ACT_OK };
    if backend.state != STATE_DIALING || backend.side != SIDE_BACKEND {
        return TC_ACT_OK;
    }
    let client = backend.rewrite.to.reversed();
    let Some(flight) = maps::dialed_flight(&client) else { return TC_ACT_OK };
    if flight.dial.isn != u32::from_be_bytes([s0, s1, s2, s3]) || !maps::read_dialed_flight(memory, flight) {
        return TC_ACT_OK;
    }
    if let Some(state) = maps::state_of_endpoint(backend.endpoint) {
        state.refused += 1;
    }
    memory.key = client;
    // The IP version of this packet, which is turned into another one.
    if let Some(segment) = maps::segment_memory() {
        segment.v6 = skb.is_v6();
    }
    REFUSED
}

/// Lowers the segment size of a first payload that is not acknowledged yet, whose segments this program makes: after
/// the client's next retransmission it is sent in smaller ones. `mtu` and `headers` are in bytes.
#[inline(never)]
fn smaller_payload(backend: &Flow, mtu: u32, headers: u32) {
    let client = backend.rewrite.to.reversed();
    let Some(flight) = maps::dialed_flight(&client) else { return };
    let room = mtu.wrapping_sub(headers);
    if backend.side == SIDE_BACKEND && room < flight.dial.max_segment as u32 {
        flight.dial.max_segment = room as u16;
    }
}

/// Translates the quoted packet's ports and sequence number back to those of its sender; `checksum` is the offset of
/// the ICMP checksum.
#[inline(never)]
fn quoted_tcp(skb: &mut Skb, tcp: u32, checksum: u32, flow: &Flow) -> bool {
    let Some([p0, p1, q0, q1, s0, s1, s2, s3]) = skb.load::<8>(tcp) else { return false };
    let to = &flow.rewrite.to;
    let old = u32::from_be_bytes([s0, s1, s2, s3]);
    // The offset of this side's acknowledgement numbers turns this host's sequence numbers into the sender's.
    let new = old.wrapping_add(flow.rewrite.delta_ack);
    let mut difference = ChecksumDelta::default();
    difference.change(u32::from_be_bytes([p0, p1, q0, q1]), (to.destination_port as u32) << 16 | to.source_port as u32);
    difference.change(old, new);
    let [a, b] = to.destination_port.to_be_bytes();
    let [c, d] = to.source_port.to_be_bytes();
    let [e, f, g, h] = new.to_be_bytes();
    skb.store(tcp, &[a, b, c, d, e, f, g, h]) && skb.fix_tcp_checksum(checksum, difference.folded(), false)
}

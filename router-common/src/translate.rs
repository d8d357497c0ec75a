//! Rewrites the packets of a spliced connection from one side's view into the other's.
//!
//! A carried connection consists of two TCP connections, and each end knows its own peer's addresses, initial sequence
//! number, timestamp clock and window shift. Each packet of one connection is rewritten into the equivalent packet of
//! the other. Payload, flags, urgent pointer and options that are not named here are unchanged.
//!
//! Checksums are updated by differences (RFC 1624 eqn. 3), whether or not hardware still has to complete them, so no
//! payload is read.

mod addresses;
mod checksum;
mod fragments;
mod packet_mut;
mod rewriter;

use crate::maps::{FlowKey, FlowTranslation};
use crate::options::{NOP, TIMESTAMPS};
use crate::packet::{ACK, ETHERNET, SYN, Segment, TCP};

pub use addresses::is_pseudo_sum;
use addresses::{IP_CHECKSUM, Words, addresses_difference, store_addresses, word};
pub use checksum::{ChecksumDelta, updated};
pub use fragments::{identify, translate_later};
pub use packet_mut::PacketMut;
pub use rewriter::{REWRITER_STEPS, Rewriter};

/// Offset of TCP after an IPv4 header without options.
const AFTER_IP4: u32 = ETHERNET + 20;
/// Offsets of fields in the TCP header (RFC 9293 §3.1).
const WINDOW: u32 = 14;
const CHECKSUM: u32 = 16;
const OPTIONS: u32 = 20;
/// End of options that are only timestamps, aligned by two NOPs (RFC 7323 appendix A).
const AFTER_TIMESTAMPS: u32 = 32;

/// Rewrites a packet; `segment` is the result of [`crate::packet::segment`] for it.
///
/// False if the packet cannot be read or written as `segment` describes it. It is then partly rewritten, and must be
/// dropped.
///
/// The cost in the kernel is that of helper calls: for IPv4 with timestamps, or without options and with the same
/// window, at most one load, one store and three checksum updates.
#[inline(always)]
pub fn translate(packet: &mut impl PacketMut, segment: &Segment, t: &FlowTranslation) -> bool {
    translate_headers::<false>(packet, segment, t)
}

/// [`translate`] for a connection whose sides use different IP versions: `segment` is of one, `t.to` of the other. Hop
/// limit and traffic class, with its ECN bits, are copied (RFC 7915 §4.1 and §5.1).
#[inline(always)]
pub fn translate_across(packet: &mut impl PacketMut, segment: &Segment, t: &FlowTranslation) -> bool {
    let tcp_len = segment.payload - segment.tcp + segment.payload_len;
    let Some(before) = packet.load::<9>(ETHERNET) else { return false };
    let (hops, class) = if segment.v6 { (before[7], before[0] << 4 | before[1] >> 4) } else { (before[8], before[1]) };
    if !packet.change_family(!segment.v6) {
        return false;
    }
    let tcp = tcp_after(!segment.v6);
    let moved = Segment {
        flow: segment.flow,
        v6: !segment.v6,
        tcp,
        payload: tcp + (segment.payload - segment.tcp),
        seq: segment.seq,
        ack: segment.ack,
        flags: segment.flags,
        window: segment.window,
        payload_len: segment.payload_len,
    };
    let written = if moved.v6 {
        write_ip6(packet, &t.to, tcp_len, hops, class)
    } else {
        write_ip4(packet, &t.to, tcp_len, hops, class)
    };
    written && translate_headers::<true>(packet, &moved, t)
}

const fn tcp_after(v6: bool) -> u32 {
    if v6 { ETHERNET + 40 } else { AFTER_IP4 }
}

/// Writes the IPv6 header (RFC 8200 §3).
#[inline(never)]
fn write_ip6(packet: &mut impl PacketMut, to: &FlowKey, tcp_len: u32, hops: u8, class: u8) -> bool {
    // Offload uses length 0 for packets above 64 KiB.
    let [l0, l1] = (if tcp_len > 0xffff { 0 } else { tcp_len as u16 }).to_be_bytes();
    let ethertype = packet.store(ETHERNET - 2, &[0x86, 0xdd]);
    let head = [0x60 | class >> 4, class << 4, 0, 0, l0, l1, TCP, hops];
    ethertype && packet.store_counted(ETHERNET, &head) && store_addresses(packet, true, to)
}

/// Writes the IPv4 header (RFC 791 §3.1). The packet is not fragmented, so its identification has no meaning (RFC 6864
/// §4.1).
#[inline(never)]
fn write_ip4(packet: &mut impl PacketMut, to: &FlowKey, tcp_len: u32, hops: u8, class: u8) -> bool {
    let total = tcp_len + 20;
    let [l0, l1] = (if total > 0xffff { 0 } else { total as u16 }).to_be_bytes();
    let [a, b, c, d] = word(&to.source, 12);
    let [e, f, g, h] = word(&to.destination, 12);
    let mut header = [0x45, class, l0, l1, 0, 0, 0x40, 0, hops, TCP, 0, 0, a, b, c, d, e, f, g, h];
    [header[10], header[11]] = ip4_checksum(&header);
    packet.store(ETHERNET - 2, &[0x08, 0x00]) && packet.store_counted(ETHERNET, &header)
}

/// The checksum of an IPv4 header without options whose checksum field is 0.
#[inline(always)]
pub(crate) fn ip4_checksum(header: &[u8; 20]) -> [u8; 2] {
    let mut sum = ChecksumDelta::default();
    for at in [0, 4, 8, 12, 16] {
        sum.change_bytes([0xff; 4], word(header, at));
    }
    (!sum.sum16()).to_ne_bytes()
}

/// `ACROSS`: the IP header is already written, and the original addresses are of the other IP version.
#[inline(always)]
fn translate_headers<const ACROSS: bool>(packet: &mut impl PacketMut, segment: &Segment, t: &FlowTranslation) -> bool {
    // A copy has the type's alignment; through the reference, addresses would be read byte by byte.
    let t = &{ *t };
    let (tcp, end) = (segment.tcp, segment.payload);
    let is_ack = segment.flags & ACK != 0;
    let ports = [ports(&segment.flow), ports(&t.to)];
    let seq = segment.seq.wrapping_add(t.delta_seq);
    // Without the ACK flag the field has no meaning (RFC 9293 §3.1), and resets have 0 in it.
    let ack = if is_ack { segment.ack.wrapping_add(t.delta_ack) } else { segment.ack };
    let window = window(segment, t);

    // An IPv4-mapped address has the same sum as the IPv4 address: 0xffff is another 0 (RFC 1071 §2).
    let pseudo = addresses_difference(&segment.flow, &t.to, segment.v6 || ACROSS);
    let mut rest = ChecksumDelta::default();
    rest.change(ports[0], ports[1]);
    rest.change(segment.seq, seq);
    rest.change(segment.ack, ack);
    rest.change(segment.window as u32, window as u32);

    // The IPv4 addresses are the eight bytes before the TCP header: one store writes both.
    let together = !ACROSS && !segment.v6;
    if !ACROSS && !together && !store_addresses(packet, segment.v6, &t.to) {
        return false;
    }
    let mut options = tcp + OPTIONS;
    if end < tcp + AFTER_TIMESTAMPS {
        let mut head = Words([0; 20]);
        head.set(8, ports[1].to_be_bytes());
        head.set(12, seq.to_be_bytes());
        head.set(16, ack.to_be_bytes());
        if !store_head::<20, 12>(packet, tcp, &t.to, head, together)
            || (window != segment.window && !packet.store(tcp + WINDOW, &window.to_be_bytes()))
        {
            return false;
        }
    } else {
        let Some(head) = packet.load::<40>(tcp - 8) else { return false };
        let mut head = Words(head);
        head.set(8, ports[1].to_be_bytes());
        head.set(12, seq.to_be_bytes());
        head.set(16, ack.to_be_bytes());
        let [offset_bits, flags, _, _] = word(&head.0, 20);
        let [w0, w1] = window.to_be_bytes();
        head.set(20, [offset_bits, flags, w0, w1]);
        if word(&head.0, 28) == [NOP, NOP, TIMESTAMPS, 10] {
            let deltas = timestamp_deltas(t, is_ack);
            for (at, delta) in [(32, deltas[0]), (36, deltas[1])] {
                let old = u32::from_be_bytes(word(&head.0, at));
                let new = old.wrapping_add(delta);
                rest.change(old, new);
                head.set(at, new.to_be_bytes());
            }
            options = tcp + AFTER_TIMESTAMPS;
        }
        if !store_head::<40, 32>(packet, tcp, &t.to, head, together) {
            return false;
        }
    }
    if options < end {
        let deltas = timestamp_deltas(t, is_ack);
        let sack = if is_ack { t.delta_ack } else { 0 };
        let Some(difference) = packet.rewrite_options(options, end - options, [deltas[0], deltas[1], sack]) else {
            return false;
        };
        rest.add_folded(difference);
    }
    (ACROSS || segment.v6 || packet.fix_ip_checksum(IP_CHECKSUM, pseudo.folded()))
        && packet.fix_tcp_checksum(tcp + CHECKSUM, pseudo.folded(), true)
        && packet.fix_tcp_checksum(tcp + CHECKSUM, rest.folded(), false)
}

/// The window in units of the receiver's scale.
///
/// Rounded down, as every TCP does with its own window (RFC 7323 §2.3: `SEG.WND = RCV.WND >> Rcv.Wind.Shift`); less
/// than one unit becomes 0. If it were rounded up, the receiver could send more than the other end has room for. A
/// window of 0 does not stall the connection: it is probed (RFC 9293 §3.8.6.1), and the probe's byte fits. A window
/// that exceeds the field becomes its largest value. The window of a SYN is not scaled (RFC 7323 §2.2).
#[inline(always)]
fn window(segment: &Segment, t: &FlowTranslation) -> u16 {
    if segment.flags & SYN != 0 || t.shift_up == t.shift_down {
        return segment.window;
    }
    let window = (segment.window as u32).wrapping_shl(t.shift_up as u32).wrapping_shr(t.shift_down as u32);
    if window > 0xffff { 0xffff } else { window as u16 }
}

/// Deltas of the timestamp value and echo reply. Without ACK there is no echo (RFC 7323 §3.2).
#[inline(always)]
fn timestamp_deltas(t: &FlowTranslation, is_ack: bool) -> [u32; 2] {
    [t.delta_tsval, if is_ack { t.delta_tsecr } else { 0 }]
}

#[inline(always)]
fn ports(flow: &FlowKey) -> u32 {
    (flow.source_port as u32) << 16 | flow.destination_port as u32
}

/// Writes the first `TCP` bytes of the TCP header, the last of `ALL` = 8 + `TCP`; with the IPv4 addresses before it if
/// `together`.
#[inline(always)]
fn store_head<const ALL: usize, const TCP: usize>(
    packet: &mut impl PacketMut,
    tcp: u32,
    to: &FlowKey,
    mut head: Words<ALL>,
    together: bool,
) -> bool {
    if together {
        head.set(0, word(&to.source, 12));
        head.set(4, word(&to.destination, 12));
        return packet.store(tcp - 8, &head.0);
    }
    match head.0.last_chunk::<TCP>() {
        Some(header) => packet.store(tcp, header),
        None => false,
    }
}

#[cfg(test)]
pub(crate) mod tests;

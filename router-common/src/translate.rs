//! Rewriting the packets of a spliced connection, one side's view into the other's.
//!
//! A connection that the kernel carries is two TCP connections in one: each end knows its own peer's addresses, initial
//! sequence number, timestamp clock and window shift. Every packet of one is turned into the packet of the other that
//! says the same; payload, flags, urgent pointer and every option that is not named here stay as they are.
//!
//! Checksums follow the differences (RFC 1624 eqn. 3), whatever the hardware has left to do, so that no byte of payload
//! is ever read.

mod difference;
mod fragments;
mod rewriter;

use crate::maps::FlowKey;
use crate::options::{NOP, TIMESTAMPS};
use crate::packet::{ACK, ETHERNET, Packet, SYN, Segment};

pub use difference::Difference;
pub use fragments::{identify, translate_later};
pub use rewriter::{REWRITER_STEPS, Rewriter};

/// What the packets of one direction need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct Translation {
    /// Source and destination that the packet leaves with, of the same IP version as it came with.
    pub to: FlowKey,
    /// Added to the sequence number, modulo 2³².
    pub delta_seq: u32,
    /// Added to the acknowledgement number and to SACK blocks.
    pub delta_ack: u32,
    /// Added to the timestamp value.
    pub delta_tsval: u32,
    /// Added to the timestamp echo reply.
    pub delta_tsecr: u32,
    /// The sender's window shift, if it differs from what the receiver was told: `(window << up) >> down`.
    pub shift_up: u8,
    /// The shift that the receiver was told.
    pub shift_down: u8,
    /// Zero.
    pub pad: [u8; 2],
}

/// A packet that can be changed. Each method is false if the packet is too short or cannot be written; what was changed
/// before stays changed.
pub trait PacketMut: Packet {
    /// Overwrites bytes, no checksum of any kind with them.
    fn store<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool;

    /// Overwrites bytes and keeps a sum that hardware made of the whole packet true (`CHECKSUM_COMPLETE`; in the
    /// kernel `BPF_F_RECOMPUTE_CSUM`). The same as [`PacketMut::store`] where there is no such sum.
    fn store_counted<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool;

    /// Adds a [`Difference`] to the IPv4 header checksum, whose field is at `offset`.
    fn fix_ip_checksum(&mut self, offset: u32, difference: u32) -> bool;

    /// Adds a [`Difference`] to the TCP checksum, whose field is at `offset`. `pseudo`: of the pseudo header (RFC 9293
    /// §3.1), which is in the field even when hardware is left to sum up the rest (`CHECKSUM_PARTIAL`); a difference
    /// of the rest does not change the field then.
    fn fix_tcp_checksum(&mut self, offset: u32, difference: u32, pseudo: bool) -> bool;

    /// Makes room for the IP header of the other version, or takes what is too much of it: 20 bytes between Ethernet and
    /// TCP, whose content is left to the caller. False where that cannot be done.
    fn change_family(&mut self, v6: bool) -> bool;

    /// Takes `len` bytes out that stand behind the IP header, of IPv4 behind its first 20 bytes.
    fn take_out(&mut self, v6: bool, len: u32) -> bool;

    /// Runs a [`Rewriter`] with these deltas over the options at `offset`, which is even: the folded [`Difference`]
    /// that it made. The kernel has its own way of going through them.
    fn rewrite_options(&mut self, offset: u32, len: u32, deltas: [u32; 3]) -> Option<u32> {
        let mut rewriter = Rewriter::new(len, deltas);
        for (at, byte) in (offset..offset + len).zip(&mut rewriter.bytes) {
            [*byte] = self.load::<1>(at)?;
        }
        while rewriter.step() {}
        let stored = (offset..offset + len).zip(&rewriter.bytes).all(|(at, byte)| self.store(at, &[*byte]));
        stored.then(|| rewriter.difference.folded())
    }
}

const IP_CHECKSUM: u32 = ETHERNET + 10;
const IP4_ADDRESSES: u32 = ETHERNET + 12;
const IP6_ADDRESSES: u32 = ETHERNET + 8;
/// Where TCP begins after an IPv4 header without options.
const AFTER_IP4: u32 = ETHERNET + 20;
/// Where fields are in the TCP header (RFC 9293 §3.1).
const WINDOW: u32 = 14;
const CHECKSUM: u32 = 16;
const OPTIONS: u32 = 20;
/// Where the options end that are only timestamps, aligned by two NOPs (RFC 7323 appendix A).
const AFTER_TIMESTAMPS: u32 = 32;

const TCP: u8 = 6;

/// Bytes that are written in words of four.
#[repr(C, align(8))]
struct Words<const N: usize>([u8; N]);

impl<const N: usize> Words<N> {
    /// `at` is a constant at every call, so that the bound is checked by the compiler.
    #[inline(always)]
    fn set(&mut self, at: usize, word: [u8; 4]) {
        self.0[at..at + 4].copy_from_slice(&word);
    }
}

/// Rewrites a packet, `segment` being what [`crate::packet::segment`] has read from it.
///
/// False if the packet cannot be read or written as `segment` says: it is then half of one and half of the other, and
/// must be dropped.
///
/// Helper calls in the kernel, which are what it costs: IPv4 with timestamps, or with no option and the same window,
/// one load at most, one store, three checksums.
#[inline(always)]
pub fn translate(packet: &mut impl PacketMut, segment: &Segment, t: &Translation) -> bool {
    translate_headers::<false>(packet, segment, t)
}

/// [`translate`] for a connection whose sides use different versions of IP: `segment` is of one, `t.to` of the other.
/// Hop limit and traffic class with its ECN bits go over (RFC 7915 §4.1 and §5.1).
#[inline(always)]
pub fn translate_across(packet: &mut impl PacketMut, segment: &Segment, t: &Translation) -> bool {
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

/// RFC 8200 §3.
#[inline(never)]
fn write_ip6(packet: &mut impl PacketMut, to: &FlowKey, tcp_len: u32, hops: u8, class: u8) -> bool {
    // Length 0 is what offload has for packets above 64 KiB.
    let [l0, l1] = (if tcp_len > 0xffff { 0 } else { tcp_len as u16 }).to_be_bytes();
    let ethertype = packet.store(ETHERNET - 2, &[0x86, 0xdd]);
    let head = [0x60 | class >> 4, class << 4, 0, 0, l0, l1, TCP, hops];
    ethertype && packet.store_counted(ETHERNET, &head) && store_addresses(packet, true, to)
}

/// RFC 791 §3.1. Not fragmented, so the identification means nothing (RFC 6864 §4.1).
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

/// The checksum of an IPv4 header without options in which it is 0.
#[inline(always)]
pub(crate) fn ip4_checksum(header: &[u8; 20]) -> [u8; 2] {
    let mut sum = Difference::default();
    for at in [0, 4, 8, 12, 16] {
        sum.change_bytes([0xff; 4], word(header, at));
    }
    let folded = sum.folded();
    let once = (folded & 0xffff) + (folded >> 16);
    (!(((once & 0xffff) + (once >> 16)) as u16)).to_ne_bytes()
}

/// `ACROSS`: the IP header is written already, and the addresses before it were of the other version.
#[inline(always)]
fn translate_headers<const ACROSS: bool>(packet: &mut impl PacketMut, segment: &Segment, t: &Translation) -> bool {
    // A copy of the whole has the alignment of the type; through the reference, addresses would be read byte by byte.
    let t = &{ *t };
    let (tcp, end) = (segment.tcp, segment.payload);
    let is_ack = segment.flags & ACK != 0;
    let ports = [ports(&segment.flow), ports(&t.to)];
    let seq = segment.seq.wrapping_add(t.delta_seq);
    // Without the flag the field means nothing (RFC 9293 §3.1), and resets have 0 in it.
    let ack = if is_ack { segment.ack.wrapping_add(t.delta_ack) } else { segment.ack };
    let window = window(segment, t);

    // An IPv4-mapped address has the sum of the IPv4 address: 0xffff is another 0 (RFC 1071 §2).
    let pseudo = addresses_difference(&segment.flow, &t.to, segment.v6 || ACROSS);
    let mut rest = Difference::default();
    rest.change(ports[0], ports[1]);
    rest.change(segment.seq, seq);
    rest.change(segment.ack, ack);
    rest.change(segment.window as u32, window as u32);

    // IPv4 addresses are the eight bytes before the TCP header: one store for both.
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

/// The window in the receiver's unit.
///
/// Rounded down, as every TCP does with its own window (RFC 7323 §2.3: `SEG.WND = RCV.WND >> Rcv.Wind.Shift`), and so
/// to 0 where it is less than one unit: told more, the receiver would send what the other end has no room for. Nothing
/// stalls, because a window of 0 is probed (RFC 9293 §3.8.6.1) and the probe's byte fits. What has no room in the field
/// is told as its largest value. The window of a SYN has no shift (RFC 7323 §2.2).
#[inline(always)]
fn window(segment: &Segment, t: &Translation) -> u16 {
    if segment.flags & SYN != 0 || t.shift_up == t.shift_down {
        return segment.window;
    }
    let window = (segment.window as u32).wrapping_shl(t.shift_up as u32).wrapping_shr(t.shift_down as u32);
    if window > 0xffff { 0xffff } else { window as u16 }
}

/// What is added to value and echo. Without ACK there is no echo (RFC 7323 §3.2).
#[inline(always)]
fn timestamp_deltas(t: &Translation, is_ack: bool) -> [u32; 2] {
    [t.delta_tsval, if is_ack { t.delta_tsecr } else { 0 }]
}

#[inline(always)]
fn ports(flow: &FlowKey) -> u32 {
    (flow.source_port as u32) << 16 | flow.destination_port as u32
}

/// What the change of addresses makes of a sum, that of the IPv4 header and that of the pseudo header alike.
#[inline(always)]
fn addresses_difference(from: &FlowKey, to: &FlowKey, whole: bool) -> Difference {
    let mut difference = Difference::default();
    for at in [0, 4, 8, 12] {
        if whole || at == 12 {
            difference.change_bytes(word(&from.source, at), word(&to.source, at));
            difference.change_bytes(word(&from.destination, at), word(&to.destination, at));
        }
    }
    difference
}

/// Writes the addresses alone.
///
/// IPv6 has no header checksum that balances their change in a sum over the whole packet, as that of IPv4 does; and the
/// kernel's pseudo-header fix takes the change out of that sum, as if there were one. So the store has to put it in.
#[inline(always)]
fn store_addresses(packet: &mut impl PacketMut, v6: bool, to: &FlowKey) -> bool {
    if v6 {
        let mut both = Words([0; 32]);
        for at in [0, 4, 8, 12] {
            both.set(at, word(&to.source, at));
            both.set(16 + at, word(&to.destination, at));
        }
        packet.store_counted(IP6_ADDRESSES, &both.0)
    } else {
        let mut both = Words([0; 8]);
        both.set(0, word(&to.source, 12));
        both.set(4, word(&to.destination, 12));
        packet.store(IP4_ADDRESSES, &both.0)
    }
}

/// Writes the first `TCP` bytes of the TCP header, the last of `ALL` = 8 + `TCP`; with the IPv4 addresses if they are
/// what stands before it.
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

/// Four bytes; `at` is a constant at every call.
#[inline(always)]
fn word<const N: usize>(bytes: &[u8; N], at: usize) -> [u8; 4] {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    word
}

#[cfg(test)]
pub(crate) mod tests;

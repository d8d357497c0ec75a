//! Turning one packet into another: a SYN, a reset, or a segment with gathered payload.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::programs::TcContext;
use router_common::maps::{FLIGHT_HEADROOM, FirstFlight, FlowKey, MAX_FLIGHT};
use router_common::options;
use router_common::packet::{ETHERNET, Packet, Segment};

use crate::copy::{is_v4, word, words};
use crate::maps;
use crate::scratch::{PacketSpec, Scratch};
use crate::skb::{self, Skb};
use crate::verifier::opaque;

const TCP_HEADER: u32 = 20;
const PROTOCOL_TCP: u8 = 6;
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u32 = 0x4000;
/// Offset of the checksum in the TCP header.
const CHECKSUM: u32 = 16;
/// Mask of positions in the gathered bytes; `Scratch` has that many bytes and 4,096 more behind them.
const POSITIONS: u32 = 8191;
const SUM_CHUNK: u32 = 512;
/// Chunks of the longest payload.
const SUM_CHUNKS: u32 = 9;

/// Not known yet.
const SUM_UNKNOWN: u8 = 0;
/// The pseudo-header sum only, `CHECKSUM_PARTIAL`.
const SUM_PARTIAL: u8 = 1;
/// The checksum of the whole segment.
const SUM_WHOLE: u8 = 2;

impl PacketSpec {
    /// A header without payload or options.
    #[inline(always)]
    pub fn begin(&mut self, skb: &Skb, flow: &FlowKey) {
        self.sum = SUM_UNKNOWN;
        self.begin_again(skb, flow);
    }

    /// Likewise, for a packet that was composed in this run before: the kind of its checksum is known.
    #[inline(never)]
    pub fn begin_again(&mut self, skb: &Skb, flow: &FlowKey) {
        self.flow = *flow;
        let (is, shall) = (skb.is_v6(), !is_v4(&flow.destination));
        self.v6 = shall as u8;
        self.turn = (is != shall) as u8;
        self.padded = 0;
        self.ack = 0;
        self.window = 0;
        self.options_len = 0;
        self.start = FLIGHT_HEADROOM;
        self.len = 0;
    }

    /// Timestamps as options.
    #[inline(always)]
    pub fn timestamps(&mut self, value: u32, echo: u32) {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = options::of_timestamps(value, echo);
        self.options_len = 12;
        self.options[0] = u32::from_ne_bytes([a, b, c, d]);
        self.options[1] = u32::from_ne_bytes([e, f, g, h]);
        self.options[2] = u32::from_ne_bytes([i, j, k, l]);
    }

    /// All options of a SYN.
    #[inline(always)]
    pub fn syn_options(&mut self, options: &[u8; 20]) {
        self.options_len = 20;
        let mut at = 0;
        while at < 5 {
            let [a, b, c, d] = [options[4 * at], options[4 * at + 1], options[4 * at + 2], options[4 * at + 3]];
            self.options[at] = u32::from_ne_bytes([a, b, c, d]);
            at += 1;
        }
    }
}

#[inline(always)]
const fn tcp_at(v6: bool) -> u32 {
    if v6 { ETHERNET + 40 } else { ETHERNET + 20 }
}

/// Rewrites the packet as `Scratch::wanted` describes; the Ethernet header stays. `false` leaves a broken packet.
#[inline(always)]
pub fn compose(skb: &Skb) -> bool {
    // SAFETY: the context is the one that the kernel gave.
    unsafe { sluice_compose(skb.0.skb.skb) == 1 }
}

/// A global function in the kernel's sense: the verifier checks it once, not at each call.
///
/// # Safety
/// `ctx` is the program's context.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn sluice_compose(ctx: *mut __sk_buff) -> i32 {
    i32::from(write(&Skb(TcContext::new(ctx))))
}

#[inline(always)]
fn write(skb: &Skb) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let wanted = &mut memory.wanted;
    let v6 = wanted.v6 != 0;
    let tcp = tcp_at(v6);
    let (options_len, len) = (wanted.options_len, wanted.len);
    let segment_len = TCP_HEADER + options_len + len;
    if wanted.turn != 0 && !turn(skb, v6) {
        return false;
    }
    // First, because it makes the packet linear and writable in one copy; after another change there would be two.
    if wanted.padded == 0 && !skb.set_len(tcp + segment_len) {
        return false;
    }
    if wanted.sum == SUM_UNKNOWN {
        wanted.sum = if skb.checksum_is_partial(tcp + CHECKSUM) { SUM_PARTIAL } else { SUM_WHOLE };
    }
    // Pseudo header (RFC 9293 §3.1, RFC 8200 §8.1).
    let mut sum = (PROTOCOL_TCP as u32 + segment_len).to_be() as u64;
    sum += if v6 { ipv6(wanted, segment_len) } else { ipv4(wanted, segment_len) };
    fill_header(wanted);
    let partial = wanted.sum == SUM_PARTIAL;
    if !partial {
        sum += header_sum(wanted);
        // The last segment: see `PacketSpec::len`.
        let (start, len) = (memory.wanted.start, memory.wanted.len);
        sum += sum_of_gathered(memory, start, len) as u64;
    }
    let [c0, c1] = if partial { fold(sum) } else { !fold(sum) }.to_ne_bytes();
    let wanted = &mut memory.wanted;
    wanted.tcp[4] = u32::from_ne_bytes([c0, c1, 0, 0]);
    let from = if v6 { &raw const wanted.ip[0] } else { &raw const wanted.ip[5] };
    // SAFETY: the flight and its slack follow in the scratch memory.
    let mut done = unsafe { skb.put_from(ETHERNET, from.cast(), tcp - ETHERNET + TCP_HEADER + options_len) };
    if len > 0 {
        let start = memory.wanted.start;
        let from = position(memory, start);
        // SAFETY: `position` leaves 4,096 bytes.
        done &= unsafe { skb.put_from(tcp + TCP_HEADER + options_len, from, len) };
    }
    done
}

/// Sum of TCP header and options.
#[inline(always)]
fn header_sum(wanted: &PacketSpec) -> u64 {
    let mut sum = 0;
    for word in wanted.tcp {
        sum += word as u64;
    }
    for (at, word) in wanted.options.into_iter().enumerate() {
        if (at as u32) < wanted.options_len / 4 {
            sum += word as u64;
        }
    }
    sum
}

/// Makes it a packet of the other version of IP, in the Ethernet header too, with which copies are sent.
#[inline(always)]
fn turn(skb: &Skb, v6: bool) -> bool {
    skb.turn(v6)
        && if v6 {
            skb.put_ethernet(ETHERNET - 2, &[0x86, 0xdd])
        } else {
            skb.put_ethernet(ETHERNET - 2, &[0x08, 0x00])
        }
}

/// The TCP header (RFC 9293 §3.1), its checksum 0.
#[inline(always)]
fn fill_header(wanted: &mut PacketSpec) {
    wanted.tcp[0] = ((wanted.flow.source_port as u32) << 16 | wanted.flow.destination_port as u32).to_be();
    wanted.tcp[1] = wanted.seq.to_be();
    wanted.tcp[2] = wanted.ack.to_be();
    // The data offset: words, in the upper half of the first byte.
    let length = (TCP_HEADER + wanted.options_len) << 26;
    wanted.tcp[3] = (length | (wanted.flags as u32) << 16 | wanted.window as u32).to_be();
    wanted.tcp[4] = 0;
}

/// Address of a gathered byte; at least 4,096 bytes of the scratch memory follow it.
#[inline(always)]
fn position(memory: &Scratch, at: u32) -> *const u8 {
    // SAFETY: the mask keeps it within `bytes` and the slack behind it.
    unsafe { (&raw const memory.flight.bytes).cast::<u8>().add((opaque(at) & POSITIONS) as usize) }
}

/// Position to which a segment is copied to verify its checksum: in the slack behind the flight.
const SPARE: u32 = 6144;
const _: () = assert!(SPARE as usize >= size_of::<FirstFlight>() && SPARE <= POSITIONS);

/// True if a segment's checksum is wrong; the stack would verify it only after these programs. Packets that the kernel
/// made or merged hold the pseudo header's sum only, and hardware has verified most others. Segments above 4,096 bytes
/// count as correct: they never lead to a dial.
#[inline(never)]
pub fn is_damaged(skb: &Skb, segment: &Segment) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let len = segment.payload.wrapping_sub(segment.tcp).wrapping_add(segment.payload_len);
    let mut sum = (PROTOCOL_TCP as u32 + len).to_be() as u64;
    // The prefix of IPv4-mapped addresses adds nothing (RFC 1071: 0xffff is zero).
    let (source, destination) = (words(&segment.flow.source), words(&segment.flow.destination));
    for at in 0..4 {
        sum += source[at] as u64 + destination[at] as u64;
    }
    let Some([a, b]) = skb.load::<2>(segment.tcp + CHECKSUM) else { return false };
    if u16::from_ne_bytes([a, b]) == fold(sum) || skb.is_verified() || len > MAX_FLIGHT {
        return false;
    }
    let to = position(memory, SPARE).cast_mut();
    // SAFETY: `position` leaves 4,096 bytes.
    if !unsafe { skb.load_to(segment.tcp, to, len) } {
        return false;
    }
    fold(sum + sum_of_gathered(memory, SPARE, len) as u64) != 0xffff
}

/// Sum of `len` bytes, at most 4,096, from a position on. Overwrites up to three bytes behind them.
#[inline(never)]
fn sum_of_gathered(memory: &mut Scratch, start: u32, len: u32) -> u32 {
    if len == 0 {
        return 0;
    }
    let odd = len & 3;
    if odd != 0 {
        // The last word is filled with zeros.
        let end = position(memory, start.wrapping_add(len)).cast_mut();
        // SAFETY: within the scratch memory, which only this run uses.
        unsafe {
            end.write(0);
            end.add(1).write(0);
            end.add(2).write(0);
        }
    }
    let (mut sum, mut at, mut left) = (0, start, (len + 3) & !3);
    let mut turn = 0;
    while turn < SUM_CHUNKS && left != 0 {
        turn += 1;
        let chunk = if left < SUM_CHUNK { left } else { SUM_CHUNK };
        // SAFETY: `position` leaves 4,096 bytes.
        sum = unsafe { skb::sum_of(position(memory, at), chunk, sum) };
        at = at.wrapping_add(chunk);
        left -= chunk;
    }
    sum
}

/// Writes an IPv4 header (RFC 791 §3.1); returns the sum of its addresses.
#[inline(always)]
fn ipv4(wanted: &mut PacketSpec, segment_len: u32) -> u64 {
    let (source, destination) = (word(&wanted.flow.source, 3), word(&wanted.flow.destination, 3));
    let first = (0x4500_0000 | (20 + segment_len)).to_be();
    let second = DONT_FRAGMENT.to_be();
    let third = ((HOP_LIMIT as u32) << 24 | (PROTOCOL_TCP as u32) << 16).to_be();
    let addresses = source as u64 + destination as u64;
    let [c0, c1] = (!fold(first as u64 + second as u64 + third as u64 + addresses)).to_ne_bytes();
    wanted.ip[5] = first;
    wanted.ip[6] = second;
    wanted.ip[7] = third | u32::from_ne_bytes([0, 0, c0, c1]);
    wanted.ip[8] = source;
    wanted.ip[9] = destination;
    addresses
}

/// Writes an IPv6 header (RFC 8200 §3); returns the sum of its addresses.
#[inline(always)]
fn ipv6(wanted: &mut PacketSpec, segment_len: u32) -> u64 {
    wanted.ip[0] = 0x6000_0000_u32.to_be();
    wanted.ip[1] = (segment_len << 16 | (PROTOCOL_TCP as u32) << 8 | HOP_LIMIT as u32).to_be();
    let (source, destination) = (words(&wanted.flow.source), words(&wanted.flow.destination));
    let mut sum = 0;
    for at in 0..4 {
        wanted.ip[2 + at] = source[at];
        wanted.ip[6 + at] = destination[at];
        sum += source[at] as u64 + destination[at] as u64;
    }
    sum
}

/// Folds a sum of four-byte words in memory order (RFC 1071 §2(B): the sum has their byte order).
#[inline(always)]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

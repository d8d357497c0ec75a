//! Making one packet into another: a SYN, a reset, or a segment with the payload that was gathered.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::programs::TcContext;
use router_common::maps::{FLIGHT_HEADROOM, FlowKey};
use router_common::packet::ETHERNET;

use crate::maps::{self, Scratch};
use crate::skb::{self, Skb};

const TCP_HEADER: u32 = 20;
const PROTOCOL_TCP: u8 = 6;
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u8 = 0x40;
/// Positions in the gathered bytes are masked by it; `Scratch` has that many bytes and 4,096 more after them.
const POSITIONS: u32 = 8191;
const SUM_CHUNK: u32 = 512;
/// Chunks of the longest payload.
const SUM_CHUNKS: u32 = 9;

/// The packet that is wanted. It lies in map memory, because the stack has 512 bytes.
#[repr(C)]
pub struct Wanted {
    /// Addresses and ports.
    pub flow: FlowKey,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bytes of options: 0, 12 or 20.
    pub options_len: u32,
    /// First payload byte, in `FirstFlight::bytes`.
    pub start: u32,
    /// Bytes of payload, at most 4,096. What follows must begin at a multiple of four from the start.
    pub len: u32,
    /// Window, before scaling.
    pub window: u16,
    /// TCP flags.
    pub flags: u8,
    /// 1: IPv6.
    pub v6: u8,
    /// 1: the checksum field of this packet holds the pseudo-header sum only.
    pub partial: u8,
    /// 1: the packet is of the other version of IP as yet.
    pub turn: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Options.
    pub options: [u8; 20],
    /// The TCP header.
    pub header: [u8; 20],
}

impl Wanted {
    /// A header without payload or options, of the kind of checksum that `skb` has.
    #[inline(always)]
    pub fn begin(&mut self, skb: &Skb, flow: &FlowKey) {
        self.partial = skb.checksum_is_partial(tcp_at(skb.is_v6()) + 16) as u8;
        self.begin_again(skb, flow);
    }

    /// The same for a packet that was composed in this run already, so that its kind is known.
    #[inline(never)]
    pub fn begin_again(&mut self, skb: &Skb, flow: &FlowKey) {
        self.flow = *flow;
        let (is, shall) = (skb.is_v6(), !is_v4(&flow.destination));
        self.v6 = shall as u8;
        self.turn = (is != shall) as u8;
        self.ack = 0;
        self.window = 0;
        self.options_len = 0;
        self.start = FLIGHT_HEADROOM;
        self.len = 0;
    }

    /// Timestamps as options.
    #[inline(always)]
    pub fn timestamps(&mut self, options: &[u8; 12]) {
        self.options_len = 12;
        let mut i = 0;
        while i < 12 {
            self.options[i] = options[i];
            i += 1;
        }
    }
}

#[inline(always)]
const fn tcp_at(v6: bool) -> u32 {
    if v6 { ETHERNET + 40 } else { ETHERNET + 20 }
}

/// Makes the packet what `Scratch::wanted` says; the Ethernet header stays. `false` leaves a broken packet.
#[inline(always)]
pub fn compose(skb: &Skb) -> bool {
    // SAFETY: the context is the one that the kernel gave.
    unsafe { sluice_compose(skb.0.skb.skb) == 1 }
}

/// A global function in the kernel's sense: the verifier walks through it once, and not anew at each of its calls.
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
    if !skb.set_len(tcp + segment_len) {
        return false;
    }
    // Pseudo header (RFC 9293 §3.1, RFC 8200 §8.1).
    let mut sum = PROTOCOL_TCP as u32 + segment_len;
    sum += if v6 { ipv6(skb, &wanted.flow, segment_len) } else { ipv4(skb, &wanted.flow, segment_len) };
    fill_header(wanted);
    if wanted.partial == 0 {
        sum += header_sum(wanted);
        sum += payload_sum(memory);
    }
    let wanted = &mut memory.wanted;
    let field = if wanted.partial != 0 { fold(sum) } else { !fold(sum) };
    let [c0, c1] = field.to_be_bytes();
    wanted.header[16] = c0;
    wanted.header[17] = c1;
    let mut done = skb.put(tcp, &wanted.header);
    let after = tcp + TCP_HEADER;
    if options_len == 20 {
        done &= skb.put(after, &wanted.options);
    } else if options_len == 12
        && let Some(timestamps) = wanted.options.first_chunk::<12>()
    {
        done &= skb.put(after, timestamps);
    }
    if len > 0 {
        let start = wanted.start;
        let from = position(memory, start);
        // SAFETY: `position` leaves 4,096 bytes.
        done &= unsafe { skb.put_from(after + options_len, from, len) };
    }
    done
}

/// Sum of TCP header and options. A function of its own: what it needs of the stack is free again after it.
#[inline(never)]
fn header_sum(wanted: &Wanted) -> u32 {
    sum_words(&wanted.header, 20) + sum_words(&wanted.options, wanted.options_len as usize)
}

/// Makes it a packet of the other version of IP, in the Ethernet header too: copies are sent with that as it is.
#[inline(always)]
fn turn(skb: &Skb, v6: bool) -> bool {
    skb.turn(v6) && if v6 { skb.put(ETHERNET - 2, &[0x86, 0xdd]) } else { skb.put(ETHERNET - 2, &[0x08, 0x00]) }
}

/// Whether it is an IPv4 address, in its IPv4-mapped form.
#[inline(always)]
pub fn is_v4(address: &[u8; 16]) -> bool {
    let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *address;
    u64::from_ne_bytes([a, b, c, d, e, f, g, h]) == 0 && u32::from_ne_bytes([i, j, k, l]) == u32::from_be(0xffff)
}

/// The TCP header (RFC 9293 §3.1), its checksum 0.
#[inline(never)]
fn fill_header(wanted: &mut Wanted) {
    let h = &mut wanted.header;
    [h[0], h[1]] = wanted.flow.source_port.to_be_bytes();
    [h[2], h[3]] = wanted.flow.destination_port.to_be_bytes();
    [h[4], h[5], h[6], h[7]] = wanted.seq.to_be_bytes();
    [h[8], h[9], h[10], h[11]] = wanted.ack.to_be_bytes();
    h[12] = ((TCP_HEADER + wanted.options_len) << 2) as u8;
    h[13] = wanted.flags;
    [h[14], h[15]] = wanted.window.to_be_bytes();
    [h[16], h[17], h[18], h[19]] = [0; 4];
}

/// Address of a gathered byte; at least 4,096 bytes of the scratch memory follow it.
#[inline(always)]
fn position(memory: &Scratch, at: u32) -> *const u8 {
    // SAFETY: the mask keeps it within `bytes` and the slack behind it.
    unsafe { (&raw const memory.flight.bytes).cast::<u8>().add((skb::hidden(at) & POSITIONS) as usize) }
}

/// Sum of the payload, big-endian like the other sums here.
#[inline(never)]
fn payload_sum(memory: &mut Scratch) -> u32 {
    let (start, len) = (memory.wanted.start, memory.wanted.len);
    if len == 0 {
        return 0;
    }
    let odd = len & 3;
    if odd != 0 {
        // The last word is filled with zeros. Nothing is behind it: see `Wanted::len`.
        let end = position(memory, start.wrapping_add(len)).cast_mut();
        // SAFETY: within the scratch memory, which is this run's alone.
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
    fold(sum).swap_bytes() as u32
}

/// Writes an IPv4 header; the sum of its addresses.
#[inline(never)]
fn ipv4(skb: &Skb, flow: &FlowKey, segment_len: u32) -> u32 {
    let [.., a, b, c, d] = flow.source;
    let [.., e, f, g, h] = flow.destination;
    let [l0, l1] = ((20 + segment_len) as u16).to_be_bytes();
    let mut header = [0x45, 0, l0, l1, 0, 0, DONT_FRAGMENT, 0, HOP_LIMIT, PROTOCOL_TCP, 0, 0, a, b, c, d, e, f, g, h];
    [header[10], header[11]] = (!fold(sum_words(&header, 20))).to_be_bytes();
    // A failure shows in the TCP header's store, which is farther into the packet.
    let _ = skb.put(ETHERNET, &header);
    sum_words(&[a, b, c, d, e, f, g, h], 8)
}

/// Writes an IPv6 header; the sum of its addresses.
#[inline(never)]
fn ipv6(skb: &Skb, flow: &FlowKey, segment_len: u32) -> u32 {
    let [l0, l1] = (segment_len as u16).to_be_bytes();
    // As in `ipv4`.
    let _ = skb.put(ETHERNET, &[0x60, 0, 0, 0, l0, l1, PROTOCOL_TCP, HOP_LIMIT]);
    let _ = skb.put(ETHERNET + 8, &flow.source);
    let _ = skb.put(ETHERNET + 24, &flow.destination);
    sum_words(&flow.source, 16) + sum_words(&flow.destination, 16)
}

/// Sum of the first `len` bytes as big-endian words (RFC 1071).
#[inline(always)]
fn sum_words<const N: usize>(bytes: &[u8; N], len: usize) -> u32 {
    let (mut sum, mut i) = (0, 0);
    while i + 1 < N {
        if i < len {
            sum += (bytes[i] as u32) << 8 | bytes[i + 1] as u32;
        }
        i += 2;
    }
    sum
}

#[inline(always)]
fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

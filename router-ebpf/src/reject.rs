//! Resetting a refused connection: the client gets a RST, and so does the stack, whose request or child socket would
//! otherwise wait for data that never comes.

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use router_common::maps::FlowKey;
use router_common::packet::{ETHERNET, Packet, RST, Segment};

use crate::skb::Skb;

const TCP_HEADER: u32 = 20;
const CHECKSUM: u32 = 16; // offset in the TCP header
const PROTOCOL_TCP: u32 = 6;

/// Turns the segment into two header-only resets: one back to the client, one up to the stack.
#[inline(always)]
pub fn reset_both(skb: &Skb, segment: &Segment) -> i32 {
    let partial = checksum_is_partial(skb, segment.tcp);
    let Some(macs) = skb.load::<12>(0) else { return TC_ACT_SHOT };
    if !skb.set_len(segment.tcp + TCP_HEADER) || !fix_length(skb, segment) {
        return TC_ACT_SHOT;
    }
    let flow = &segment.flow;
    let back = FlowKey {
        client: flow.listener,
        listener: flow.client,
        client_port: flow.listener_port,
        listener_port: flow.client_port,
    };
    // To the client: as if the listener answered, at the sequence that the client expects next (RFC 9293 §3.5.2).
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = macs;
    let swapped = [s0, s1, s2, s3, s4, s5, d0, d1, d2, d3, d4, d5];
    if !skb.store(0, &swapped) || !write_reset(skb, segment, &back, segment.ack, partial) {
        return TC_ACT_SHOT;
    }
    // Without the client's reset the stack's must still happen, so the result is not looked at: the client will
    // get one from the stack on its next segment.
    let _ = skb.send_copy_back();
    // To the stack: as if the client gave up, at the sequence that the stack expects next.
    if !skb.store(0, &macs) || !write_reset(skb, segment, flow, segment.seq, partial) {
        return TC_ACT_SHOT;
    }
    TC_ACT_OK
}

/// Whether the checksum field holds the pseudo-header sum only (`CHECKSUM_PARTIAL`): then the helper leaves the field
/// alone when told of a change that is not in the pseudo header. The field is overwritten afterwards.
#[inline(always)]
fn checksum_is_partial(skb: &Skb, tcp: u32) -> bool {
    let field = tcp + CHECKSUM;
    let before = skb.load::<2>(field);
    let probed = skb.0.l4_csum_replace(field as usize, 0, 1, 2).is_ok();
    probed && before == skb.load::<2>(field)
}

/// Tells the IP header that only a TCP header follows.
#[inline(always)]
fn fix_length(skb: &Skb, segment: &Segment) -> bool {
    if segment.v6 {
        return skb.store(ETHERNET + 4, &(TCP_HEADER as u16).to_be());
    }
    let Some(old) = skb.load::<2>(ETHERNET + 2) else { return false };
    let new = ((segment.tcp + TCP_HEADER - ETHERNET) as u16).to_be();
    skb.0.l3_csum_replace((ETHERNET + 10) as usize, u16::from_ne_bytes(old) as u64, new as u64, 2).is_ok()
        && skb.store(ETHERNET + 2, &new)
}

/// Writes addresses and a RST header. Swapping the addresses leaves the IPv4 header checksum as it is.
#[inline(always)]
fn write_reset(skb: &Skb, segment: &Segment, flow: &FlowKey, seq: u32, partial: bool) -> bool {
    let addresses = if segment.v6 {
        skb.store(ETHERNET + 8, &flow.client) && skb.store(ETHERNET + 24, &flow.listener)
    } else {
        let [.., a, b, c, d] = flow.client;
        let [.., e, f, g, h] = flow.listener;
        skb.store(ETHERNET + 12, &[a, b, c, d, e, f, g, h])
    };
    let [p0, p1] = flow.client_port.to_be_bytes();
    let [q0, q1] = flow.listener_port.to_be_bytes();
    let [n0, n1, n2, n3] = seq.to_be_bytes();
    let mut header = [p0, p1, q0, q1, n0, n1, n2, n3, 0, 0, 0, 0, 5 << 4, RST, 0, 0, 0, 0, 0, 0];
    // The mapped form's 0xffff prefix would count in the sum; IPv4 has only the last four bytes.
    let from = if segment.v6 { 0 } else { 12 };
    let mut sum = PROTOCOL_TCP + TCP_HEADER;
    sum += sum_words(&flow.client, from) + sum_words(&flow.listener, from);
    let field = if partial { fold(sum) } else { !fold(sum + sum_words(&header, 0)) };
    let [c0, c1] = field.to_be_bytes();
    header[CHECKSUM as usize] = c0;
    header[CHECKSUM as usize + 1] = c1;
    addresses && skb.store(segment.tcp, &header)
}

/// Sum of the big-endian words from an even index on (RFC 1071).
#[inline(always)]
fn sum_words<const N: usize>(bytes: &[u8; N], from: usize) -> u32 {
    let mut sum = 0;
    let mut i = 0;
    while i + 1 < N {
        if i >= from {
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

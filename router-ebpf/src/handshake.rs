//! Handshakes between clients and the stack, recorded from the incoming SYN and the outgoing SYN-ACK.

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use router_common::maps::{FlowKey, HANDSHAKE_COMPLETE, Handshake, ListenerOwner, OPTION_ECN};
use router_common::packet::{ACK, CWR, ECE, SYN, Segment};
use router_common::translate::{self, PacketMut};
use router_common::verdict::DialCounter;

use crate::maps;
use crate::options::read as read_options;
use crate::skb::Skb;

/// Records a client's SYN.
#[inline(never)]
pub fn begun(skb: &Skb, segment: &Segment) {
    let options = read_options(skb, segment);
    let ecn = if segment.flags & (ECE | CWR) == ECE | CWR { OPTION_ECN } else { 0 };
    let handshake = Handshake {
        client_isn: segment.seq,
        client_mss: options.mss,
        client_shift: options.shift,
        options: options.present | ecn,
        ..Handshake::default()
    };
    maps::set_handshake(&segment.flow, &handshake);
}

/// Nanoseconds after the SYN-ACK for which the stack does not need the acknowledgement that completes the handshake:
/// less than the second after which it retransmits its SYN-ACK (RFC 6298 §2.1).
const ANSWER_STANDS: i64 = 500_000_000;

/// True if a segment only completes the handshake that the stack has just answered. A listener that defers its accept
/// would drop it, at the cost of a pass up the stack. A late or repeated one should reach the stack.
#[inline(always)]
pub fn is_only_ended(handshake: &Handshake, segment: &Segment) -> bool {
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    handshake.state == HANDSHAKE_COMPLETE
        && segment.flags == ACK
        && segment.seq == handshake.client_isn.wrapping_add(1)
        && segment.ack == handshake.listener_isn.wrapping_add(1)
        && (now.wrapping_sub(handshake.answered_ns) as i64) < ANSWER_STANDS
        && maps::settings().is_some_and(|settings| settings.dial != 0)
}

/// Handles a segment that the stack sends from a listener.
#[inline(always)]
pub fn sent(skb: &mut Skb, segment: &Segment, listener: ListenerOwner) -> i32 {
    let client = segment.flow.reversed();
    if maps::flow(&client).is_some() {
        // The endpoint answers in the listener's place now; the stack's segments of this connection are outdated.
        maps::count(DialCounter::StackSilenced);
        return TC_ACT_SHOT;
    }
    if segment.flags & (SYN | ACK) == SYN | ACK {
        answered(skb, segment, listener, &client);
    }
    TC_ACT_OK
}

/// Records a SYN-ACK: the options that both sides offered, and the other values that a dial needs.
#[inline(always)]
fn answered(skb: &mut Skb, segment: &Segment, listener: ListenerOwner, client: &FlowKey) {
    let options = read_options(skb, segment);
    if listener.max_segment != 0 && options.mss > listener.max_segment {
        lower_mss(skb, segment, options.mss_at as u32, options.mss, listener.max_segment);
    }
    let Some(handshake) = maps::handshake(client) else { return };
    if segment.ack != handshake.client_isn.wrapping_add(1) {
        return;
    }
    if handshake.state & HANDSHAKE_COMPLETE != 0 && handshake.listener_isn == segment.seq {
        // A retransmission: the recorded values stay valid, and an answer to this one should reach the stack.
        return;
    }
    handshake.listener_isn = segment.seq;
    handshake.listener_tsval = options.tsval;
    handshake.listener_shift = options.shift;
    let ecn = if segment.flags & (ECE | CWR) == ECE { OPTION_ECN } else { 0 };
    handshake.options &= options.present | ecn;
    // SAFETY: the helper has no precondition.
    handshake.answered_ns = unsafe { bpf_ktime_get_ns() };
    handshake.state |= HANDSHAKE_COMPLETE;
}

/// Lowers the maximum segment size that the SYN-ACK announces to the client: the client's segments will be forwarded to
/// an endpoint with unchanged size.
#[inline(always)]
fn lower_mss(skb: &mut Skb, segment: &Segment, at: u32, old: u16, new: u16) {
    let mut difference = translate::ChecksumDelta::default();
    difference.change(old as u32, new as u32);
    // At an odd position the two bytes belong to two words of the sum; this does not occur, because Linux aligns its
    // options.
    if (at - segment.tcp) & 1 == 0 && skb.fix_tcp_checksum(segment.tcp + 16, difference.folded(), false) {
        // Both writes succeed or neither: storing two bytes that were just read does not fail.
        let _ = skb.store(at, &new.to_be_bytes());
    }
}

//! Resetting a dropped connection: one RST goes to the client, and one to the stack, whose request or child socket
//! would otherwise wait for data.

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use router_common::packet::{Packet, RST, Segment};

use crate::craft::compose;
use crate::maps;
use crate::scratch::Scratch;
use crate::skb::Skb;

/// Turns the segment into two header-only resets: one back to the client, one up to the stack.
#[inline(never)]
pub fn reset_both(skb: &Skb, segment: &Segment) -> i32 {
    // To the client: as if the listener answered, at the sequence that the client expects next (RFC 9293 §3.5.2).
    let Some(macs) = skb.load::<12>(0) else { return TC_ACT_SHOT };
    if !reset(skb, segment, true) || !skb.put_ethernet(0, &swapped(&macs)) {
        return TC_ACT_SHOT;
    }
    // The result is ignored, because the stack's reset must happen anyway: if this one is lost, the stack resets the
    // client on its next segment.
    let _ = skb.send_copy(skb.interface());
    // To the stack: as if the client gave up, at the sequence that the stack expects next.
    if !skb.put_ethernet(0, &macs) || !reset(skb, segment, false) {
        return TC_ACT_SHOT;
    }
    TC_ACT_OK
}

/// Source and destination of an Ethernet header, exchanged.
#[inline(always)]
pub fn swapped(macs: &[u8; 12]) -> [u8; 12] {
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = *macs;
    [s0, s1, s2, s3, s4, s5, d0, d1, d2, d3, d4, d5]
}

#[inline(always)]
fn reset(skb: &Skb, segment: &Segment, back: bool) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let Scratch { wanted, .. } = memory;
    let flow = if back { segment.flow.reversed() } else { segment.flow };
    wanted.begin(skb, &flow);
    wanted.seq = if back { segment.ack } else { segment.seq };
    wanted.flags = RST;
    compose(skb)
}

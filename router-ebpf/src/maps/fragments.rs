//! State of carried connections' packets that arrive in fragments.

use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use router_common::fragment_fallback::relayed_until;
use router_common::maps::{FlowKey, FragmentKey, Fragmented, Repeated};

use super::definitions::{fragment_ids, fragmenting, fragments, fragments_again};
use crate::atomic::next_step;

#[inline(always)]
fn now() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_ktime_get_coarse_ns() }
}

/// The recorded first fragment of a packet, while more fragments are expected.
#[inline(always)]
pub fn fragmented(key: &FragmentKey) -> Option<&'static Fragmented> {
    // SAFETY: only the first fragment writes it, as a whole. A value that is evicted while it is read costs one packet,
    // which is retransmitted.
    unsafe { fragments.get(key) }.filter(|found| now() < found.until_ns)
}

/// Records a first fragment. An LRU map evicts the oldest entry; if memory is short, the packet is lost, and
/// retransmitted.
#[inline(always)]
pub fn set_fragmented(key: &FragmentKey, value: &Fragmented) {
    let _ = fragments.insert(key, value, BPF_ANY as u64);
}

/// The next identification for a packet in fragments.
#[inline(always)]
pub fn next_fragment_id() -> u32 {
    match fragment_ids.get_ptr_mut(0) {
        // SAFETY: one integer, which always exists.
        Some(ids) => next_step(unsafe { &mut *ids }),
        None => 0,
    }
}

/// Number of consecutive times that a packet in fragments had this sequence number, this time included.
#[inline(always)]
pub fn times_fragmented(flow: &FlowKey, seq: u32) -> u32 {
    if let Some(before) = fragments_again.get_ptr_mut(flow) {
        // SAFETY: only packets of one direction of a connection write it; a wrong count has little effect.
        let before = unsafe { &mut *before };
        if before.seq != seq {
            *before = Repeated { seq, times: 0 };
        }
        before.times += 1;
        return before.times;
    }
    let _ = fragments_again.insert(flow, &Repeated { seq, times: 1 }, BPF_ANY as u64);
    1
}

/// Has a client's new connections relayed for a while.
#[inline(always)]
pub fn relay_fragmenting(client: &[u8; 16]) {
    // SAFETY: one integer.
    let before = unsafe { fragmenting.get(client) }.copied();
    let _ = fragmenting.insert(client, &relayed_until(before, now()), BPF_ANY as u64);
}

/// True if a client's new connections are to be relayed.
#[inline(always)]
pub fn is_fragmenting(client: &[u8; 16]) -> bool {
    // SAFETY: one integer.
    unsafe { fragmenting.get(client) }.is_some_and(|until| now() < *until)
}

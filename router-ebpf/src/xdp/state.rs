//! The gate's lists and token buckets in the kernel's maps.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use router_common::gate::source_bucket::{Limit, Token};
use router_common::gate::{GateState, arrival::Arrival, recent, source_bucket, source_count, source_key, take_token};
use router_common::keyed_hash::hash;
use router_common::maps::{FlowKey, GATE_SOURCE_SETS, GATE_SYN_SETS, GatePolicy};

use crate::gate_words::{KernelSet, KernelWord};
use crate::maps;

/// Multiplier that spreads sequence numbers over a hash (2⁶⁴ divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// What the gate decides one packet by.
pub struct KernelGate {
    secret: [u64; 2],
    /// Monotonic time of the SYN, in nanoseconds.
    now: u64,
    /// Hash of the SYN.
    syn: u64,
}

impl KernelGate {
    /// `None` while the agent has not written its settings.
    #[inline(always)]
    pub fn new() -> Option<Self> {
        Some(KernelGate { secret: maps::settings()?.secret, now: 0, syn: 0 })
    }

    #[inline(always)]
    fn recent(&self) -> Option<KernelSet> {
        maps::gate_syn_set(self.syn as u32 & (GATE_SYN_SETS as u32 - 1)).map(KernelSet)
    }
}

/// Monotonic time in nanoseconds.
#[inline(always)]
fn now_ns() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_ktime_get_ns() }
}

impl GateState for KernelGate {
    #[inline(always)]
    fn is_listed(&self, list: u32, source: &[u8; 16]) -> bool {
        maps::gate_net_is_listed(list, source)
    }

    #[inline(always)]
    fn connections_of(&self, policy: &GatePolicy, source: &[u8; 16]) -> u32 {
        let hash = hash(self.secret, &source_key(policy, source));
        maps::gate_count_set(hash as u32).map_or(0, |set| source_count::count(&KernelSet(set), hash))
    }

    #[inline(always)]
    fn is_counted(&self, flow: &FlowKey) -> bool {
        maps::gate_connection(flow).is_some()
    }

    #[inline(always)]
    fn is_retransmitted(&mut self, arrival: &Arrival) -> bool {
        self.now = now_ns();
        self.syn = hash(self.secret, &arrival.flow) ^ (arrival.seq as u64).wrapping_mul(SPREAD);
        self.recent().is_some_and(|set| recent::is_retransmitted(&set, self.syn, self.now))
    }

    #[inline(always)]
    fn take_of_source(&mut self, policy: &GatePolicy, source: &[u8; 16]) -> bool {
        let hash = hash(self.secret, &source_key(policy, source));
        let Some(set) = maps::gate_source_set(hash as u32 & (GATE_SOURCE_SETS as u32 - 1)) else { return true };
        let limit = Limit { interval: policy.source_interval as u64, burst: policy.source_burst as u64 };
        !matches!(source_bucket::take(&KernelSet(set), hash, self.now, limit), Token::None)
    }

    #[inline(always)]
    fn take_of_listener(&mut self, policy: &GatePolicy) -> bool {
        let Some(bucket) = maps::gate_rate(policy.id) else { return true };
        take_token(&KernelWord(bucket), self.now << 4, policy.listener_interval, policy.listener_burst as u64)
    }

    #[inline(always)]
    fn record(&mut self) {
        if let Some(set) = self.recent() {
            recent::record(&set, self.syn, self.now);
        }
    }
}

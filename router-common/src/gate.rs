//! The decision of the XDP gate about a packet to a listener: the same function in the kernel and in user space.
//!
//! The gate rejects what must not cost the host anything: malformed packets, denied sources, SYNs beyond a rate or a number of
//! connections. It sends no
//! answer. What it lets pass is decided by TC and the stack, as if there were no gate.

pub mod arrival;
mod bucket;
pub mod connection;
pub mod known_sockets;
pub mod pressure;
pub mod recent;
pub mod sampler;
pub mod set;
pub mod source_bucket;
pub mod source_count;
pub mod syn_cookie;

use crate::maps::{FlowKey, GATE_NO_FRAGMENTS, GATE_NO_OPTIONS, GatePolicy, is_mapped};
use crate::packet::{ACK, SYN};
use crate::verdict::Reason;

use arrival::Arrival;
pub use bucket::{Word, take_token};

/// What the gate knows beside a packet.
pub trait GateState {
    /// Whether a list has the source.
    fn is_listed(&self, list: u32, source: &[u8; 16]) -> bool;
    /// Open connections of the source.
    fn connections_of(&self, policy: &GatePolicy, source: &[u8; 16]) -> u32;
    /// Whether a connection with these addresses and ports is one of them.
    fn is_counted(&self, flow: &FlowKey) -> bool;
    /// Whether this SYN was let pass already and is sent again, as often as a host may.
    fn is_retransmitted(&mut self, arrival: &Arrival) -> bool;
    /// Takes a token of the source; `false` if there is none.
    fn take_of_source(&mut self, policy: &GatePolicy, source: &[u8; 16]) -> bool;
    /// Takes a token of the listener; `false` if there is none.
    fn take_of_listener(&mut self, policy: &GatePolicy) -> bool;
    /// Records that the SYN that [`GateState::is_retransmitted`] was asked about is let pass.
    fn record(&mut self);
}

/// Why the policy rejects a packet; `None`: it does not.
#[inline(always)]
pub fn rejection(arrival: &Arrival, policy: &GatePolicy, state: &mut impl GateState) -> Option<Reason> {
    if arrival.is_malformed {
        return Some(Reason::Malformed);
    }
    if arrival.is_fragment && policy.flags & GATE_NO_FRAGMENTS != 0 {
        return Some(Reason::Fragmented);
    }
    if arrival.has_options && policy.flags & GATE_NO_OPTIONS != 0 {
        return Some(Reason::IpOptions);
    }
    let source = &arrival.flow.source;
    if policy.deny != 0 && state.is_listed(policy.deny, source) {
        return Some(Reason::SourceDenied);
    }
    if policy.allow != 0 && !state.is_listed(policy.allow, source) {
        return Some(Reason::SourceNotListed);
    }
    if arrival.flags & (SYN | ACK) != SYN {
        return None;
    }
    if policy.source_connections != 0
        && state.connections_of(policy, source) >= policy.source_connections
        && !state.is_counted(&arrival.flow)
    {
        return Some(Reason::SourceConnections);
    }
    let is_limited = policy.source_interval != 0 || policy.listener_interval != 0;
    if !is_limited || state.is_retransmitted(arrival) {
        return None;
    }
    // The source first: what one source sends beyond its rate takes nothing from the others.
    if policy.source_interval != 0 && !state.take_of_source(policy, source) {
        return Some(Reason::SourceRate);
    }
    if policy.listener_interval != 0 && !state.take_of_listener(policy) {
        return Some(Reason::ListenerRate);
    }
    state.record();
    None
}

/// The key of a source's token bucket: its prefix, and the policy.
#[inline(always)]
pub fn source_key(policy: &GatePolicy, source: &[u8; 16]) -> FlowKey {
    let address = u128::from_be_bytes(*source);
    let bits = if is_mapped(source) { 96 + policy.v4_bits as u32 } else { policy.v6_bits as u32 };
    let (high, low) = ((address >> 64) as u64, address as u64);
    let prefix = ((high & first_bits(bits)) as u128) << 64 | (low & first_bits(bits.saturating_sub(64))) as u128;
    FlowKey {
        source: prefix.to_be_bytes(),
        destination: (policy.id as u128).to_ne_bytes(),
        source_port: 0,
        destination_port: 0,
    }
}

/// A mask of the first bits of a word, all from 64 on.
#[inline(always)]
fn first_bits(bits: u32) -> u64 {
    if bits == 0 {
        0
    } else if bits >= 64 {
        u64::MAX
    } else {
        u64::MAX << (64 - bits)
    }
}

#[cfg(test)]
mod tests;

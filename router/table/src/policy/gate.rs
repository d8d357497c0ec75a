//! The policy of the XDP gate: which packets to a router's listeners are rejected before the kernel spends anything on them.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

/// The policy for a router's listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatePolicy {
    /// Sources that are denied; empty: none.
    pub deny: Arc<[IpNet]>,
    /// Sources that may connect; `None`: all.
    pub allow: Option<Arc<[IpNet]>>,
    /// While all routes of the router have the same allow-list, it is `allow`, if that is `None`.
    pub rejects_unlisted: bool,
    /// Limit of SYNs of each source, on each listener.
    pub source_rate: Option<SynRate>,
    /// Limit of SYNs of all sources, on each listener.
    pub listener_rate: Option<SynRate>,
    /// Limit of open connections of each source, on each listener; at least 1.
    pub source_connections: Option<u32>,
    /// Bits of an IPv4 address that make a source.
    pub v4_bits: u8,
    /// Bits of an IPv6 address that make a source.
    pub v6_bits: u8,
    /// Fragments are rejected.
    pub rejects_fragments: bool,
    /// Packets with IPv4 options or IPv6 extension headers are rejected.
    pub rejects_options: bool,
    /// Nothing is rejected; what would be is counted.
    pub observes: bool,
    /// SYNs a second of a listener above which they are answered with cookies; 0: they never are.
    pub cookies_above: u32,
    /// Packets are rejected by it: it says more than `cookies_above`.
    pub rejects: bool,
}

/// `cookies_above` of a router without a policy. The stack alone bears fewer at some percent of a processor.
pub const COOKIES_ABOVE: u32 = 5_000;

impl Default for GatePolicy {
    fn default() -> Self {
        GatePolicy {
            deny: Arc::default(),
            allow: None,
            rejects_unlisted: false,
            source_rate: None,
            listener_rate: None,
            source_connections: None,
            v4_bits: 32,
            v6_bits: 64,
            rejects_fragments: false,
            rejects_options: false,
            observes: false,
            cookies_above: COOKIES_ABOVE,
            rejects: true,
        }
    }
}

/// A limit of SYNs: a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynRate {
    /// Time between two.
    pub interval: Duration,
    /// How many may follow one another at once, at least 1.
    pub burst: u32,
}

/// The same networks in one form: joined where they can be, and sorted.
pub fn aggregated(nets: &[IpNet]) -> Arc<[IpNet]> {
    let mut nets = IpNet::aggregate(&nets.to_vec());
    nets.sort();
    nets.into()
}

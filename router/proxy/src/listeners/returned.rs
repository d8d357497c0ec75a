//! Connections of the router's own that come back to one of its listeners: their endpoint's address is one that this host
//! translates, such as that of a Service, and leads here. Each would make another one, for ever.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use router_common::maps::{FlowKey, mapped};
use socket2::SockRef;

use router_listener::is_local;

/// How long after its beginning a connection is expected to come back: a listener may leave it to the kernel for 5 s, until it
/// has its first bytes.
const EXPECTED: Duration = Duration::from_secs(10);
/// How long an endpoint is not connected to after a connection to it has come back.
const STANDS: Duration = Duration::from_secs(30);
/// Endpoints of which that is known at a time.
const KNOWN: usize = 1024;

/// Finds the first packet's addresses and ports of a connection that the host translates, given those of its answers; `None`
/// if the connection is not tracked.
pub type OriginalLookup = fn(&FlowKey) -> io::Result<Option<FlowKey>>;

/// The connections that the router has made, and the endpoints that led back.
#[derive(Debug)]
pub struct Returned {
    start: Instant,
    hasher: RandomState,
    /// For each port, where the last connection from it went (the upper half, a hash) and when (seconds after the start).
    last: Box<[AtomicU64]>,
    endpoints: ArcSwap<HashMap<SocketAddr, Instant>>,
}

impl Default for Returned {
    fn default() -> Self {
        let last = (0..=u16::MAX).map(|_| AtomicU64::new(0)).collect();
        Returned { start: Instant::now(), hasher: RandomState::new(), last, endpoints: ArcSwap::default() }
    }
}

impl Returned {
    /// A connection to an endpoint begins, from a port.
    pub fn begun(&self, port: u16, endpoint: SocketAddr) {
        if let Some(last) = self.last.get(usize::from(port)) {
            last.store(self.entry(endpoint, self.start.elapsed()), Ordering::Relaxed);
        }
    }

    /// Whether connections to an endpoint have come back lately.
    pub fn is_known(&self, endpoint: SocketAddr) -> bool {
        let endpoints = self.endpoints.load();
        !endpoints.is_empty() && endpoints.get(&endpoint).is_some_and(|found| found.elapsed() < STANDS)
    }

    /// Whether a connection of a listener is one of the router's own; then its endpoint is known from now on.
    pub fn has(
        &self,
        accepted: SockRef<'_>,
        client: SocketAddr,
        listener: SocketAddr,
        lookup: Option<OriginalLookup>,
    ) -> bool {
        let Some((port, endpoint)) = before_translation(&accepted, client, listener, lookup) else { return false };
        let Some(last) = self.last.get(usize::from(port)).map(|last| last.load(Ordering::Relaxed)) else {
            return false;
        };
        let now = self.start.elapsed();
        let recent = (0..=EXPECTED.as_secs()).any(|seconds| {
            now.checked_sub(Duration::from_secs(seconds)).is_some_and(|then| self.entry(endpoint, then) == last)
        });
        if recent {
            self.endpoints.rcu(|endpoints| {
                let mut endpoints = HashMap::clone(endpoints);
                endpoints.retain(|_, found| found.elapsed() < STANDS);
                if endpoints.len() < KNOWN {
                    endpoints.insert(endpoint, Instant::now());
                }
                Arc::new(endpoints)
            });
        }
        recent
    }

    /// Never 0, which stands for no connection.
    fn entry(&self, endpoint: SocketAddr, when: Duration) -> u64 {
        let seconds = u32::try_from(when.as_secs()).unwrap_or(u32::MAX);
        self.hasher.hash_one(endpoint) << 32 | u64::from(seconds.saturating_add(1))
    }
}

/// From which port, and to where, a connection of this host began that it has translated since. `None`: it is none.
fn before_translation(
    accepted: &SockRef<'_>,
    client: SocketAddr,
    listener: SocketAddr,
    lookup: Option<OriginalLookup>,
) -> Option<(u16, SocketAddr)> {
    let v4 = listener.is_ipv4();
    let original = if v4 { accepted.original_dst_v4() } else { accepted.original_dst_v6() };
    let original = original.ok()?.as_socket()?;
    if original == listener || !is_local(client.ip()) {
        return None;
    }
    // Its source may have been translated as well. Where that is not told, for want of a capability, it is taken as it is.
    let sixteen = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => mapped(ip.octets()),
        IpAddr::V6(ip) => ip.octets(),
    };
    let answer = FlowKey {
        source: sixteen(listener.ip()),
        destination: sixteen(client.ip()),
        source_port: listener.port(),
        destination_port: client.port(),
    };
    let begun = lookup.and_then(|lookup| lookup(&answer).ok().flatten());
    Some((begun.map_or(client.port(), |begun| begun.source_port), original))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_known_by_its_port_and_endpoint_for_a_while() {
        let returned = Returned::default();
        let (one, other) = (SocketAddr::from(([192, 0, 2, 1], 443)), SocketAddr::from(([192, 0, 2, 2], 443)));
        let now = Duration::from_secs(100);
        assert_eq!(returned.entry(one, now), returned.entry(one, now + Duration::from_millis(999)));
        assert_ne!(returned.entry(one, now), returned.entry(other, now));
        assert_ne!(returned.entry(one, now), returned.entry(one, now + Duration::from_secs(1)));
        assert_ne!(returned.entry(one, Duration::ZERO), 0);
        returned.begun(40_000, one);
        assert!(!returned.is_known(one), "it has not come back");
    }
}

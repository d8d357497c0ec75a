//! Detects loops: connections of this router that return to one of its listeners, because the host translates the
//! endpoint's address (for example a Service's) to the listener's. Each would cause another one, without end.

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

/// How long after its start a connection may return: a listener may defer it for 5 s, until its first bytes arrive.
const EXPECTED: Duration = Duration::from_secs(10);
/// How long an endpoint is avoided after a connection to it returned.
const STANDS: Duration = Duration::from_secs(30);
/// Most endpoints avoided at a time.
const KNOWN: usize = 1024;

/// Looks up the original addresses and ports of a connection that the host translates, given those of its replies;
/// `None` if the connection is not tracked.
pub type OriginalLookup = fn(&FlowKey) -> io::Result<Option<FlowKey>>;

/// The router's connections, and the endpoints that led back to it.
#[derive(Debug)]
pub struct Returned {
    start: Instant,
    hasher: RandomState,
    /// For each local port the endpoint of its last connection (upper half, a hash) and its time (seconds after the
    /// start).
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
    /// Records a connection to an endpoint from a local port.
    pub fn begun(&self, port: u16, endpoint: SocketAddr) {
        if let Some(last) = self.last.get(usize::from(port)) {
            last.store(self.entry(endpoint, self.start.elapsed()), Ordering::Relaxed);
        }
    }

    /// Whether a connection to this endpoint returned recently.
    pub fn is_known(&self, endpoint: SocketAddr) -> bool {
        let endpoints = self.endpoints.load();
        !endpoints.is_empty() && endpoints.get(&endpoint).is_some_and(|found| found.elapsed() < STANDS)
    }

    /// Whether an accepted connection is one of the router's own. If so, records its endpoint.
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

    /// Never 0, which means no connection.
    fn entry(&self, endpoint: SocketAddr, when: Duration) -> u64 {
        let seconds = u32::try_from(when.as_secs()).unwrap_or(u32::MAX);
        self.hasher.hash_one(endpoint) << 32 | u64::from(seconds.saturating_add(1))
    }
}

/// Local port and destination of an accepted connection before translation. `None` if it is not translated.
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
    // The source may be translated as well. If the look-up lacks the capability, the source is used unchanged.
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

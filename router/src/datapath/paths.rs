//! How endpoints are reached: our source address, the interface, and what fits a segment.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use super::netlink::{Hop, Netlink};

/// IPv4 header (20) and TCP header (20) without options, in bytes.
const HEADERS_V4: u32 = 40;
/// IPv6 header (40) and TCP header (20) without options, in bytes.
const HEADERS_V6: u32 = 60;
/// Addresses beyond twice those in use that a cache may know.
const STALE: usize = 4096;
/// A path whose segments carry fewer bytes than this is none: TCP's own default for IPv4 is 536 (RFC 9293 §3.7.1).
const LEAST_SEGMENT: u32 = 256;

/// The way to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Our address.
    pub source: IpAddr,
    /// The interface that leads there.
    pub interface: u32,
    /// Most payload bytes of a segment.
    pub max_segment: u16,
}

/// Who knows ways.
pub trait Paths {
    /// The way to an address; `None` when there is none that the kernel program can use.
    fn path(&mut self, to: IpAddr) -> Option<Path>;
}

impl<F: FnMut(IpAddr) -> Option<Path>> Paths for F {
    fn path(&mut self, to: IpAddr) -> Option<Path> {
        self(to)
    }
}

/// Ways that were asked for once, until [`PathCache::refresh`] asks for all of them again.
#[derive(Debug)]
pub struct PathCache<P> {
    /// Who is asked.
    pub source: P,
    known: HashMap<IpAddr, Known>,
    round: u64,
    /// How many were known after the last round.
    kept: usize,
}

#[derive(Debug)]
struct Known {
    path: Option<Path>,
    /// The last round that asked.
    round: u64,
}

impl<P: Paths> PathCache<P> {
    /// Knows nothing yet.
    pub fn new(source: P) -> Self {
        PathCache { source, known: HashMap::new(), round: 0, kept: 0 }
    }

    /// Whether most of what is known may be of addresses that nobody asks for any more: endpoints come and go.
    pub fn is_stale(&self) -> bool {
        self.known.len() > 2 * self.kept + STALE
    }

    /// Asks for all ways again. Whether one has changed.
    pub fn refresh(&mut self) -> bool {
        let mut changed = false;
        for (to, known) in &mut self.known {
            let now = self.source.path(*to);
            changed |= now != known.path;
            known.path = now;
        }
        changed
    }

    /// Begins a round in which all ways that are wanted are asked for.
    pub fn begin_round(&mut self) {
        self.round += 1;
    }

    /// Forgets what nobody asked for in this round.
    pub fn end_round(&mut self) {
        self.known.retain(|_, known| known.round == self.round);
        self.kept = self.known.len();
    }
}

impl<P: Paths> Paths for PathCache<P> {
    fn path(&mut self, to: IpAddr) -> Option<Path> {
        let known = self.known.entry(to).or_insert_with(|| Known { path: self.source.path(to), round: 0 });
        known.round = self.round;
        known.path
    }
}

/// The kernel's routing tables.
#[derive(Debug)]
pub struct KernelPaths {
    netlink: Netlink,
    /// MTU in bytes of the interfaces that the program is attached to, by index. A way over any other interface is
    /// none: the endpoint's answers would come in past the program.
    pub attached: BTreeMap<u32, u32>,
}

impl KernelPaths {
    /// Asks through this socket.
    pub fn new(netlink: Netlink) -> Self {
        KernelPaths { netlink, attached: BTreeMap::new() }
    }

    /// The socket, for other questions.
    pub fn netlink(&mut self) -> &mut Netlink {
        &mut self.netlink
    }
}

impl Paths for KernelPaths {
    fn path(&mut self, to: IpAddr) -> Option<Path> {
        match self.netlink.hop_to(to) {
            Ok(hop) => usable(hop?, &self.attached),
            Err(error) => {
                tracing::warn!(address = %to, %error, "cannot ask for the route to an endpoint; it is relayed");
                None
            }
        }
    }
}

fn usable(hop: Hop, attached: &BTreeMap<u32, u32>) -> Option<Path> {
    let interface_mtu = *attached.get(&hop.interface)?;
    let mtu = hop.mtu.map_or(interface_mtu, |route| route.min(interface_mtu));
    let headers = if hop.source.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
    let max_segment = mtu.saturating_sub(headers).min(u32::from(u16::MAX));
    if max_segment < LEAST_SEGMENT {
        return None;
    }
    Some(Path { source: hop.source, interface: hop.interface, max_segment: max_segment as u16 })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn hop(source: &str, interface: u32, mtu: Option<u32>) -> Hop {
        Hop { source: source.parse().unwrap(), interface, mtu }
    }

    #[test]
    fn a_segment_is_what_the_headers_leave_of_the_smaller_mtu() {
        let attached = BTreeMap::from([(1, 65_536), (2, 1500), (3, 290)]);
        let segment = |hop| usable(hop, &attached).map(|path| path.max_segment);
        assert_eq!(segment(hop("10.0.0.1", 2, None)), Some(1460));
        assert_eq!(segment(hop("fd00::1", 2, None)), Some(1440));
        assert_eq!(segment(hop("10.0.0.1", 2, Some(1400))), Some(1360));
        assert_eq!(segment(hop("10.0.0.1", 2, Some(9000))), Some(1460));
        assert_eq!(segment(hop("127.0.0.1", 1, None)), Some(65_496));
        assert_eq!(segment(hop("10.0.0.1", 1, Some(u32::MAX))), Some(65_496));
        assert_eq!(segment(hop("10.0.0.1", 3, None)), None, "nothing fits");
        assert_eq!(segment(hop("10.0.0.1", 4, None)), None, "the program is not attached there");
    }

    #[test]
    fn a_cache_asks_once_and_tells_what_a_refresh_changed() {
        let (asked, mtu) = (Cell::new(0), Cell::new(1460));
        let mut cache = PathCache::new(|to: IpAddr| {
            asked.set(asked.get() + 1);
            Some(Path { source: to, interface: 1, max_segment: mtu.get() })
        });
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..3 {
            assert_eq!(cache.path(a).map(|path| path.max_segment), Some(1460));
            cache.path(b);
        }
        assert_eq!(asked.get(), 2);
        cache.begin_round();
        cache.path(a);
        cache.end_round();
        assert!(!cache.refresh());
        assert_eq!(asked.get(), 3, "the other is forgotten");
        mtu.set(1360);
        assert!(cache.refresh());
        assert_eq!(cache.path(a).map(|path| path.max_segment), Some(1360));
    }

    #[test]
    fn a_cache_tells_when_it_knows_too_much() {
        let mut cache = PathCache::new(|_: IpAddr| None);
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        cache.begin_round();
        (0..100).for_each(|n| assert_eq!(cache.path(address(n)), None));
        cache.end_round();
        (0..(STALE + 200) as u32).for_each(|n| assert_eq!(cache.path(address(n)), None));
        assert!(!cache.is_stale());
        cache.path(address(1 << 20));
        assert!(cache.is_stale());
        cache.begin_round();
        cache.end_round();
        assert!(!cache.is_stale());
    }
}

//! Routes to endpoints: source address, interface, and maximum segment size.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use router_common::maps::OURS;

use super::netfilter::Interface;
use crate::host::state::HostState;
use crate::netfilter::firewall::KernelDial;
use crate::netlink::queries::{Netlink, RouteLookup, RoutingSelector};

pub use super::obstacles::Obstacle;

/// IPv4 header (20) and TCP header (20) without options, in bytes.
const HEADERS_V4: u32 = 40;
/// IPv6 header (40) and TCP header (20) without options, in bytes.
const HEADERS_V6: u32 = 60;
/// Slack of the cache, in addresses, above twice the number in use.
const STALE: usize = 4096;
/// Most endpoints whose verdict by the host's rules is cached.
const JUDGED: usize = 200_000;
/// Smallest usable maximum segment size; TCP's default for IPv4 is 536 (RFC 9293 §3.7.1).
const LEAST_SEGMENT: u32 = 256;

/// The route to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Source address.
    pub source: IpAddr,
    /// Output interface.
    pub interface: u32,
    /// Most payload bytes of a segment.
    pub max_segment: u16,
}

/// Source of routes.
pub trait Paths {
    /// The route to an endpoint.
    ///
    /// # Errors
    /// Why the kernel program cannot use any.
    fn path(&mut self, to: SocketAddr) -> Result<Path, Obstacle>;
}

impl<F: FnMut(SocketAddr) -> Result<Path, Obstacle>> Paths for F {
    fn path(&mut self, to: SocketAddr) -> Result<Path, Obstacle> {
        self(to)
    }
}

/// Cache of routes, until [`PathCache::renew`] replaces them.
#[derive(Debug)]
pub struct PathCache<P> {
    /// The source.
    pub source: P,
    known: HashMap<SocketAddr, CachedPath>,
    round: u64,
    /// Number of entries after the last round.
    kept: usize,
}

#[derive(Debug)]
struct CachedPath {
    path: Result<Path, Obstacle>,
    /// The last round in which the entry was used.
    round: u64,
}

impl<P: Paths> PathCache<P> {
    /// An empty cache.
    pub fn new(source: P) -> Self {
        PathCache { source, known: HashMap::new(), round: 0, kept: 0 }
    }

    /// True if most entries may be of addresses that are not in use any more.
    pub fn is_stale(&self) -> bool {
        self.known.len() > 2 * self.kept + STALE
    }

    /// All cached addresses, with a route or without.
    pub fn known(&self) -> Vec<SocketAddr> {
        self.known.keys().copied().collect()
    }

    /// Replaces entries by newly read routes; if `all`, reads the others here. True if a route has changed.
    pub fn renew(&mut self, mut ways: HashMap<SocketAddr, Result<Path, Obstacle>>, all: bool) -> bool {
        let mut changed = false;
        for (to, known) in &mut self.known {
            let way = ways.remove(to).or_else(|| all.then(|| self.source.path(*to)));
            if let Some(way) = way.filter(|way| *way != known.path) {
                (changed, known.path) = (true, way);
            }
        }
        changed
    }

    /// Begins a round in which all routes in use are requested.
    pub fn begin_round(&mut self) {
        self.round += 1;
    }

    /// Deletes entries that were not requested in this round.
    pub fn end_round(&mut self) {
        self.known.retain(|_, known| known.round == self.round);
        self.kept = self.known.len();
    }
}

impl<P: Paths> Paths for PathCache<P> {
    fn path(&mut self, to: SocketAddr) -> Result<Path, Obstacle> {
        let known = self.known.entry(to).or_insert_with(|| CachedPath { path: self.source.path(to), round: 0 });
        known.round = self.round;
        known.path.clone()
    }
}

/// The kernel's routing tables.
#[derive(Debug)]
pub struct KernelPaths {
    netlink: Netlink,
    /// MTU in bytes of the interfaces with the programs, by index. A route over another interface cannot be used: the
    /// programs would not see the endpoint's packets.
    pub attached: BTreeMap<u32, u32>,
    /// Names of the interfaces, by index.
    pub names: BTreeMap<u32, String>,
    /// How this host treats packets.
    pub host: Arc<HostState>,
    /// Verdicts of netfilter's rules on dials, valid until the rules change.
    judged: HashMap<KernelDial, Option<Arc<str>>>,
}

impl KernelPaths {
    /// Uses this socket.
    pub fn new(netlink: Netlink) -> Self {
        KernelPaths {
            netlink,
            attached: BTreeMap::new(),
            names: BTreeMap::new(),
            host: Arc::default(),
            judged: HashMap::new(),
        }
    }

    /// Replaces the state of the host.
    pub fn follow(&mut self, host: Arc<HostState>) {
        if host.firewall != self.host.firewall {
            self.judged.clear();
        }
        self.host = host;
    }

    /// The rule of the host that may match a dial.
    fn rule_for(&mut self, to: SocketAddr, path: Path) -> Option<Arc<str>> {
        let firewall = self.host.firewall.as_ref()?;
        let dial = KernelDial { source: path.source, to, link: Interface::of(path.interface, &self.names) };
        // Endpoints that are gone are deleted with all others.
        if self.judged.len() > JUDGED {
            self.judged.clear();
        }
        self.judged.entry(dial).or_insert_with(|| firewall.concerns(dial)).clone()
    }

    /// True if a socket's packets may take another route than those of the programs.
    fn may_differ(&mut self, to: SocketAddr, hop: RouteLookup) -> io::Result<bool> {
        let routing = &self.host.routing;
        if routing.is_empty() {
            return Ok(false);
        }
        if routing.distinguish_source_ports(hop.source, to.ip()) {
            return Ok(true);
        }
        let RouteLookup { source, interface, .. } = hop;
        let ways =
            [RoutingSelector::Socket { port: to.port() }, RoutingSelector::Program { source, interface, mark: OURS }];
        for asker in ways {
            let other = self.netlink.hop_for(to.ip(), Some(asker))?;
            // A route may have another source for sockets that have not chosen one.
            if other.map(|other| RouteLookup { source, ..other }) != Some(hop) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The socket, for other questions.
    pub fn netlink(&mut self) -> &mut Netlink {
        &mut self.netlink
    }

    fn ask(&mut self, to: SocketAddr) -> io::Result<Result<Path, Obstacle>> {
        let Some(hop) = self.netlink.hop_to(to.ip())? else { return Ok(Err(Obstacle::NoRoute)) };
        let apart = self.may_differ(to, hop)?;
        Ok(usable(hop, &self.attached).and_then(|path| {
            if apart {
                return Err(Obstacle::OtherRoute);
            }
            if let Some(obstacle) = self.host.ipsec(path.source, to.ip()) {
                return Err(obstacle);
            }
            self.rule_for(to, path).map_or(Ok(path), |rule| Err(Obstacle::HostRule(rule)))
        }))
    }
}

impl Paths for KernelPaths {
    fn path(&mut self, to: SocketAddr) -> Result<Path, Obstacle> {
        self.ask(to).unwrap_or_else(|error| {
            tracing::warn!(address = %to.ip(), %error, "cannot look up the route to an endpoint; it is relayed");
            Err(Obstacle::Unknown)
        })
    }
}

fn usable(hop: RouteLookup, attached: &BTreeMap<u32, u32>) -> Result<Path, Obstacle> {
    let interface_mtu = *attached.get(&hop.interface).ok_or(Obstacle::Interface)?;
    if hop.encapsulated {
        return Err(Obstacle::Encapsulated);
    }
    let mtu = hop.mtu.map_or(interface_mtu, |route| route.min(interface_mtu));
    let headers = if hop.source.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
    let max_segment = mtu.saturating_sub(headers).min(u32::from(u16::MAX));
    if max_segment < LEAST_SEGMENT {
        return Err(Obstacle::SmallMtu);
    }
    Ok(Path { source: hop.source, interface: hop.interface, max_segment: max_segment as u16 })
}

#[cfg(test)]
mod tests;

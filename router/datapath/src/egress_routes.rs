//! How endpoints are reached: our source address, the interface, and what fits a segment.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use router_common::maps::OURS;

use super::netfilter::Link;
use crate::host::state::Host;
use crate::netfilter::firewall::Dial;
use crate::netlink::queries::{Asker, Hop, Netlink};

pub use super::obstacles::Obstacle;

/// IPv4 header (20) and TCP header (20) without options, in bytes.
const HEADERS_V4: u32 = 40;
/// IPv6 header (40) and TCP header (20) without options, in bytes.
const HEADERS_V6: u32 = 60;
/// Addresses beyond twice those in use that a cache may know.
const STALE: usize = 4096;
/// Endpoints for which it may be known what rules of the host do.
const JUDGED: usize = 200_000;
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
    /// The way to an endpoint.
    ///
    /// # Errors
    /// Why there is none that the kernel program can use.
    fn path(&mut self, to: SocketAddr) -> Result<Path, Obstacle>;
}

impl<F: FnMut(SocketAddr) -> Result<Path, Obstacle>> Paths for F {
    fn path(&mut self, to: SocketAddr) -> Result<Path, Obstacle> {
        self(to)
    }
}

/// Ways that were asked for once, until [`PathCache::renew`] tells of others.
#[derive(Debug)]
pub struct PathCache<P> {
    /// Who is asked.
    pub source: P,
    known: HashMap<SocketAddr, Known>,
    round: u64,
    /// How many were known after the last round.
    kept: usize,
}

#[derive(Debug)]
struct Known {
    path: Result<Path, Obstacle>,
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

    /// All addresses to which a way is known, or that there is none.
    pub fn known(&self) -> Vec<SocketAddr> {
        self.known.keys().copied().collect()
    }

    /// Takes what somebody has asked for again; if `all`, the rest is asked for here. Whether a way has changed.
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
    fn path(&mut self, to: SocketAddr) -> Result<Path, Obstacle> {
        let known = self.known.entry(to).or_insert_with(|| Known { path: self.source.path(to), round: 0 });
        known.round = self.round;
        known.path.clone()
    }
}

/// The kernel's routing tables.
#[derive(Debug)]
pub struct KernelPaths {
    netlink: Netlink,
    /// MTU in bytes of the interfaces that the program is attached to, by index. A way over any other interface is
    /// none: the endpoint's answers would come in past the program.
    pub attached: BTreeMap<u32, u32>,
    /// Names of the interfaces, by index.
    pub names: BTreeMap<u32, String>,
    /// What this host does to packets.
    pub host: Arc<Host>,
    /// What rules of netfilter may do to packets of a dial, as it was found; good until they change.
    judged: HashMap<Dial, Option<Arc<str>>>,
}

impl KernelPaths {
    /// Asks through this socket.
    pub fn new(netlink: Netlink) -> Self {
        KernelPaths {
            netlink,
            attached: BTreeMap::new(),
            names: BTreeMap::new(),
            host: Arc::default(),
            judged: HashMap::new(),
        }
    }

    /// Judges by another host from now on.
    pub fn follow(&mut self, host: Arc<Host>) {
        if host.firewall != self.host.firewall {
            self.judged.clear();
        }
        self.host = host;
    }

    /// Which rule of the host may concern a dial.
    fn rule_for(&mut self, to: SocketAddr, path: Path) -> Option<Arc<str>> {
        let firewall = self.host.firewall.as_ref()?;
        let dial = Dial { source: path.source, to, link: Link::of(path.interface, &self.names) };
        // Endpoints come and go; those that went are forgotten with all others.
        if self.judged.len() > JUDGED {
            self.judged.clear();
        }
        self.judged.entry(dial).or_insert_with(|| firewall.concerns(dial)).clone()
    }

    /// Whether a socket's packets may go another way than those of the programs.
    fn are_told_apart(&mut self, to: SocketAddr, hop: Hop) -> io::Result<bool> {
        let routing = &self.host.routing;
        if routing.is_empty() {
            return Ok(false);
        }
        if routing.tell_source_ports_apart(hop.source, to.ip()) {
            return Ok(true);
        }
        let Hop { source, interface, .. } = hop;
        let ways = [Asker::Socket { port: to.port() }, Asker::Program { source, interface, mark: OURS }];
        for asker in ways {
            let other = self.netlink.hop_for(to.ip(), Some(asker))?;
            // A route may have another source for those who have chosen none.
            if other.map(|other| Hop { source, ..other }) != Some(hop) {
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
        let apart = self.are_told_apart(to, hop)?;
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
            tracing::warn!(address = %to.ip(), %error, "cannot ask for the route to an endpoint; it is relayed");
            Err(Obstacle::Unknown)
        })
    }
}

fn usable(hop: Hop, attached: &BTreeMap<u32, u32>) -> Result<Path, Obstacle> {
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

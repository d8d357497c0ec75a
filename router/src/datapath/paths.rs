//! How endpoints are reached: our source address, the interface, and what fits a segment.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::netfilter::{Dial, Firewall, Link};
use super::netlink::{Hop, Netlink, Policies};

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

/// What to do about policies that have connections relayed.
pub const IPSEC_REMEDY: &str = "`ip xfrm policy` shows it; nothing, if it is to hold: else narrow its selector";
/// The same about rules.
pub const RULE_REMEDY: &str = "`nft -a list ruleset` shows rules with their handles, `iptables-legacy -S` older ones; nothing, if \
     it is to hold: else narrow it, or have all rules passed by with --host-firewall bypass";

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

/// Why the kernel programs do not carry connections to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no route to it: the relay does not reach it either.
    NoRoute,
    /// Its route leaves by an interface that no programs are attached to.
    Interface,
    /// Its route encapsulates packets (ip-route(8), `encap`), which packets sent past the stack would not be.
    Encapsulated,
    /// An IPsec policy (ip-xfrm(8), direction `out`) has packets to it transformed or blocked.
    Ipsec,
    /// A rule of the host's firewall may concern packets to it or from it; the rule, and what it may do.
    HostRule(Arc<str>),
    /// The MTU on the way leaves too little room for a segment.
    SmallMtu,
    /// The kernel did not answer.
    Unknown,
}

impl Obstacle {
    /// The reason as `sluice` prints it.
    pub fn text(&self) -> &str {
        match self {
            Obstacle::NoRoute => "there is no route to it",
            Obstacle::Interface => "its route leaves by an interface that no kernel program is attached to",
            Obstacle::Encapsulated => "its route encapsulates packets",
            Obstacle::Ipsec => "an IPsec policy applies to packets to it",
            Obstacle::HostRule(rule) => rule,
            Obstacle::SmallMtu => "the MTU on the way to it is too small",
            Obstacle::Unknown => "the kernel did not tell the route to it",
        }
    }

    /// What to do for the programs to carry its connections.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Obstacle::NoRoute => "add a route",
            Obstacle::Interface => {
                "`ip route get` shows the interface; the programs need one with Ethernet headers and no master"
            }
            Obstacle::Encapsulated => "`ip route get` shows the route; nothing, if it is to encapsulate",
            Obstacle::Ipsec => IPSEC_REMEDY,
            Obstacle::HostRule(_) => RULE_REMEDY,
            Obstacle::SmallMtu => "raise the MTU of the route or of its interface",
            Obstacle::Unknown => "see the agent's log",
        }
    }
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

/// Ways that were asked for once, until [`PathCache::refresh`] asks for all of them again.
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
    /// IPsec policies for packets that leave.
    pub policies: Policies,
    /// Rules of this host; `None` if they are not looked at.
    pub firewall: Option<Firewall>,
    /// What those rules may do, as it was found; good until they change.
    judged: HashMap<(SocketAddr, IpAddr, u32), Option<Arc<str>>>,
}

impl KernelPaths {
    /// Asks through this socket.
    pub fn new(netlink: Netlink, firewall: Option<Firewall>) -> Self {
        KernelPaths {
            netlink,
            attached: BTreeMap::new(),
            names: BTreeMap::new(),
            policies: Policies::default(),
            firewall,
            judged: HashMap::new(),
        }
    }

    /// Forgets what rules may do: they, or the interfaces that they name, are others now.
    pub fn judge_anew(&mut self) {
        self.judged.clear();
    }

    /// Which rule of the host may concern a dial.
    fn rule_for(&mut self, to: SocketAddr, path: Path) -> Option<Arc<str>> {
        let firewall = self.firewall.as_ref()?;
        let link = Link::new(path.interface, self.names.get(&path.interface).map_or("", String::as_str));
        // Endpoints come and go; those that went are forgotten with all others.
        if self.judged.len() > JUDGED {
            self.judged.clear();
        }
        let judge = || firewall.concerns(Dial { source: path.source, to, link });
        self.judged.entry((to, path.source, path.interface)).or_insert_with(judge).clone()
    }

    /// The socket, for other questions.
    pub fn netlink(&mut self) -> &mut Netlink {
        &mut self.netlink
    }
}

impl Paths for KernelPaths {
    fn path(&mut self, to: SocketAddr) -> Result<Path, Obstacle> {
        match self.netlink.hop_to(to.ip()) {
            Ok(hop) => {
                let path = usable(hop.ok_or(Obstacle::NoRoute)?, &self.attached)?;
                if self.policies.concern(path.source, to.ip()) {
                    return Err(Obstacle::Ipsec);
                }
                self.rule_for(to, path).map_or(Ok(path), |rule| Err(Obstacle::HostRule(rule)))
            }
            Err(error) => {
                tracing::warn!(address = %to.ip(), %error, "cannot ask for the route to an endpoint; it is relayed");
                Err(Obstacle::Unknown)
            }
        }
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
mod tests {
    use std::cell::Cell;

    use super::*;

    fn hop(source: &str, interface: u32, mtu: Option<u32>) -> Hop {
        Hop { source: source.parse().unwrap(), interface, mtu, encapsulated: false }
    }

    #[test]
    fn a_segment_is_what_the_headers_leave_of_the_smaller_mtu() {
        let attached = BTreeMap::from([(1, 65_536), (2, 1500), (3, 290)]);
        let segment = |hop| usable(hop, &attached).map(|path| path.max_segment);
        assert_eq!(segment(hop("10.0.0.1", 2, None)), Ok(1460));
        assert_eq!(segment(hop("fd00::1", 2, None)), Ok(1440));
        assert_eq!(segment(hop("10.0.0.1", 2, Some(1400))), Ok(1360));
        assert_eq!(segment(hop("10.0.0.1", 2, Some(9000))), Ok(1460));
        assert_eq!(segment(hop("127.0.0.1", 1, None)), Ok(65_496));
        assert_eq!(segment(hop("10.0.0.1", 1, Some(u32::MAX))), Ok(65_496));
        assert_eq!(segment(hop("10.0.0.1", 3, None)), Err(Obstacle::SmallMtu));
        assert_eq!(segment(hop("10.0.0.1", 4, None)), Err(Obstacle::Interface));
    }

    #[test]
    fn a_cache_asks_once_and_tells_what_a_refresh_changed() {
        let (asked, mtu) = (Cell::new(0), Cell::new(1460));
        let mut cache = PathCache::new(|to: SocketAddr| {
            asked.set(asked.get() + 1);
            Ok(Path { source: to.ip(), interface: 1, max_segment: mtu.get() })
        });
        let (a, b) = (SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 0, 2], 80)));
        for _ in 0..3 {
            assert_eq!(cache.path(a).map(|path| path.max_segment), Ok(1460));
            assert!(cache.path(b).is_ok());
        }
        assert_eq!(asked.get(), 2);
        cache.begin_round();
        assert!(cache.path(a).is_ok());
        cache.end_round();
        assert!(!cache.refresh());
        assert_eq!(asked.get(), 3, "the other is forgotten");
        mtu.set(1360);
        assert!(cache.refresh());
        assert_eq!(cache.path(a).map(|path| path.max_segment), Ok(1360));
    }

    #[test]
    fn a_cache_tells_when_it_knows_too_much() {
        let mut cache = PathCache::new(|_: SocketAddr| Err(Obstacle::NoRoute));
        let address = |n: u32| SocketAddr::from((n.to_be_bytes(), 80));
        cache.begin_round();
        (0..100).for_each(|n| assert!(cache.path(address(n)).is_err()));
        cache.end_round();
        (0..(STALE + 200) as u32).for_each(|n| assert!(cache.path(address(n)).is_err()));
        assert!(!cache.is_stale());
        assert!(cache.path(address(1 << 20)).is_err());
        assert!(cache.is_stale());
        cache.begin_round();
        cache.end_round();
        assert!(!cache.is_stale());
    }
}

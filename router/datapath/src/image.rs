//! The intended content of the kernel maps, as comparable values. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use router_common::maps::{ListenerKey, ListenerOwner, MAX_ALLOW, MAX_HOSTS, ROUTE_ALLOW_LIST, names};
use router_common::verdict::Reason;
use router_model::names::RouteId;

use super::address::sixteen;
use super::egress_routes::{Obstacle, Path};
use super::net_keys::Net;
use super::obstacles::AgentAlone;

/// One of the maps that are keyed by host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RouteMap {
    /// `http_be`.
    HttpBe,
    /// `edge_reencrypt`.
    EdgeReencrypt,
    /// `tcp_be`.
    TcpBe,
    /// `sni_passthrough`.
    SniPassthrough,
}

impl RouteMap {
    /// All of them, in the order in which entries are written.
    pub const ALL: [RouteMap; 4] =
        [RouteMap::HttpBe, RouteMap::EdgeReencrypt, RouteMap::TcpBe, RouteMap::SniPassthrough];

    /// The map's name in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            RouteMap::HttpBe => names::HTTP_BE,
            RouteMap::EdgeReencrypt => names::EDGE_REENCRYPT,
            RouteMap::TcpBe => names::TCP_BE,
            RouteMap::SniPassthrough => names::SNI_PASSTHROUGH,
        }
    }
}

/// A host's entry; the kernel's `HostRoute` before serialisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Route id.
    pub route: u32,
    /// Reason code of a match.
    pub reason: Reason,
    /// The route has an allow-list.
    pub allow_list: bool,
    /// Backend name as OpenShift spells it.
    pub backend: String,
}

/// Key of a host entry: map, router id, normal name or `*.` and a domain.
pub type HostName = (RouteMap, u32, String);

/// A listener; the kernel's `ListenerOwner` before serialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerEntry {
    /// Router id.
    pub router: u32,
    /// `PROTOCOL_*`.
    pub protocol: u8,
    /// Whether open connections of a source are limited.
    pub is_limited: bool,
    /// Maximum segment size, in bytes, that may be announced to clients; 0: no bound.
    pub max_segment: u16,
}

/// Slots of one pool, in order of their index; the kernel's `Slot` each.
pub type PoolSlots = Arc<[SlotEntry]>;

/// One slot: see `router_common::maps::AliasSlot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotEntry {
    /// Endpoint id.
    pub endpoint: u32,
    /// This endpoint's share of the column, in units of 2⁻³².
    pub threshold: u32,
    /// Slot of the remaining share.
    pub alias: u32,
}

/// The pool of a route; its slots are keyed by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolEntry {
    /// Pool id.
    pub id: u32,
    /// Number of slots.
    pub slots: u32,
    /// `POOL_*` bits.
    pub flags: u32,
}

/// An endpoint that the kernel can dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointEntry {
    /// Its address and port.
    pub address: SocketAddr,
    /// The route to it.
    pub path: Path,
}

/// Why a route that the kernel could steer is relayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayReason {
    /// The endpoint that the programs cannot dial.
    pub endpoint: SocketAddr,
    /// Why not.
    pub obstacle: Obstacle,
}

/// The route of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteLabel {
    /// Router id.
    pub router: u32,
    /// The route.
    pub route: RouteId,
}

/// The whole content of the configuration maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapImage {
    /// `listeners`.
    pub listeners: BTreeMap<(IpAddr, u16), ListenerEntry>,
    /// The host maps.
    pub hosts: BTreeMap<HostName, HostEntry>,
    /// `allowlists`.
    pub allow: BTreeSet<Net>,
    /// `routes`; each of them has counters.
    pub routes: BTreeMap<u32, RouteLabel>,
    /// `pools`, by route id.
    pub pools: BTreeMap<u32, PoolEntry>,
    /// `slots`, by pool id.
    pub slots: BTreeMap<u32, PoolSlots>,
    /// `endpoints`, by id; each of them has a state.
    pub endpoints: BTreeMap<u32, EndpointEntry>,
    /// Number of entries left out because a map would be full; the agent serves their hosts.
    pub left_out: usize,
    /// Routes that the kernel could steer but that are relayed, by id.
    pub relayed: Arc<BTreeMap<u32, RelayReason>>,
    /// Listeners whose connections are all relayed, with the reason.
    pub unsteered: BTreeMap<(IpAddr, u16), Unsteered>,
}

/// A listener whose connections are all relayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsteered {
    /// Router id.
    pub router: u32,
    /// `PROTOCOL_*`.
    pub protocol: u8,
    /// The reason.
    pub why: AgentAlone,
}

impl MapImage {
    /// Number of entries that connections are decided by: listeners, hosts and allow-list entries.
    pub fn len(&self) -> usize {
        self.listeners.len() + self.hosts.len() + self.allow.len()
    }

    /// True if the maps have room for the entries of `more`, too.
    pub fn has_room_for(&self, more: &MapImage) -> bool {
        self.hosts.len() + more.hosts.len() <= MAX_HOSTS && self.allow.len() + more.allow.len() <= MAX_ALLOW
    }

    /// The highest route id in any entry.
    pub fn highest_route(&self) -> u32 {
        let hosts = self.hosts.values().map(|entry| entry.route);
        let allow = self.allow.iter().map(|(route, ..)| *route);
        let keys = self.routes.keys().chain(self.pools.keys()).copied();
        hosts.chain(allow).chain(keys).max().unwrap_or_default()
    }

    /// Leaves those listeners to the agent for which `why` returns a reason.
    pub fn leave_to_agent(&mut self, mut why: impl FnMut(SocketAddr) -> Option<AgentAlone>) {
        self.listeners.retain(|(address, port), entry| {
            let Some(why) = why(SocketAddr::new(*address, *port)) else { return true };
            let listener = Unsteered { router: entry.router, protocol: entry.protocol, why };
            self.unsteered.insert((*address, *port), listener);
            false
        });
    }

    /// True if no connection would be decided by these entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// True if a host is a wildcard.
pub fn is_wildcard(host: &str) -> bool {
    host.starts_with("*.")
}

/// The wildcard that covers a name; `None` for a wildcard or a single label.
pub fn covering(host: &str) -> Option<String> {
    host.split_once('.').filter(|_| !is_wildcard(host)).map(|(_, parent)| format!("*.{parent}"))
}

/// The kernel form of a listener's key.
pub fn listener_key(address: IpAddr, port: u16) -> ListenerKey {
    ListenerKey { address: sixteen(address), port, pad: 0 }
}

/// The kernel form of a listener's value.
pub fn listener_value(entry: ListenerEntry) -> ListenerOwner {
    let ListenerEntry { router, protocol, is_limited, max_segment } = entry;
    ListenerOwner { router, protocol, is_limited: is_limited.into(), max_segment }
}

/// `ROUTE_*` bits of an entry.
pub fn flags(entry: &HostEntry) -> u16 {
    if entry.allow_list { ROUTE_ALLOW_LIST } else { 0 }
}

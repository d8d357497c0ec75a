//! What the kernel maps should hold, as values that can be compared. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use router_common::maps::{Listener, ListenerKey, MAX_ALLOW, MAX_HOSTS, ROUTE_ALLOW_LIST, names};
use router_common::verdict::Reason;
use router_model::names::RouteId;

use super::address::sixteen;
use super::egress_routes::{Obstacle, Path};
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

/// What a host leads to; the kernel's `HostRoute` before it is bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Route id.
    pub route: u32,
    /// What a match gives.
    pub reason: Reason,
    /// The route has an allow-list.
    pub allow_list: bool,
    /// Backend name as OpenShift spells it.
    pub backend: String,
}

/// Key of a host entry: map, router id, normal name or `*.` and a domain.
pub type HostName = (RouteMap, u32, String);

/// A network that a route admits: route id, address in its 16-byte form, bits of that form.
pub type AllowEntry = (u32, [u8; 16], u8);

/// A listener; the kernel's `Listener` before it is bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerEntry {
    /// Router id.
    pub router: u32,
    /// `PROTOCOL_*`.
    pub protocol: u8,
    /// Most payload bytes of a segment that clients may be told; 0 for no bound.
    pub max_segment: u16,
}

/// Slots of one pool; the kernel's `Slot` each.
pub type Slots = Arc<[SlotEntry]>;

/// One slot: see `router_common::maps::Slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotEntry {
    /// Endpoint id.
    pub endpoint: u32,
    /// Share of the column that is this endpoint's, of 2³².
    pub threshold: u32,
    /// Slot that has the rest.
    pub alias: u32,
}

/// The pool of a route; the slots stand under its id.
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
    /// Where it is.
    pub address: SocketAddr,
    /// How it is reached.
    pub path: Path,
}

/// Why a route that the kernel might steer is relayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// The endpoint that the programs cannot dial.
    pub endpoint: SocketAddr,
    /// Why not.
    pub obstacle: Obstacle,
}

/// Whose a route id is.
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
    pub allow: BTreeSet<AllowEntry>,
    /// `routes`; each of them has counters.
    pub routes: BTreeMap<u32, RouteLabel>,
    /// `pools`, by route id.
    pub pools: BTreeMap<u32, PoolEntry>,
    /// `slots`, by pool id.
    pub slots: BTreeMap<u32, Slots>,
    /// `endpoints`, by id; each of them has a state.
    pub endpoints: BTreeMap<u32, EndpointEntry>,
    /// Entries left out because a map would be full; their hosts are served by the agent alone.
    pub left_out: usize,
    /// Routes that might be steered and are relayed, by id.
    pub relayed: Arc<BTreeMap<u32, Relayed>>,
    /// Listeners that are the agent's alone, and why.
    pub unsteered: BTreeMap<(IpAddr, u16), Unsteered>,
}

/// A listener whose connections are the agent's alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsteered {
    /// Router id.
    pub router: u32,
    /// `PROTOCOL_*`.
    pub protocol: u8,
    /// Why.
    pub why: AgentAlone,
}

impl MapImage {
    /// Entries of the maps that connections are decided by.
    pub fn len(&self) -> usize {
        self.listeners.len() + self.hosts.len() + self.allow.len()
    }

    /// Whether everything will fit when `more` is added.
    pub fn has_room_for(&self, more: &MapImage) -> bool {
        self.hosts.len() + more.hosts.len() <= MAX_HOSTS && self.allow.len() + more.allow.len() <= MAX_ALLOW
    }

    /// The highest route id that an entry names.
    pub fn highest_route(&self) -> u32 {
        let hosts = self.hosts.values().map(|entry| entry.route);
        let allow = self.allow.iter().map(|(route, ..)| *route);
        let keys = self.routes.keys().chain(self.pools.keys()).copied();
        hosts.chain(allow).chain(keys).max().unwrap_or_default()
    }

    /// Leaves listeners to the agent for which there is a reason.
    pub fn leave_to_agent(&mut self, mut why: impl FnMut(SocketAddr) -> Option<AgentAlone>) {
        self.listeners.retain(|(address, port), entry| {
            let Some(why) = why(SocketAddr::new(*address, *port)) else { return true };
            let listener = Unsteered { router: entry.router, protocol: entry.protocol, why };
            self.unsteered.insert((*address, *port), listener);
            false
        });
    }

    /// Whether no connection would be decided.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a host entry is of a wildcard.
pub fn is_wildcard(host: &str) -> bool {
    host.starts_with("*.")
}

/// The wildcard that covers a name.
pub fn covering(host: &str) -> Option<String> {
    host.split_once('.').filter(|_| !is_wildcard(host)).map(|(_, parent)| format!("*.{parent}"))
}

/// The key of a listener as the kernel has it.
pub fn listener_key(address: IpAddr, port: u16) -> ListenerKey {
    ListenerKey { address: sixteen(address), port, pad: 0 }
}

/// The value of a listener as the kernel has it.
pub fn listener_value(entry: ListenerEntry) -> Listener {
    Listener { router: entry.router, protocol: entry.protocol, pad: 0, max_segment: entry.max_segment }
}

/// `ROUTE_*` bits of an entry.
pub fn flags(entry: &HostEntry) -> u16 {
    if entry.allow_list { ROUTE_ALLOW_LIST } else { 0 }
}

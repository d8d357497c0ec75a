//! The kernel maps. All writers above use the [`Maps`] trait, for which tests substitute maps that fail.

mod reconcile;
pub mod write;

use std::io;

use aya::Ebpf;
use aya::maps::lpm_trie::LpmTrie;
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuHashMap, PerCpuValues};
use router_common::maps::{
    ABI, AliasSlot, Config, EndpointState, HostKey, HostRoute, KernelEndpoint, KernelPool, ListenerKey, ListenerOwner,
    MapsMeta, ROUTE_NAME_FIELD, RouteName, RouteStats, SlotKey, field, names,
};
use router_sys::abi::Raw;

use super::address::sixteen;
use super::image::{self, EndpointEntry, HostEntry, PoolEntry, RouteLabel, RouteMap, SlotEntry};
use super::net_keys::{self, NetTrie};
use super::plan::MapWrite;
use write::Maps;

pub use reconcile::{Undone, make_all, reconcile};

/// The kernel's maps.
pub struct KernelMaps {
    pub(super) listeners: HashMap<MapData, Raw<ListenerKey>, Raw<ListenerOwner>>,
    http_be: HashMap<MapData, Raw<HostKey>, Raw<HostRoute>>,
    edge_reencrypt: HashMap<MapData, Raw<HostKey>, Raw<HostRoute>>,
    tcp_be: HashMap<MapData, Raw<HostKey>, Raw<HostRoute>>,
    pub(super) sni_passthrough: HashMap<MapData, Raw<HostKey>, u32>,
    pub(super) allowlists: NetTrie<MapData>,
    pub(super) routes: HashMap<MapData, u32, Raw<RouteName>>,
    route_stats: PerCpuHashMap<MapData, u32, Raw<RouteStats>>,
    pub(super) pools: HashMap<MapData, u32, Raw<KernelPool>>,
    pub(super) slots: HashMap<MapData, Raw<SlotKey>, Raw<AliasSlot>>,
    pub(super) endpoints: HashMap<MapData, u32, Raw<KernelEndpoint>>,
    endpoint_state: HashMap<MapData, u32, Raw<EndpointState>>,
    config: Array<MapData, Raw<Config>>,
    meta: Array<MapData, Raw<MapsMeta>>,
    cpus: usize,
}

impl KernelMaps {
    /// Takes the configuration maps out of a loaded object.
    ///
    /// # Errors
    /// If a map is missing or has another layout: object and agent are of different builds.
    pub fn take(object: &mut Ebpf) -> Result<Self, MapError> {
        let mut map = |name: &str| object.take_map(name).ok_or_else(|| MapError::InvalidName { name: name.to_owned() });
        Ok(KernelMaps {
            listeners: HashMap::try_from(map(names::LISTENERS)?)?,
            http_be: HashMap::try_from(map(names::HTTP_BE)?)?,
            edge_reencrypt: HashMap::try_from(map(names::EDGE_REENCRYPT)?)?,
            tcp_be: HashMap::try_from(map(names::TCP_BE)?)?,
            sni_passthrough: HashMap::try_from(map(names::SNI_PASSTHROUGH)?)?,
            allowlists: LpmTrie::try_from(map(names::ALLOWLISTS)?)?,
            routes: HashMap::try_from(map(names::ROUTES)?)?,
            route_stats: PerCpuHashMap::try_from(map(names::ROUTE_STATS)?)?,
            pools: HashMap::try_from(map(names::POOLS)?)?,
            slots: HashMap::try_from(map(names::SLOTS)?)?,
            endpoints: HashMap::try_from(map(names::ENDPOINTS)?)?,
            endpoint_state: HashMap::try_from(map(names::ENDPOINT_STATE)?)?,
            config: Array::try_from(map(names::CONFIG)?)?,
            meta: Array::try_from(map(names::META)?)?,
            cpus: aya::util::nr_cpus().map_err(|(_, error)| MapError::IoError(error))?,
        })
    }

    /// A route's counters, summed over CPUs.
    ///
    /// # Errors
    /// If the route has no counters.
    pub fn route_stats(&self, route: u32) -> Result<RouteStats, MapError> {
        let per_cpu = self.route_stats.get(&route, 0)?;
        Ok(per_cpu.iter().fold(RouteStats::default(), |sum, Raw(one)| RouteStats {
            steer: sum.steer + one.steer,
            pass: sum.pass + one.pass,
            drop: sum.drop + one.drop,
            ended: sum.ended + one.ended,
            bytes_in: sum.bytes_in + one.bytes_in,
            bytes_out: sum.bytes_out + one.bytes_out,
        }))
    }

    /// The programs' settings.
    ///
    /// # Errors
    /// The system call's.
    pub fn config(&self) -> io::Result<Config> {
        self.config.get(&0, 0).map(|Raw(config)| config).map_err(into_io)
    }

    /// Replaces the programs' settings.
    ///
    /// # Errors
    /// The system call's.
    pub fn set_config(&mut self, config: Config) -> io::Result<()> {
        written(self.config.set(0, Raw(config), 0))
    }

    /// Id of the process that writes the maps; 0: none yet.
    ///
    /// # Errors
    /// The system call's.
    pub fn writer(&self) -> io::Result<u32> {
        self.meta.get(&0, 0).map(|Raw(meta)| meta.pid).map_err(into_io)
    }

    /// Revision of the table that was last written; 0: none.
    ///
    /// # Errors
    /// The system call's.
    pub fn revision(&self) -> io::Result<u64> {
        self.meta.get(&0, 0).map(|Raw(meta)| meta.revision).map_err(into_io)
    }

    /// Writes all slots or none: the remains of an unreferenced pool would never be found again.
    fn put_slots(&mut self, pool: u32, slots: &[SlotEntry]) -> io::Result<()> {
        for (index, slot) in (0..).zip(slots) {
            if let Err(error) = written(self.slots.insert(Raw(SlotKey { pool, index }), Raw(slot_value(*slot)), 0)) {
                // The first failure is reported.
                let _ = self.remove_slots(pool, index);
                return Err(error);
            }
        }
        Ok(())
    }

    fn remove_slots(&mut self, pool: u32, count: u32) -> io::Result<()> {
        (0..count).try_for_each(|index| removed(self.slots.remove(&Raw(SlotKey { pool, index }))))
    }

    pub(super) fn host_map(&mut self, map: RouteMap) -> Option<&mut HashMap<MapData, Raw<HostKey>, Raw<HostRoute>>> {
        match map {
            RouteMap::HttpBe => Some(&mut self.http_be),
            RouteMap::EdgeReencrypt => Some(&mut self.edge_reencrypt),
            RouteMap::TcpBe => Some(&mut self.tcp_be),
            RouteMap::SniPassthrough => None,
        }
    }
}

/// The kernel form of a host entry.
pub fn host_route(entry: &HostEntry) -> HostRoute {
    HostRoute {
        route: entry.route,
        reason: entry.reason as u16,
        flags: image::flags(entry),
        backend: field(&entry.backend),
    }
}

/// The kernel form. A truncated name ends in a way that no name does, so that it cannot be read as another route's.
pub fn route_name(label: &RouteLabel) -> RouteName {
    let mut name = label.route.to_string();
    if name.len() > ROUTE_NAME_FIELD {
        name.truncate(ROUTE_NAME_FIELD - 1);
        name.push('~');
    }
    RouteName { router: label.router, pad: 0, name: field(&name) }
}

/// The kernel form.
pub fn endpoint(entry: &EndpointEntry) -> KernelEndpoint {
    KernelEndpoint {
        address: sixteen(entry.address.ip()),
        source: sixteen(entry.path.source),
        interface: entry.path.interface,
        port: entry.address.port(),
        max_segment: entry.path.max_segment,
    }
}

/// The kernel form.
pub fn slot_value(entry: SlotEntry) -> AliasSlot {
    AliasSlot { endpoint: entry.endpoint, threshold: entry.threshold, alias: entry.alias }
}

/// The kernel form.
pub fn pool_value(entry: PoolEntry) -> KernelPool {
    KernelPool { id: entry.id, slots: entry.slots, flags: entry.flags }
}

impl Maps for KernelMaps {
    fn make(&mut self, change: &MapWrite) -> io::Result<()> {
        match change {
            MapWrite::AddRoute(route, label) => {
                let zero = PerCpuValues::try_from(vec![Raw(RouteStats::default()); self.cpus])?;
                kept(self.route_stats.insert(route, zero, NO_REPLACE))?;
                written(self.routes.insert(route, Raw(route_name(label)), 0))
            }
            MapWrite::RemoveRoute(route) => {
                removed(self.routes.remove(route))?;
                removed(self.route_stats.remove(route))
            }
            MapWrite::PutEndpoint(id, entry) => {
                kept(self.endpoint_state.insert(id, Raw(EndpointState::default()), NO_REPLACE))?;
                written(self.endpoints.insert(id, Raw(endpoint(entry)), 0))
            }
            MapWrite::RemoveEndpoint(id) => {
                removed(self.endpoints.remove(id))?;
                removed(self.endpoint_state.remove(id))
            }
            MapWrite::PutSlots(pool, slots) => self.put_slots(*pool, slots),
            MapWrite::RemoveSlots(pool, count) => self.remove_slots(*pool, *count),
            MapWrite::PutPool(route, entry) => written(self.pools.insert(route, Raw(pool_value(*entry)), 0)),
            MapWrite::RemovePool(route) => removed(self.pools.remove(route)),
            MapWrite::Allow(entry) => written(self.allowlists.insert(&net_keys::key(*entry), 1, 0)),
            MapWrite::Disallow(entry) => removed(self.allowlists.remove(&net_keys::key(*entry))),
            MapWrite::PutHost((map, router, host), entry) => {
                let key = Raw(HostKey::new(*router, host));
                match self.host_map(*map) {
                    Some(map) => written(map.insert(key, Raw(host_route(entry)), 0)),
                    None => written(self.sni_passthrough.insert(key, 1, 0)),
                }
            }
            MapWrite::RemoveHost((map, router, host)) => {
                let key = Raw(HostKey::new(*router, host));
                match self.host_map(*map) {
                    Some(map) => removed(map.remove(&key)),
                    None => removed(self.sni_passthrough.remove(&key)),
                }
            }
            MapWrite::PutListener((address, port), value) => {
                let key = Raw(image::listener_key(*address, *port));
                written(self.listeners.insert(key, Raw(image::listener_value(*value)), 0))
            }
            MapWrite::RemoveListener((address, port)) => {
                removed(self.listeners.remove(&Raw(image::listener_key(*address, *port))))
            }
        }
    }

    fn set_revision(&mut self, revision: u64) -> io::Result<()> {
        let meta = MapsMeta { abi: ABI, pid: std::process::id(), revision };
        written(self.meta.set(0, Raw(meta), 0))
    }
}

pub(crate) fn written(result: Result<(), MapError>) -> io::Result<()> {
    result.map_err(into_io)
}

/// `BPF_NOEXIST` (linux/bpf.h): an existing entry stays.
pub(crate) const NO_REPLACE: u64 = 1;

/// An existing entry counts as success.
pub(crate) fn kept(result: Result<(), MapError>) -> io::Result<()> {
    match written(result) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// A missing entry counts as success.
pub(crate) fn removed(result: Result<(), MapError>) -> io::Result<()> {
    match result {
        Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(error)) if error.io_error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(into_io),
    }
}

pub(super) fn into_io(error: MapError) -> io::Error {
    match error {
        MapError::SyscallError(error) => error.io_error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests;

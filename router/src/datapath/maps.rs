//! The seam to the kernel maps: everything above writes through [`Maps`], and tests put a faulty one there.

use std::collections::BTreeSet;
use std::io;

use aya::Ebpf;
use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuHashMap, PerCpuValues};
use router_common::maps::{
    ABI, ALLOW_ROUTE_BITS, AllowNet, HostKey, HostRoute, Listener, ListenerKey, Meta, RouteStats, field, names,
};

use super::abi::Raw;
use super::image::{self, HostEntry, MapImage, RouteMap};
use super::plan::{Change, covering, plan};

/// Writes to the configuration maps. Every change may be made twice: writing what is there and deleting what is not
/// there succeed.
pub trait Maps {
    /// Makes one change.
    ///
    /// # Errors
    /// The system call's; `E2BIG` for a full map.
    fn make(&mut self, change: &Change) -> io::Result<()>;
    /// Tells which table the maps hold.
    ///
    /// # Errors
    /// The system call's.
    fn set_revision(&mut self, revision: u64) -> io::Result<()>;
}

/// The kernel's maps.
pub struct KernelMaps {
    listeners: HashMap<MapData, Raw<ListenerKey>, Raw<Listener>>,
    http_be: HashMap<MapData, Raw<HostKey>, Raw<HostRoute>>,
    edge_reencrypt: HashMap<MapData, Raw<HostKey>, Raw<HostRoute>>,
    tcp_be: HashMap<MapData, Raw<HostKey>, Raw<HostRoute>>,
    sni_passthrough: HashMap<MapData, Raw<HostKey>, u32>,
    allowlists: LpmTrie<MapData, Raw<AllowNet>, u32>,
    route_stats: PerCpuHashMap<MapData, u32, Raw<RouteStats>>,
    meta: Array<MapData, Raw<Meta>>,
    cpus: usize,
}

impl KernelMaps {
    /// Takes the configuration maps out of a loaded object.
    ///
    /// # Errors
    /// When a map is missing or has another layout: object and agent are of different builds.
    pub fn take(object: &mut Ebpf) -> Result<Self, MapError> {
        let mut map = |name: &str| object.take_map(name).ok_or_else(|| MapError::InvalidName { name: name.to_owned() });
        Ok(KernelMaps {
            listeners: HashMap::try_from(map(names::LISTENERS)?)?,
            http_be: HashMap::try_from(map(names::HTTP_BE)?)?,
            edge_reencrypt: HashMap::try_from(map(names::EDGE_REENCRYPT)?)?,
            tcp_be: HashMap::try_from(map(names::TCP_BE)?)?,
            sni_passthrough: HashMap::try_from(map(names::SNI_PASSTHROUGH)?)?,
            allowlists: LpmTrie::try_from(map(names::ALLOWLISTS)?)?,
            route_stats: PerCpuHashMap::try_from(map(names::ROUTE_STATS)?)?,
            meta: Array::try_from(map(names::META)?)?,
            cpus: aya::util::nr_cpus().map_err(|(_, error)| MapError::IoError(error))?,
        })
    }

    /// A route's counters, summed over CPUs.
    ///
    /// # Errors
    /// When the route has none.
    pub fn route_stats(&self, route: u32) -> Result<RouteStats, MapError> {
        let per_cpu = self.route_stats.get(&route, 0)?;
        Ok(per_cpu.iter().fold(RouteStats::default(), |sum, Raw(one)| RouteStats {
            steer: sum.steer + one.steer,
            pass: sum.pass + one.pass,
            drop: sum.drop + one.drop,
        }))
    }

    fn host_map(&mut self, map: RouteMap) -> Option<&mut HashMap<MapData, Raw<HostKey>, Raw<HostRoute>>> {
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

fn allow_key((route, address, bits): &image::AllowEntry) -> Key<Raw<AllowNet>> {
    let net = AllowNet { route: route.to_be_bytes(), address: *address };
    Key::new(ALLOW_ROUTE_BITS + u32::from(*bits), Raw(net))
}

impl Maps for KernelMaps {
    fn make(&mut self, change: &Change) -> io::Result<()> {
        match change {
            Change::AddRoute(route) => {
                let zero = PerCpuValues::try_from(vec![Raw(RouteStats::default()); self.cpus])?;
                written(self.route_stats.insert(route, zero, 0))
            }
            Change::RemoveRoute(route) => removed(self.route_stats.remove(route)),
            Change::Allow(entry) => written(self.allowlists.insert(&allow_key(entry), 1, 0)),
            Change::Disallow(entry) => removed(self.allowlists.remove(&allow_key(entry))),
            Change::PutHost((map, router, host), entry) => {
                let key = Raw(HostKey::new(*router, host));
                match self.host_map(*map) {
                    Some(map) => written(map.insert(key, Raw(host_route(entry)), 0)),
                    None => written(self.sni_passthrough.insert(key, 1, 0)),
                }
            }
            Change::RemoveHost((map, router, host)) => {
                let key = Raw(HostKey::new(*router, host));
                match self.host_map(*map) {
                    Some(map) => removed(map.remove(&key)),
                    None => removed(self.sni_passthrough.remove(&key)),
                }
            }
            Change::PutListener((address, port), value) => {
                let key = Raw(image::listener_key(*address, *port));
                written(self.listeners.insert(key, Raw(image::listener_value(*value)), 0))
            }
            Change::RemoveListener((address, port)) => {
                removed(self.listeners.remove(&Raw(image::listener_key(*address, *port))))
            }
        }
    }

    fn set_revision(&mut self, revision: u64) -> io::Result<()> {
        let meta = Meta { abi: ABI, pid: std::process::id(), revision };
        written(self.meta.set(0, Raw(meta), 0))
    }
}

fn written(result: Result<(), MapError>) -> io::Result<()> {
    result.map_err(into_io)
}

/// Deleting what is not there is success.
fn removed(result: Result<(), MapError>) -> io::Result<()> {
    match result {
        Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(error)) if error.io_error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(into_io),
    }
}

fn into_io(error: MapError) -> io::Error {
    match error {
        MapError::SyscallError(error) => error.io_error,
        other => io::Error::other(other),
    }
}

/// What one attempt at reconciling left undone.
#[derive(Debug, Default)]
pub struct Undone {
    /// Changes that failed.
    pub failed: usize,
    /// The first failure.
    pub first: Option<(Change, io::Error)>,
}

/// Leads the maps from what `now` says they hold to `wanted`. `now` is kept true: it has exactly the changes that
/// succeeded, so calling again retries the rest.
///
/// A name that cannot be written takes the wildcard that covers it out of the maps, until both can be written: the
/// kernel would take the wildcard's entry for the name's.
pub fn reconcile(maps: &mut impl Maps, now: &mut MapImage, wanted: &MapImage) -> Undone {
    let changes = plan(now, wanted);
    make_all(maps, now, changes)
}

/// Makes planned changes, as [`reconcile`] does.
pub fn make_all(maps: &mut impl Maps, now: &mut MapImage, changes: Vec<Change>) -> Undone {
    let mut undone = Undone::default();
    let mut withheld = BTreeSet::new();
    for change in changes {
        if let Change::PutHost((_, router, host), _) = &change
            && withheld.contains(&(*router, host.clone()))
        {
            undone.failed += 1;
            continue;
        }
        let Err(error) = maps.make(&change) else {
            change.apply_to(now);
            continue;
        };
        if let Change::PutHost((_, router, host), _) = &change
            && let Some(wildcard) = covering(host)
        {
            withhold(maps, now, *router, &wildcard, &mut undone);
            withheld.insert((*router, wildcard));
        }
        undone.note(change, error);
    }
    undone
}

fn withhold(maps: &mut impl Maps, now: &mut MapImage, router: u32, wildcard: &str, undone: &mut Undone) {
    for map in RouteMap::ALL.into_iter().rev() {
        let key = (map, router, wildcard.to_owned());
        if !now.hosts.contains_key(&key) {
            continue;
        }
        let change = Change::RemoveHost(key);
        match maps.make(&change) {
            Ok(()) => change.apply_to(now),
            Err(error) => undone.note(change, error),
        }
    }
}

impl Undone {
    fn note(&mut self, change: Change, error: io::Error) {
        self.failed += 1;
        self.first.get_or_insert((change, error));
    }
}

#[cfg(test)]
mod tests;

//! Plans the writes from one map image to another, in an order in which no packet finds inconsistent entries. Pure.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;

use super::image::{
    EndpointEntry, HostEntry, HostName, ListenerEntry, MapImage, PoolEntry, PoolSlots, RouteLabel, RouteMap,
    is_wildcard,
};
use super::net_keys::Net;

/// One map write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapWrite {
    /// Add a route's name and counters.
    AddRoute(u32, RouteLabel),
    /// Delete a route's name and counters.
    RemoveRoute(u32),
    /// Add a network to a route's allow-list.
    Allow(Net),
    /// Delete a network from a route's allow-list.
    Disallow(Net),
    /// Write an endpoint, and create its state if it has none.
    PutEndpoint(u32, EndpointEntry),
    /// Delete an endpoint and its state.
    RemoveEndpoint(u32),
    /// Write all slots of a new pool.
    PutSlots(u32, PoolSlots),
    /// Delete the slots of a pool; pool id and number of slots.
    RemoveSlots(u32, u32),
    /// Write a route's pool.
    PutPool(u32, PoolEntry),
    /// Delete a route's pool.
    RemovePool(u32),
    /// Write a host entry.
    PutHost(HostName, HostEntry),
    /// Delete one.
    RemoveHost(HostName),
    /// Write a listener.
    PutListener((IpAddr, u16), ListenerEntry),
    /// Delete one.
    RemoveListener((IpAddr, u16)),
}

/// The writes from `now` to `wanted`, in this order:
///
/// 1. listeners that are removed: their packets go up during the other changes; listeners that announce another segment
///    size;
/// 2. names, counters and allow-list entries that are added: before a host entry refers to them;
/// 3. endpoints, then slots, which refer to endpoints, then pools, which refer to slots: before a host entry needs
///    them;
/// 4. host entries that are added or change: names before the wildcards that would cover them, `tcp_be` before
///    `sni_passthrough`, which refers to it;
/// 5. host entries that are removed, in the reverse order;
/// 6. pools, slots and endpoints that are removed, in this order;
/// 7. allow-list entries, counters and names that are removed: when no host entry refers to them any more;
/// 8. listeners that are added.
pub fn plan(now: &MapImage, wanted: &MapImage) -> Vec<MapWrite> {
    let listeners = MapDifference::between(&now.listeners, &wanted.listeners);
    let routes = MapDifference::between(&now.routes, &wanted.routes);
    let endpoints = MapDifference::between(&now.endpoints, &wanted.endpoints);
    let slots = MapDifference::between(&now.slots, &wanted.slots);
    let pools = MapDifference::between(&now.pools, &wanted.pools);
    let hosts = MapDifference::between(&now.hosts, &wanted.hosts);
    let mut changes = Vec::new();
    let (same, others): (Vec<_>, Vec<_>) = listeners
        .put
        .into_iter()
        .partition(|(key, value)| now.listeners.get(key).is_some_and(|old| serves(old, value)));
    changes.extend(listeners.gone.into_iter().map(|key| MapWrite::RemoveListener(*key)));
    changes.extend(same.into_iter().map(|(key, value)| MapWrite::PutListener(*key, *value)));
    changes.extend(routes.put.into_iter().map(|(route, label)| MapWrite::AddRoute(*route, label.clone())));
    changes.extend(wanted.allow.difference(&now.allow).map(|entry| MapWrite::Allow(*entry)));
    changes.extend(endpoints.put.into_iter().map(|(id, entry)| MapWrite::PutEndpoint(*id, *entry)));
    changes.extend(slots.put.into_iter().map(|(pool, slots)| MapWrite::PutSlots(*pool, slots.clone())));
    changes.extend(pools.put.into_iter().map(|(route, pool)| MapWrite::PutPool(*route, *pool)));
    let (wildcards, exact): (Vec<_>, Vec<_>) = hosts.put.into_iter().partition(|((.., host), _)| is_wildcard(host));
    let puts = exact.into_iter().chain(wildcards);
    changes.extend(puts.map(|(key, entry)| MapWrite::PutHost(key.clone(), entry.clone())));
    let (wildcards, exact): (Vec<_>, Vec<_>) = hosts.gone.into_iter().rev().partition(|(.., host)| is_wildcard(host));
    changes.extend(wildcards.into_iter().chain(exact).map(|key| MapWrite::RemoveHost(key.clone())));
    changes.extend(pools.gone.into_iter().map(|route| MapWrite::RemovePool(*route)));
    let length = |pool: &u32| now.slots.get(pool).map_or(0, |slots| slots.len() as u32);
    changes.extend(slots.gone.into_iter().map(|pool| MapWrite::RemoveSlots(*pool, length(pool))));
    changes.extend(endpoints.gone.into_iter().map(|id| MapWrite::RemoveEndpoint(*id)));
    changes.extend(now.allow.difference(&wanted.allow).map(|entry| MapWrite::Disallow(*entry)));
    changes.extend(routes.gone.into_iter().map(|route| MapWrite::RemoveRoute(*route)));
    changes.extend(others.into_iter().map(|(key, value)| MapWrite::PutListener(*key, *value)));
    changes
}

/// True if two entries of an address have the same router and protocol.
fn serves(a: &ListenerEntry, b: &ListenerEntry) -> bool {
    (a.router, a.protocol) == (b.router, b.protocol)
}

/// The difference between two sorted maps, found by one pass through both.
struct MapDifference<'m, K, V> {
    gone: Vec<&'m K>,
    put: Vec<(&'m K, &'m V)>,
}

impl<'m, K: Ord, V: PartialEq> MapDifference<'m, K, V> {
    fn between(now: &'m BTreeMap<K, V>, wanted: &'m BTreeMap<K, V>) -> Self {
        let mut difference = MapDifference { gone: Vec::new(), put: Vec::new() };
        let (mut now, mut wanted) = (now.iter().peekable(), wanted.iter().peekable());
        loop {
            let order = match (now.peek(), wanted.peek()) {
                (None, None) => return difference,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let old = if order.is_le() { now.next() } else { None };
            let new = if order.is_ge() { wanted.next() } else { None };
            match (old, new) {
                (Some((key, _)), None) => difference.gone.push(key),
                (Some((_, old)), Some((_, new))) if old == new => {}
                (_, Some(entry)) => difference.put.push(entry),
                (None, None) => return difference,
            }
        }
    }
}

// `RouteMap`'s order is the order of writing: entries that others refer to come first.
const _: () = assert!((RouteMap::TcpBe as u8) < (RouteMap::SniPassthrough as u8));

impl MapWrite {
    /// Applies the change to an image.
    pub fn apply_to(&self, image: &mut MapImage) {
        match self {
            MapWrite::AddRoute(route, label) => {
                image.routes.insert(*route, label.clone());
            }
            MapWrite::RemoveRoute(route) => {
                image.routes.remove(route);
            }
            MapWrite::PutEndpoint(id, entry) => {
                image.endpoints.insert(*id, *entry);
            }
            MapWrite::RemoveEndpoint(id) => {
                image.endpoints.remove(id);
            }
            MapWrite::PutSlots(pool, slots) => {
                image.slots.insert(*pool, slots.clone());
            }
            MapWrite::RemoveSlots(pool, _) => {
                image.slots.remove(pool);
            }
            MapWrite::PutPool(route, pool) => {
                image.pools.insert(*route, *pool);
            }
            MapWrite::RemovePool(route) => {
                image.pools.remove(route);
            }
            MapWrite::Allow(entry) => {
                image.allow.insert(*entry);
            }
            MapWrite::Disallow(entry) => {
                image.allow.remove(entry);
            }
            MapWrite::PutHost(key, entry) => {
                image.hosts.insert(key.clone(), entry.clone());
            }
            MapWrite::RemoveHost(key) => {
                image.hosts.remove(key);
            }
            MapWrite::PutListener(key, value) => {
                image.listeners.insert(*key, *value);
            }
            MapWrite::RemoveListener(key) => {
                image.listeners.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! From one map image to another, in an order that never lets a packet see a contradiction. Pure.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;

use super::image::{AllowEntry, HostEntry, HostName, MapImage, RouteMap};

/// One map write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Give a route counters.
    AddRoute(u32),
    /// Forget a route's counters.
    RemoveRoute(u32),
    /// Admit a network to a route.
    Allow(AllowEntry),
    /// Admit it no longer.
    Disallow(AllowEntry),
    /// Write a host entry.
    PutHost(HostName, HostEntry),
    /// Delete one.
    RemoveHost(HostName),
    /// Write a listener.
    PutListener((IpAddr, u16), (u32, u8)),
    /// Delete one.
    RemoveListener((IpAddr, u16)),
}

/// The writes that lead from `now` to `wanted`:
///
/// 1. listeners that go: their packets pass up while the rest changes;
/// 2. counters and allow-list entries that come: before a host entry can refer to them;
/// 3. host entries that come or change: names before the wildcards that would cover them, `tcp_be` before
///    `sni_passthrough`, which refers to it;
/// 4. host entries that go, in the reverse order;
/// 5. allow-list entries and counters that go: when no host entry refers to them any more;
/// 6. listeners that come.
pub fn plan(now: &MapImage, wanted: &MapImage) -> Vec<Change> {
    let listeners = Difference::between(&now.listeners, &wanted.listeners);
    let hosts = Difference::between(&now.hosts, &wanted.hosts);
    let mut changes = Vec::new();
    changes.extend(listeners.gone.into_iter().map(|key| Change::RemoveListener(*key)));
    changes.extend(wanted.routes.difference(&now.routes).map(|route| Change::AddRoute(*route)));
    changes.extend(wanted.allow.difference(&now.allow).map(|entry| Change::Allow(*entry)));
    let (wildcards, exact): (Vec<_>, Vec<_>) = hosts.put.into_iter().partition(|((.., host), _)| is_wildcard(host));
    let puts = exact.into_iter().chain(wildcards);
    changes.extend(puts.map(|(key, entry)| Change::PutHost(key.clone(), entry.clone())));
    changes.extend(hosts.gone.into_iter().rev().map(|key| Change::RemoveHost(key.clone())));
    changes.extend(now.allow.difference(&wanted.allow).map(|entry| Change::Disallow(*entry)));
    changes.extend(now.routes.difference(&wanted.routes).map(|route| Change::RemoveRoute(*route)));
    changes.extend(listeners.put.into_iter().map(|(key, value)| Change::PutListener(*key, *value)));
    changes
}

/// Whether a host entry is of a wildcard.
pub fn is_wildcard(host: &str) -> bool {
    host.starts_with("*.")
}

/// The wildcard that covers a name.
pub fn covering(host: &str) -> Option<String> {
    host.split_once('.').filter(|_| !is_wildcard(host)).map(|(_, parent)| format!("*.{parent}"))
}

/// How two sorted maps differ, found by walking both once.
struct Difference<'m, K, V> {
    gone: Vec<&'m K>,
    put: Vec<(&'m K, &'m V)>,
}

impl<'m, K: Ord, V: PartialEq> Difference<'m, K, V> {
    fn between(now: &'m BTreeMap<K, V>, wanted: &'m BTreeMap<K, V>) -> Self {
        let mut difference = Difference { gone: Vec::new(), put: Vec::new() };
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

impl Change {
    /// Notes a change that was made.
    pub fn apply_to(&self, image: &mut MapImage) {
        match self {
            Change::AddRoute(route) => {
                image.routes.insert(*route);
            }
            Change::RemoveRoute(route) => {
                image.routes.remove(route);
            }
            Change::Allow(entry) => {
                image.allow.insert(*entry);
            }
            Change::Disallow(entry) => {
                image.allow.remove(entry);
            }
            Change::PutHost(key, entry) => {
                image.hosts.insert(key.clone(), entry.clone());
            }
            Change::RemoveHost(key) => {
                image.hosts.remove(key);
            }
            Change::PutListener(key, value) => {
                image.listeners.insert(*key, *value);
            }
            Change::RemoveListener(key) => {
                image.listeners.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests;

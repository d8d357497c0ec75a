//! From one map image to another, in an order that never lets a packet see a contradiction. Pure.

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
/// 3. host entries that come or change, `tcp_be` before `sni_passthrough`, which refers to it;
/// 4. host entries that go, in the reverse order;
/// 5. allow-list entries and counters that go: when no host entry refers to them any more;
/// 6. listeners that come.
pub fn plan(now: &MapImage, wanted: &MapImage) -> Vec<Change> {
    let mut changes = Vec::new();
    changes.extend(
        now.listeners.keys().filter(|key| !wanted.listeners.contains_key(key)).map(|key| Change::RemoveListener(*key)),
    );
    changes.extend(wanted.routes.difference(&now.routes).map(|route| Change::AddRoute(*route)));
    changes.extend(wanted.allow.difference(&now.allow).map(|entry| Change::Allow(*entry)));
    changes.extend(
        wanted
            .hosts
            .iter()
            .filter(|(key, entry)| now.hosts.get(key) != Some(entry))
            .map(|(key, entry)| Change::PutHost(key.clone(), entry.clone())),
    );
    changes.extend(
        now.hosts.keys().rev().filter(|key| !wanted.hosts.contains_key(key)).map(|key| Change::RemoveHost(key.clone())),
    );
    changes.extend(now.allow.difference(&wanted.allow).map(|entry| Change::Disallow(*entry)));
    changes.extend(now.routes.difference(&wanted.routes).map(|route| Change::RemoveRoute(*route)));
    changes.extend(
        wanted
            .listeners
            .iter()
            .filter(|(key, value)| now.listeners.get(key) != Some(value))
            .map(|(key, value)| Change::PutListener(*key, *value)),
    );
    changes
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

//! Reading the maps of an earlier agent, so that only differences are written.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use aya::maps::MapError;
use router_common::hostname::field_text;
use router_common::maps::{MAX_ENDPOINTS, ROUTE_ALLOW_LIST};
use router_common::verdict::Reason;
use router_model::names::RouteId;
use router_sys::abi::Raw;

use super::address::address;
use super::egress_routes::Path;
use super::image::{
    EndpointEntry, HostEntry, ListenerEntry, MapImage, PoolEntry, PoolSlots, RouteLabel, RouteMap, SlotEntry,
};
use super::maps::{KernelMaps, into_io};
use super::net_keys::nets;

impl KernelMaps {
    /// Content of the configuration maps.
    ///
    /// # Errors
    /// The system call's.
    pub fn read(&mut self) -> io::Result<MapImage> {
        self.read_image().map_err(into_io)
    }

    fn read_image(&mut self) -> Result<MapImage, MapError> {
        let mut image = MapImage::default();
        for entry in self.listeners.iter() {
            let (Raw(key), Raw(value)) = entry?;
            let value = ListenerEntry {
                router: value.router,
                protocol: value.protocol,
                is_limited: value.is_limited != 0,
                max_segment: value.max_segment,
            };
            image.listeners.insert((address(&key.address), key.port), value);
        }
        for map in [RouteMap::HttpBe, RouteMap::EdgeReencrypt, RouteMap::TcpBe] {
            let Some(hosts) = self.host_map(map) else { continue };
            for entry in hosts.iter() {
                let (Raw(key), Raw(value)) = entry?;
                let value = HostEntry {
                    route: value.route,
                    // An entry with an unknown reason differs from any intended one, and is rewritten.
                    reason: Reason::from_code(value.reason).unwrap_or(Reason::Unreadable),
                    allow_list: value.flags & ROUTE_ALLOW_LIST != 0,
                    backend: field_text(&value.backend).to_owned(),
                };
                image.hosts.insert((map, key.router, field_text(&key.host).to_owned()), value);
            }
        }
        for key in self.sni_passthrough.keys() {
            let Raw(key) = key?;
            let name = field_text(&key.host).to_owned();
            // The entry has no value of its own; it refers to that of `tcp_be`.
            let backend = image.hosts.get(&(RouteMap::TcpBe, key.router, name.clone())).cloned();
            let value = backend.unwrap_or(HostEntry {
                route: 0,
                reason: Reason::Unreadable,
                allow_list: false,
                backend: String::new(),
            });
            image.hosts.insert((RouteMap::SniPassthrough, key.router, name), value);
        }
        for net in nets(&self.allowlists) {
            image.allow.insert(net?);
        }
        for entry in self.routes.iter() {
            let (id, Raw(name)) = entry?;
            let text = field_text(&name.name);
            // A name that cannot be parsed was truncated; its id is not reused.
            let route = RouteId::parse(text).unwrap_or_else(|| RouteId::of_route("", text));
            image.routes.insert(id, RouteLabel { router: name.router, route });
        }
        self.read_pools(&mut image)?;
        Ok(image)
    }

    fn read_pools(&self, image: &mut MapImage) -> Result<(), MapError> {
        for entry in self.endpoints.iter() {
            let (id, Raw(endpoint)) = entry?;
            let path = Path {
                source: address(&endpoint.source),
                interface: endpoint.interface,
                max_segment: endpoint.max_segment,
            };
            let address = SocketAddr::new(address(&endpoint.address), endpoint.port);
            image.endpoints.insert(id, EndpointEntry { address, path });
        }
        let mut slots: BTreeMap<u32, BTreeMap<u32, SlotEntry>> = BTreeMap::new();
        for entry in self.slots.iter() {
            let (Raw(key), Raw(slot)) = entry?;
            let slot = SlotEntry { endpoint: slot.endpoint, threshold: slot.threshold, alias: slot.alias };
            slots.entry(key.pool).or_default().insert(key.index, slot);
        }
        for (pool, by_index) in slots {
            image.slots.insert(pool, whole(by_index));
        }
        for entry in self.pools.iter() {
            let (route, Raw(pool)) = entry?;
            image.pools.insert(route, PoolEntry { id: pool.id, slots: pool.slots, flags: pool.flags });
            // A pool without slots has an entry too, as in a lowered image.
            image.slots.entry(pool.id).or_default();
        }
        Ok(())
    }
}

/// Slots by index, without gaps: a missing one refers to endpoint 0, which does not exist, so that the pool is
/// rewritten.
fn whole(by_index: BTreeMap<u32, SlotEntry>) -> PoolSlots {
    let none = SlotEntry { endpoint: 0, threshold: 0, alias: 0 };
    let count = by_index.keys().next_back().map_or(0, |last| last.saturating_add(1)).min(MAX_ENDPOINTS as u32);
    (0..count).map(|index| by_index.get(&index).copied().unwrap_or(none)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_the_slots_is_an_endpoint_that_does_not_exist() {
        let slot = |endpoint| SlotEntry { endpoint, threshold: u32::MAX, alias: 0 };
        let slots = whole(BTreeMap::from([(0, slot(7)), (2, slot(9))]));
        assert_eq!(slots.iter().map(|slot| slot.endpoint).collect::<Vec<_>>(), [7, 0, 9]);
        assert!(whole(BTreeMap::new()).is_empty());
        assert_eq!(whole(BTreeMap::from([(u32::MAX, slot(1))])).len(), MAX_ENDPOINTS);
    }
}

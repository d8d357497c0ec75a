//! Ids of routes.

use std::collections::{BTreeMap, HashMap};

use router_model::names::RouteId;
use router_table::table::RoutingTable;

use crate::image::RouteLabel;

/// Ids of routes in map entries. They are never reused, so a stale entry never refers to another route.
#[derive(Debug, Default)]
pub struct RouteIds {
    ids: HashMap<(u32, RouteId), u32>,
    last: u32,
}

impl RouteIds {
    /// Adopts the ids that an earlier agent assigned. `highest` is the highest id in any entry.
    pub fn adopt(&mut self, labels: &BTreeMap<u32, RouteLabel>, highest: u32) {
        let named = labels.iter().map(|(id, label)| ((label.router, label.route.clone()), *id));
        self.ids.extend(named);
        self.last = labels.keys().copied().max().unwrap_or_default().max(highest).max(self.last);
    }

    /// Assigns an id to every route of the table, and deletes those of removed routes.
    pub fn assign(&mut self, table: &RoutingTable) {
        let old = std::mem::take(&mut self.ids);
        for router in &table.routers {
            for route in router.routes.values() {
                let key = (router.id, route.id.clone());
                match old.get(&key) {
                    Some(id) => drop(self.ids.insert(key, *id)),
                    None => self.add(router.id, &route.id),
                }
            }
        }
    }

    /// Assigns an id to one route, if it has none.
    pub fn add(&mut self, router: u32, route: &RouteId) {
        self.ids.entry((router, route.clone())).or_insert_with(|| {
            self.last = self.last.wrapping_add(1).max(1);
            self.last
        });
    }

    /// Deletes one route's id.
    pub fn forget(&mut self, router: u32, route: &RouteId) {
        self.ids.remove(&(router, route.clone()));
    }

    /// The id of a route; 0 if it has none.
    pub fn of(&self, router: u32, route: &RouteId) -> u32 {
        // A tuple of references cannot be looked up in a map of owned tuples; both parts are cheap to clone.
        self.ids.get(&(router, route.clone())).copied().unwrap_or_default()
    }
}

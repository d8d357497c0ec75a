//! Views of the kernel maps.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use router_common::maps::{SlotKey, names};
use router_common::verdict::Reason;
use router_datapath::dump::{self, dump};
use router_datapath::image::{MapImage, RouteMap, listener_key, listener_value};
use router_datapath::reconciler::programmed::Programmed;
use router_datapath::{PinFolder, maps};
use router_model::names::{RouteId, RouterName};
use serde_json::{Map, Value, json};

use crate::admin::views::intended::intended_row;
use crate::published::Published;

/// Intended entries of the configuration maps, by map, in the form of `sluice bpf dump`.
pub fn intended(image: &MapImage) -> Value {
    let mut by_map: BTreeMap<&str, Vec<Value>> = RouteMap::ALL.iter().map(|map| (map.name(), Vec::new())).collect();
    for ((map, router, host), entry) in &image.hosts {
        by_map.entry(map.name()).or_default().push(intended_row(*map, *router, host, entry));
    }
    let listeners = image.listeners.iter();
    let listeners =
        listeners.map(|((ip, port), entry)| dump::listener(&listener_key(*ip, *port), &listener_value(*entry)));
    by_map.insert(names::LISTENERS, listeners.collect());
    let allow = image.allow.iter().copied().map(dump::allowed);
    by_map.insert(names::ALLOWLISTS, allow.collect());
    let routes = image.routes.iter().map(|(id, label)| dump::route_name(*id, &maps::route_name(label)));
    by_map.insert(names::ROUTES, routes.collect());
    let pools = image.pools.iter().map(|(route, entry)| dump::pool(*route, &maps::pool_value(*entry)));
    by_map.insert(names::POOLS, pools.collect());
    let slots =
        image.slots.iter().flat_map(|(pool, slots)| (0..).map(|index| SlotKey { pool: *pool, index }).zip(&**slots));
    by_map.insert(names::SLOTS, slots.map(|(key, entry)| dump::slot(&key, &maps::slot_value(*entry))).collect());
    let endpoints = image.endpoints.iter().map(|(id, entry)| dump::endpoint(*id, &maps::endpoint(entry)));
    by_map.insert(names::ENDPOINTS, endpoints.collect());
    json!(by_map)
}

/// The kernel's counters, by route.
#[derive(Debug, Default)]
pub struct Counted {
    ids: HashMap<(u32, RouteId), u32>,
    stats: HashMap<u64, Value>,
    relayed: HashMap<u32, Map<String, Value>>,
}

impl Counted {
    /// Reads the counters. A map that cannot be read counts as empty; `sluice bpf maps` reports the error.
    pub fn read(programmed: &Programmed, pins: &PinFolder) -> Self {
        let ids = programmed.look(|image| {
            let routes = image.routes.iter();
            routes.map(|(id, label)| ((label.router, label.route.clone()), *id)).collect()
        });
        let stats = dump(pins, names::ROUTE_STATS).unwrap_or_default();
        let stats = stats.into_iter().filter_map(|row| Some((row["route"].as_u64()?, row))).collect();
        let mut relayed: HashMap<u32, Map<String, Value>> = HashMap::new();
        for ((route, reason), count) in programmed.relayed.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let reason = Reason::from_code(*reason).map_or("unknown", Reason::text);
            relayed.entry(*route).or_default().insert(reason.to_owned(), json!(count));
        }
        Counted { ids, stats, relayed }
    }

    /// Counters of a route.
    pub fn of(&self, published: &Published, router: &RouterName, route: &RouteId) -> Option<Value> {
        let router = published.table.router(router)?.id;
        let id = *self.ids.get(&(router, route.clone()))?;
        let stats = self.stats.get(&u64::from(id))?;
        let relayed = self.relayed.get(&id).cloned().unwrap_or_default();
        Some(json!({"steered": stats["steer"], "passed": stats["pass"], "dropped": stats["drop"],
            "ended": stats["ended"], "relayed": relayed}))
    }
}

//! Load-balancing state shared by all connections of all workers.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use dashmap::DashMap;
use router_model::names::RouteId;
use router_table::table::{ResolvedRoute, RoutingTable};

use super::health::Health;
use super::plan::{Plan, RouteState};

/// State that outlives routing tables.
#[derive(Debug, Default)]
pub struct Balancer {
    /// Health of endpoint addresses: failures, ejections, probes.
    pub health: Health,
    /// State of routes that need counters. Read when a version of a route is used for the first time. Routers that
    /// serve the same route share it, because a limit of an endpoint holds for all its clients.
    routes: DashMap<RouteId, Arc<RouteState>>,
}

impl Balancer {
    /// The plan of a route.
    pub fn plan<'r>(&self, route: &'r ResolvedRoute) -> &'r Plan {
        static NONE: LazyLock<Plan> = LazyLock::new(Plan::none);
        route.derived.get_or_init(|| Plan::new(route, || self.state(&route.id))).unwrap_or(&NONE)
    }

    /// Removes the state of routes that the table does not have, and of the addresses in `gone`.
    pub fn follow(&self, table: &RoutingTable, gone: &HashSet<SocketAddr>) {
        self.health.forget(gone, Instant::now());
        self.routes.retain(|id, _| table.routers.iter().any(|router| router.routes.get(id).is_some()));
    }

    fn state(&self, route: &RouteId) -> Arc<RouteState> {
        Arc::clone(&self.routes.entry(route.clone()).or_default())
    }
}

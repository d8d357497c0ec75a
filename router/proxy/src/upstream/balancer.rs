//! What choosing endpoints has in common for all connections of all workers.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Instant;

use router_model::names::RouteId;
use router_table::table::{ResolvedRoute, RoutingTable};

use super::health::Health;
use super::plan::{Plan, RouteState};

/// State that outlives routing tables.
#[derive(Debug, Default)]
pub struct Balancer {
    /// Which addresses rest.
    pub health: Health,
    /// Of routes that ask for counting, and only when a version of them is seen for the first time. Routers that serve
    /// the same route share it: a limit is one of the endpoint, whichever way its clients come.
    routes: Mutex<HashMap<RouteId, Arc<RouteState>>>,
}

impl Balancer {
    /// The plan of a route.
    pub fn plan<'r>(&self, route: &'r ResolvedRoute) -> &'r Plan {
        static NONE: LazyLock<Plan> = LazyLock::new(Plan::none);
        route.derived.get_or_init(|| Plan::new(route, || self.state(&route.id))).unwrap_or(&NONE)
    }

    /// Forgets routes that the table does not have, and addresses that went with it.
    pub fn follow(&self, table: &RoutingTable, gone: &HashSet<SocketAddr>) {
        self.health.forget(gone, Instant::now());
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.retain(|id, _| table.routers.iter().any(|router| router.routes.get(id).is_some()));
    }

    fn state(&self, route: &RouteId) -> Arc<RouteState> {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(routes.entry(route.clone()).or_default())
    }
}

//! Load-balancing state shared by all connections of all workers.

use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use router_model::names::RouteId;
use router_table::table::{Endpoints, ResolvedRoute, RoutingTable};

use super::health::Health;
use super::plan::{BalancingPlan, Prepared, RouteState};

/// State that outlives routing tables.
#[derive(Debug, Default)]
pub struct Balancer {
    /// Health of endpoint addresses: failures, ejections, probes.
    pub health: Health,
    /// State of routes that need counters. Read when a plan of such a route is made. Routers that serve the same route
    /// share it, because a limit of an endpoint holds for all its clients.
    routes: DashMap<RouteId, Arc<RouteState>>,
    bound: Mutex<EndpointVersions>,
}

/// The endpoints of the newest table, and of the one before.
#[derive(Debug, Default)]
struct EndpointVersions {
    now: Endpoints,
    before: Endpoints,
}

impl EndpointVersions {
    /// The table with the route's endpoints. A request may still use a route that the newest table lacks.
    fn endpoints_of(&self, route: &ResolvedRoute) -> &Endpoints {
        let mut keys = route.services().filter_map(|service| service.key.as_ref());
        if keys.all(|key| self.now.list(key).is_some()) { &self.now } else { &self.before }
    }
}

impl Balancer {
    /// The plan of a route, with the endpoints of the newest table.
    pub fn plan(&self, route: &ResolvedRoute) -> Arc<BalancingPlan> {
        match Prepared::of(route) {
            Some(prepared) => prepared.plan.load_full().unwrap_or_else(|| self.make(route, prepared)),
            None => Arc::new(BalancingPlan::none()),
        }
    }

    #[cold]
    fn make(&self, route: &ResolvedRoute, prepared: &Prepared) -> Arc<BalancingPlan> {
        // Locked until the plan is stored, so that `bind` cannot miss a plan of older endpoints.
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = prepared.plan.load_full() {
            return made;
        }
        let plan = Arc::new(BalancingPlan::new(route, bound.endpoints_of(route), || self.state(&route.id)));
        prepared.plan.store(Some(Arc::clone(&plan)));
        plan
    }

    /// Takes over the endpoints of a table before it is served. Plans of routes whose endpoints differ are made anew on
    /// their next use.
    pub fn bind(&self, endpoints: &Endpoints) {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = endpoints.changes_since(&bound.now);
        changed.filter_map(|user| user.route.derived.get::<Prepared>()).for_each(|prepared| prepared.plan.store(None));
        bound.before = std::mem::replace(&mut bound.now, endpoints.clone());
    }

    /// Removes the state of routes that the table does not have.
    pub fn retain(&self, table: &RoutingTable) {
        self.routes.retain(|id, _| table.routers.iter().any(|router| router.routes.get(id).is_some()));
    }

    fn state(&self, route: &RouteId) -> Arc<RouteState> {
        Arc::clone(&self.routes.entry(route.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use router_table::policy::{RoutePolicy, Timeouts};

    use super::*;
    use crate::upstream::testing::{found, route, router, table};

    fn named(name: &str, ports: &[u16]) -> Arc<ResolvedRoute> {
        let id = RouteId::of_route("shop", name);
        Arc::new(ResolvedRoute { id, ..route(&[(1, ports)], RoutePolicy::default()) })
    }

    #[test]
    fn a_plan_is_made_anew_where_its_endpoints_differ_and_stays_elsewhere() {
        let (one, other) = (named("one", &[1]), named("other", &[7]));
        let first = table(vec![router("default", &[Arc::clone(&one), Arc::clone(&other)], Timeouts::default())]);
        let balancer = Balancer::default();
        balancer.bind(&first.endpoints);
        let before = [&one, &other].map(|route| balancer.plan(route));
        assert!(Arc::ptr_eq(&before[0], &balancer.plan(&one)) && before[0].members() == (0..1));

        let key = one.cluster.services[0].key.clone().unwrap();
        let two = found(named("two", &[2, 3]).cluster.services[0].key.as_ref().unwrap());
        let mut endpoints = first.endpoints.clone();
        endpoints.renew("shop", "service-0", |asked| if *asked == *key { Arc::clone(&two) } else { found(asked) });
        balancer.bind(&endpoints);
        let after = [&one, &other].map(|route| balancer.plan(route));
        assert!(Arc::ptr_eq(&after[1], &before[1]));
        let ports = |plan: &BalancingPlan| -> Vec<u16> {
            let target = |member| plan.target(member, &one.cluster).unwrap().endpoint.address.port();
            plan.members().map(target).collect()
        };
        assert_eq!((ports(&before[0]), ports(&after[0])), (vec![1], vec![2, 3]), "who has a plan goes on with it");
    }

    #[test]
    fn a_request_that_knows_a_route_which_has_just_gone_finds_its_endpoints() {
        let late = named("late", &[1]);
        let balancer = Balancer::default();
        balancer.bind(&table(vec![router("default", &[Arc::clone(&late)], Timeouts::default())]).endpoints);
        balancer.bind(&Endpoints::default());
        assert_eq!(balancer.plan(&late).members(), 0..1);
        balancer.bind(&Endpoints::default());
        assert_eq!(balancer.plan(&named("late", &[1])).members(), 0..0);
    }
}

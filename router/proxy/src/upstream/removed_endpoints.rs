//! Endpoints that a new table lacks, and requests that still refer to them.

use std::collections::HashSet;
use std::net::SocketAddr;

use router_model::names::RouteId;
use router_table::table::{Endpoints, ResolvedRoute, RoutingTable};

use crate::serving_table::ServingTable;

/// The endpoints that a route had in `before` and lacks in `now`. Cost is proportional to the change. The result may
/// contain an endpoint that another route still has; that endpoint loses only its idle connections.
pub fn gone(before: &RoutingTable, now: &RoutingTable) -> HashSet<SocketAddr> {
    let mut gone = HashSet::new();
    for change in now.route_changes(before) {
        let Some((_, old)) = change.old else { continue };
        let still: HashSet<SocketAddr> =
            change.new.into_iter().flat_map(|(_, route)| addresses(route, &now.endpoints)).collect();
        gone.extend(addresses(old, &before.endpoints).filter(|address| !still.contains(address)));
    }
    gone
}

/// Whether the route has the endpoint on any router.
pub fn is_there(now: &ServingTable, route: &RouteId, endpoint: SocketAddr) -> bool {
    let mut versions = now.routers.values().filter_map(|served| served.table.routes.get(route));
    versions.any(|route| addresses(route, &now.endpoints).any(|address| address == endpoint))
}

/// Endpoints of a route and of its mirrors.
fn addresses<'e>(route: &'e ResolvedRoute, endpoints: &'e Endpoints) -> impl Iterator<Item = SocketAddr> + 'e {
    route.services().flat_map(|service| endpoints.of(service)).map(|endpoint| endpoint.address)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use router_table::policy::{RoutePolicy, Timeouts};

    use super::*;
    use crate::serving_table::ServedRouter;
    use crate::upstream::testing::{self, address, route, router};

    /// Routers with `shop/cart`, each with endpoints at these ports.
    fn table(routers: &[(&str, &[u16])]) -> RoutingTable {
        let router = |(name, ports): &(&str, &[u16])| {
            router(name, &[Arc::new(route(&[(1, ports)], RoutePolicy::default()))], Timeouts::default())
        };
        testing::table(routers.iter().map(router).collect())
    }

    fn snapshot(table: &RoutingTable) -> ServingTable {
        let serve = |table: &Arc<_>| Arc::new(ServedRouter { table: Arc::clone(table), tls: None, spelling: None });
        let routers = table.routers.iter().map(|router| (router.name.clone(), serve(router)));
        ServingTable { routers: routers.collect(), endpoints: table.endpoints.clone() }
    }

    #[test]
    fn what_is_gone_is_not_there() {
        let (before, now) = (table(&[("default", &[1, 2])]), table(&[("default", &[2, 3])]));
        assert_eq!(gone(&before, &now), HashSet::from([address(1)]));
        let cart = RouteId::of_route("shop", "cart");
        let there =
            |id: &RouteId, table: &RoutingTable| [1, 2, 3].map(|port| is_there(&snapshot(table), id, address(port)));
        assert_eq!(there(&cart, &before), [true, true, false]);
        assert_eq!(there(&cart, &now), [false, true, true]);
        assert_eq!(there(&RouteId::of_route("shop", "pay"), &now), [false; 3]);
        assert_eq!(there(&cart, &RoutingTable::default()), [false; 3]);
        assert_eq!(gone(&now, &RoutingTable::default()), HashSet::from([address(2), address(3)]));
    }

    #[test]
    fn what_another_router_has_is_there() {
        let (before, now) = (table(&[("a", &[1]), ("b", &[1])]), table(&[("a", &[]), ("b", &[1])]));
        assert_eq!(gone(&before, &now), HashSet::from([address(1)]), "it loses its idle connections");
        assert!(is_there(&snapshot(&now), &RouteId::of_route("shop", "cart"), address(1)));
    }
}

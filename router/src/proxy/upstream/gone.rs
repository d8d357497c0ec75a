//! Endpoints that a new table does not have any more.

use std::collections::HashSet;
use std::iter;
use std::net::SocketAddr;

use router_core::table::{ResolvedRoute, RoutingTable};

use crate::proxy::snapshot::Snapshot;

/// The endpoints that routes had before and have no more. Costs what has changed: an endpoint that another route still
/// has may be among them, and loses no more than its idle connections.
pub fn gone(before: &Snapshot, now: &RoutingTable) -> HashSet<SocketAddr> {
    let mut gone = HashSet::new();
    for (name, served) in &before.routers {
        let then = &served.table;
        match now.router(name) {
            None => gone.extend(then.routes.values().flat_map(|route| addresses(route))),
            Some(now) => {
                for change in now.routes.changes_since(&then.routes) {
                    let Some(old) = change.old else { continue };
                    let still: HashSet<SocketAddr> =
                        change.new.into_iter().flat_map(|route| addresses(route)).collect();
                    gone.extend(addresses(old).filter(|address| !still.contains(address)));
                }
            }
        }
    }
    gone
}

/// Endpoints of a route, and of where copies of its requests go.
fn addresses(route: &ResolvedRoute) -> impl Iterator<Item = SocketAddr> + '_ {
    let mirrors = route.rule.iter().flat_map(|rule| rule.mirrors.iter().map(|mirror| &mirror.cluster));
    let services = iter::once(&route.cluster).chain(mirrors).flat_map(|cluster| cluster.services.iter());
    services.flat_map(|service| service.endpoints.iter().map(|endpoint| endpoint.address))
}

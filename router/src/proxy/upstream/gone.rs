//! Endpoints that a new table does not have any more.

use std::collections::HashSet;
use std::net::SocketAddr;

use router_core::table::{Cluster, RoutingTable};

use crate::proxy::snapshot::Snapshot;

/// The endpoints that routes had before and have no more. Costs what has changed: an endpoint that another route still
/// has may be among them, and loses no more than its idle connections.
pub fn gone(before: &Snapshot, now: &RoutingTable) -> HashSet<SocketAddr> {
    let mut gone = HashSet::new();
    for (name, served) in &before.routers {
        let then = &served.table;
        match now.router(name) {
            None => gone.extend(then.routes.values().flat_map(|route| addresses(&route.cluster))),
            Some(now) => {
                for change in now.routes.changes_since(&then.routes) {
                    let Some(old) = change.old else { continue };
                    let still: HashSet<SocketAddr> =
                        change.new.into_iter().flat_map(|route| addresses(&route.cluster)).collect();
                    gone.extend(addresses(&old.cluster).filter(|address| !still.contains(address)));
                }
            }
        }
    }
    gone
}

fn addresses(cluster: &Cluster) -> impl Iterator<Item = SocketAddr> + '_ {
    cluster.services.iter().flat_map(|service| service.endpoints.iter().map(|endpoint| endpoint.address))
}

//! The hosts that routes may claim on the listeners whose `allowedRoutes` admits them, whether or not they are
//! accepted. They depend only on the routes, on the listeners, and on the results of the listeners' namespace
//! selectors.

use std::collections::{BTreeMap, BTreeSet};

use router_api::gateway_api::types::GatewayRoute;
use router_api::resources::Resources;
use router_model::object::ObjectRef;
use router_table::host_pattern::HostPattern;

use crate::gateway::base::{GatewayBase, ListenerAt};
use crate::gateway::claims::{admits, intersection};
use crate::gateway::inclusion::edges::{gateway_of, parent_of};
use crate::gateway::incremental::components::{above, parents};

/// Hosts that each route may claim, by listener. Hosts of an included route are within those of its parents.
pub type Footprint = BTreeSet<(ObjectRef, ListenerAt, HostPattern)>;

/// The footprint of these routes.
pub fn footprint(base: &GatewayBase, resources: &Resources, routes: &BTreeSet<ObjectRef>) -> Footprint {
    let selected = routes;
    let found: Vec<_> = routes.iter().filter_map(|object| Some((object, resources.gateway_route(object)?))).collect();
    if found.iter().all(|(_, route)| parents(route).next().is_none()) {
        let hosts = found.into_iter().flat_map(|(object, route)| {
            direct_hosts(base, resources, route).map(move |(at, host)| (object.clone(), at, host))
        });
        return hosts.collect();
    }
    let with_parents = above(resources, routes.iter().cloned());
    let routes = || with_parents.iter().filter_map(|object| Some((object, resources.gateway_route(object)?)));
    let mut children: BTreeMap<ObjectRef, Vec<&GatewayRoute>> = BTreeMap::new();
    for (_, route) in routes() {
        for parent in route.parents.iter().filter_map(|reference| parent_of(route, reference)) {
            children.entry(parent).or_default().push(route);
        }
    }
    let attaching = routes().flat_map(|(object, route)| {
        direct_hosts(base, resources, route).map(move |(at, host)| (object.clone(), at, host))
    });
    let mut found = Footprint::new();
    let mut rest: Vec<_> = attaching.collect();
    while let Some(next) = rest.pop() {
        if !found.insert(next.clone()) {
            continue;
        }
        let (object, at, host) = next;
        for child in children.get(&object).into_iter().flatten() {
            rest.extend(intersection(&host, &child.hostnames).into_iter().map(|host| (child.object(), at, host)));
        }
    }
    found.retain(|(route, ..)| selected.contains(route));
    found
}

/// The listeners that a route's own `parentRefs` name and that admit it, and its hosts there.
pub fn direct_hosts<'b>(
    base: &'b GatewayBase,
    resources: &'b Resources,
    route: &'b GatewayRoute,
) -> impl Iterator<Item = (ListenerAt, HostPattern)> + 'b {
    route.parents.iter().flat_map(move |parent| {
        let gateway = gateway_of(route, parent).and_then(|key| base.by_key.get(&key)).copied();
        let state = gateway.and_then(|gateway| Some((gateway, base.gateways.get(gateway)?)));
        state.into_iter().flat_map(move |(i, state)| {
            let named = state.listeners.iter().enumerate().filter(move |(_, placed)| {
                parent.section.as_ref().is_none_or(|section| *section == placed.listener.name)
                    && parent.port.is_none_or(|port| port == placed.listener.port)
                    && admits(placed, route, state, resources)
            });
            named.flat_map(move |(j, placed)| {
                intersection(&placed.listener.hostname, &route.hostnames).into_iter().map(move |host| ((i, j), host))
            })
        })
    })
}

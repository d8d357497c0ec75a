//! Indexes of all routes, and the subsets of objects that they select: the routes that affect given hosts or statuses.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::gateway_api::types::GatewayRoute;
use router_api::resources::{KeyedObject, Objects, Resources};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::host_pattern::HostPattern;

use crate::gateway::base::{GatewayBase, HostScope};
use crate::gateway::inclusion::edges::routes;
use crate::gateway::incremental::components::RouteLinks;
use crate::gateway::incremental::footprint::{Footprint, direct_hosts, footprint};
use crate::gateway::incremental::pattern_index::PatternIndex;
use crate::gateway::references::services_of;
use crate::objects_by::ObjectsBy;

/// Indexes of all routes.
#[derive(Debug, Default)]
pub struct Indexes {
    /// Routes by the routes and RouteSlots that they reference.
    pub links: RouteLinks,
    /// Routes by the hosts that they may claim.
    pub patterns: PatternIndex,
    /// Routes by the Services that they reference.
    pub services: ObjectsBy<ObjectKey>,
}

/// Old and new version of a route.
pub type RouteVersions<'r> = (Option<&'r Arc<GatewayRoute>>, Option<&'r Arc<GatewayRoute>>);

impl Indexes {
    /// Indexes of these objects; `all` are their routes.
    pub fn new(base: &GatewayBase, resources: &Resources, all: &BTreeSet<ObjectRef>) -> Self {
        let mut indexes = Indexes::default();
        routes(resources).for_each(|route| indexes.replace((None, Some(route))));
        indexes.replace_hosts(base, &Footprint::new(), &footprint(base, resources, all));
        indexes.patterns.compact();
        indexes.services.compact();
        indexes
    }

    /// Replaces a route in all indexes except `patterns`.
    pub fn replace(&mut self, (old, new): RouteVersions<'_>) {
        self.links.replace(old.map(AsRef::as_ref), new.map(AsRef::as_ref));
        if let Some(route) = old {
            services_of(route).for_each(|service| self.services.remove(&service, &route.object()));
        }
        if let Some(route) = new {
            services_of(route).for_each(|service| self.services.insert(service, &route.object()));
        }
    }

    /// Replaces the hosts of routes in `patterns`.
    pub fn replace_hosts(&mut self, base: &GatewayBase, old: &Footprint, new: &Footprint) {
        for (route, at, host) in old.difference(new) {
            self.patterns.remove(base.router_index(*at), host, route);
        }
        for (route, at, host) in new {
            self.patterns.insert(base.router_index(*at), host, route);
        }
    }

    /// These objects, and transitively all routes that conflict with one of them: HTTPRoutes and GRPCRoutes with
    /// overlapping hosts on one listener, of which the oldest is accepted. `whole_trees`: with the components of each.
    pub fn closure(
        &self,
        base: &GatewayBase,
        resources: &Resources,
        objects: impl IntoIterator<Item = ObjectRef>,
        whole_trees: bool,
    ) -> BTreeSet<ObjectRef> {
        let mut found: BTreeSet<ObjectRef> = BTreeSet::new();
        let mut rest: BTreeSet<ObjectRef> = objects.into_iter().collect();
        while !rest.is_empty() {
            let mut more = std::mem::take(&mut rest);
            if whole_trees {
                more = self.links.components(resources, more);
            }
            for route in more.iter().filter_map(|object| resources.gateway_route(object)) {
                rest.extend(self.conflicting_routes(base, resources, route));
            }
            found.extend(more);
            rest.retain(|object| !found.contains(object));
        }
        found
    }

    fn conflicting_routes(
        &self,
        base: &GatewayBase,
        resources: &Resources,
        route: &GatewayRoute,
    ) -> BTreeSet<ObjectRef> {
        let (other, has_none) = match route.kind {
            Kind::HttpRoute => (Kind::GrpcRoute, resources.grpc_routes.is_empty()),
            Kind::GrpcRoute => (Kind::HttpRoute, resources.http_routes.is_empty()),
            _ => return BTreeSet::new(),
        };
        let mut conflicting = BTreeSet::new();
        if has_none {
            return conflicting;
        }
        for (at, host) in direct_hosts(base, resources, route) {
            let router_index = base.router_index(at);
            let below = self.patterns.below(router_index, &host).flat_map(|(_, routes)| routes);
            let overlapping = self
                .patterns
                .covering(router_index, &host)
                .chain(below)
                .filter(|other_route| other_route.kind == other);
            conflicting.extend(
                overlapping
                    .filter(|other_route| {
                        let other_route = resources.gateway_route(other_route);
                        let other_hosts =
                            other_route.into_iter().flat_map(|other_route| direct_hosts(base, resources, other_route));
                        let mut here = other_hosts.filter(|(its, _)| *its == at);
                        here.any(|(_, its)| its.intersect(&host).is_some())
                    })
                    .cloned(),
            );
        }
        conflicting
    }

    /// The hosts that rules for these patterns serve: claimed hosts that they cover, and the allowed parts of the
    /// patterns themselves.
    pub fn hosts<'p>(
        &self,
        base: &GatewayBase,
        patterns: impl IntoIterator<Item = &'p (usize, HostPattern)>,
    ) -> HostScope {
        let mut hosts = HostScope::new();
        for (router_index, pattern) in patterns {
            let router_index = *router_index;
            let Some(router) = base.routers.get(router_index) else { continue };
            let narrowed =
                |host: &HostPattern| base.domains.narrowed(host).into_iter().map(move |host| (router_index, host));
            hosts.extend(narrowed(pattern));
            if matches!(pattern, HostPattern::Exact(_)) {
                continue;
            }
            hosts.extend(self.patterns.below(router_index, pattern).flat_map(|(host, _)| narrowed(host)));
            let router_listeners = base.listeners().filter(|(.., placed)| placed.router.as_ref() == Some(&router.name));
            let hostnames = router_listeners.map(|(.., placed)| &placed.listener.hostname);
            hosts.extend(hostnames.filter(|hostname| pattern.covers(hostname)).flat_map(narrowed));
        }
        hosts
    }

    /// Adds the hosts whose connections are numbered together with those of these hosts: all hosts of a TLSRoute on a
    /// router.
    pub fn add_connections(&self, base: &GatewayBase, resources: &Resources, scope: &mut HostScope) {
        let mut seen: BTreeSet<ObjectRef> = BTreeSet::new();
        let mut rest: Vec<(usize, HostPattern)> = scope.iter().cloned().collect();
        while let Some((router_index, host)) = rest.pop() {
            let covering = self.patterns.covering(router_index, &host).filter(|route| route.kind == Kind::TlsRoute);
            let routes: BTreeSet<ObjectRef> = covering.filter(|route| !seen.contains(*route)).cloned().collect();
            if routes.is_empty() {
                continue;
            }
            let hosts = self.hosts(base, &self.patterns_of(base, resources, &routes));
            rest.extend(hosts.iter().filter(|host| !scope.contains(*host)).cloned());
            scope.extend(hosts);
            seen.extend(routes);
        }
    }

    /// The hosts that these routes may claim.
    pub fn patterns_of(
        &self,
        base: &GatewayBase,
        resources: &Resources,
        routes: &BTreeSet<ObjectRef>,
    ) -> BTreeSet<(usize, HostPattern)> {
        footprint(base, resources, routes).into_iter().map(|(_, at, host)| (base.router_index(at), host)).collect()
    }

    /// `resources` with only those routes that determine the attachments of these routes.
    pub fn restricted(
        &self,
        base: &GatewayBase,
        resources: &Resources,
        routes: impl IntoIterator<Item = ObjectRef>,
    ) -> Resources {
        let objects = self.closure(base, resources, routes, false);
        let mut restricted = resources.clone();
        restricted.http_routes = only(&resources.http_routes, Kind::HttpRoute, &objects);
        restricted.grpc_routes = only(&resources.grpc_routes, Kind::GrpcRoute, &objects);
        restricted.tls_routes = only(&resources.tls_routes, Kind::TlsRoute, &objects);
        restricted
    }
}

fn only<T: KeyedObject>(all: &Objects<T>, kind: Kind, objects: &BTreeSet<ObjectRef>) -> Objects<T> {
    let selected = objects.iter().filter(|object| object.kind == kind);
    selected.filter_map(|object| Some((object.key.clone(), all.versions_of(&object.key)?.clone()))).collect()
}

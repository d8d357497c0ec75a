//! Indexes of all routes, and the restricted worlds that they yield: the routes without which a host or a status would come
//! out differently.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::gateway_api::types::{Filter, GatewayRoute};
use router_api::resources::{Objects, Resources};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::host_pattern::HostPattern;

use crate::gateway::base::{Base, Scope};
use crate::gateway::inclusion::edges::routes;
use crate::gateway::incremental::footprint::{Footprint, attaching, footprint};
use crate::gateway::incremental::objects_by::ObjectsBy;
use crate::gateway::incremental::pattern_index::PatternIndex;
use crate::gateway::incremental::units::Links;
use crate::gateway::rules::service_of;

/// Indexes of all routes.
#[derive(Debug, Default)]
pub struct Indexes {
    /// Routes by the routes and RouteSlots that they name.
    pub links: Links,
    /// Routes by the hosts that they may claim.
    pub patterns: PatternIndex,
    /// Routes by the Services that they name.
    pub services: ObjectsBy<ObjectKey>,
}

/// Two versions of a route.
pub type RouteChange<'r> = (Option<&'r Arc<GatewayRoute>>, Option<&'r Arc<GatewayRoute>>);

impl Indexes {
    /// Indexes of these objects; `all` are their routes.
    pub fn new(base: &Base, resources: &Resources, all: &BTreeSet<ObjectRef>) -> Self {
        let mut indexes = Indexes::default();
        routes(resources).for_each(|route| indexes.replace((None, Some(route))));
        indexes.replace_hosts(base, &Footprint::new(), &footprint(base, resources, all));
        indexes
    }

    /// Takes over changed routes, but for their hosts.
    pub fn replace(&mut self, (old, new): RouteChange<'_>) {
        self.links.replace(old.map(AsRef::as_ref), new.map(AsRef::as_ref));
        if let Some(route) = old {
            services_of(route).for_each(|service| self.services.remove(&service, &route.object()));
        }
        if let Some(route) = new {
            services_of(route).for_each(|service| self.services.insert(service, &route.object()));
        }
    }

    /// Replaces the hosts of routes.
    pub fn replace_hosts(&mut self, base: &Base, old: &Footprint, new: &Footprint) {
        for (route, at, host) in old.difference(new) {
            self.patterns.remove(base.place(*at), host, route);
        }
        for (route, at, host) in new {
            self.patterns.insert(base.place(*at), host, route);
        }
    }

    /// The units of these objects, and all with which these compete for listeners: HTTPRoutes and GRPCRoutes whose hosts
    /// meet on a listener, of which the older are accepted.
    pub fn closed(
        &self,
        base: &Base,
        resources: &Resources,
        objects: impl IntoIterator<Item = ObjectRef>,
    ) -> BTreeSet<ObjectRef> {
        let mut found: BTreeSet<ObjectRef> = BTreeSet::new();
        let mut rest: BTreeSet<ObjectRef> = objects.into_iter().collect();
        while !rest.is_empty() {
            let units = self.links.units(resources, std::mem::take(&mut rest));
            for route in units.iter().filter_map(|object| resources.gateway_route(object)) {
                rest.extend(self.rivals(base, resources, route));
            }
            found.extend(units);
            rest.retain(|object| !found.contains(object));
        }
        found
    }

    fn rivals(&self, base: &Base, resources: &Resources, route: &GatewayRoute) -> BTreeSet<ObjectRef> {
        let other = match route.kind {
            Kind::HttpRoute => Kind::GrpcRoute,
            Kind::GrpcRoute => Kind::HttpRoute,
            _ => return BTreeSet::new(),
        };
        let mut rivals = BTreeSet::new();
        for (at, host) in attaching(base, route) {
            let place = base.place(at);
            let below = self.patterns.below(place, &host).flat_map(|(_, routes)| routes);
            let meeting = self.patterns.covering(place, &host).chain(below).filter(|rival| rival.kind == other);
            rivals.extend(
                meeting
                    .filter(|rival| {
                        let rival = resources.gateway_route(rival);
                        let of_rival = rival.into_iter().flat_map(|rival| attaching(base, rival));
                        let mut here = of_rival.filter(|(its, _)| *its == at);
                        here.any(|(_, its)| its.intersect(&host).is_some())
                    })
                    .cloned(),
            );
        }
        rivals
    }

    /// The hosts that rules for these patterns bear on: known ones below them, and their own parts that are allowed.
    pub fn hosts<'p>(&self, base: &Base, patterns: impl IntoIterator<Item = &'p (usize, HostPattern)>) -> Scope {
        let mut hosts = Scope::new();
        for (place, pattern) in patterns {
            let place = *place;
            let Some(router) = base.routers.get(place) else { continue };
            let narrowed = |host: &HostPattern| base.domains.narrowed(host).into_iter().map(move |host| (place, host));
            hosts.extend(narrowed(pattern));
            if matches!(pattern, HostPattern::Exact(_)) {
                continue;
            }
            hosts.extend(self.patterns.below(place, pattern).flat_map(|(host, _)| narrowed(host)));
            let of_router = base.listeners().filter(|(.., placed)| placed.router.as_ref() == Some(&router.name));
            let hostnames = of_router.map(|(.., placed)| &placed.listener.hostname);
            hosts.extend(hostnames.filter(|hostname| pattern.covers(hostname)).flat_map(narrowed));
        }
        hosts
    }

    /// Adds the hosts whose connections are numbered together with those of these hosts: all of a TLSRoute on a router.
    pub fn add_connections(&self, base: &Base, resources: &Resources, scope: &mut Scope) {
        let mut seen: BTreeSet<ObjectRef> = BTreeSet::new();
        let mut rest: Vec<(usize, HostPattern)> = scope.iter().cloned().collect();
        while let Some((place, host)) = rest.pop() {
            let covering = self.patterns.covering(place, &host).filter(|route| route.kind == Kind::TlsRoute);
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
        base: &Base,
        resources: &Resources,
        routes: &BTreeSet<ObjectRef>,
    ) -> BTreeSet<(usize, HostPattern)> {
        let units = self.links.units(resources, routes.iter().cloned());
        let all = footprint(base, resources, &units).into_iter();
        all.filter(|(route, ..)| routes.contains(route)).map(|(_, at, host)| (base.place(at), host)).collect()
    }

    /// The world that decides these hosts and has these objects.
    pub fn world(
        &self,
        base: &Base,
        resources: &Resources,
        objects: impl IntoIterator<Item = ObjectRef>,
        scope: &Scope,
    ) -> Resources {
        let relevant = scope.iter().flat_map(|(place, host)| self.patterns.covering(*place, host)).cloned();
        let objects = self.closed(base, resources, objects.into_iter().chain(relevant));
        let mut world = resources.clone();
        world.http_routes = only(&resources.http_routes, Kind::HttpRoute, &objects);
        world.grpc_routes = only(&resources.grpc_routes, Kind::GrpcRoute, &objects);
        world.tls_routes = only(&resources.tls_routes, Kind::TlsRoute, &objects);
        world.route_slots = only(&resources.route_slots, Kind::RouteSlot, &objects);
        world
    }
}

fn only<T>(all: &Objects<T>, kind: Kind, objects: &BTreeSet<ObjectRef>) -> Objects<T> {
    let of_kind = objects.iter().filter(|object| object.kind == kind);
    of_kind.filter_map(|object| Some((object.key.clone(), all.versions_of(&object.key)?.clone()))).collect()
}

/// The Services that a route names as backends or mirrors.
pub fn services_of(route: &GatewayRoute) -> impl Iterator<Item = ObjectKey> {
    route.rules.iter().flat_map(move |rule| {
        let of_backends = rule.backends.iter().flat_map(|backend| &backend.filters);
        let mirrors = rule.filters.iter().chain(of_backends).filter_map(|filter| match filter {
            Filter::Mirror(mirror) => Some(&mirror.object),
            _ => None,
        });
        let objects = rule.backends.iter().map(|backend| &backend.object).chain(mirrors);
        objects.filter_map(move |object| service_of(route, object))
    })
}

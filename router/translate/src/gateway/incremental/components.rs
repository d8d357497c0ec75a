//! Components: routes connected by `parentRefs` between routes, or by RouteSlots that several of them reference. The
//! result of inclusion for a route depends only on its component.

use std::collections::BTreeSet;

use router_api::gateway_api::types::GatewayRoute;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::gateway::inclusion::edges::parent_of;
use crate::gateway::inclusion::slots::is_slot;
use crate::objects_by::ObjectsBy;

/// The routes that reference each route or RouteSlot, whether or not that object exists.
#[derive(Debug, Default)]
pub struct RouteLinks(ObjectsBy<ObjectRef>);

impl RouteLinks {
    /// Replaces a route's links.
    pub fn replace(&mut self, old: Option<&GatewayRoute>, new: Option<&GatewayRoute>) {
        if let Some(route) = old {
            named(route).for_each(|object| self.0.remove(&object, &route.object()));
        }
        if let Some(route) = new {
            named(route).for_each(|object| self.0.insert(object, &route.object()));
        }
    }

    /// The routes that reference this object.
    pub fn naming(&self, object: &ObjectRef) -> &[ObjectRef] {
        self.0.get(object)
    }

    /// The components of these routes and RouteSlots. `resources` must be in the state to which the links were updated.
    pub fn components(
        &self,
        resources: &Resources,
        objects: impl IntoIterator<Item = ObjectRef>,
    ) -> BTreeSet<ObjectRef> {
        closure(objects, |object| {
            let named = resources.gateway_route(object).into_iter().flat_map(|route| named(route));
            self.naming(object).iter().cloned().chain(named)
        })
    }

    /// True if a route references a route or RouteSlot, or a route references it.
    pub fn is_in_tree(&self, resources: &Resources, route: &ObjectRef) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let references = || resources.gateway_route(route).is_some_and(|route| named(route).next().is_some());
        !self.naming(route).is_empty() || references()
    }

    /// These objects, and all routes below them: those of a RouteSlot are the routes that reference it, with all below
    /// these.
    pub fn below(&self, objects: impl IntoIterator<Item = ObjectRef>) -> BTreeSet<ObjectRef> {
        closure(objects, |object| self.naming(object).iter().cloned())
    }

    /// The routes that determine the statuses of these routes, and the effective rules of those in it: their children
    /// and siblings, and everything above.
    pub fn context<'o>(
        &self,
        resources: &Resources,
        routes: impl IntoIterator<Item = &'o ObjectRef>,
    ) -> BTreeSet<ObjectRef> {
        let mut found = BTreeSet::new();
        for route in routes {
            let parents = resources.gateway_route(route).into_iter().flat_map(|route| parents(route));
            for above in parents.chain([route.clone()]).filter(|above| !self.naming(above).is_empty()) {
                found.extend(self.naming(&above).iter().cloned());
            }
            found.insert(route.clone());
        }
        above(resources, found)
    }
}

/// The routes that a route references as parents, whether or not they exist.
pub fn parents(route: &GatewayRoute) -> impl Iterator<Item = ObjectRef> {
    route.parents.iter().filter_map(move |reference| parent_of(route, reference))
}

/// These routes and all routes above them.
pub fn above(resources: &Resources, routes: impl IntoIterator<Item = ObjectRef>) -> BTreeSet<ObjectRef> {
    closure(routes, |object| resources.gateway_route(object).into_iter().flat_map(|route| parents(route)))
}

fn closure<I: Iterator<Item = ObjectRef>>(
    objects: impl IntoIterator<Item = ObjectRef>,
    next: impl Fn(&ObjectRef) -> I,
) -> BTreeSet<ObjectRef> {
    let mut found = BTreeSet::new();
    let mut rest: Vec<ObjectRef> = objects.into_iter().collect();
    while let Some(object) = rest.pop() {
        if !found.contains(&object) {
            rest.extend(next(&object));
            found.insert(object);
        }
    }
    found
}

/// The routes and RouteSlots that a route references.
fn named(route: &GatewayRoute) -> impl Iterator<Item = ObjectRef> {
    let backends = route.rules.iter().flat_map(|rule| &rule.backends).filter(|backend| is_slot(backend));
    let slots = backends.map(move |backend| {
        let key = ObjectKey { namespace: route.meta.key.namespace.clone(), name: backend.object.name.clone() };
        ObjectRef { kind: Kind::RouteSlot, key }
    });
    parents(route).chain(slots)
}

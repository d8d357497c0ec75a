//! Units: routes that are connected by `parentRefs` between routes, or by RouteSlots that several of them name. What
//! inclusion makes of a route depends on its unit alone.

use std::collections::BTreeSet;

use router_api::gateway_api::types::GatewayRoute;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::gateway::inclusion::edges::parent_of;
use crate::gateway::inclusion::slots::is_slot;
use crate::gateway::incremental::objects_by::ObjectsBy;

/// The routes that name each route or RouteSlot, be it there or not.
#[derive(Debug, Default)]
pub struct Links(ObjectsBy<ObjectRef>);

impl Links {
    /// Replaces a version of a route.
    pub fn replace(&mut self, old: Option<&GatewayRoute>, new: Option<&GatewayRoute>) {
        if let Some(route) = old {
            named(route).for_each(|object| self.0.remove(&object, &route.object()));
        }
        if let Some(route) = new {
            named(route).for_each(|object| self.0.insert(object, &route.object()));
        }
    }

    /// The routes that name this object.
    pub fn naming(&self, object: &ObjectRef) -> &[ObjectRef] {
        self.0.get(object)
    }

    /// These routes and RouteSlots with all that are connected to them; `resources` must be those that were followed.
    pub fn units(&self, resources: &Resources, objects: impl IntoIterator<Item = ObjectRef>) -> BTreeSet<ObjectRef> {
        let mut found = BTreeSet::new();
        let mut rest: Vec<ObjectRef> = objects.into_iter().collect();
        while let Some(object) = rest.pop() {
            if found.contains(&object) {
                continue;
            }
            rest.extend(self.naming(&object).iter().cloned());
            rest.extend(resources.gateway_route(&object).into_iter().flat_map(|route| named(route)));
            found.insert(object);
        }
        found
    }
}

/// The routes and RouteSlots that a route names.
fn named(route: &GatewayRoute) -> impl Iterator<Item = ObjectRef> {
    let parents = route.parents.iter().filter_map(move |reference| parent_of(route, reference));
    let backends = route.rules.iter().flat_map(|rule| &rule.backends).filter(|backend| is_slot(backend));
    let slots = backends.map(move |backend| {
        let key = ObjectKey { namespace: route.meta.key.namespace.clone(), name: backend.object.name.clone() };
        ObjectRef { kind: Kind::RouteSlot, key }
    });
    parents.chain(slots)
}

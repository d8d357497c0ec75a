//! Changes that the Routes of a router depend on.

use std::sync::Arc;

use router_api::openshift::route::Route;
use router_model::object::ObjectKey;
use router_model::persistent::Difference;

/// A route before and after a change. Both are the same if only an object changed that the route refers to.
pub type RouteRevision<'r> = Difference<'r, ObjectKey, Arc<Route>>;

/// Changes of routes, and of namespaces that contain routes.
#[derive(Clone, Copy)]
pub struct RouteChanges<'r> {
    /// In order of key, each route once.
    pub routes: &'r [RouteRevision<'r>],
    /// Namespaces whose labels differ.
    pub namespaces: &'r [Arc<str>],
}

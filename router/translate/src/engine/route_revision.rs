//! Changes that the Routes of a router depend on.

use std::sync::Arc;

use router_api::openshift::route::Route;

/// A route before and after a change. Both are the same if only an object changed that the route refers to.
#[derive(Clone, Copy)]
pub(crate) struct RouteRevision<'r> {
    pub(super) old: Option<&'r Arc<Route>>,
    pub(super) new: Option<&'r Arc<Route>>,
}

/// Changes of routes, and of namespaces that contain routes.
#[derive(Clone, Copy)]
pub(crate) struct RouteChanges<'r> {
    pub(super) routes: &'r [RouteRevision<'r>],
    /// Namespaces whose labels differ.
    pub(super) namespaces: &'r [Arc<str>],
}

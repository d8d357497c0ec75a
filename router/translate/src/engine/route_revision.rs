//! A route before and after a change.

use std::sync::Arc;

use router_api::openshift::route::Route;

/// A route before and after a change.
pub(crate) struct RouteRevision<'r> {
    pub(super) old: Option<&'r Arc<Route>>,
    pub(super) new: Option<&'r Arc<Route>>,
}

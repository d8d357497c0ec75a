//! A claim that another route holds.

use router_api::openshift::route::Route;

/// The claim belongs to another Route.
pub(crate) struct Taken<'r> {
    pub(super) message: String,
    pub(super) by: &'r Route,
}

//! A claim that another route holds.

use router_api::openshift::route::Route;

/// What a route wants is another's.
pub(crate) struct Taken<'r> {
    pub(super) message: String,
    pub(super) by: &'r Route,
}

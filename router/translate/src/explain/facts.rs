//! What an explanation is made from.

use router_api::resources::Resources;
use router_table::live::{Live, Trust};
use router_table::table::RoutingTable;

use crate::status::report::StatusReport;

/// What an explanation is made from: one translation and the objects it was made of.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// The table that traffic asks.
    pub table: &'f RoutingTable,
    /// What the objects are told.
    pub report: &'f StatusReport,
    /// The objects.
    pub resources: &'f Resources,
    /// What endpoints are verified with.
    pub trust: Trust<'f>,
    /// What a running agent knows beside; `None`: none is asked.
    pub live: Option<&'f dyn Live>,
}

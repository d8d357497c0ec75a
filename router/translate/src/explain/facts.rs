//! Inputs of an explanation.

use router_api::resources::Resources;
use router_table::live_state::{LiveState, Trust};
use router_table::table::RoutingTable;

use crate::status::report::StatusReport;

/// Inputs of an explanation: one translation and its objects.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// The routing table.
    pub table: &'f RoutingTable,
    /// The statuses.
    pub report: &'f StatusReport,
    /// The objects.
    pub resources: &'f Resources,
    /// Trusted CAs for endpoints.
    pub trust: Trust<'f>,
    /// Whether the XDP gate is attached; true also for manifests of which no agent is known.
    pub is_guarded: bool,
    /// State of a running agent; `None` without one.
    pub live: Option<&'f dyn LiveState>,
}

impl<'f> Facts<'f> {
    /// Facts without a running agent.
    pub fn of(table: &'f RoutingTable, report: &'f StatusReport, resources: &'f Resources, trust: Trust<'f>) -> Self {
        Facts { table, report, resources, trust, is_guarded: true, live: None }
    }
}

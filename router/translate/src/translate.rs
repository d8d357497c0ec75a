//! The one pure entry: objects and settings in, routing table and status report out.

use router_api::resources::Resources;
use router_table::table::RoutingTable;

use crate::advice::warnings;
use crate::engine::Engine;
use crate::settings::Settings;
use crate::status::report::StatusReport;
use crate::warning::Warning;

/// What comes out.
#[derive(Debug)]
pub struct Translation {
    /// What traffic needs; its revision is 0, whoever publishes it numbers it.
    pub table: RoutingTable,
    /// What objects are told.
    pub report: StatusReport,
    /// What is odd and has no place in a status, in order of object.
    pub warnings: Vec<Warning>,
}

/// Decides everything. The result depends on the objects and settings alone, not on order, time or history. Whoever
/// translates again and again keeps an [`Engine`].
pub fn translate(resources: &Resources, settings: &Settings) -> Translation {
    let (table, report) = Engine::new(settings.clone()).apply(resources);
    let warnings = warnings(resources, &table, &report);
    Translation { table, report, warnings }
}

#[cfg(test)]
mod tests;

//! The entry point: objects and settings in, routing table and status report out.

use router_api::resources::Resources;
use router_table::table::RoutingTable;

use crate::advice::warnings;
use crate::engine::Engine;
use crate::settings::Settings;
use crate::status::report::StatusReport;
use crate::warning::Warning;

/// Result of translation.
#[derive(Debug)]
pub struct Translation {
    /// The routing table. Its revision is 0; the publisher numbers it.
    pub table: RoutingTable,
    /// Statuses of objects.
    pub report: StatusReport,
    /// Warnings that no status reports, in order of object.
    pub warnings: Vec<Warning>,
}

/// Translates all objects. The result depends on objects and settings alone, not on order, time or history. For
/// repeated translation, use an [`Engine`].
pub fn translate(resources: &Resources, settings: &Settings) -> Translation {
    let (table, report) = Engine::new(settings.clone()).apply(resources);
    let warnings = warnings(resources, &table, &report);
    Translation { table, report, warnings }
}

#[cfg(test)]
mod tests;

//! The result of one translation, for every stage after it.

use std::sync::Arc;

use jiff::Timestamp;
use router_model::names::{RouteId, RouterName};
use router_table::table::{ResolvedRoute, RoutingTable};
use router_translate::engine::Engine;

use crate::source::{Diagnostic, SourceSnapshot};
use crate::status::StatusInput;

/// One translation, as published to later stages.
#[derive(Debug)]
pub struct Published {
    /// The routing table.
    pub table: Arc<RoutingTable>,
    /// Statuses, and the objects that they are for.
    pub status: Arc<StatusInput>,
    /// Problems of manifests.
    pub diagnostics: Arc<[Diagnostic]>,
    /// See [`SourceSnapshot::as_of`].
    pub as_of: Option<Timestamp>,
}

impl Published {
    /// Applies a snapshot to the engine.
    pub fn new(engine: &mut Engine, snapshot: &SourceSnapshot, revision: u64) -> Self {
        let (table, report) = engine.apply(&snapshot.resources);
        Published {
            table: Arc::new(RoutingTable { revision, ..table }),
            status: Arc::new(StatusInput {
                report,
                resources: Arc::clone(&snapshot.resources),
                doubts: Arc::clone(&snapshot.doubts),
            }),
            diagnostics: Arc::clone(&snapshot.diagnostics),
            as_of: snapshot.as_of,
        }
    }

    /// The resolved route of this id on a router.
    pub fn route(&self, router: &RouterName, id: &RouteId) -> Option<&Arc<ResolvedRoute>> {
        self.table.router(router)?.routes.get(id)
    }
}

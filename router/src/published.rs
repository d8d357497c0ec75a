//! The result of one translation, for every stage after it.

use std::sync::Arc;

use router_model::names::{RouteId, RouterName};
use router_table::table::{ResolvedRoute, RoutingTable};
use router_translate::engine::Engine;

use crate::source::{Diagnostic, Snapshot};
use crate::status::StatusInput;

/// One translation, as every stage after it sees it.
#[derive(Debug)]
pub struct Published {
    /// What traffic needs.
    pub table: Arc<RoutingTable>,
    /// What objects are told, and what that was made of.
    pub status: Arc<StatusInput>,
    /// What is wrong with manifests.
    pub diagnostics: Arc<[Diagnostic]>,
}

impl Published {
    /// Applies a snapshot to the engine.
    pub fn new(engine: &mut Engine, snapshot: &Snapshot, revision: u64) -> Self {
        let (table, report) = engine.apply(&snapshot.resources);
        Published {
            table: Arc::new(RoutingTable { revision, ..table }),
            status: Arc::new(StatusInput { report, resources: Arc::clone(&snapshot.resources) }),
            diagnostics: Arc::clone(&snapshot.diagnostics),
        }
    }

    /// An admitted route.
    pub fn route(&self, router: &RouterName, id: &RouteId) -> Option<&Arc<ResolvedRoute>> {
        self.table.router(router)?.routes.get(id)
    }
}

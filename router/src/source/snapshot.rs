//! What a source publishes.

use std::sync::Arc;

use jiff::Timestamp;
use router_api::resources::Resources;

use super::diagnostic::Diagnostic;

/// The objects of a source at one moment.
#[derive(Clone, Debug)]
pub struct SourceSnapshot {
    /// The objects; a rejected one with its last good version.
    pub resources: Arc<Resources>,
    /// Problems, in order of place.
    pub diagnostics: Arc<[Diagnostic]>,
    /// Lists of an API server that lack most objects and are not believed yet, as messages.
    pub doubts: Arc<[String]>,
    /// When the objects were last known to be current, if they were left by an earlier agent; `None`: they are current.
    pub as_of: Option<Timestamp>,
}

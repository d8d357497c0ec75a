//! Changes of header fields by a rule (Gateway API: HTTPHeaderFilter).

use std::sync::Arc;

/// `HTTPHeaderFilter`: `set`, then `add`, then `remove`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderModifier {
    /// `set`: these names have these values, and only them.
    pub set: Vec<(Arc<str>, Arc<str>)>,
    /// `add`: beside what is there.
    pub add: Vec<(Arc<str>, Arc<str>)>,
    /// `remove`.
    pub remove: Vec<Arc<str>>,
}

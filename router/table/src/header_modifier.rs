//! Header field changes of a rule (Gateway API: HTTPHeaderFilter).

use std::sync::Arc;

/// `HTTPHeaderFilter`: `set`, then `add`, then `remove`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderModifier {
    /// `set`: replaces all values of these names.
    pub set: Vec<(Arc<str>, Arc<str>)>,
    /// `add`: adds to existing values.
    pub add: Vec<(Arc<str>, Arc<str>)>,
    /// `remove`: removes these names.
    pub remove: Vec<Arc<str>>,
}

//! Header actions (OpenShift: `httpHeaders.actions`).

use std::sync::Arc;

use super::header_value::HeaderValue;

/// Header actions, in the configured order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderActions {
    /// Actions on requests to the backend.
    pub request: Vec<HeaderAction>,
    /// Actions on responses to the client.
    pub response: Vec<HeaderAction>,
}

impl HeaderActions {
    /// Whether there are no actions.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderAction {
    /// Header name as written; compared without regard to case.
    pub name: Arc<str>,
    /// The change.
    pub change: HeaderChange,
}

/// A change of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderChange {
    /// Replaces all values of the header by this one.
    Set(HeaderValue),
    /// Removes the header.
    Delete,
}

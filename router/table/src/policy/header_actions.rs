//! What is done to header fields (OpenShift: `httpHeaders.actions`).

use std::sync::Arc;

use super::header_value::HeaderValue;

/// What is done to headers, in order as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderActions {
    /// On the way to the backend.
    pub request: Vec<HeaderAction>,
    /// On the way to the client.
    pub response: Vec<HeaderAction>,
}

impl HeaderActions {
    /// Whether nothing is done.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderAction {
    /// Header name as written; compared without regard to case.
    pub name: Arc<str>,
    /// What is done to it.
    pub change: HeaderChange,
}

/// What is done to a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderChange {
    /// The header has this value, and only it.
    Set(HeaderValue),
    /// The header is removed.
    Delete,
}

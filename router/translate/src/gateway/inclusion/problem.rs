//! A rule that is meant to be a slot and cannot be one.

use crate::status::condition::Condition;

/// A rule that is meant to be a slot and cannot be one. Its requests are answered 500.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The condition that says so, of every row of the route: Accepted or ResolvedRefs.
    pub condition: Condition,
}

impl Problem {
    pub(super) fn unsupported(message: &str) -> Self {
        Problem { condition: Condition::new("Accepted", false, "UnsupportedValue", message) }
    }

    pub(super) fn unresolved(reason: &str, message: &str) -> Self {
        Problem { condition: Condition::new("ResolvedRefs", false, reason, message) }
    }
}

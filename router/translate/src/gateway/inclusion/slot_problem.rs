//! Error of a rule that is an invalid slot.

use crate::status::condition::Condition;

/// Error of a rule that is an invalid slot. Requests to it get 500.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotProblem {
    /// The condition in every row of the route's status: `Accepted` or `ResolvedRefs`.
    pub condition: Condition,
}

impl SlotProblem {
    pub(super) fn unsupported(message: &str) -> Self {
        SlotProblem { condition: Condition::new("Accepted", false, "UnsupportedValue", message) }
    }

    pub(super) fn unresolved(reason: &str, message: &str) -> Self {
        SlotProblem { condition: Condition::new("ResolvedRefs", false, reason, message) }
    }
}

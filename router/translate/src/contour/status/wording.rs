//! Wording shared by statuses of Contour's objects.

use router_api::contour::types::Violation;

/// Reason for a delegate whose root is invalid.
pub(crate) const ROOT_INVALID: &str = "RootInvalid";

/// Violation of a delegate whose root is invalid; it must not reveal the cause.
pub(crate) fn root_invalid() -> Violation {
    Violation::new("Orphaned", ROOT_INVALID, "the root of the delegation is invalid")
}

/// Findings about a domain, for its root's status.
#[derive(Debug, Default)]
pub(crate) struct DomainFindings {
    pub(super) fault: Option<Violation>,
    pub(super) entries: Vec<Option<String>>,
    pub(super) warnings: Vec<String>,
}

/// A message about a subdomain, prefixed with the name unless the message contains it.
pub(crate) fn about(name: &str, problem: &str) -> String {
    if problem.contains(name) { problem.to_owned() } else { format!("{name}: {problem}") }
}

/// A warning about one of the paths to an object, or about a domain.
pub(crate) fn partly(message: String) -> Violation {
    Violation::new("PathWarning", "PartiallyValid", message)
}

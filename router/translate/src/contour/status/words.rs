//! Words that statuses have in common.

use router_api::contour::types::Violation;

/// Reason of what hangs below a root that is no good itself.
pub(crate) const ROOT_INVALID: &str = "RootInvalid";

/// What the root of a domain is told.
#[derive(Debug, Default)]
pub(crate) struct Domain {
    pub(super) fault: Option<Violation>,
    pub(super) entries: Vec<Option<String>>,
    pub(super) warnings: Vec<String>,
}

/// What is wrong with a subdomain, with its name. Most problems have that already.
pub(crate) fn about(name: &str, problem: &str) -> String {
    if problem.contains(name) { problem.to_owned() } else { format!("{name}: {problem}") }
}

/// Something odd about one of the ways to an object, or about a domain.
pub(crate) fn partly(message: String) -> Violation {
    Violation::new("PathWarning", "PartiallyValid", message)
}

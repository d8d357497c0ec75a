//! Reasons and messages that the statuses of parents and children share.

use crate::gateway::inclusion::edges::ChildRejection;
use crate::status::condition::Condition;

/// Maximum number of names in one message.
pub(crate) const MAX_NAMES: usize = 10;

/// Condition `Accepted` of a rejected child.
pub(crate) fn rejected(rejection: &ChildRejection) -> Condition {
    Condition::new("Accepted", false, reason(rejection), rejection.to_string())
}

/// Reason of a rejected child's condition `Accepted`.
pub(crate) fn reason(rejection: &ChildRejection) -> &str {
    match rejection {
        ChildRejection::Kind(_) | ChildRejection::NotAllowed(_) => "NotAllowedByParent",
        ChildRejection::NoSection(_) => "NoMatchingParent",
        ChildRejection::Unsupported(reason, _) => reason,
        ChildRejection::Host(_) => "NoMatchingListenerHostname",
        ChildRejection::Filter(_) | ChildRejection::Match(_) => "Conflicted",
        ChildRejection::Depth(_) => "MaxDepthExceeded",
        ChildRejection::Cycle(_) => "InclusionCycle",
    }
}

/// Joins the first few of these texts, and counts the others.
pub(crate) fn sentence(texts: impl IntoIterator<Item = String>) -> String {
    let mut texts = texts.into_iter();
    let shown: Vec<_> = texts.by_ref().take(MAX_NAMES).collect();
    match texts.count() {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

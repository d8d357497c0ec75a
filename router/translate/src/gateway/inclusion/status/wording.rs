//! Wording that several statuses share.

use crate::gateway::inclusion::edges::Refusal;
use crate::status::condition::Condition;

/// Maximum number of names in one message.
pub(crate) const MOST_NAMES: usize = 10;

/// Condition `Accepted` of a rejected child.
pub(crate) fn refused(refusal: &Refusal) -> Condition {
    Condition::new("Accepted", false, reason(refusal), refusal.to_string())
}

/// Reason of a rejected child's condition `Accepted`.
pub(crate) fn reason(refusal: &Refusal) -> &str {
    match refusal {
        Refusal::Kind(_) | Refusal::NotAllowed(_) => "NotAllowedByParent",
        Refusal::NoSection(_) => "NoMatchingParent",
        Refusal::Unsupported(reason, _) => reason,
        Refusal::Host(_) => "NoMatchingListenerHostname",
        Refusal::Filter(_) | Refusal::Match(_) => "Conflicted",
        Refusal::Depth(_) => "MaxDepthExceeded",
        Refusal::Cycle(_) => "InclusionCycle",
    }
}

/// Joins the first few of these texts, and counts the others.
pub(crate) fn sentence(texts: impl IntoIterator<Item = String>) -> String {
    let mut texts = texts.into_iter();
    let shown: Vec<_> = texts.by_ref().take(MOST_NAMES).collect();
    match texts.count() {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

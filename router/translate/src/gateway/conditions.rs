//! Conditions in the JSON form of Gateway API statuses.

use std::borrow::Cow;

use serde::Serialize;

use crate::status::condition::Condition;

/// Maximum length of a condition's `message`, in characters (Kubernetes API, Condition). The API server rejects the
/// whole status if a message is longer.
const MAX_MESSAGE: usize = 32_768;

/// A message, truncated to the maximum length.
pub fn message(text: &str) -> Cow<'_, str> {
    const CUT: &str = " …";
    // A character has at least one byte.
    if text.len() <= MAX_MESSAGE || text.chars().count() <= MAX_MESSAGE {
        return text.into();
    }
    text.chars().take(MAX_MESSAGE - CUT.chars().count()).chain(CUT.chars()).collect()
}

/// A condition in the API's form, without `lastTransitionTime`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenCondition<'c> {
    r#type: &'static str,
    status: &'static str,
    reason: &'c str,
    message: Cow<'c, str>,
    observed_generation: i64,
}

/// The `conditions` of an object at this `metadata.generation`.
pub fn conditions<'c>(list: impl IntoIterator<Item = &'c Condition>, generation: i64) -> Vec<WrittenCondition<'c>> {
    list.into_iter().map(|one| condition(one, generation)).collect()
}

/// A condition of an object at this `metadata.generation`.
pub fn condition(condition: &Condition, generation: i64) -> WrittenCondition<'_> {
    WrittenCondition {
        r#type: condition.kind,
        status: condition.status(),
        reason: &condition.reason,
        message: message(&condition.message),
        observed_generation: generation,
    }
}

/// Errors of references, in the order found. The condition has the reason of the first one; its message lists all.
#[derive(Clone, Debug, Default)]
pub struct ReferenceErrors(Vec<(String, String)>);

impl ReferenceErrors {
    /// Adds an error, once.
    pub fn add(&mut self, reason: &str, message: impl Into<String>) {
        let error = (reason.to_owned(), message.into());
        if !self.0.contains(&error) {
            self.0.push(error);
        }
    }

    /// Condition `kind`: true with reason `reason_if_true` if there is no error.
    pub fn condition(&self, kind: &'static str, reason_if_true: &str) -> Condition {
        let messages: Vec<&str> = self.0.iter().map(|(_, message)| message.as_str()).collect();
        match self.0.first() {
            Some((reason, _)) => Condition::new(kind, false, reason.clone(), messages.join("; ")),
            None => Condition::new(kind, true, reason_if_true, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_truncated_to_the_limit_of_the_api_server() {
        for (text, length) in [("", 0), ("…", 32_767), ("…", 32_768), ("…", 32_769), ("x", 100_000)] {
            let text = text.repeat(length);
            let written = message(&text);
            assert_eq!(written.chars().count(), text.chars().count().min(32_768));
            assert_eq!(written.ends_with(" …"), text.chars().count() > 32_768);
        }
    }
}

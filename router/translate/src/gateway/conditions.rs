//! Conditions as the statuses of Gateway API write them.

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

/// Faults of references in the order found. The first reason becomes the condition's; the message lists all.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<(String, String)>);

impl Faults {
    /// Adds a fault; a repeated one is ignored.
    pub fn add(&mut self, reason: &str, message: impl Into<String>) {
        let fault = (reason.to_owned(), message.into());
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Condition `kind`: true with reason `good` if there is no fault.
    pub fn condition(&self, kind: &'static str, good: &str) -> Condition {
        let messages: Vec<&str> = self.0.iter().map(|(_, message)| message.as_str()).collect();
        match self.0.first() {
            Some((reason, _)) => Condition::new(kind, false, reason.clone(), messages.join("; ")),
            None => Condition::new(kind, true, good, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_no_longer_than_the_api_server_takes() {
        for (text, length) in [("", 0), ("…", 32_767), ("…", 32_768), ("…", 32_769), ("x", 100_000)] {
            let text = text.repeat(length);
            let written = message(&text);
            assert_eq!(written.chars().count(), text.chars().count().min(32_768));
            assert_eq!(written.ends_with(" …"), text.chars().count() > 32_768);
        }
    }
}

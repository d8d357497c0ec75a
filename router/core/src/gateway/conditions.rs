//! Conditions as Gateway API's statuses write them.

use serde_json::{Value, json};

use crate::status::Condition;

/// The `conditions` of an object, each about this `metadata.generation`.
pub fn conditions<'c>(list: impl IntoIterator<Item = &'c Condition>, generation: i64) -> Value {
    let written = |condition: &Condition| {
        json!({
            "type": condition.kind,
            "status": condition.status(),
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": generation,
        })
    };
    list.into_iter().map(written).collect()
}

/// What is wrong with references, in order of finding: the first reason is the condition's, and every message is told.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<(String, String)>);

impl Faults {
    /// Notes a fault; the same one is told once.
    pub fn add(&mut self, reason: &str, message: impl Into<String>) {
        let fault = (reason.to_owned(), message.into());
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Condition `kind`, which holds with this reason when there is no fault.
    pub fn condition(&self, kind: &'static str, good: &str) -> Condition {
        let messages: Vec<&str> = self.0.iter().map(|(_, message)| message.as_str()).collect();
        match self.0.first() {
            Some((reason, _)) => Condition::new(kind, false, reason.clone(), messages.join("; ")),
            None => Condition::new(kind, true, good, ""),
        }
    }
}

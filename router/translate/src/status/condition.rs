//! Conditions, without times.

use router_api::resources::RejectedManifest;
use serde_json::{Map, Value, json};

use crate::status::rejection::RejectReason;

/// A condition, without the time of its last transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `type`.
    pub kind: &'static str,
    /// `status`: True or False.
    pub holds: bool,
    /// `reason`; may be empty.
    pub reason: String,
    /// `message`; may be empty.
    pub message: String,
}

impl Condition {
    /// A condition.
    pub fn new(kind: &'static str, holds: bool, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Condition { kind, holds, reason: reason.into(), message: message.into() }
    }

    /// `status` as the API writes it.
    pub fn status(&self) -> &'static str {
        if self.holds { "True" } else { "False" }
    }

    /// The condition as OpenShift's APIs write it: an empty reason or message is left out.
    pub(super) fn value(&self) -> Value {
        let mut value = Map::new();
        for (name, text) in [("message", &self.message), ("reason", &self.reason)] {
            if !text.is_empty() {
                value.insert(name.to_owned(), json!(text));
            }
        }
        value.insert("status".to_owned(), json!(self.status()));
        value.insert("type".to_owned(), json!(self.kind));
        Value::Object(value)
    }
}

/// The condition of an object whose newest version is rejected and that has no accepted version.
pub fn invalid_manifest(rejected: &RejectedManifest) -> Condition {
    Condition::new("Admitted", false, RejectReason::InvalidManifest.as_str(), rejected.problem.clone())
}

/// The condition of an object whose newest version is rejected while an earlier one is in force.
pub fn last_accepted_serves(rejected: &RejectedManifest) -> Condition {
    let message = format!("{}; the last good version goes on serving", rejected.problem);
    Condition::new("ManifestValid", false, "InvalidManifest", message)
}

//! Warnings about objects that no status contains.

use router_model::field::FieldPath;
use router_model::object::ObjectRef;

/// A problem of an object that no status reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Warning {
    /// The object.
    pub object: ObjectRef,
    /// The field.
    pub path: FieldPath,
    /// The problem and the fix.
    pub message: String,
}

/// An object that this agent does not serve, or not where it claims to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The object.
    pub object: ObjectRef,
    /// The field that prevents it from being served.
    pub path: FieldPath,
    /// Hosts that it claims; `*` in front of a domain, or alone for every host. Empty if it has no host of its own.
    pub hosts: Vec<String>,
    /// Why it is not served.
    pub why: String,
    /// The fix.
    pub advice: String,
}

impl Unserved {
    /// The warning for `validate` and the log.
    pub fn warning(&self) -> Warning {
        let message = format!("{}; {}", self.why, self.advice);
        Warning { object: self.object.clone(), path: self.path.clone(), message }
    }
}

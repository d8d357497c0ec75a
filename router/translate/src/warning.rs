//! What is said of objects and stands in no status.

use router_model::field::FieldPath;
use router_model::object::ObjectRef;

/// Something odd about an object that only the objects together show.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Warning {
    /// The object.
    pub object: ObjectRef,
    /// The field.
    pub path: FieldPath,
    /// What is odd, and what to do.
    pub message: String,
}

/// An object that nobody serves, or not where it asks to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The object.
    pub object: ObjectRef,
    /// The field that keeps it from being served.
    pub path: FieldPath,
    /// Hosts that it wants; `*` in front of a domain, or for every host. Empty: it is only part of what wants some.
    pub hosts: Vec<String>,
    /// Why nobody serves it.
    pub why: String,
    /// What to write.
    pub advice: String,
}

impl Unserved {
    /// For `validate` and the log.
    pub fn warning(&self) -> Warning {
        let message = format!("{}; {}", self.why, self.advice);
        Warning { object: self.object.clone(), path: self.path.clone(), message }
    }
}

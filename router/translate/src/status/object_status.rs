//! The status of an object, with a summary for each parent.

use std::fmt;

use router_model::object::{CompactJson, ObjectRef};
use serde::Serialize;
use serde_json::Value;

/// The status of an object of another kind than Route and IngressController.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ObjectStatus {
    status: CompactJson,
    /// Summary of the status for lists of objects: one row for each router or parent.
    pub rows: Box<[ParentStatus]>,
}

impl ObjectStatus {
    /// A status and its summary; see [`ObjectStatus::status`].
    pub fn new(status: &(impl Serialize + ?Sized), rows: Vec<ParentStatus>) -> Self {
        ObjectStatus::of(CompactJson::new(status), rows)
    }

    /// As [`ObjectStatus::new`], of a status that is already packed.
    pub fn of(status: CompactJson, mut rows: Vec<ParentStatus>) -> Self {
        rows.iter_mut().for_each(|row| row.hosts.shrink_to_fit());
        ObjectStatus { status, rows: rows.into() }
    }

    /// Our part of its `status`, without transition times. Lists with entries of other controllers (`parents`,
    /// `ancestors`) contain only ours.
    pub fn status(&self) -> Value {
        self.status.value()
    }
}

impl fmt::Debug for ObjectStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStatus").field("status", &self.status()).field("rows", &self.rows).finish()
    }
}

/// Result for an object at one of its parents (Gateway API: `RouteParentStatus`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentStatus {
    /// The router, or the parent, e.g. `Gateway shop/public#web`.
    pub parent: String,
    /// Hosts that the object claims there; `*` for every host.
    pub hosts: Vec<String>,
    /// True if it is served there, at least in part.
    pub admitted: bool,
    /// Reason of the condition that decides `admitted`.
    pub reason: String,
    /// Message of the same condition.
    pub message: String,
    /// Objects that own its hosts (for operators: may name foreign namespaces).
    pub winners: Vec<ObjectRef>,
}

/// Problems that conditions anywhere in a status report, though the object may be served: type, reason and message.
pub fn faults(status: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    collect_faults(status, &mut faults);
    faults
}

pub(crate) fn collect_faults(status: &Value, faults: &mut Vec<String>) {
    // Type, and the status that reports a problem. The rows cover objects that are not accepted.
    const BAD: [(&str, &str); 6] = [
        ("Conflicted", "True"),
        ("NotSupported", "True"),
        ("OverlappingTLSConfig", "True"),
        ("PartiallyInvalid", "True"),
        ("ResolvedRefs", "False"),
        ("SupportedVersion", "False"),
    ];
    match status {
        Value::Object(members) => {
            let text = |member: &str| members.get(member).and_then(Value::as_str).unwrap_or_default();
            if BAD.contains(&(text("type"), text("status"))) {
                faults.push(format!("{}: {}: {}", text("type"), text("reason"), text("message")));
            }
            members.values().for_each(|value| collect_faults(value, faults));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_faults(value, faults)),
        _ => {}
    }
}

//! The status of an object, and what it says in short about each parent.

use router_model::object::ObjectRef;
use serde_json::Value;

/// The status of an object of another kind than Route and IngressController.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectStatus {
    /// Its `status`, without times of transitions: only what is ours. Of lists that have other controllers' entries
    /// (`parents`, `ancestors`), only our own.
    pub status: Value,
    /// For lists of objects: the same in short, for each router or parent.
    pub rows: Vec<ParentStatus>,
}

/// What becomes of an object at one of its parents (Gateway API: `RouteParentStatus`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentStatus {
    /// The router, or what the object attaches to, e.g. `Gateway shop/public#web`.
    pub parent: String,
    /// Hosts that are wanted there; `*` for every host.
    pub hosts: Vec<String>,
    /// Whether it is served there, at least in part.
    pub admitted: bool,
    /// Reason and message of the condition that says so.
    pub reason: String,
    /// See `reason`.
    pub message: String,
    /// Objects that stand in its way (for operators: may name foreign namespaces).
    pub winners: Vec<ObjectRef>,
}

/// What conditions anywhere in a status say is wrong, though the object may be served: type, reason and message.
pub fn faults(status: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    collect_faults(status, &mut faults);
    faults
}

pub(crate) fn collect_faults(status: &Value, faults: &mut Vec<String>) {
    // Type, and the status that says so. What is not accepted stands in the rows.
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

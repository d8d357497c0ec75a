//! Statuses of objects, as text.

use jiff::{Timestamp, ToSpan};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_translate::status::object_status::ParentStatus;
use router_translate::status::report::{Conflict, StatusReport};
use serde_json::Value;

/// The status of every object as it is stored, and additional information for operators.
pub fn statuses(resources: &Resources, report: &StatusReport, now: Timestamp) -> Vec<String> {
    let StatusReport { routes, ingress_controllers, routers, others, conflicts } = report;
    let mut lines = vec![format!("for routers {:?}", routers.iter().map(ToString::to_string).collect::<Vec<_>>())];
    let mut tell = |object: String, status: &Value| {
        lines.push(object);
        members(status, "  ", &mut lines);
    };
    let object = |kind, key: &ObjectKey| ObjectRef { kind, key: key.clone() };
    let controllers = ingress_controllers.keys().map(|key| object(Kind::IngressController, key));
    let routes = routes.entries().map(|(key, _)| object(Kind::Route, key));
    for object in controllers.chain(routes).chain(others.entries().map(|(object, _)| object.clone())) {
        let before = resources.manifest(object.kind, &object.key).unwrap().status();
        let merged = report.merged(&object, before.as_ref(), before.as_ref(), now).unwrap();
        let again = report.merged(&object, Some(&merged), Some(&merged), now + 1.hour()).unwrap();
        assert_eq!(again, merged, "what is written is not written again");
        tell(object.to_string(), &merged);
    }
    for (object, told) in others.entries() {
        lines.extend(told.rows.iter().map(|row| self::row(&object.to_string(), row)));
    }
    for (key, lost) in conflicts.entries() {
        for Conflict { router, host, winner, reason, message } in lost.iter() {
            lines.push(format!("Route {key} lost {host} on {router} to {winner}: {reason}: {message}"));
        }
    }
    lines
}

fn row(object: &str, row: &ParentStatus) -> String {
    let ParentStatus { parent, hosts, admitted, reason, message, winners } = row;
    let winners: Vec<String> = winners.iter().map(ToString::to_string).collect();
    let winners = if winners.is_empty() { String::new() } else { format!(", behind {}", winners.join(", ")) };
    let admitted = if *admitted { "serves" } else { "does not serve" };
    format!("{parent:?} {admitted} {object} {hosts:?}: {reason}: {message}{winners}")
}

/// Members with the same value everywhere.
const PASSED_OVER: &[&str] = &["lastTransitionTime", "supportedFeatures"];

fn members(value: &Value, indent: &str, lines: &mut Vec<String>) {
    let Value::Object(all) = value else { return };
    let is_unknown = |name: &str, value: &Value| name == "observedGeneration" && *value == 0;
    let is_told = |name: &str, value: &Value| !(PASSED_OVER.contains(&name) || is_unknown(name, value));
    for (name, value) in all.iter().filter(|(name, value)| is_told(name, value)) {
        match value {
            Value::Array(items) if name == "conditions" => {
                for item in items {
                    lines.push(format!("{indent}{}", condition(item)));
                    members(&other_members(item), &format!("{indent}  "), lines);
                }
            }
            Value::Array(items) if items.iter().any(is_deep) => {
                for item in items {
                    lines.push(format!("{indent}{name}:"));
                    members(item, &format!("{indent}  "), lines);
                }
            }
            other if is_deep(other) => {
                lines.push(format!("{indent}{name}:"));
                members(value, &format!("{indent}  "), lines);
            }
            other => lines.push(format!("{indent}{name}: {other}")),
        }
    }
}

/// True if it contains nested collections.
fn is_deep(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.values().any(|value| value.is_object() || value.is_array()))
}

/// `Type=Status Reason: message`.
fn condition(condition: &Value) -> String {
    let text = |member: &str| condition[member].as_str().unwrap_or_default();
    format!("{}={} {}: {}", text("type"), text("status"), text("reason"), text("message"))
        .trim_end_matches([':', ' '])
        .to_owned()
}

/// The other members of a condition.
fn other_members(condition: &Value) -> Value {
    let mut rest = condition.clone();
    for member in ["type", "status", "reason", "message"] {
        rest.as_object_mut().unwrap().shift_remove(member);
    }
    rest
}

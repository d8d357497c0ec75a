//! From report and previous status to the status that is to be stored (docs/openshift.md#status).

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::status::condition::Condition;
use crate::status::controller::ControllerStatus;
use crate::status::ingress::IngressEntry;

/// A status that is to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The whole `status`. When nothing has changed, the previous one.
    pub status: Value,
    /// Whether anything but times differs from the previous status.
    pub changed: bool,
}

/// Merges a Route's entries into its previous status. Entries of routers that are not `owned` stay as they are; owned
/// ones that the report does not have are removed. `lastTransitionTime` moves only when a condition's status flips.
pub fn merge_route(
    previous: Option<&Value>,
    entries: &[IngressEntry],
    owned: &dyn Fn(&str) -> bool,
    now: Timestamp,
) -> Merged {
    let before: &[Value] =
        previous.and_then(|status| status.get("ingress")).and_then(Value::as_array).map_or(&[], |v| v);
    let name_of = |entry: &Value| entry.get("routerName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut ingress = Vec::new();
    let mut placed = vec![false; entries.len()];
    for old in before {
        let name = name_of(old);
        match entries.iter().position(|entry| *entry.router_name.0 == *name) {
            // A router has one entry; further ones of its name are left over from elsewhere.
            Some(i) if placed.get(i) == Some(&false) => {
                placed[i] = true;
                ingress.push(entry_value(&entries[i], Some(old), now));
            }
            Some(_) => {}
            None if owned(&name) => {}
            None => ingress.push(old.clone()),
        }
    }
    let new = entries.iter().zip(&placed).filter(|(_, placed)| !**placed);
    ingress.extend(new.map(|(entry, _)| entry_value(entry, None, now)));

    let mut status = object_of(previous);
    if ingress.is_empty() && before.is_empty() {
        return Merged { status: Value::Object(status), changed: false };
    }
    status.insert("ingress".to_owned(), Value::Array(ingress));
    finish(previous, status)
}

/// Merges an IngressController's status into its previous one. Members and conditions of others stay.
pub fn merge_controller(previous: Option<&Value>, report: &ControllerStatus, now: Timestamp) -> Merged {
    const OURS: [&str; 4] = ["Admitted", "Available", "Degraded", "ManifestValid"];
    let before = conditions_of(previous);
    let mut conditions = foreign(before, &OURS);
    conditions.extend(report.conditions.iter().map(|condition| condition_value(condition, before, now)));
    let mut status = object_of(previous);
    for (name, value) in report.members() {
        status.insert(name.to_owned(), value);
    }
    status.insert("conditions".to_owned(), Value::Array(conditions));
    finish(previous, status)
}

/// Whether two statuses say the same, whenever it was.
pub fn same_but_times(a: &Value, b: &Value) -> bool {
    without_times(a) == without_times(b)
}

pub(super) fn finish(previous: Option<&Value>, status: Map<String, Value>) -> Merged {
    let status = Value::Object(status);
    match previous {
        Some(previous) if same_but_times(previous, &status) => Merged { status: previous.clone(), changed: false },
        _ => Merged { status, changed: true },
    }
}

pub(super) fn object_of(status: Option<&Value>) -> Map<String, Value> {
    status.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn conditions_of(owner: Option<&Value>) -> &[Value] {
    owner.and_then(|owner| owner.get("conditions")).and_then(Value::as_array).map_or(&[], |v| v)
}

/// Conditions of other types than ours.
fn foreign(conditions: &[Value], ours: &[&str]) -> Vec<Value> {
    let is_ours = |old: &Value| old.get("type").and_then(Value::as_str).is_some_and(|kind| ours.contains(&kind));
    conditions.iter().filter(|old| !is_ours(old)).cloned().collect()
}

fn entry_value(entry: &IngressEntry, previous: Option<&Value>, now: Timestamp) -> Value {
    // Types that a router writes; others that somebody put into its entry stay.
    const OURS: [&str; 3] = ["Admitted", "ManifestValid", "UnservableInFutureVersions"];
    let before = conditions_of(previous);
    let mut conditions = foreign(before, &OURS);
    conditions.extend(entry.conditions.iter().map(|c| condition_value(c, before, now)));
    json!({
        "conditions": conditions,
        "host": entry.host,
        "routerCanonicalHostname": &*entry.router_canonical_hostname,
        "routerName": &*entry.router_name.0,
        "wildcardPolicy": entry.wildcard_policy,
    })
}

fn condition_value(condition: &Condition, before: &[Value], now: Timestamp) -> Value {
    let since = since(condition.kind, condition.status(), before, now);
    let mut value = Map::new();
    value.insert("lastTransitionTime".to_owned(), since);
    for (name, text) in [("message", &condition.message), ("reason", &condition.reason)] {
        if !text.is_empty() {
            value.insert(name.to_owned(), json!(text));
        }
    }
    value.insert("status".to_owned(), json!(condition.status()));
    value.insert("type".to_owned(), json!(condition.kind));
    Value::Object(value)
}

/// When a condition came to have this status: then, if it had it before, or now.
pub(super) fn since(kind: &str, status: &str, before: &[Value], now: Timestamp) -> Value {
    let is = |old: &Value, member: &str, text: &str| old.get(member).and_then(Value::as_str) == Some(text);
    before
        .iter()
        .find(|old| is(old, "type", kind) && is(old, "status", status))
        .and_then(|old| old.get("lastTransitionTime"))
        .filter(|time| time.is_string())
        .cloned()
        .unwrap_or_else(|| json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()))
}

fn without_times(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(name, _)| *name != "lastTransitionTime")
                .map(|(name, value)| (name.clone(), without_times(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_times).collect()),
        other => other.clone(),
    }
}

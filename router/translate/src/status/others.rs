//! The status of an object of another kind than Route and IngressController: what is ours in it is replaced, what is
//! others' stays (Gateway API: a controller writes the entries and conditions that are its own).

use jiff::Timestamp;
use router_api::gateway_api::types::CONTROLLER_NAME;
use serde_json::{Map, Value};

use super::merge::{finish, object_of, since};
use crate::status::merge::Merged;

/// Lists whose entries belong to the controller that each of them names.
const SHARED: [&str; 2] = ["parents", "ancestors"];
/// Conditions that are ours, in any of these kinds. Those of other types are others'.
const OURS: [&str; 14] = [
    "Accepted",
    "Attached",
    "Conflicted",
    "InsecureFrontendValidationMode",
    "ManifestValid",
    "NotSupported",
    "OverlappingTLSConfig",
    "PartiallyInvalid",
    "Programmed",
    "Ready",
    "ResolvedRefs",
    "Scheduled",
    "SupportedVersion",
    "Valid",
];
/// What tells entries of a list apart, in any of these kinds.
const KEYS: &[&str] = &[
    "parentRef",
    "routeRef",
    "ancestorRef",
    "controllerName",
    "name",
    "sectionName",
    "path",
    "subdomain",
    "root",
    "type",
];

/// Merges what an object is told into what its status is. `current` has what is others', `written` what was written by
/// us last, for the times of conditions that still hold; where one place has both, they are the same. Of a condition
/// `lastTransitionTime` moves only when its status flips.
pub fn merge_other(current: Option<&Value>, written: Option<&Value>, told: &Value, now: Timestamp) -> Merged {
    let mut status = object_of(current);
    for list in SHARED {
        let entries: Vec<Value> = items(current, list).filter(|entry| is_foreign(entry)).cloned().collect();
        replace(&mut status, list, entries);
    }
    let conditions = foreign(status.get("conditions"));
    replace(&mut status, "conditions", conditions);
    for (name, ours) in told.as_object().into_iter().flatten() {
        let of = |value: Option<&'_ Value>| value.and_then(|value| value.get(name)).cloned();
        let ours = timed(name, ours, of(current).as_ref(), of(written).as_ref(), now);
        match (status.get_mut(name), ours) {
            (Some(Value::Array(foreign)), Value::Array(ours)) if SHARED.contains(&&**name) => foreign.extend(ours),
            (_, ours) => drop(status.insert(name.clone(), ours)),
        }
    }
    finish(written, status)
}

/// What is left of a list; nothing, when nothing is.
fn replace(status: &mut Map<String, Value>, list: &str, left: Vec<Value>) {
    if left.is_empty() {
        status.shift_remove(list);
    } else {
        status.insert(list.to_owned(), Value::Array(left));
    }
}

/// `ours` with times, and with the conditions that others have put in.
fn timed(name: &str, ours: &Value, current: Option<&Value>, written: Option<&Value>, now: Timestamp) -> Value {
    match ours {
        Value::Array(conditions) if name == "conditions" => {
            let merged = conditions.iter().map(|condition| with_time(condition, written, now));
            Value::Array(foreign(current).into_iter().chain(merged).collect())
        }
        Value::Array(entries) => {
            let entry = |ours: &Value| timed("", ours, find(current, ours), find(written, ours), now);
            Value::Array(entries.iter().map(entry).collect())
        }
        Value::Object(members) => {
            let member = |(name, ours): (&String, &Value)| {
                let of = |value: Option<&'_ Value>| value.and_then(|value| value.get(name)).cloned();
                (name.clone(), timed(name, ours, of(current).as_ref(), of(written).as_ref(), now))
            };
            Value::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}

fn with_time(condition: &Value, before: Option<&Value>, now: Timestamp) -> Value {
    let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
    let before = before.and_then(Value::as_array).map_or(&[][..], |conditions| conditions);
    let mut timed = Map::new();
    timed.insert("lastTransitionTime".to_owned(), since(text("type"), text("status"), before, now));
    timed.extend(condition.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(timed)
}

/// The entry of a list that is about the same thing.
fn find<'v>(list: Option<&'v Value>, entry: &Value) -> Option<&'v Value> {
    let is_same = |other: &&Value| entry.is_object() && KEYS.iter().all(|key| other.get(key) == entry.get(key));
    list?.as_array()?.iter().find(is_same)
}

fn is_foreign(entry: &Value) -> bool {
    entry.get("controllerName").and_then(Value::as_str).is_some_and(|name| name != CONTROLLER_NAME)
}

/// Conditions that others have put in.
fn foreign(conditions: Option<&Value>) -> Vec<Value> {
    let is_ours =
        |condition: &&Value| condition.get("type").and_then(Value::as_str).is_some_and(|kind| OURS.contains(&kind));
    let conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    conditions.filter(|condition| !is_ours(condition)).cloned().collect()
}

fn items<'v>(status: Option<&'v Value>, list: &str) -> impl Iterator<Item = &'v Value> {
    status.and_then(|status| status.get(list)).and_then(Value::as_array).into_iter().flatten()
}

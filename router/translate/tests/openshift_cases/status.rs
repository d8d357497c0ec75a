//! Writing and clearing `status.ingress[]`.

use std::sync::Arc;

use jiff::Timestamp;
use router_model::kind::Kind;
use router_model::names::RouterName;
use router_model::object::{ObjectKey, ObjectRef};
use router_translate::status::condition::Condition;
use router_translate::status::ingress::{Ingress, IngressEntry};
use router_translate::status::merge::same_but_times;
use router_translate::status::report::StatusReport;
use serde_json::{Value, json};

use crate::differ;
use crate::world::{World, manifest};

const THEN: &str = "2023-01-01T00:00:00Z";

/// Given a status and a condition to record or remove: the new status, and whether it is written.
pub fn write(case: &Value, _: &[Value]) -> Vec<String> {
    let (objects, expect) = (&case["objects"], &case["expect"]);
    if objects.get("api_answer").is_some() {
        return vec!["the engine writes nothing".to_owned()];
    }
    let policy = &case["policy"];
    let before = filled(&objects["before"]["status"], policy);
    let name = policy["routerName"].as_str().unwrap();
    let host = objects["before"]["host"].as_str().unwrap();
    let conditions = match objects.get("remove_type") {
        Some(kind) => own_conditions(&before, name, kind),
        None => Some(vec![condition(objects)]),
    };
    let entries: Vec<IngressEntry> = conditions
        .into_iter()
        .map(|conditions| IngressEntry {
            host: host.to_owned(),
            router_name: RouterName(name.into()),
            router_canonical_hostname: Arc::from(policy["routerCanonicalHostname"].as_str().unwrap_or_else(|| {
                own(&before, name).and_then(|entry| entry["routerCanonicalHostname"].as_str()).unwrap_or_default()
            })),
            wildcard_policy: "None",
            conditions: conditions.into(),
        })
        .collect();
    let now: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
    let merged = merged(&before, name, entries, now);
    let mut found = Vec::new();
    let changed = expect["changed"].as_bool().or(expect["status_writes"].as_u64().map(|writes| writes > 0));
    found.extend(differ("changed", Some(!same_but_times(&before, &merged)), changed));
    if let Some(after) = expect.get("after") {
        let after = filled(&after["status"], policy);
        found.extend(differ("status", without_times(&merged), without_times(&after)));
    }
    found
}

/// The status of a Route with these entries of one router.
pub fn merged(before: &Value, router: &str, entries: Vec<IngressEntry>, now: Timestamp) -> Value {
    let object = ObjectRef { kind: Kind::Route, key: ObjectKey::new("ns", "name") };
    let report = StatusReport {
        routes: [(object.key.clone(), Ingress::new(entries))].into_iter().collect(),
        routers: [RouterName(router.into())].into(),
        ..StatusReport::default()
    };
    report.merged(&object, Some(before), Some(before), now).unwrap()
}

/// Two observations of the router's own entry: has another writer changed it in between? Sluice does not count such
/// changes; it makes the same comparison before each write (decision 3), so the test compares which changes count.
pub fn contention(case: &Value, _: &[Value]) -> Vec<String> {
    let (objects, expect) = (&case["objects"], &case["expect"]);
    assert_eq!(expect["contended_after_first"], false, "one observation is compared with nothing");
    let is_changed = !same_but_times(&objects["first_observed"], &objects["second_observed"]);
    differ("changed by another", Some(is_changed), expect["contended_after_second"].as_bool())
}

/// The condition to record: given as such, by an event of admission, or that a future version would reject.
fn condition(objects: &Value) -> Condition {
    if objects["set"] == true {
        let message = "next version of OpenShift does not support SHA1";
        return Condition::new("UnservableInFutureVersions", true, "UpgradeRouteValidationFailed", message);
    }
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    match (&objects["condition"], &objects["event"]) {
        (Value::Object(_), _) => {
            let given = &objects["condition"];
            Condition::new("Admitted", given["status"] == "True", text(given, "reason"), text(given, "message"))
        }
        (_, Value::String(_)) => Condition::new("Admitted", true, "", ""),
        (_, event) => {
            let reject = &event["reject"];
            Condition::new("Admitted", false, text(reject, "reason"), text(reject, "message"))
        }
    }
}

fn own<'s>(status: &'s Value, name: &str) -> Option<&'s Value> {
    status["ingress"].as_array().unwrap().iter().find(|entry| entry["routerName"] == name)
}

/// The Admitted condition of the router's own entry, the only one left once `removed` is gone.
fn own_conditions(status: &Value, name: &str, removed: &Value) -> Option<Vec<Condition>> {
    let entry = own(status, name)?;
    let conditions = entry["conditions"].as_array().unwrap().iter().filter(|condition| condition["type"] != *removed);
    Some(conditions.map(|given| condition(&json!({ "condition": given }))).collect())
}

/// Adds members that upstream's objects leave out and that Sluice always writes.
fn filled(status: &Value, policy: &Value) -> Value {
    let mut status = status.clone();
    for entry in status["ingress"].as_array_mut().unwrap() {
        if entry["routerName"] == policy["routerName"] {
            for (member, value) in [("wildcardPolicy", json!("None")), ("routerCanonicalHostname", json!(""))] {
                if entry.get(member).is_none() {
                    entry[member] = value;
                }
            }
        }
        for condition in entry["conditions"].as_array_mut().unwrap() {
            condition["lastTransitionTime"] = json!(THEN);
        }
    }
    status
}

fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    for entry in status["ingress"].as_array_mut().into_iter().flatten() {
        for condition in entry["conditions"].as_array_mut().into_iter().flatten() {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
    }
    status
}

/// A route that leaves its shard: whether its entry is removed.
pub fn clearing(case: &Value, _: &[Value]) -> Vec<String> {
    assert_eq!(case["name"], "route-label-removed");
    let mut world = World::new(&json!({ "routeSelector": { "matchLabels": { "shard": "s" } } }));
    world.insert(manifest(&json!({ "host": "h.test", "labels": { "shard": "s" } })));
    assert!(world.selects("ns/name"));
    world.insert(manifest(&json!({ "host": "h.test" })));
    differ("entry removed", Some(!world.selects("ns/name")), case["expect"]["ingress_entry_removed"].as_bool())
}

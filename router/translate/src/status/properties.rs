//! Merging statuses of all shapes: entries of other controllers do not change, and a second merge changes nothing.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::status::merge::{Ownership, merge, same_but_times};

const LISTS: [&str; 2] = ["parents", "ancestors"];
const OWNED: Ownership<'_> =
    Ownership { lists: &LISTS, owner: "controllerName", is_ours: &|name| name == "ours", conditions: &["A", "B"] };

/// A time that no merge sets.
const THEN: &str = "2020-02-02T02:02:02Z";
const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);
const LATER: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn condition(kinds: &'static [&'static str], timed: bool) -> impl Strategy<Value = Value> {
    (prop::sample::select(kinds), prop::sample::select(&["True", "False"][..]), 0..3_u8).prop_map(
        move |(kind, status, reason)| {
            let mut condition = json!({ "type": kind, "status": status, "reason": format!("R{reason}") });
            if timed {
                condition["lastTransitionTime"] = json!(THEN);
            }
            condition
        },
    )
}

fn conditions(kinds: &'static [&'static str], timed: bool) -> impl Strategy<Value = Vec<Value>> {
    let is_new = |seen: &[Value], one: &Value| seen.iter().all(|other| other["type"] != one["type"]);
    vec(condition(kinds, timed), 0..4).prop_map(move |all| {
        all.into_iter().fold(Vec::new(), |mut some, one| {
            if is_new(&some, &one) {
                some.push(one);
            }
            some
        })
    })
}

/// An entry of a shared list; keys may repeat.
fn entry(owners: &'static [&'static str], kinds: &'static [&'static str], timed: bool) -> impl Strategy<Value = Value> {
    (prop::sample::select(owners), 0..3_u8, conditions(kinds, timed), 0..2_u8).prop_map(|(owner, name, conditions, extra)| {
        json!({ "parentRef": { "name": name }, "controllerName": owner, "conditions": conditions, "extra": extra })
    })
}

fn status(
    owners: &'static [&'static str],
    kinds: &'static [&'static str],
    timed: bool,
) -> impl Strategy<Value = Value> {
    let list = || prop::option::of(vec(entry(owners, kinds, timed), 0..4));
    let listener = (0..4_u8, conditions(kinds, timed))
        .prop_map(|(name, conditions)| json!({ "name": name, "conditions": conditions }));
    let parts = (list(), list(), prop::option::of(conditions(kinds, timed)), vec(listener, 0..3), any::<bool>());
    parts.prop_map(|(parents, ancestors, conditions, listeners, custom)| {
        let mut status = json!({ "listeners": listeners });
        for (name, list) in [("parents", parents), ("ancestors", ancestors), ("conditions", conditions)] {
            if let Some(list) = list {
                status[name] = json!(list);
            }
        }
        if custom {
            status["custom"] = json!(7);
        }
        status
    })
}

/// The status of a controller: only its own entries, with distinct keys and without times.
fn ours() -> impl Strategy<Value = Value> {
    status(&["ours"], &["A", "B"], false).prop_map(|mut status| {
        for list in LISTS.into_iter().chain(["listeners"]) {
            let mut seen: Vec<Value> = Vec::new();
            if let Some(entries) = status.get_mut(list).and_then(Value::as_array_mut) {
                entries.retain(|entry| {
                    let is_new = !seen.contains(&json!([entry["parentRef"], entry["name"]]));
                    seen.push(json!([entry["parentRef"], entry["name"]]));
                    is_new
                });
            }
        }
        status
    })
}

fn current() -> impl Strategy<Value = Value> {
    status(&["ours", "theirs", "another"], &["A", "B", "X", "Y"], true)
}

fn items<'v>(status: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    status.get(list).and_then(Value::as_array).into_iter().flatten()
}

fn is_ours(list: &str, entry: &Value) -> bool {
    match list {
        "conditions" => ["A", "B"].contains(&entry["type"].as_str().unwrap()),
        _ => list == "listeners" || entry["controllerName"] == "ours",
    }
}

fn others<'v>(status: &'v Value, list: &str) -> Vec<&'v Value> {
    items(status, list).filter(|entry| !is_ours(list, entry)).collect()
}

/// The status itself and our entries, each with its list and keys: everything that may have conditions of ours.
fn holders(status: &Value) -> Vec<(String, &Value)> {
    let entries = LISTS.into_iter().chain(["listeners"]).flat_map(|list| {
        let own = items(status, list).filter(move |entry| is_ours(list, entry));
        own.map(move |entry| (format!("{list} {}{}", entry["parentRef"], entry["name"]), entry))
    });
    entries.chain([(String::new(), status)]).collect()
}

/// Status and time of each of our conditions, by place.
fn transitions(status: &Value) -> BTreeMap<String, (&Value, &Value)> {
    let conditions = holders(status).into_iter().flat_map(|(place, holder)| {
        let own = items(holder, "conditions").filter(|condition| is_ours("conditions", condition));
        own.map(move |it| (format!("{place} {}", it["type"]), (&it["status"], &it["lastTransitionTime"])))
    });
    conditions.collect()
}

/// Our part of a status, without times.
fn own_part(status: &Value) -> Value {
    match status {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| *name != "lastTransitionTime" && *name != "custom");
            kept.map(|(name, value)| (name.clone(), own_part_of(name, value)))
                .filter(|(_, value)| *value != json!([]))
                .collect()
        }
        Value::Array(entries) => entries.iter().map(own_part).collect(),
        other => other.clone(),
    }
}

fn own_part_of(name: &str, value: &Value) -> Value {
    match value {
        Value::Array(entries) if name == "conditions" || LISTS.contains(&name) => {
            let mut own: Vec<Value> = entries.iter().filter(|entry| is_ours(name, entry)).map(own_part).collect();
            own.sort_by_key(Value::to_string);
            own.into()
        }
        other => own_part(other),
    }
}

proptest! {
    #[test]
    fn entries_of_others_do_not_change_and_ours_are_replaced(ours in ours(), current in current()) {
        let merged = merge(&ours, &OWNED, Some(&current), None, NOW);
        for list in LISTS.into_iter().chain(["conditions"]) {
            prop_assert_eq!(others(&merged, list), others(&current, list), "{}", list);
        }
        prop_assert_eq!(merged.get("custom"), current.get("custom").or(ours.get("custom")));
        let before = holders(&current);
        for (place, holder) in holders(&merged) {
            // If several entries share a key, only one is merged.
            if let [(_, before)] = before.iter().filter(|(other, _)| *other == place).collect::<Vec<_>>()[..] {
                prop_assert_eq!(others(holder, "conditions"), others(before, "conditions"), "{}", place);
            }
        }
        prop_assert_eq!(own_part(&merged), own_part(&ours));
    }

    #[test]
    fn a_second_merge_changes_nothing(ours in ours(), current in current()) {
        let first = merge(&ours, &OWNED, Some(&current), None, NOW);
        // A folder's manifest does not change; a cluster's object has the status that was written.
        for current in [&current, &first] {
            prop_assert_eq!(&merge(&ours, &OWNED, Some(current), Some(&first), LATER), &first);
        }
    }

    #[test]
    fn a_time_changes_only_with_its_status(one in ours(), other in ours(), current in current()) {
        let first = merge(&one, &OWNED, Some(&current), None, NOW);
        let second = merge(&other, &OWNED, Some(&current), Some(&first), LATER);
        let (before, after) = (transitions(&first), transitions(&second));
        prop_assert!(before.values().all(|(_, time)| **time == NOW.to_string()));
        for (place, (status, time)) in after {
            let is_kept = before.get(&place).is_some_and(|(before, _)| *before == status);
            prop_assert_eq!(time, &json!(if is_kept { NOW } else { LATER }.to_string()), "{}", place);
        }
        prop_assert_eq!(same_but_times(&first, &second), without_times(&first) == without_times(&second));
        prop_assert!(same_but_times(&second, &merge(&other, &OWNED, Some(&current), None, NOW)));
    }
}

fn without_times(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| *name != "lastTransitionTime");
            kept.map(|(name, value)| (name.clone(), without_times(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_times).collect(),
        other => other.clone(),
    }
}

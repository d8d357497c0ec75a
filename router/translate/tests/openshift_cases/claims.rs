//! Claims on hosts: index, activation, unique hosts, wildcards, the whole chain.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::differ;
use crate::world::{Verdict, World, id_of, manifest};

fn texts(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// `{host: [uid]}` of an expectation.
fn by_host(value: &Value) -> BTreeMap<String, BTreeSet<String>> {
    value.as_object().unwrap().iter().map(|(host, uids)| (host.clone(), texts(uids))).collect()
}

/// Effect of the last step: uids (with their paths) that became served, and those that are not served.
fn change(before: &World, after: &World) -> (BTreeSet<String>, BTreeSet<String>) {
    let flat = |world: &World| -> BTreeSet<(String, String)> { world.active().into_values().flatten().collect() };
    let refused = |world: &World| -> BTreeSet<String> { world.inactive().into_values().flatten().collect() };
    let activated = flat(after).difference(&flat(before)).map(|(uid, _)| uid.clone()).collect();
    let was_refused = refused(before);
    let lost = refused(after).into_iter().filter(|uid| !was_refused.contains(uid));
    (activated, lost.collect())
}

/// Steps; the expectation is for the last one and the final state, in every mode with the same result.
pub fn host_index(case: &Value, _: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for ownership in texts(&case["policy"]["namespaceOwnership_same_result"]) {
        let policy = json!({ "namespaceOwnership": ownership });
        let (mut before, mut world) = (World::new(&policy), World::new(&policy));
        let steps = case["steps"].as_array().unwrap();
        for (i, step) in steps.iter().enumerate() {
            if i + 1 < steps.len() {
                before.step(&policy, step);
            }
            world.step(&policy, step);
        }
        let expect = &case["expect"];
        let active: BTreeMap<String, BTreeSet<String>> = world
            .active()
            .into_iter()
            .map(|(host, routes)| (host, routes.into_iter().map(|(uid, _)| uid).collect()))
            .collect();
        let (activated, displaced) = change(&before, &world);
        found.extend(differ(format!("{ownership}: active"), active, by_host(&expect["active"])));
        found.extend(differ(format!("{ownership}: inactive"), world.inactive(), by_host(&expect["inactive"])));
        found.extend(differ(format!("{ownership}: activated"), activated, texts(&expect["activated"])));
        found.extend(differ(format!("{ownership}: displaced"), displaced, texts(&expect["displaced"])));
    }
    found
}

/// Active routes and candidates: the routes that are active in the end.
pub fn host_activation(case: &Value, _: &[Value]) -> Vec<String> {
    let list = |name: &str| case["objects"][name].as_array().unwrap().clone();
    let (mut before, mut world) = (World::new(&case["policy"]), World::new(&case["policy"]));
    for flat in list("active") {
        before.insert(manifest(&flat));
        world.insert(manifest(&flat));
    }
    for flat in list("candidates") {
        world.insert(manifest(&flat));
    }
    let (mut active, mut inactive) = (BTreeSet::new(), BTreeSet::new());
    for flat in list("active").iter().chain(&list("candidates")) {
        let id = id_of(flat);
        if world.verdict(&id) == Verdict::Admitted {
            active.insert(id)
        } else {
            inactive.insert(id)
        };
    }
    let (activated, displaced) = change(&before, &world);
    let expect = &case["expect"];
    let mut found = differ("active", active, texts(&expect["active"]));
    found.extend(differ("inactive", inactive, texts(&expect["inactive"])));
    found.extend(differ("activated", activated, texts(&expect["activated_uids"])));
    found.extend(differ("displaced", displaced, texts(&expect["displaced_uids"])));
    found
}

/// Steps, each with what is exposed after it.
pub fn unique_host(case: &Value, _: &[Value]) -> Vec<String> {
    let mut world = World::new(&case["policy"]);
    let mut found = Vec::new();
    for (i, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        world.step(&case["policy"], step);
        let exposed: BTreeSet<String> = world.exposed().into_keys().collect();
        let Some(expect) = step.get("expect") else { continue };
        found.extend(differ(format!("step {i}: exposed"), exposed.clone(), texts(&expect["exposed"])));
        if let Some(hosts) = expect["hosts_tracked"].as_u64() {
            found.extend(differ(format!("step {i}: hosts"), world.active().len() as u64, hosts));
        }
    }
    let exposed: BTreeSet<String> = world.exposed().into_keys().collect();
    found.extend(differ("in the end", exposed, texts(&case["expect"]["final_exposed"])));
    found
}

/// One route, or steps with the verdict on each step's route.
pub fn host_admitter(case: &Value, _: &[Value]) -> Vec<String> {
    let policy = &case["policy"];
    let mut world = World::new(policy);
    if let Some([flat]) = case["objects"].as_array().map(Vec::as_slice) {
        world.insert(manifest(flat));
        return admitted("", &world.verdict(&id_of(flat)), &case["expect"]);
    }
    let mut found = Vec::new();
    for (i, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        world.step(policy, step);
        let (Some(expect), Some(flat)) = (step.get("expect"), step.get("route")) else { continue };
        let verdict = world.verdict(&id_of(flat));
        if let Some(reaches) = expect["reaches_next_stage"].as_bool() {
            found.extend(differ(format!("step {i}: {flat}"), verdict == Verdict::Admitted, reaches));
        } else if step["op"] == "delete" {
            found.extend(differ(format!("step {i}"), &verdict, &Verdict::Unknown));
            if expect["all_claims_empty"] == true {
                found.extend(differ(format!("step {i}: claims"), world.active().len(), 0));
            }
        } else {
            found.extend(admitted(&format!("step {i}: "), &verdict, expect));
        }
    }
    found
}

/// Compares a verdict with `{admitted, reason, message}`.
fn admitted(place: &str, verdict: &Verdict, expect: &Value) -> Vec<String> {
    let mut found = differ(format!("{place}admitted"), *verdict == Verdict::Admitted, expect["admitted"] == true);
    if let Verdict::Refused(reason, message) = verdict {
        let text = |name: &str, text: &str| {
            let wanted = expect[name].as_str().unwrap_or(text);
            differ(format!("{place}{name}"), text, wanted)
        };
        found.extend(text("reason", reason));
        found.extend(text("message", message));
    }
    found
}

/// Steps, each with the status of every route and the exposed ones. Where the original depends on the order of events,
/// the case contains the result of a replay in order of age.
pub fn admission_chain(case: &Value, _: &[Value]) -> Vec<String> {
    let mut world = World::new(&case["policy"]);
    let mut found = Vec::new();
    for (i, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        world.step(&case["policy"], step);
        let expect = step.get("expect_age_order_replay").unwrap_or(&step["expect"]);
        for (id, status) in expect["status"].as_object().unwrap() {
            found.extend(admitted(&format!("step {i}: {id}: "), &world.verdict(id), status));
        }
        let exposed: BTreeMap<String, String> = expect["exposed"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(id, text)| (id.clone(), text.as_str().unwrap().to_owned()))
            .collect();
        found.extend(differ(format!("step {i}: exposed"), world.exposed(), exposed));
    }
    found
}

/// The subject next to each other route of the suite: it is rejected exactly if the other one is a blocker.
pub fn wildcard_conflicts(case: &Value, suite: &[Value]) -> Vec<String> {
    let mut universe: BTreeMap<String, &Value> = BTreeMap::new();
    for object in suite.iter().flat_map(|case| case["objects"].as_array().unwrap()) {
        universe.insert(id_of(object), object);
    }
    let Some(subject) = case["expect"]["subject"].as_str() else { return all_coexist(case) };
    let blockers = texts(&case["expect"]["derived_full_chain_rejected_if_any_admitted_first"]);
    let mut alone = World::new(&case["policy"]);
    alone.insert(manifest(universe[subject]));
    if let Verdict::Refused(reason, message) = alone.verdict(subject) {
        return vec![format!("{subject} is refused by itself: {reason}: {message}")];
    }
    let mut found = Vec::new();
    for (other, flat) in universe.iter().filter(|(id, _)| *id != subject) {
        let mut world = World::new(&case["policy"]);
        world.insert(manifest(universe[subject]));
        world.insert(manifest(flat));
        let refused = world.verdict(subject) != Verdict::Admitted;
        found.extend(differ(format!("{subject} beside {other} is refused"), refused, blockers.contains(other)));
    }
    found
}

fn all_coexist(case: &Value) -> Vec<String> {
    let mut world = World::new(&case["policy"]);
    let objects = case["objects"].as_array().unwrap();
    objects.iter().rev().for_each(|flat| world.insert(manifest(flat)));
    let refused = objects.iter().map(id_of).filter(|id| world.verdict(id) != Verdict::Admitted);
    refused.map(|id| format!("{id} is refused")).collect()
}

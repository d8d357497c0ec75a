//! Merging of statuses: times, entries of other controllers, and equality.

use std::sync::Arc;

use jiff::Timestamp;
use router_api::gateway_api::types::CONTROLLER_NAME;
use router_model::kind::Kind;
use router_model::names::RouterName;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::persistent::Identity;
use serde_json::{Value, json};

use crate::status::condition::Condition;
use crate::status::controller::ControllerStatus;
use crate::status::ingress::{Ingress, IngressEntry, RouterIdentity};
use crate::status::object_status::{ObjectStatus, ParentStatus};
use crate::status::report::StatusReport;

fn entry(router: &str, host: &str, holds: bool) -> IngressEntry {
    let reason = if holds { "" } else { "HostAlreadyClaimed" };
    IngressEntry {
        host: host.to_owned(),
        router_name: RouterName(router.into()),
        router_canonical_hostname: format!("router-{router}.{router}.test").into(),
        wildcard_policy: "None",
        conditions: [Condition::new("Admitted", holds, reason, reason)].into(),
    }
}

fn time(day: u8) -> Timestamp {
    format!("2024-01-{day:02}T00:00:00.9Z").parse().unwrap()
}

/// The status of a Route for which our routers, `ours` and `gone`, report this.
fn merge_route(before: Option<&Value>, entries: &[IngressEntry], day: u8) -> Value {
    let object = ObjectRef { kind: Kind::Route, key: ObjectKey::new("shop", "cart") };
    let report = StatusReport {
        routes: [(object.key.clone(), Ingress::new(entries.to_vec()))].into_iter().collect(),
        routers: ["ours", "gone"].into_iter().map(|name| RouterName(name.into())).collect(),
        ..StatusReport::default()
    };
    report.merged(&object, before, before, time(day)).unwrap()
}

fn merge_controller(before: &Value, status: &ControllerStatus) -> Value {
    let object = ObjectRef { kind: Kind::IngressController, key: ObjectKey::new("operator", "default") };
    let ingress_controllers = [(object.key.clone(), status.clone())].into();
    let report = StatusReport { ingress_controllers, ..StatusReport::default() };
    report.merged(&object, Some(before), Some(before), time(1)).unwrap()
}

fn merge_other(current: &Value, written: Option<&Value>, status: &Value, day: u8) -> Value {
    let object = ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("shop", "cart") };
    let status = Arc::new(ObjectStatus::new(status, Vec::new()));
    let others = [(object.clone(), status)].into_iter().collect();
    StatusReport { others, ..StatusReport::default() }.merged(&object, Some(current), written, time(day)).unwrap()
}

#[test]
fn an_entry_has_the_apis_form_and_entries_of_other_routers_stay() {
    let foreign = json!({ "host": "x", "routerName": "theirs", "conditions": [{ "type": "Admitted", "status": "True" }], "extra": 1 });
    let previous = json!({ "ingress": [foreign] });
    let merged = merge_route(Some(&previous), &[entry("ours", "h.test", true)], 1);
    let expected = json!({ "ingress": [foreign, {
        "conditions": [{ "lastTransitionTime": "2024-01-01T00:00:00Z", "status": "True", "type": "Admitted" }],
        "host": "h.test",
        "routerCanonicalHostname": "router-ours.ours.test",
        "routerName": "ours",
        "wildcardPolicy": "None",
    }] });
    assert_eq!(merged, expected);
    assert_eq!(merge_route(Some(&merged), &[entry("ours", "h.test", true)], 2), merged);
}

#[test]
fn conditions_of_others_in_our_entry_stay() {
    let mut before = merge_route(None, &[entry("ours", "h.test", true)], 1);
    let theirs = json!({ "type": "CertificateReady", "status": "True" });
    let outdated = json!({ "type": "UnservableInFutureVersions", "status": "True" });
    before["ingress"][0]["conditions"].as_array_mut().unwrap().extend([theirs.clone(), outdated]);
    let merged = merge_route(Some(&before), &[entry("ours", "h.test", false)], 2);
    let conditions = merged["ingress"][0]["conditions"].as_array().unwrap();
    assert_eq!((conditions.len(), &conditions[1]), (2, &theirs));
    assert_eq!(conditions[0]["status"], "False");
}

#[test]
fn the_time_moves_only_when_the_status_flips() {
    let at = |merged: &Value| merged["ingress"][0]["conditions"][0]["lastTransitionTime"].clone();
    let first = merge_route(None, &[entry("ours", "h.test", true)], 1);
    let moved = merge_route(Some(&first), &[entry("ours", "new.test", true)], 2);
    assert_eq!((&moved["ingress"][0]["host"], at(&moved)), (&json!("new.test"), json!("2024-01-01T00:00:00Z")));
    let flipped = merge_route(Some(&moved), &[entry("ours", "new.test", false)], 3);
    assert_eq!(at(&flipped), "2024-01-03T00:00:00Z");
}

#[test]
fn entries_of_our_removed_routers_are_removed() {
    let both = [entry("gone", "a.test", true), entry("ours", "b.test", true)];
    let before = merge_route(None, &both, 1);
    let after = merge_route(Some(&before), &both[1..], 2);
    assert_eq!(after, json!({ "ingress": [before["ingress"][1]] }));
    // A router has one entry; further entries with its name are stale.
    let twice = json!({ "ingress": [before["ingress"][1], before["ingress"][1]] });
    assert_eq!(merge_route(Some(&twice), &both[1..], 2), after);
    assert_eq!((merge_route(None, &[], 2), merge_route(Some(&after), &[], 2)), (json!({}), json!({})));
}

#[test]
fn conditions_of_others_stay_in_a_controllers_status() {
    let mut report = ControllerStatus::rejected(Condition::new("Admitted", false, "InvalidManifest", "x"));
    let dns = json!({ "type": "DNSReady", "status": "True" });
    let stale = json!({ "type": "Degraded", "status": "True", "message": "old" });
    let previous = json!({ "conditions": [dns, stale], "availableReplicas": 2 });
    let merged = merge_controller(&previous, &report);
    let kinds: Vec<_> = merged["conditions"].as_array().unwrap().iter().map(|c| c["type"].clone()).collect();
    assert_eq!(kinds, ["DNSReady", "Admitted"]);
    assert_eq!(merged["availableReplicas"], 2);
    report.domain = "d.test".to_owned();
    assert_eq!(merge_controller(&previous, &report)["domain"], "d.test");
}

#[test]
fn a_plainly_admitted_route_has_the_entry_that_its_router_would_write() {
    let router = |name: &str| {
        Arc::new(RouterIdentity {
            name: RouterName(name.into()),
            canonical_hostname: format!("router-{name}.{name}.test").into(),
            admitted: [Condition::new("Admitted", true, "", "")].into(),
        })
    };
    let (ours, again) = (router("ours"), router("ours"));
    let short = Ingress::admitted("h.test".into(), ours.clone());
    assert_eq!(short.to_vec(), [entry("ours", "h.test", true)]);
    assert_eq!(short, Ingress::new(vec![entry("ours", "h.test", true)]));
    assert_ne!(short, Ingress::admitted("other.test".into(), ours.clone()));
    assert_ne!(short, Ingress::admitted("h.test".into(), router("theirs")));
    assert!(short.same(&Ingress::admitted("h.test".into(), ours)), "an equal entry again: nothing to write");
    assert!(!short.same(&Ingress::admitted("h.test".into(), again)), "another router may differ in anything");
    assert!(!short.is_empty() && Ingress::new(Vec::new()).is_empty());
}

const OTHER: &str = "example.com/other";

fn accepted(status: &str) -> serde_json::Value {
    json!({ "type": "Accepted", "status": status, "reason": status, "message": "", "observedGeneration": 2 })
}

fn parent(name: &str, controller: &str, conditions: Vec<serde_json::Value>) -> serde_json::Value {
    json!({ "parentRef": { "name": name }, "controllerName": controller, "conditions": conditions })
}

fn at(mut condition: serde_json::Value, day: u8) -> serde_json::Value {
    condition["lastTransitionTime"] = json!(format!("2024-01-{day:02}T00:00:00Z"));
    condition
}

#[test]
fn rows_of_other_controllers_do_not_change_and_stale_ones_of_ours_are_removed() {
    use router_api::gateway_api::types::CONTROLLER_NAME;
    let foreign = parent("a", OTHER, vec![json!({ "type": "Accepted", "status": "Whatever" })]);
    let current = json!({ "parents": [parent("gone", CONTROLLER_NAME, vec![]), foreign] });
    let new = json!({ "parents": [parent("a", CONTROLLER_NAME, vec![accepted("True")])] });
    let first = merge_other(&current, None, &new, 1);
    let ours = parent("a", CONTROLLER_NAME, vec![at(accepted("True"), 1)]);
    assert_eq!(first, json!({ "parents": [foreign, ours] }));
    assert_eq!(merge_other(&current, Some(&first), &new, 2), first);
    assert_eq!(merge_other(&current, Some(&first), &json!({}), 2), json!({ "parents": [foreign] }));
}

#[test]
fn times_of_nested_conditions_are_kept_and_foreign_conditions_stay() {
    let listener =
        |name: &str, status: &str| json!({ "name": name, "attachedRoutes": 1, "conditions": [accepted(status)] });
    let new = |status: &str| {
        json!({ "conditions": [accepted("True")], "addresses": [{ "type": "IPAddress", "value": "192.0.2.1" }],
            "listeners": [listener("web", "True"), listener("tls", status)] })
    };
    let theirs = json!({ "type": "example.com/Ready", "status": "True" });
    let stale = json!({ "type": "Programmed", "status": "True" });
    let current = json!({ "conditions": [stale, theirs], "custom": 7 });
    let first = merge_other(&current, None, &new("True"), 1);
    assert_eq!(
        merge_other(&current, Some(&first), &new("False"), 2),
        json!({
            "conditions": [theirs, at(accepted("True"), 1)],
            "custom": 7,
            "addresses": [{ "type": "IPAddress", "value": "192.0.2.1" }],
            "listeners": [
                { "name": "web", "attachedRoutes": 1, "conditions": [at(accepted("True"), 1)] },
                { "name": "tls", "attachedRoutes": 1, "conditions": [at(accepted("False"), 2)] },
            ],
        })
    );
}

#[test]
fn entries_have_identity_and_equality() {
    let identity = || {
        Arc::new(RouterIdentity {
            name: RouterName("default".into()),
            canonical_hostname: "router-default.apps.test".into(),
            admitted: vec![Condition::new("Admitted", true, "", "")].into(),
        })
    };
    let (one, other) = (identity(), identity());
    let admitted = |host: &str, router| Ingress::admitted(host.into(), Arc::clone(router));
    let entries = Ingress::new(vec![entry("default", "a.test", true)]);
    assert!(entries.same(&entries.clone()) && !entries.same(&Ingress::new(entries.to_vec())));
    assert!(admitted("a.test", &one).same(&admitted("a.test", &one)));
    assert!(!admitted("a.test", &one).same(&admitted("b.test", &one)));
    assert!(!admitted("a.test", &one).same(&admitted("a.test", &other)));
    assert!(!entries.same(&admitted("a.test", &one)));
    assert_eq!(entries, Ingress::new(entries.to_vec()));
    assert_eq!(admitted("a.test", &one), admitted("a.test", &other));
    assert_ne!(admitted("a.test", &one), admitted("b.test", &one));
    assert_ne!(entries, Ingress::new(Vec::new()));
    assert!(Ingress::new(Vec::new()).is_empty() && !entries.is_empty() && !admitted("a.test", &one).is_empty());
}

#[test]
fn a_status_shows_its_conditions_and_rows() {
    let row = ParentStatus { parent: "Gateway shop/public#web".to_owned(), ..ParentStatus::default() };
    let shown = |status: &str| {
        format!("{:?}", ObjectStatus::new(&json!({ "conditions": [accepted(status)] }), vec![row.clone()]))
    };
    assert!(shown("True").contains("observedGeneration") && shown("True").contains("shop/public#web"));
    assert_ne!(shown("True"), shown("False"));
}

#[test]
fn a_released_status_keeps_what_others_wrote() {
    let theirs = json!({"controllerName": "example.com/other", "parentRef": {"name": "g"}, "conditions": []});
    let ours = json!({"controllerName": CONTROLLER_NAME, "parentRef": {"name": "g"}, "conditions": []});
    let conditions = json!([{"type": "Accepted", "status": "True"}]);
    let now = Timestamp::UNIX_EPOCH;
    let both = json!({"parents": [theirs, ours], "conditions": conditions});
    assert_eq!(StatusReport::released(&both, now), json!({"parents": [theirs], "conditions": conditions}));
    assert_eq!(StatusReport::released(&json!({"ancestors": [ours]}), now), json!({"ancestors": []}));
    assert_eq!(StatusReport::released(&json!({"currentStatus": "valid"}), now), json!({"currentStatus": "valid"}));
    assert_eq!(StatusReport::released(&json!({"conditions": []}), now), json!({"conditions": []}));
}

//! Rows in the status of a child.

use serde_json::{Value, json};

use super::{GW, accepted, condition, route, route_parent, row, rule_to_service, rule_to_slot, scenario, slot};
use crate::scenario::Scenario;

fn gateway(name: &str, class: &str, listeners: &str) -> String {
    format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: {name}}}
spec: {{gatewayClassName: {class}, listeners: [{listeners}]}}"
    )
}

fn rows(scenario: &Scenario, route: &str) -> Vec<Value> {
    scenario.status(&format!("HTTPRoute {route}"))["parents"].as_array().cloned().unwrap_or_default()
}

fn names(scenario: &Scenario, route: &str) -> Vec<String> {
    let name = |row: &Value| {
        let parent = &row["parentRef"];
        let section = parent["sectionName"].as_str().map(|name| format!("#{name}")).unwrap_or_default();
        format!("{} {}{section}", parent["kind"].as_str().unwrap(), parent["name"].as_str().unwrap())
    };
    rows(scenario, route).iter().map(name).collect()
}

#[test]
fn only_edges_below_a_gateway_of_sluice_get_rows() {
    let foreign = "
kind: GatewayClass
metadata: {name: other}
spec: {controllerName: example.com/other}"
        .to_owned();
    let theirs = gateway("theirs", "other", "{name: http, port: 80, protocol: HTTP}");
    let top = |id: &str, parents: &str| route(id, parents, "", &[rule_to_slot("s", "", "")]);
    let parents = format!("{}, {}", route_parent("infra/ours"), route_parent("infra/foreign"));
    let child = route("infra/child", &parents, "", &[rule_to_service("v1", "", "")]);
    let scenario = scenario(&[
        foreign,
        theirs,
        top("infra/ours", GW),
        top("infra/foreign", "{name: theirs}"),
        slot("infra/s", "Same"),
        child,
    ]);
    assert_eq!(names(&scenario, "infra/child"), ["HTTPRoute ours", "Gateway gw#http"]);
    assert_eq!(names(&scenario, "infra/foreign"), [] as [&str; 0]);
    for row in rows(&scenario, "infra/child") {
        assert_eq!(row["controllerName"], "sluice.dev/gateway-controller");
    }
}

#[test]
fn rows_of_other_controllers_are_preserved() {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", "", "")]);
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", "", "")]);
    let scenario = scenario(&[top, slot("infra/s", "Same"), child]);
    let foreign = json!({
        "parentRef": { "kind": "HTTPRoute", "name": "top" },
        "controllerName": "example.com/other",
        "conditions": [{ "type": "Accepted", "status": "False", "reason": "Other", "message": "of others" }],
    });
    let stale = json!({
        "parentRef": { "kind": "HTTPRoute", "name": "gone" },
        "controllerName": "sluice.dev/gateway-controller",
        "conditions": [],
    });
    let before = json!({ "parents": [stale, foreign.clone()] });
    let merged = scenario.merged("HTTPRoute infra/child", &before);
    let parents = merged["parents"].as_array().unwrap();
    let controllers: Vec<_> = parents.iter().map(|row| row["controllerName"].as_str().unwrap()).collect();
    assert_eq!(controllers.len(), 3);
    assert!(parents.contains(&foreign), "{merged:#}");
    assert!(!merged.to_string().contains("gone"), "{merged:#}");
}

#[test]
fn rows_of_parents_come_in_order_and_then_those_of_listeners() {
    let listeners =
        "{name: b, port: 80, protocol: HTTP, hostname: b.test}, {name: a, port: 80, protocol: HTTP, hostname: a.test}";
    let gateway = gateway("two", "sluice", listeners);
    let top = |id: &str| route(id, "{name: two}", "", &[rule_to_slot("s", "", "")]);
    let parents = format!("{}, {{name: two, sectionName: a}}, {}", route_parent("infra/z"), route_parent("infra/x"));
    let child = route("infra/child", &parents, "", &[rule_to_service("v1", "", "")]);
    let scenario = scenario(&[gateway, top("infra/x"), top("infra/z"), slot("infra/s", "Same"), child]);
    // The listener that the child names itself already has its row.
    assert_eq!(names(&scenario, "infra/child"), ["HTTPRoute z", "Gateway two#a", "HTTPRoute x", "Gateway two#b"]);
    let written = &rows(&scenario, "infra/child")[0]["parentRef"];
    assert_eq!(written["namespace"], "infra", "as it was written: {written}");
    assert_eq!(rows(&scenario, "infra/child")[3]["parentRef"]["namespace"], Value::Null);
}

#[test]
fn rows_are_limited_to_the_maximum_of_the_api() {
    // 40 listeners: the row of the parent, and those of 31 listeners.
    let listeners = |from: usize| {
        let one = |i| format!("{{name: l{i:02}, port: 80, protocol: HTTP, hostname: h{i}.test}}");
        (from..from + 20).map(one).collect::<Vec<_>>().join(", ")
    };
    let gateways = [gateway("g0", "sluice", &listeners(0)), gateway("g1", "sluice", &listeners(20))];
    let top = route("infra/top", "{name: g0}, {name: g1}", "", &[rule_to_slot("s", "", "")]);
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", "", "")]);
    let scenario = scenario(&[gateways.as_slice(), &[top, slot("infra/s", "Same"), child]].concat());
    let rows = rows(&scenario, "infra/child");
    assert_eq!(rows.len(), 32);
    assert_eq!(condition(&rows[31], "Accepted"), "True Accepted: via infra/top#s; 9 more listeners have no row here");
    assert_eq!(condition(&rows[30], "Accepted"), "True Accepted: via infra/top#s");
    assert_eq!(super::get(&scenario, "h39.test/"), "v1");
}

#[test]
fn rows_are_removed_with_the_parent() {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", "", "")]);
    let child =
        route("infra/child", &format!("{GW}, {}", route_parent("infra/top")), "", &[rule_to_service("v1", "", "")]);
    let mut scenario = scenario(&[top, slot("infra/s", "Same"), child]);
    assert_eq!(names(&scenario, "infra/child"), ["Gateway gw", "HTTPRoute top", "Gateway gw#http"]);
    scenario.remove("HTTPRoute infra/top");
    assert_eq!(names(&scenario, "infra/child"), ["Gateway gw"]);
}

#[test]
fn a_child_that_cannot_be_served_gets_a_condition_under_its_parent() {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", "", "")]);
    let session = "{backendRefs: [{name: v1, port: 8080}], sessionPersistence: {type: Cookie}}".to_owned();
    let child = route("infra/child", &route_parent("infra/top"), "", &[session]);
    let scenario = scenario(&[top, slot("infra/s", "Same"), child]);
    assert!(accepted(&scenario, "infra/child", "top").starts_with("False UnsupportedValue: "));
    assert_eq!(super::get(&scenario, "x.test/"), "500");
    // An unresolved reference is reported in every row, and does not affect Accepted.
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("none", "", "")]);
    let scenario =
        super::scenario(&[route("infra/top", GW, "", &[rule_to_slot("s", "", "")]), slot("infra/s", "Same"), child]);
    for parent in ["top", "gw#http"] {
        let row = row(&scenario, "HTTPRoute infra/child", parent).unwrap();
        assert!(condition(&row, "Accepted").starts_with("True Accepted"));
        assert!(condition(&row, "ResolvedRefs").starts_with("False BackendNotFound"), "{row:#}");
    }
}

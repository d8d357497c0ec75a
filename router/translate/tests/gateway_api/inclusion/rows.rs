//! Rows in the status of a child.

use serde_json::{Value, json};

use super::{GW, accepted, condition, route, row, slot, to, to_slot, under, world};
use crate::world::World;

fn gateway(name: &str, class: &str, listeners: &str) -> String {
    format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: {name}}}
spec: {{gatewayClassName: {class}, listeners: [{listeners}]}}"
    )
}

fn rows(world: &World, route: &str) -> Vec<Value> {
    world.status(&format!("HTTPRoute {route}"))["parents"].as_array().cloned().unwrap_or_default()
}

fn names(world: &World, route: &str) -> Vec<String> {
    let name = |row: &Value| {
        let parent = &row["parentRef"];
        let section = parent["sectionName"].as_str().map(|name| format!("#{name}")).unwrap_or_default();
        format!("{} {}{section}", parent["kind"].as_str().unwrap(), parent["name"].as_str().unwrap())
    };
    rows(world, route).iter().map(name).collect()
}

#[test]
fn only_what_leads_to_a_gateway_of_ours_gets_rows() {
    let foreign = "
kind: GatewayClass
metadata: {name: other}
spec: {controllerName: example.com/other}"
        .to_owned();
    let theirs = gateway("theirs", "other", "{name: http, port: 80, protocol: HTTP}");
    let top = |id: &str, parents: &str| route(id, parents, "", &[to_slot("s", "", "")]);
    let parents = format!("{}, {}", under("infra/ours"), under("infra/foreign"));
    let child = route("infra/child", &parents, "", &[to("v1", "", "")]);
    let world = world(&[
        foreign,
        theirs,
        top("infra/ours", GW),
        top("infra/foreign", "{name: theirs}"),
        slot("infra/s", "Same"),
        child,
    ]);
    assert_eq!(names(&world, "infra/child"), ["HTTPRoute ours", "Gateway gw#http"]);
    assert_eq!(names(&world, "infra/foreign"), [] as [&str; 0]);
    for row in rows(&world, "infra/child") {
        assert_eq!(row["controllerName"], "sluice.dev/gateway-controller");
    }
}

#[test]
fn rows_of_other_controllers_stay_as_they_are() {
    let top = route("infra/top", GW, "", &[to_slot("s", "", "")]);
    let child = route("infra/child", &under("infra/top"), "", &[to("v1", "", "")]);
    let world = world(&[top, slot("infra/s", "Same"), child]);
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
    let merged = world.merged("HTTPRoute infra/child", &before);
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
    let top = |id: &str| route(id, "{name: two}", "", &[to_slot("s", "", "")]);
    let parents = format!("{}, {{name: two, sectionName: a}}, {}", under("infra/z"), under("infra/x"));
    let child = route("infra/child", &parents, "", &[to("v1", "", "")]);
    let world = world(&[gateway, top("infra/x"), top("infra/z"), slot("infra/s", "Same"), child]);
    // The listener that the child names itself already has its row.
    assert_eq!(names(&world, "infra/child"), ["HTTPRoute z", "Gateway two#a", "HTTPRoute x", "Gateway two#b"]);
    let written = &rows(&world, "infra/child")[0]["parentRef"];
    assert_eq!(written["namespace"], "infra", "as it was written: {written}");
    assert_eq!(rows(&world, "infra/child")[3]["parentRef"]["namespace"], Value::Null);
}

#[test]
fn there_are_as_many_rows_as_the_api_allows() {
    // 40 listeners: the row of the parent, and those of 31 listeners.
    let listeners = |from: usize| {
        let one = |i| format!("{{name: l{i:02}, port: 80, protocol: HTTP, hostname: h{i}.test}}");
        (from..from + 20).map(one).collect::<Vec<_>>().join(", ")
    };
    let gateways = [gateway("g0", "sluice", &listeners(0)), gateway("g1", "sluice", &listeners(20))];
    let top = route("infra/top", "{name: g0}, {name: g1}", "", &[to_slot("s", "", "")]);
    let child = route("infra/child", &under("infra/top"), "", &[to("v1", "", "")]);
    let world = world(&[gateways.as_slice(), &[top, slot("infra/s", "Same"), child]].concat());
    let rows = rows(&world, "infra/child");
    assert_eq!(rows.len(), 32);
    assert_eq!(condition(&rows[31], "Accepted"), "True Accepted: via infra/top#s; 9 more listeners have no row here");
    assert_eq!(condition(&rows[30], "Accepted"), "True Accepted: via infra/top#s");
    assert_eq!(super::get(&world, "h39.test/"), "v1");
}

#[test]
fn rows_go_with_the_parent() {
    let top = route("infra/top", GW, "", &[to_slot("s", "", "")]);
    let child = route("infra/child", &format!("{GW}, {}", under("infra/top")), "", &[to("v1", "", "")]);
    let mut world = world(&[top, slot("infra/s", "Same"), child]);
    assert_eq!(names(&world, "infra/child"), ["Gateway gw", "HTTPRoute top", "Gateway gw#http"]);
    world.remove("HTTPRoute infra/top");
    assert_eq!(names(&world, "infra/child"), ["Gateway gw"]);
}

#[test]
fn a_child_that_cannot_be_served_gets_a_condition_under_its_parent() {
    let top = route("infra/top", GW, "", &[to_slot("s", "", "")]);
    let session = "{backendRefs: [{name: v1, port: 8080}], sessionPersistence: {type: Cookie}}".to_owned();
    let child = route("infra/child", &under("infra/top"), "", &[session]);
    let world = world(&[top, slot("infra/s", "Same"), child]);
    assert!(accepted(&world, "infra/child", "top").starts_with("False UnsupportedValue: "));
    assert_eq!(super::get(&world, "x.test/"), "500");
    // An unresolved reference is reported in every row, and does not affect Accepted.
    let child = route("infra/child", &under("infra/top"), "", &[to("none", "", "")]);
    let world = super::world(&[route("infra/top", GW, "", &[to_slot("s", "", "")]), slot("infra/s", "Same"), child]);
    for parent in ["top", "gw#http"] {
        let row = row(&world, "HTTPRoute infra/child", parent).unwrap();
        assert!(condition(&row, "Accepted").starts_with("True Accepted"));
        assert!(condition(&row, "ResolvedRefs").starts_with("False BackendNotFound"), "{row:#}");
    }
}

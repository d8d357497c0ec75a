//! Invalid references to RouteSlots, and kinds.

use super::{GW, accepted, condition, get, prefix, route, row, slot, state_of, to, to_slot, under, world};

const SLOT: &str = "group: gateway.sluice.dev, kind: RouteSlot";

#[test]
fn a_slot_that_cannot_be_one_is_said_and_fails() {
    let other = slot("web/s", "All");
    let cases = [
        (
            format!("[{{{SLOT}, name: none}}]"),
            "ResolvedRefs",
            "False BackendNotFound",
            "there is no RouteSlot infra/none",
        ),
        (
            format!("[{{{SLOT}, name: s, namespace: web}}]"),
            "ResolvedRefs",
            "False RefNotPermitted",
            "a RouteSlot is in the namespace of the route that names it",
        ),
    ];
    for (backends, kind, verdict, message) in cases {
        let top = route("infra/top", GW, "", &[format!("{{backendRefs: {backends}}}"), to("v1", &prefix("/own"), "")]);
        let child = route("infra/child", &under("infra/top"), "", &[to("v2", "", "")]);
        let world = world(&[top, other.clone(), child]);
        assert_eq!([get(&world, "x.test/"), get(&world, "x.test/own")], ["500", "v1"]);
        let told = condition(&row(&world, "HTTPRoute infra/top", "gw").unwrap(), kind);
        assert!(told.starts_with(verdict) && told.contains(message), "{told}");
        assert_eq!(accepted(&world, "infra/child", "top"), "False NoMatchingParent: infra/top has no slot");
    }
}

#[test]
fn a_slot_stands_alone_in_its_rule() {
    let backends = format!("[{{{SLOT}, name: s}}, {{name: v1, port: 8080}}]");
    let top = route("infra/top", GW, "", &[format!("{{backendRefs: {backends}}}"), to("v2", &prefix("/own"), "")]);
    let world = world(&[top, slot("infra/s", "Same")]);
    assert_eq!([get(&world, "x.test/"), get(&world, "x.test/own")], ["500", "v2"]);
    let rows = world.status("HTTPRoute infra/top").to_string();
    assert!(rows.contains("a RouteSlot is the only backend of its rule"), "{rows}");
}

#[test]
fn kinds_that_cannot_attach_are_reported() {
    let with = |kinds: &str| {
        let slot = format!(
            "kind: RouteSlot\nmetadata: {{namespace: infra, name: s}}\nspec: {{allowedRoutes: {{kinds: [{kinds}]}}}}"
        );
        let top = route("infra/top", GW, "", &[to_slot("s", "", "")]);
        world(&[top, slot, route("infra/child", &under("infra/top"), "", &[to("v1", "", "")])])
    };
    let both = with("{kind: HTTPRoute}, {kind: GRPCRoute}");
    assert_eq!(get(&both, "x.test/"), "v1");
    assert_eq!(
        state_of(&both, "infra/s"),
        [
            "1",
            "True Attached",
            "ResolvedRefs False InvalidRouteKinds: only routes of the same kind can attach to a route: gateway.networking.k8s.io/GRPCRoute",
        ]
    );
    let none = with("{kind: TCPRoute}");
    assert_eq!(get(&none, "x.test/"), "500");
    assert_eq!(none.status("RouteSlot infra/s")["inclusions"][0]["supportedKinds"], serde_json::json!([]));
    assert_eq!(
        accepted(&none, "infra/child", "top"),
        "False NotAllowedByParent: infra/top admits no HTTPRoute of namespace infra"
    );
    let own = with("{kind: HTTPRoute}");
    assert_eq!(state_of(&own, "infra/s"), ["1", "True Attached"]);
}

#[test]
fn one_slot_may_serve_several_rules_and_routes() {
    let top = |id: &str, path: &str| route(id, GW, "", &[to_slot("s", &prefix(path), "")]);
    let child = route("infra/child", &under("infra/one"), "", &[to("v1", "", "")]);
    let world = world(&[top("infra/one", "/one"), top("infra/two", "/two"), slot("infra/s", "Same"), child]);
    assert_eq!([get(&world, "x.test/one"), get(&world, "x.test/two")], ["v1", "500"]);
    let status = world.status("RouteSlot infra/s");
    let entries: Vec<_> = status["inclusions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["routeRef"]["name"].as_str().unwrap(), entry["attachedRoutes"].as_u64().unwrap()))
        .collect();
    assert_eq!(entries, [("one", 1), ("two", 0)]);
}

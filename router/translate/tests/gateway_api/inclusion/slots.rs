//! Invalid references to RouteSlots, and kinds.

use super::{
    GW, accepted, condition, get, prefix, route, route_parent, row, rule_to_service, rule_to_slot, scenario, slot,
    slot_state,
};

const SLOT: &str = "group: gateway.sluice.dev, kind: RouteSlot";

#[test]
fn an_invalid_slot_is_reported_and_fails() {
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
        let top = route(
            "infra/top",
            GW,
            "",
            &[format!("{{backendRefs: {backends}}}"), rule_to_service("v1", &prefix("/own"), "")],
        );
        let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v2", "", "")]);
        let scenario = scenario(&[top, other.clone(), child]);
        assert_eq!([get(&scenario, "x.test/"), get(&scenario, "x.test/own")], ["500", "v1"]);
        let reported = condition(&row(&scenario, "HTTPRoute infra/top", "gw").unwrap(), kind);
        assert!(reported.starts_with(verdict) && reported.contains(message), "{reported}");
        assert_eq!(accepted(&scenario, "infra/child", "top"), "False NoMatchingParent: infra/top has no slot");
    }
}

#[test]
fn a_slot_is_the_only_backend_of_its_rule() {
    let backends = format!("[{{{SLOT}, name: s}}, {{name: v1, port: 8080}}]");
    let top = route(
        "infra/top",
        GW,
        "",
        &[format!("{{backendRefs: {backends}}}"), rule_to_service("v2", &prefix("/own"), "")],
    );
    let scenario = scenario(&[top, slot("infra/s", "Same")]);
    assert_eq!([get(&scenario, "x.test/"), get(&scenario, "x.test/own")], ["500", "v2"]);
    let rows = scenario.status("HTTPRoute infra/top").to_string();
    assert!(rows.contains("a RouteSlot is the only backend of its rule"), "{rows}");
}

#[test]
fn kinds_that_cannot_attach_are_reported() {
    let with = |kinds: &str| {
        let slot = format!(
            "kind: RouteSlot\nmetadata: {{namespace: infra, name: s}}\nspec: {{allowedRoutes: {{kinds: [{kinds}]}}}}"
        );
        let top = route("infra/top", GW, "", &[rule_to_slot("s", "", "")]);
        scenario(&[top, slot, route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", "", "")])])
    };
    let both = with("{kind: HTTPRoute}, {kind: GRPCRoute}");
    assert_eq!(get(&both, "x.test/"), "v1");
    assert_eq!(
        slot_state(&both, "infra/s"),
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
    assert_eq!(slot_state(&own, "infra/s"), ["1", "True Attached"]);
}

#[test]
fn one_slot_may_serve_several_rules_and_routes() {
    let top = |id: &str, path: &str| route(id, GW, "", &[rule_to_slot("s", &prefix(path), "")]);
    let child = route("infra/child", &route_parent("infra/one"), "", &[rule_to_service("v1", "", "")]);
    let scenario = scenario(&[top("infra/one", "/one"), top("infra/two", "/two"), slot("infra/s", "Same"), child]);
    assert_eq!([get(&scenario, "x.test/one"), get(&scenario, "x.test/two")], ["v1", "500"]);
    let status = scenario.status("RouteSlot infra/s");
    let entries: Vec<_> = status["inclusions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["routeRef"]["name"].as_str().unwrap(), entry["attachedRoutes"].as_u64().unwrap()))
        .collect();
    assert_eq!(entries, [("one", 1), ("two", 0)]);
}

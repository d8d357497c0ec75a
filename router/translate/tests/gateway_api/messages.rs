//! Messages of conditions: names of objects, and what must not change when unrelated objects do.

use serde_json::{Value, json};

use crate::scenario::{Scenario, TestRequest, secret};

const GATEWAY: &str = "
kind: Gateway
metadata: {namespace: infra, name: web}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
";

/// The message of a condition of the first parent of a route.
fn message(scenario: &Scenario, route: &str, kind: &str) -> String {
    let status = scenario.status(route);
    let conditions = status["parents"][0]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.and_then(|found| found["message"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_missing_parent_is_named_as_written() {
    for (reference, expected) in [
        ("{name: web, sectionName: none}", "named none"),
        ("{name: web, port: 81}", "on port 81"),
        ("{name: web, sectionName: none, port: 81}", "named none on port 81"),
    ] {
        let route = format!(
            "---\nkind: HTTPRoute\nmetadata: {{namespace: infra, name: r}}\nspec:\n  parentRefs: [{reference}]\n  rules:\n  - backendRefs: [{{name: v1, port: 8080}}]\n"
        );
        let scenario = Scenario::new(&format!("{GATEWAY}{route}"));
        let found = message(&scenario, "HTTPRoute infra/r", "Accepted");
        assert!(found.contains(expected), "{reference}: {found}");
    }
}

#[test]
fn unsupported_kinds_are_named_with_their_group() {
    let gateway =
        GATEWAY.replace("{namespaces: {from: All}}", "{kinds: [{kind: TLSRoute}, {group: \"\", kind: Service}]}");
    let scenario = Scenario::new(&gateway);
    let status = scenario.listener("infra/web", "http");
    let messages: String =
        status["conditions"].as_array().unwrap().iter().filter_map(|condition| condition["message"].as_str()).collect();
    assert!(messages.contains("TLSRoute.gateway.networking.k8s.io"), "{messages}");
    assert!(messages.contains("Service"), "{messages}");
}

#[test]
fn rules_keep_their_index_in_messages() {
    let route = "
---
kind: HTTPRoute
metadata: {namespace: infra, name: r}
spec:
  parentRefs: [{name: web}]
  hostnames: [a.test]
  rules:
  - matches: [{path: {value: /zero}}]
    backendRefs: [{name: v1, port: 8080}]
  - matches: [{path: {value: /one}}]
    backendRefs: [{name: v2, port: 8080}]
  - matches: [{path: {value: /two}}]
    backendRefs: [{name: v3, port: 8080}]
";
    let scenario = Scenario::new(&format!("{GATEWAY}{route}"));
    let part = |path: &str| scenario.route(80, &TestRequest::get(&format!("a.test/{path}"))).unwrap().id.part;
    assert_eq!(["zero", "one", "two"].map(part), [0, 1, 2]);
}

#[test]
fn an_existing_parent_route_gets_no_warning() {
    let included = |kind: &str, name: &str| {
        format!(
            "---\nkind: {kind}\nmetadata: {{namespace: infra, name: child}}\nspec:\n  parentRefs: [{{group: gateway.networking.k8s.io, kind: {kind}, name: {name}}}]\n  rules:\n  - backendRefs: [{{name: v1, port: 8080}}]\n"
        )
    };
    for kind in ["HTTPRoute", "GRPCRoute"] {
        let parent = format!(
            "---\nkind: {kind}\nmetadata: {{namespace: infra, name: parent}}\nspec:\n  parentRefs: [{{name: web}}]\n  rules:\n  - backendRefs: [{{name: v1, port: 8080}}]\n"
        );
        let missed = |name: &str| {
            let scenario = Scenario::new(&format!("{GATEWAY}{parent}{}", included(kind, name)));
            scenario.warnings().iter().any(|warning| warning.contains(&format!("there is no {kind} infra/{name}")))
        };
        assert!(missed("nobody"), "{kind}");
        assert!(!missed("parent"), "{kind}");
    }
}

#[test]
fn at_equal_age_the_first_api_owns_the_host() {
    let route = json!({"kind": "HTTPRoute", "metadata": {"namespace": "infra", "name": "x", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"parentRefs": [{"name": "web"}], "hostnames": ["a.test"],
            "rules": [{"backendRefs": [{"name": "v1", "port": 8080}]}]}});
    let proxy = |created: &str| -> Value {
        json!({"kind": "HTTPProxy", "metadata": {"namespace": "infra", "name": "x", "creationTimestamp": created},
            "spec": {"virtualhost": {"fqdn": "a.test"}, "routes": [{"services": [{"name": "v2", "port": 8080}]}]}})
    };
    let served =
        |created: &str| Scenario::with(GATEWAY, [route.clone(), proxy(created)]).http(80, &TestRequest::get("a.test/"));
    assert_eq!(served("2024-01-01T00:00:00Z"), "v1");
    assert_eq!(served("2024-01-01T00:00:01Z"), "v1");
    assert_eq!(served("2023-12-31T23:59:59Z"), "v2");
}

#[test]
fn a_port_that_changes_its_protocol_gets_a_matching_router() {
    let gateway = |listener: Value| {
        json!({"kind": "Gateway", "metadata": {"namespace": "infra", "name": "web"},
            "spec": {"gatewayClassName": "sluice", "listeners": [listener]}})
    };
    let clear = gateway(json!({"name": "l", "port": 9090, "protocol": "HTTP"}));
    let tls = gateway(
        json!({"name": "l", "port": 9090, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "cert"}]}}),
    );
    let mut scenario = Scenario::with("", [secret("infra/cert", &["a.test"]), clear.clone()]);
    assert_eq!(scenario.ports()["gateway-9090"], (Some(9090), None));
    scenario.change(tls);
    assert_eq!(scenario.ports()["gateway-9090"], (None, Some(9090)));
    scenario.change(clear);
    assert_eq!(scenario.ports()["gateway-9090"], (Some(9090), None));
}

#[test]
fn a_listeners_row_reports_what_prevents_traffic() {
    let gateway = |secret: &str| {
        json!({"kind": "Gateway", "metadata": {"namespace": "infra", "name": "web"},
            "spec": {"gatewayClassName": "sluice", "listeners": [{"name": "l", "port": 443, "protocol": "HTTPS",
                "tls": {"certificateRefs": [{"name": secret}]}}]}})
    };
    let row = |name: &str| {
        let scenario = Scenario::with("", [secret("infra/cert", &["a.test"]), gateway(name)]);
        scenario.rows("Gateway infra/web")
    };
    assert_eq!(row("cert"), ["default#l: Accepted"]);
    assert_eq!(row("none"), ["!default#l: InvalidCertificateRef"]);
}

#[test]
fn a_row_covers_only_the_hosts_of_its_listener() {
    let manifests = "
kind: Gateway
metadata: {namespace: infra, name: web}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: a, port: 80, protocol: HTTP, hostname: \"*.a.test\"}
  - {name: b, port: 80, protocol: HTTP, hostname: \"*.b.test\"}
---
kind: RouteSlot
metadata: {namespace: infra, name: slot}
spec: {allowedRoutes: {namespaces: {from: Same}}}
---
kind: HTTPRoute
metadata: {namespace: infra, name: parent, creationTimestamp: \"2024-01-01T00:00:00Z\"}
spec:
  parentRefs: [{name: web}]
  hostnames: [x.a.test, x.b.test]
  rules: [{backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}]}]
---
kind: HTTPRoute
metadata: {namespace: infra, name: child, creationTimestamp: \"2024-01-01T00:00:00Z\"}
spec:
  parentRefs: [{kind: HTTPRoute, name: parent}]
  rules: [{backendRefs: [{name: v1, port: 8080}]}]
---
kind: HTTPProxy
metadata: {namespace: infra, name: older, creationTimestamp: \"2023-01-01T00:00:00Z\"}
spec:
  virtualhost: {fqdn: x.b.test}
  routes: [{services: [{name: v2, port: 8080}]}]
";
    let scenario = Scenario::new(manifests);
    assert_eq!(scenario.http(80, &TestRequest::get("x.a.test/")), "v1");
    assert_eq!(scenario.http(80, &TestRequest::get("x.b.test/")), "v2");
    let expected = [
        "HTTPRoute infra/parent: Accepted",
        "Gateway infra/web#a: Accepted",
        "!Gateway infra/web#b: HostAlreadyClaimed",
    ];
    assert_eq!(scenario.rows("HTTPRoute infra/child"), expected);
}

#[test]
fn a_gateway_is_named_by_group_and_kind() {
    for (parent, is_attached) in [
        ("{name: web}", true),
        ("{name: web, group: gateway.networking.k8s.io, kind: Gateway}", true),
        ("{name: web, group: \"\", kind: Gateway}", false),
        ("{name: web, group: gateway.networking.k8s.io, kind: HTTPRoute}", false),
        ("{name: web, group: \"\", kind: Service}", false),
    ] {
        let route = format!(
            "---\nkind: HTTPRoute\nmetadata: {{namespace: infra, name: r}}\nspec:\n  parentRefs: [{parent}]\n  hostnames: [a.test]\n  rules:\n  - backendRefs: [{{name: v1, port: 8080}}]\n"
        );
        let scenario = Scenario::new(&format!("{GATEWAY}{route}"));
        assert_eq!(scenario.listener("infra/web", "http")["attachedRoutes"], u32::from(is_attached), "{parent}");
    }
}

#[test]
fn an_unsupported_protocol_reports_no_invalid_kinds() {
    let reason = |protocol: &str| {
        let gateway = GATEWAY
            .replace("protocol: HTTP", &format!("protocol: {protocol}"))
            .replace("{namespaces: {from: All}}", "{kinds: [{kind: TCPRoute}]}");
        let status = Scenario::new(&gateway).listener("infra/web", "http").clone();
        let conditions = status["conditions"].as_array().unwrap().clone();
        let resolved =
            conditions.into_iter().find(|condition| condition["type"] == "ResolvedRefs").expect("ResolvedRefs");
        resolved["reason"].clone()
    };
    assert_eq!(reason("example.com/other"), "ResolvedRefs");
    assert_eq!(reason("HTTP"), "InvalidRouteKinds");
}

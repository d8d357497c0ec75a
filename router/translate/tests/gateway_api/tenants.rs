//! Isolation of tenants: they cannot affect each other's hosts or read each other's objects from statuses.

use serde_json::json;

use crate::scenario::{Scenario, TestRequest, status_and_reason};

/// A Gateway with a listener for every name.
const GATEWAY: &str = "
kind: Gateway
metadata: {namespace: infra, name: g, creationTimestamp: '2024-01-02T00:00:00Z'}
spec:
  gatewayClassName: sluice
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
";

fn proxy(day: u32, fqdn: &str) -> serde_json::Value {
    json!({
        "kind": "HTTPProxy",
        "metadata": { "namespace": "web", "name": "wild", "creationTimestamp": format!("2024-01-0{day}T00:00:00Z") },
        "spec": {
            "virtualhost": { "fqdn": fqdn },
            "routes": [{ "conditions": [{ "prefix": "/" }], "services": [{ "name": "web", "port": 8080 }] }],
        },
    })
}

#[test]
fn a_wildcard_is_one_host_for_all_kinds() {
    let http_route = "---
kind: HTTPRoute
metadata: {namespace: infra, name: r, creationTimestamp: '2024-01-05T00:00:00Z'}
spec: {parentRefs: [{name: g}], hostnames: ['*.x.test'], rules: [{backendRefs: [{name: v1, port: 8080}]}]}
";
    let manifests = [GATEWAY, http_route].concat();
    for (day, served) in [(9, "v1"), (4, "web")] {
        let scenario = Scenario::with(&manifests, [proxy(day, "*.x.test")]);
        assert_eq!(scenario.http(80, &TestRequest::get("a.x.test/")), served, "day {day}");
    }
    let controller = json!({
        "kind": "IngressController",
        "metadata": { "namespace": "openshift-ingress-operator", "name": "default" },
        "spec": { "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" } },
    });
    let route = |day: u32| {
        json!({
            "kind": "Route",
            "metadata": { "namespace": "app", "name": "wild", "creationTimestamp": format!("2024-01-0{day}T00:00:00Z") },
            "spec": { "host": "www.x.test", "wildcardPolicy": "Subdomain", "to": { "name": "v2" } },
        })
    };
    for (day, is_routes) in [(9, false), (3, true)] {
        let scenario = Scenario::with("", [controller.clone(), proxy(4, "*.x.test"), route(day)]);
        let served = scenario.http(80, &TestRequest::get("a.x.test/"));
        assert_eq!(served.contains("Forward"), is_routes, "day {day}: {served}");
        let status = scenario.status("HTTPProxy web/wild");
        assert_eq!(status["currentStatus"] == "valid", !is_routes, "day {day}: {status}");
    }
}

#[test]
fn statuses_of_parents_and_children_reveal_nothing_of_each_other() {
    let manifests = [
        GATEWAY,
        "---
kind: HTTPRoute
metadata: {namespace: infra, name: top}
spec:
  parentRefs: [{name: g}]
  hostnames: ['*.parent-secret.test']
  rules:
  - name: slot
    matches: [{path: {value: /parent-path}, method: GET}]
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: all}]
---
kind: RouteSlot
metadata: {namespace: infra, name: all}
spec: {allowedRoutes: {namespaces: {from: All}}}
---
kind: HTTPRoute
metadata: {namespace: web, name: host}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  hostnames: [child-secret.test]
  rules: [{backendRefs: [{name: web, port: 8080}]}]
---
kind: HTTPRoute
metadata: {namespace: web, name: method}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  rules: [{matches: [{method: DELETE}], backendRefs: [{name: web, port: 8080}]}]
---
kind: HTTPRoute
metadata: {namespace: web, name: regex}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  rules: [{matches: [{path: {type: RegularExpression, value: /child-regex.*}}], backendRefs: [{name: web, port: 8080}]}]
---
kind: HTTPRoute
metadata: {namespace: web, name: broken}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  rules: [{matches: [{headers: [{type: RegularExpression, name: x, value: '(child-secret'}]}], backendRefs: [{name: web, port: 8080}]}]
",
    ]
    .concat();
    let scenario = Scenario::new(&manifests);
    let parent = scenario.status("RouteSlot infra/all").to_string();
    for secret in ["child-secret", "DELETE", "child-regex"] {
        assert!(!parent.contains(secret), "{secret} in {parent}");
    }
    for name in ["web/host", "web/method", "web/regex", "web/broken"] {
        assert!(parent.contains(name), "{name} in {parent}");
        let child = scenario.status(&format!("HTTPRoute {name}")).to_string();
        for secret in ["parent-secret", "parent-path", "GET"] {
            assert!(!child.contains(secret), "{secret} in {child}");
        }
    }
}

#[test]
fn a_child_cannot_serve_outside_its_slot() {
    let child = |name: &str, rule: &str| {
        format!(
            "---
kind: HTTPRoute
metadata: {{namespace: web, name: {name}}}
spec:
  parentRefs: [{{kind: HTTPRoute, name: top, namespace: infra}}]
  rules: [{{{rule} backendRefs: [{{name: web, port: 8080}}]}}]
"
        )
    };
    let top = "---
kind: HTTPRoute
metadata: {namespace: infra, name: top}
spec:
  parentRefs: [{name: g}]
  hostnames: [a.test]
  rules:
  - matches: [{path: {value: /team1/}, headers: [{name: x-team, value: red}], queryParams: [{name: t, value: '1'}]}]
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: all}]
---
kind: RouteSlot
metadata: {namespace: infra, name: all}
spec: {allowedRoutes: {namespaces: {from: All}}}
";
    let manifests = [
        GATEWAY.to_owned(),
        top.to_owned(),
        child("any", ""),
        child("headers", "matches: [{headers: [{name: X-Team, value: blue}], queryParams: [{name: t, value: '2'}]}],"),
        child("exact", "matches: [{path: {type: Exact, value: /x/}}],"),
    ]
    .concat();
    let scenario = Scenario::new(&manifests);
    let red = |url: &str| TestRequest::get(url).with("x-team", "red");
    for (request, served) in [
        (red("a.test/team1?t=1"), "web"),
        (red("a.test/team1/?t=1"), "web"),
        (red("a.test/team1/x/?t=1"), "web"),
        (red("A.TEST/team1/x?t=%31"), "web"),
        (red("a.test./team1?t=1"), "web"),
        (red("a.test/team10?t=1"), "404"),
        (red("a.test/team1%2fx?t=1"), "404"),
        (red("a.test//team1?t=1"), "404"),
        (red("a.test/TEAM1?t=1"), "404"),
        (red("a.test/x?t=1"), "404"),
        (red("a.test/team1?t=2"), "404"),
        (red("a.test/team1?t=2&t=1"), "404"),
        (red("b.test/team1?t=1"), "404"),
        (red("x.a.test/team1?t=1"), "404"),
        (TestRequest::get("a.test/team1?t=1"), "404"),
        (TestRequest::get("a.test/team1?t=1").with("x-team", "blue"), "404"),
        (TestRequest::get("a.test/team1?t=1").with("x-team", "blue").with("x-team", "red"), "404"),
        (TestRequest::get("a.test/team1?t=1").with("x-team", "red,blue"), "404"),
    ] {
        assert_eq!(scenario.http(80, &request), served, "{request:?}");
    }
}

#[test]
fn a_slot_of_another_namespace_cannot_be_referenced() {
    let manifests = [
        GATEWAY,
        "---
kind: RouteSlot
metadata: {namespace: web, name: all}
spec: {allowedRoutes: {namespaces: {from: All}}}
---
kind: HTTPRoute
metadata: {namespace: infra, name: top}
spec:
  parentRefs: [{name: g}]
  rules: [{backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: all, namespace: web}]}]
---
kind: HTTPRoute
metadata: {namespace: web, name: child}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  rules: [{backendRefs: [{name: web, port: 8080}]}]
",
    ]
    .concat();
    let scenario = Scenario::new(&manifests);
    assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), "500");
    assert_eq!(
        status_and_reason(&scenario.status("HTTPRoute infra/top")["parents"][0], "ResolvedRefs"),
        "False/RefNotPermitted"
    );
    assert_eq!(
        status_and_reason(&scenario.status("HTTPRoute web/child")["parents"][0], "Accepted"),
        "False/NoMatchingParent"
    );
}

#[test]
fn a_child_cannot_use_grants_of_its_parent() {
    let grant = |from: &str| {
        format!(
            "---
kind: ReferenceGrant
metadata: {{namespace: app, name: grant}}
spec: {{from: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: {from}}}], to: [{{group: '', kind: Service}}]}}
"
        )
    };
    let routes = "---
kind: RouteSlot
metadata: {namespace: infra, name: all}
spec: {allowedRoutes: {namespaces: {from: All}}}
---
kind: HTTPRoute
metadata: {namespace: infra, name: top}
spec:
  parentRefs: [{name: g}]
  rules: [{backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: all}]}]
---
kind: HTTPRoute
metadata: {namespace: web, name: child}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  rules: [{backendRefs: [{name: v1, namespace: app, port: 8080}]}]
";
    for (from, served, resolved) in [("infra", "500", "False/RefNotPermitted"), ("web", "app/v1", "True/ResolvedRefs")]
    {
        let scenario = Scenario::new(&[GATEWAY, routes, &grant(from)].concat());
        assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), served);
        for row in scenario.status("HTTPRoute web/child")["parents"].as_array().unwrap() {
            assert_eq!(status_and_reason(row, "ResolvedRefs"), resolved);
        }
        assert_eq!(
            status_and_reason(&scenario.status("HTTPRoute infra/top")["parents"][0], "ResolvedRefs"),
            "True/ResolvedRefs"
        );
    }
}

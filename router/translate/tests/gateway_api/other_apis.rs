//! Conflicts between Gateway API objects and Routes for one host, and denied domains.

use router_translate::settings::Settings;
use serde_json::json;

use crate::scenario::{Scenario, TestRequest, status_and_reason};

fn scenario(route_day: u32, gateway_day: u32, http_day: u32) -> Scenario {
    let route = json!({
        "kind": "Route",
        "metadata": { "namespace": "web", "name": "shop", "creationTimestamp": format!("2024-01-0{route_day}T00:00:00Z") },
        "spec": { "host": "a.test", "to": { "name": "web" } },
    });
    let manifests = format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: g, creationTimestamp: '2024-01-0{gateway_day}T00:00:00Z'}}
spec: {{gatewayClassName: sluice, listeners: [{{name: http, port: 80, protocol: HTTP}}]}}
---
kind: HTTPRoute
metadata: {{namespace: infra, name: r, creationTimestamp: '2024-01-0{http_day}T00:00:00Z'}}
spec:
  parentRefs: [{{name: g}}]
  hostnames: [a.test, b.test]
  rules: [{{backendRefs: [{{name: v1, port: 8080}}]}}]
---
kind: HTTPRoute
metadata: {{namespace: infra, name: only, creationTimestamp: '2024-01-0{http_day}T00:00:00Z'}}
spec:
  parentRefs: [{{name: g}}]
  hostnames: [a.test]
  rules: [{{backendRefs: [{{name: v2, port: 8080}}]}}]
"
    );
    Scenario::with(&manifests, [route])
}

#[test]
fn the_older_object_owns_the_host_and_the_other_gets_a_conflict() {
    // The age of a Gateway or of its catch-all listener is irrelevant: only routes that name the host claim it.
    let lost = scenario(2, 1, 3);
    let row = |scenario: &Scenario, route: &str| scenario.status(route)["parents"][0].clone();
    let partly = row(&lost, "HTTPRoute infra/r");
    assert_eq!(status_and_reason(&partly, "Accepted"), "True/Accepted");
    assert_eq!(partly["conditions"][0]["message"], "a Route in another namespace holds a.test and is older");
    assert_eq!(status_and_reason(&row(&lost, "HTTPRoute infra/only"), "Accepted"), "False/HostAlreadyClaimed");
    assert_eq!(lost.listener("infra/g", "http")["attachedRoutes"], 1);
    assert!(
        lost.http(80, &TestRequest::get("a.test/")).contains("Forward"),
        "{}",
        lost.http(80, &TestRequest::get("a.test/"))
    );
    assert_eq!(lost.http(80, &TestRequest::get("b.test/")), "v1");

    let won = scenario(3, 1, 2);
    assert_eq!(status_and_reason(&row(&won, "HTTPRoute infra/only"), "Accepted"), "True/Accepted");
    assert_eq!(won.http(80, &TestRequest::get("a.test/")), "v2");
    assert_eq!(won.listener("infra/g", "http")["attachedRoutes"], 2);
}

#[test]
fn a_route_keeps_its_host_beside_a_catch_all_listener() {
    let route = json!({ "kind": "Route", "metadata": { "namespace": "web", "name": "shop" }, "spec": { "host": "c.test", "to": { "name": "web" } } });
    let gateway = "
kind: Gateway
metadata: {namespace: infra, name: g}
spec: {gatewayClassName: sluice, listeners: [{name: http, port: 80, protocol: HTTP}]}
";
    let scenario = Scenario::with(gateway, [route]);
    assert!(scenario.http(80, &TestRequest::get("c.test/")).contains("Forward"));
    assert_eq!(scenario.http(80, &TestRequest::get("d.test/")), "404");
}

#[test]
fn denied_domains_are_not_served() {
    let gateway = "
kind: Gateway
metadata: {namespace: infra, name: g}
spec: {gatewayClassName: sluice, listeners: [{name: http, port: 80, protocol: HTTP}]}
";
    let route = |name: &str, hosts: &str| {
        format!(
            "---\nkind: HTTPRoute\nmetadata: {{namespace: infra, name: {name}}}\nspec: {{parentRefs: [{{name: g}}], {hosts}rules: \
             [{{backendRefs: [{{name: v1, port: 8080}}]}}]}}\n"
        )
    };
    let manifests = [
        gateway.to_owned(),
        route("any", ""),
        route("exact", "hostnames: [x.bad.test], "),
        route("both", "hostnames: [bad.test, good.test], "),
    ]
    .concat();
    let accepted = |scenario: &Scenario, route: &str| {
        let row = scenario.status(&format!("HTTPRoute infra/{route}"))["parents"][0].clone();
        (status_and_reason(&row, "Accepted"), row["conditions"][0]["message"].as_str().unwrap().to_owned())
    };
    let mut settings = Settings::default();
    settings.domains.denied = vec!["bad.test".to_owned()];
    let scenario = Scenario::with_settings(&settings, &manifests, []);
    for (host, served) in [
        ("bad.test", "404"),
        ("x.bad.test", "404"),
        ("y.x.bad.test", "404"),
        ("good.test", "v1"),
        ("notbad.test", "v1"),
    ] {
        assert_eq!(scenario.http(80, &TestRequest::get(host)), served, "{host}");
    }
    assert_eq!(accepted(&scenario, "any").0, "True/Accepted");
    let message = |host: &str, fault: &str| format!("host {host} is {fault}");
    let denied = "in the list of denied domains";
    assert_eq!(accepted(&scenario, "exact"), ("False/HostNotPermitted".to_owned(), message("x.bad.test", denied)));
    assert_eq!(accepted(&scenario, "both"), ("True/Accepted".to_owned(), message("bad.test", denied)));

    settings.domains.allowed = vec!["test".to_owned()];
    let scenario = Scenario::with_settings(&settings, &manifests, []);
    for (host, served) in
        [("bad.test", "404"), ("good.test", "v1"), ("test", "v1"), ("good.org", "404"), ("atest", "404")]
    {
        assert_eq!(scenario.http(80, &TestRequest::get(host)), served, "{host}");
    }
    settings.domains.denied.clear();
    settings.domains.allowed = vec!["bad.test".to_owned()];
    let scenario = Scenario::with_settings(&settings, &manifests, []);
    for (host, served) in [("bad.test", "v1"), ("x.bad.test", "v1"), ("good.test", "404"), ("test", "404")] {
        assert_eq!(scenario.http(80, &TestRequest::get(host)), served, "{host}");
    }
    assert_eq!(accepted(&scenario, "both").1, message("good.test", "not in the list of allowed domains"));
}

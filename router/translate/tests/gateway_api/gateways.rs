//! Statuses of GatewayClasses and Gateways.

use serde_json::{Value, json};

use crate::scenario::{Scenario, TestRequest, secret};

const HTTP: &str = "
kind: Gateway
metadata: {namespace: infra, name: web, generation: 7}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
";

fn generations(status: &Value) -> Vec<i64> {
    match status {
        Value::Object(map) => {
            let own = map.get("observedGeneration").and_then(Value::as_i64);
            own.into_iter().chain(map.values().flat_map(generations)).collect()
        }
        Value::Array(items) => items.iter().flat_map(generations).collect(),
        _ => Vec::new(),
    }
}

/// GatewayClassObservedGenerationBump, GatewayObservedGenerationBump, HTTPRouteObservedGenerationBump.
#[test]
fn conditions_have_the_observed_generation() {
    let manifests = |generation: u32| {
        format!(
            "
kind: GatewayClass
metadata: {{name: bumped, generation: {generation}}}
spec: {{controllerName: sluice.dev/gateway-controller}}
---
kind: Gateway
metadata: {{namespace: infra, name: web, generation: {generation}}}
spec:
  gatewayClassName: bumped
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
---
kind: HTTPRoute
metadata: {{namespace: infra, name: r, generation: {generation}}}
spec:
  parentRefs: [{{name: web}}]
  rules: [{{backendRefs: [{{name: v1, port: 8080}}]}}]
"
        )
    };
    for generation in [1, 2] {
        let scenario = Scenario::new(&manifests(generation));
        for (object, conditions) in [("GatewayClass bumped", 2), ("Gateway infra/web", 3 + 4), ("HTTPRoute infra/r", 2)]
        {
            let seen = generations(&scenario.status(object));
            assert_eq!(seen, vec![i64::from(generation); conditions], "{object}");
        }
    }
}

#[test]
fn a_class_reports_unsupported_definitions() {
    let definition = |name: &str, annotations: &str| {
        format!(
            "---\nkind: CustomResourceDefinition\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\nspec: {{}}\n"
        )
    };
    let version = |version: &str| {
        let annotations = format!(
            "gateway.networking.k8s.io/bundle-version: {version}, kubectl.kubernetes.io/last-applied-configuration: x"
        );
        Scenario::new(&definition("gateways.gateway.networking.k8s.io", &annotations))
    };
    let supported = |scenario: &Scenario| scenario.condition("GatewayClass sluice", "SupportedVersion");
    assert_eq!(supported(&version("v1.6.1")), "True/SupportedVersion");
    let scenario = version("v1.7.0");
    assert_eq!(supported(&scenario), "False/UnsupportedVersion");
    let conditions = scenario.status("GatewayClass sluice")["conditions"].clone();
    let message = conditions.as_array().unwrap().iter().find(|it| it["type"] == "SupportedVersion").unwrap();
    let expected = "the installed definitions are of version \"v1.7.0\"; v1.0 to v1.6 are understood";
    assert_eq!(message["message"], expected);
    // Definitions of other groups do not concern this API.
    let other = definition("things.example.com", "gateway.networking.k8s.io/bundle-version: v9.0.0");
    assert_eq!(supported(&Scenario::new(&other)), "True/SupportedVersion");
}

#[test]
fn a_class_of_sluice_is_accepted_and_lists_its_features() {
    let scenario = Scenario::new(
        "
kind: GatewayClass
metadata: {name: foreign}
spec: {controllerName: example.com/other}
",
    );
    assert_eq!(scenario.condition("GatewayClass sluice", "Accepted"), "True/Accepted");
    assert_eq!(scenario.condition("GatewayClass sluice", "SupportedVersion"), "True/SupportedVersion");
    assert_eq!(scenario.status("GatewayClass foreign"), Value::Null);
    let status = scenario.status("GatewayClass sluice");
    let features: Vec<&str> = status["supportedFeatures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|feature| feature["name"].as_str().unwrap())
        .collect();
    assert!(features.is_sorted());
    for core in ["Gateway", "HTTPRoute", "ReferenceGrant", "TLSRoute", "GRPCRoute"] {
        assert!(features.contains(&core), "{core}");
    }
}

/// GatewayInvalidParametersRef.
#[test]
fn parameters_are_rejected() {
    let scenario = Scenario::new(
        "
kind: GatewayClass
metadata: {name: tuned}
spec:
  controllerName: sluice.dev/gateway-controller
  parametersRef: {group: example.com, kind: Tuning, name: fast}
---
kind: Gateway
metadata: {namespace: infra, name: of-tuned}
spec: {gatewayClassName: tuned, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: Gateway
metadata: {namespace: infra, name: tuned}
spec:
  gatewayClassName: sluice
  infrastructure: {parametersRef: {group: example.com, kind: Tuning, name: fast}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
kind: HTTPRoute
metadata: {namespace: infra, name: r}
spec: {parentRefs: [{name: tuned}, {name: of-tuned}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}
",
    );
    assert_eq!(scenario.condition("GatewayClass tuned", "Accepted"), "False/InvalidParameters");
    assert_eq!(scenario.condition("Gateway infra/of-tuned", "Accepted"), "False/Pending");
    assert_eq!(scenario.condition("Gateway infra/tuned", "Accepted"), "False/InvalidParameters");
    assert_eq!(scenario.condition("Gateway infra/tuned", "Programmed"), "False/Invalid");
    assert_eq!(
        scenario.parents("HTTPRoute infra/r"),
        ["tuned False/NoReadyListeners True/ResolvedRefs", "of-tuned False/NoReadyListeners True/ResolvedRefs"]
    );
    assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), "NoRoute");
}

#[test]
fn a_gateway_accepts_only_addresses_of_the_router() {
    for (addresses, accepted) in [
        ("[]", "True/Accepted"),
        ("[{type: IPAddress, value: 192.0.2.1}]", "True/Accepted"),
        // Any address is acceptable.
        ("[{type: IPAddress}]", "True/Accepted"),
        ("[{value: 192.0.2.9}]", "False/UnsupportedAddress"),
        ("[{value: 192.0.2.1}, {value: 192.0.2.9}]", "False/UnsupportedAddress"),
        ("[{type: Hostname, value: www.example.com}]", "False/UnsupportedAddress"),
    ] {
        let scenario = Scenario::new(&format!("{HTTP}  addresses: {addresses}\n"));
        assert_eq!(scenario.condition("Gateway infra/web", "Accepted"), accepted, "{addresses}");
        let status = scenario.status("Gateway infra/web");
        assert_eq!(status["addresses"], json!([{ "type": "IPAddress", "value": "192.0.2.1" }]));
    }
}

#[test]
fn a_gateway_of_another_class_gets_no_status() {
    let scenario = Scenario::new(&HTTP.replace("sluice", "other"));
    assert_eq!(scenario.status("Gateway infra/web"), Value::Null);
}

/// GatewayWithAttachedRoutes.
#[test]
fn listeners_count_accepted_routes() {
    let scenario = Scenario::new(
        "
kind: Gateway
metadata: {namespace: infra, name: two}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: a, port: 80, protocol: HTTP, hostname: a.test}
  - {name: b, port: 80, protocol: HTTP, hostname: b.test}
  - {name: unresolved, port: 443, protocol: HTTPS, hostname: c.test, tls: {certificateRefs: [{name: missing}]}}
---
kind: HTTPRoute
metadata: {namespace: infra, name: on-a}
spec: {parentRefs: [{name: two, sectionName: a}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}
---
kind: HTTPRoute
metadata: {namespace: infra, name: on-all}
spec: {parentRefs: [{name: two}], rules: [{backendRefs: [{name: missing, port: 8080}]}]}
---
kind: HTTPRoute
metadata: {namespace: infra, name: elsewhere}
spec: {parentRefs: [{name: two}], hostnames: [d.test], rules: [{backendRefs: [{name: v1, port: 8080}]}]}
---
kind: HTTPRoute
metadata: {namespace: app, name: foreign}
spec: {parentRefs: [{name: two, namespace: infra}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}
",
    );
    // The count includes routes with unresolved references, and routes of a listener without a certificate.
    for (listener, count) in [("a", 2), ("b", 1), ("unresolved", 1)] {
        assert_eq!(scenario.listener("infra/two", listener)["attachedRoutes"], count, "{listener}");
    }
    assert_eq!(scenario.parents("HTTPRoute infra/on-all"), ["two True/Accepted False/BackendNotFound"]);
    assert_eq!(scenario.of_listener("infra/two", "unresolved", "Programmed"), "False/Invalid");
}

/// GatewayModifyListeners.
#[test]
fn listeners_are_added_and_removed() {
    let https = "  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: tls}]}}\n";
    let pair = || secret("infra/tls", &["*.test"]);
    let names = |scenario: &Scenario| {
        let status = scenario.status("Gateway infra/web");
        let listeners = status["listeners"].as_array().unwrap().clone();
        listeners.iter().map(|listener| listener["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let both = Scenario::with(&format!("{HTTP}{https}"), [pair()]);
    assert_eq!(names(&both), ["http", "https"]);
    assert_eq!(both.of_listener("infra/web", "https", "Programmed"), "True/Programmed");
    assert_eq!(both.https(443, &TestRequest::get("a.test/")), "404");
    let one = Scenario::with(HTTP, [pair()]);
    assert_eq!(names(&one), ["http"]);
    assert_eq!(one.condition("Gateway infra/web", "Programmed"), "True/Programmed");
}

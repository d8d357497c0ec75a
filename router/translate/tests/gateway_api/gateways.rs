//! GatewayClasses and Gateways.

use serde_json::{Value, json};

use crate::world::{Ask, World, secret};

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
fn conditions_are_about_the_generation_that_was_seen() {
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
        let world = World::new(&manifests(generation));
        for (object, conditions) in [("GatewayClass bumped", 2), ("Gateway infra/web", 3 + 4), ("HTTPRoute infra/r", 2)]
        {
            let seen = generations(&world.status(object));
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
        World::new(&definition("gateways.gateway.networking.k8s.io", &annotations))
    };
    let supported = |world: &World| world.condition("GatewayClass sluice", "SupportedVersion");
    assert_eq!(supported(&version("v1.6.1")), "True/SupportedVersion");
    let world = version("v1.7.0");
    assert_eq!(supported(&world), "False/UnsupportedVersion");
    let conditions = world.status("GatewayClass sluice")["conditions"].clone();
    let message = conditions.as_array().unwrap().iter().find(|it| it["type"] == "SupportedVersion").unwrap();
    let told = "the installed definitions are of version \"v1.7.0\"; v1.0 to v1.6 are understood";
    assert_eq!(message["message"], told);
    // Definitions of other groups do not concern this API.
    let other = definition("things.example.com", "gateway.networking.k8s.io/bundle-version: v9.0.0");
    assert_eq!(supported(&World::new(&other)), "True/SupportedVersion");
}

#[test]
fn a_class_of_ours_is_accepted_and_lists_its_features() {
    let world = World::new(
        "
kind: GatewayClass
metadata: {name: foreign}
spec: {controllerName: example.com/other}
",
    );
    assert_eq!(world.condition("GatewayClass sluice", "Accepted"), "True/Accepted");
    assert_eq!(world.condition("GatewayClass sluice", "SupportedVersion"), "True/SupportedVersion");
    assert_eq!(world.status("GatewayClass foreign"), Value::Null);
    let status = world.status("GatewayClass sluice");
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
fn parameters_are_refused() {
    let world = World::new(
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
    assert_eq!(world.condition("GatewayClass tuned", "Accepted"), "False/InvalidParameters");
    assert_eq!(world.condition("Gateway infra/of-tuned", "Accepted"), "False/Pending");
    assert_eq!(world.condition("Gateway infra/tuned", "Accepted"), "False/InvalidParameters");
    assert_eq!(world.condition("Gateway infra/tuned", "Programmed"), "False/Invalid");
    assert_eq!(
        world.parents("HTTPRoute infra/r"),
        ["tuned False/NoReadyListeners True/ResolvedRefs", "of-tuned False/NoReadyListeners True/ResolvedRefs"]
    );
    assert_eq!(world.http(80, &Ask::get("a.test/")), "NoRoute");
}

#[test]
fn a_gateway_has_the_addresses_of_the_router_and_no_others() {
    for (addresses, accepted) in [
        ("[]", "True/Accepted"),
        ("[{type: IPAddress, value: 192.0.2.1}]", "True/Accepted"),
        // Any address is acceptable.
        ("[{type: IPAddress}]", "True/Accepted"),
        ("[{value: 192.0.2.9}]", "False/UnsupportedAddress"),
        ("[{value: 192.0.2.1}, {value: 192.0.2.9}]", "False/UnsupportedAddress"),
        ("[{type: Hostname, value: www.example.com}]", "False/UnsupportedAddress"),
    ] {
        let world = World::new(&format!("{HTTP}  addresses: {addresses}\n"));
        assert_eq!(world.condition("Gateway infra/web", "Accepted"), accepted, "{addresses}");
        let status = world.status("Gateway infra/web");
        assert_eq!(status["addresses"], json!([{ "type": "IPAddress", "value": "192.0.2.1" }]));
    }
}

#[test]
fn a_gateway_of_another_class_is_left_alone() {
    let world = World::new(&HTTP.replace("sluice", "other"));
    assert_eq!(world.status("Gateway infra/web"), Value::Null);
}

/// GatewayWithAttachedRoutes.
#[test]
fn listeners_count_the_routes_that_are_accepted() {
    let world = World::new(
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
        assert_eq!(world.listener("infra/two", listener)["attachedRoutes"], count, "{listener}");
    }
    assert_eq!(world.parents("HTTPRoute infra/on-all"), ["two True/Accepted False/BackendNotFound"]);
    assert_eq!(world.of_listener("infra/two", "unresolved", "Programmed"), "False/Invalid");
}

/// GatewayModifyListeners.
#[test]
fn listeners_come_and_go() {
    let https = "  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: tls}]}}\n";
    let pair = || secret("infra/tls", &["*.test"]);
    let names = |world: &World| {
        let status = world.status("Gateway infra/web");
        let listeners = status["listeners"].as_array().unwrap().clone();
        listeners.iter().map(|listener| listener["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let both = World::with(&format!("{HTTP}{https}"), [pair()]);
    assert_eq!(names(&both), ["http", "https"]);
    assert_eq!(both.of_listener("infra/web", "https", "Programmed"), "True/Programmed");
    assert_eq!(both.https(443, &Ask::get("a.test/")), "404");
    let one = World::with(HTTP, [pair()]);
    assert_eq!(names(&one), ["http"]);
    assert_eq!(one.condition("Gateway infra/web", "Programmed"), "True/Programmed");
}

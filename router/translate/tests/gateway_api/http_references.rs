//! Backends of HTTPRoutes: references that resolve, grants, and responses for invalid backends.

use crate::scenario::{Scenario, TestRequest, status_and_reason};

fn scenario(backends: &str, more: &str) -> Scenario {
    Scenario::new(&format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: g}}
spec:
  gatewayClassName: sluice
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
---
kind: HTTPRoute
metadata: {{namespace: infra, name: r}}
spec:
  parentRefs: [{{name: g}}]
  rules: [{{{backends}}}]
{more}"
    ))
}

fn resolved(scenario: &Scenario) -> String {
    let rows = scenario.parents("HTTPRoute infra/r");
    assert!(rows[0].starts_with("g True/Accepted "), "{rows:?}");
    rows[0].rsplit(' ').next().unwrap().to_owned()
}

/// HTTPRouteInvalidBackendRefUnknownKind, HTTPRouteInvalidNonExistentBackendRef,
/// HTTPRouteInvalidCrossNamespaceBackendRef, HTTPRouteNoBackendRefs.
#[test]
fn unusable_backends_are_reported_and_answered_with_500() {
    for (backends, reason, served) in [
        ("backendRefs: [{name: v1, port: 8080}]", "True/ResolvedRefs", "v1"),
        (
            "backendRefs: [{group: unknownkind.example.com, kind: NonExistent, name: v1, port: 8080}]",
            "False/InvalidKind",
            "500",
        ),
        ("backendRefs: [{kind: ConfigMap, name: v1}]", "False/InvalidKind", "500"),
        ("backendRefs: [{name: nonexistent, port: 8080}]", "False/BackendNotFound", "500"),
        ("backendRefs: [{name: v1, port: 9999}]", "False/BackendNotFound", "500"),
        ("backendRefs: [{namespace: web, name: web, port: 8080}]", "False/RefNotPermitted", "500"),
        // A status does not reveal whether the Service exists.
        ("backendRefs: [{namespace: web, name: missing, port: 8080}]", "False/RefNotPermitted", "500"),
        ("backendRefs: []", "True/ResolvedRefs", "500"),
        ("backendRefs: [{name: v1, port: 8080, weight: 0}]", "True/ResolvedRefs", "500"),
        // Without endpoints the proxy answers 503.
        ("backendRefs: [{name: idle, port: 8080}]", "True/ResolvedRefs", "idle(idle)"),
    ] {
        let scenario = scenario(backends, "");
        assert_eq!(resolved(&scenario), reason, "{backends}");
        assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), served, "{backends}");
    }
}

/// HTTPRouteReferenceGrant, HTTPRouteInvalidReferenceGrant.
#[test]
fn backends_of_other_namespaces_need_a_grant() {
    let grant = |namespace: &str, from: &str, to: &str| {
        format!(
            "---\nkind: ReferenceGrant\nmetadata: {{namespace: {namespace}, name: g}}\nspec: {{from: [{from}], to: [{to}]}}\n"
        )
    };
    let routes = "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: infra}";
    let granted = ("True/ResolvedRefs", "web/web");
    let rejected = ("False/RefNotPermitted", "500");
    for (case, grant, (reason, served)) in [
        ("to the Service", grant("web", routes, "{group: '', kind: Service, name: web}"), granted),
        ("to all Services", grant("web", routes, "{group: '', kind: Service}"), granted),
        ("to another Service", grant("web", routes, "{group: '', kind: Service, name: other}"), rejected),
        ("to another kind", grant("web", routes, "{group: '', kind: Secret}"), rejected),
        ("to another group", grant("web", routes, "{group: example.com, kind: Service}"), rejected),
        ("in another namespace", grant("app", routes, "{group: '', kind: Service}"), rejected),
        ("in the route's namespace", grant("infra", routes, "{group: '', kind: Service}"), rejected),
        (
            "from another namespace",
            grant(
                "web",
                "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}",
                "{group: '', kind: Service}",
            ),
            rejected,
        ),
        (
            "from another kind",
            grant(
                "web",
                "{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}",
                "{group: '', kind: Service}",
            ),
            rejected,
        ),
    ] {
        let scenario = scenario("backendRefs: [{namespace: web, name: web, port: 8080}]", &grant);
        assert_eq!(resolved(&scenario), reason, "{case}");
        assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), served, "{case}");
    }
}

/// HTTPRoutePartiallyInvalidViaInvalidReferenceGrant.
#[test]
fn an_invalid_backend_of_one_rule_does_not_affect_other_rules() {
    let scenario = Scenario::new(
        "
kind: Gateway
metadata: {namespace: infra, name: g}
spec: {gatewayClassName: sluice, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: HTTPRoute
metadata: {namespace: infra, name: r}
spec:
  parentRefs: [{name: g}]
  rules:
  - {matches: [{path: {value: /v2}}], backendRefs: [{namespace: web, name: web, port: 8080}]}
  - {matches: [{path: {value: /}}], backendRefs: [{name: v1, port: 8080}]}
",
    );
    assert_eq!(resolved(&scenario), "False/RefNotPermitted");
    assert_eq!(scenario.http(80, &TestRequest::get("a.test/v2")), "500");
    assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), "v1");
}

/// HTTPRouteWeight.
#[test]
fn weights_are_preserved_and_invalid_backends_fail_in_proportion() {
    for (backends, served) in [
        (
            "backendRefs: [{name: v1, port: 8080, weight: 70}, {name: v2, port: 8080, weight: 30}, {name: v3, port: 8080, weight: 0}]",
            "v1×70 v2×30",
        ),
        ("backendRefs: [{name: v1, port: 8080}, {name: v2, port: 8080}]", "v1×1 v2×1"),
        (
            "backendRefs: [{name: v1, port: 8080, weight: 3}, {name: missing, port: 8080, weight: 1}]",
            "v1×3 missing×1!500",
        ),
        (
            "backendRefs: [{name: v1, port: 8080, weight: 1000000}, {name: idle, port: 8080, weight: 1}]",
            "v1×1000000 idle×1(idle)",
        ),
        ("backendRefs: [{name: missing, port: 8080}, {namespace: web, name: web, port: 8080}]", "500"),
    ] {
        assert_eq!(scenario(backends, "").http(80, &TestRequest::get("a.test/")), served, "{backends}");
    }
}

#[test]
fn session_affinity_is_disabled() {
    let scenario = scenario("backendRefs: [{name: v1, port: 8080}]", "");
    let route = scenario.route(80, &TestRequest::get("a.test/")).unwrap();
    assert!(route.policy.affinity.disabled);
    assert!(!route.is_left_alone());
    assert_eq!(route.id.to_string(), "HTTPRoute:infra/r:0");
}

#[test]
fn backend_tls_follows_policies() {
    let policy = |validation: &str| {
        format!(
            "---\nkind: BackendTLSPolicy\nmetadata: {{namespace: infra, name: p, generation: 3}}\nspec: {{targetRefs: [{{group: '', \
             kind: Service, name: v1}}], validation: {{hostname: in.example.org, {validation}}}}}\n"
        )
    };
    let backends = "backendRefs: [{name: v1, port: 8080}, {name: v2, port: 8080}]";
    let valid = scenario(backends, &policy("wellKnownCACertificates: System"));
    let route = valid.route(80, &TestRequest::get("a.test/")).unwrap();
    let tls = route.cluster.services[0].policy.as_ref().and_then(|policy| policy.tls.clone()).unwrap();
    assert_eq!((tls.server_name().as_ref(), tls.roots().is_none()), ("in.example.org", true));
    assert!(route.cluster.services[1].policy.is_none());
    let ancestor = valid.status("BackendTLSPolicy infra/p")["ancestors"][0].clone();
    assert_eq!(ancestor["ancestorRef"]["name"], "g");
    assert_eq!(ancestor["conditions"][0]["observedGeneration"], 3);
    assert_eq!(status_and_reason(&ancestor, "Accepted"), "True/Accepted");

    // If an endpoint cannot be verified, requests are not sent in clear text instead; the route itself is valid.
    let bad = scenario(backends, &policy("caCertificateRefs: [{group: '', kind: ConfigMap, name: missing}]"));
    assert_eq!(bad.http(80, &TestRequest::get("a.test/")), "v1×1!500 v2×1");
    assert_eq!(resolved(&bad), "True/ResolvedRefs");
    let ancestor = bad.status("BackendTLSPolicy infra/p")["ancestors"][0].clone();
    assert_eq!(status_and_reason(&ancestor, "Accepted"), "False/NoValidCACertificate");
}

/// A BackendTLSPolicy's status lists the Gateways that send its Service requests or copies, and no others.
#[test]
fn policy_statuses_list_the_gateways_that_reach_the_service() {
    let policy = |id: &str| {
        let (namespace, name) = id.split_once('/').unwrap();
        format!(
            "---\nkind: BackendTLSPolicy\nmetadata: {{namespace: {namespace}, name: p}}\nspec: {{targetRefs: [{{group: '', \
             kind: Service, name: {name}}}], validation: {{hostname: in.example.org, wellKnownCACertificates: System}}}}\n"
        )
    };
    let policy_condition = |scenario: &Scenario, id: &str| {
        let status = scenario.status(&format!("BackendTLSPolicy {id}"));
        status["ancestors"].as_array().map(|ancestors| status_and_reason(&ancestors[0], "Accepted"))
    };
    let mirror = "filters: [{type: RequestMirror, requestMirror: {backendRef: {name: v2, port: 8080}}}]";
    let copied = scenario(&format!("backendRefs: [{{name: v1, port: 8080}}], {mirror}"), &policy("infra/v2"));
    assert_eq!(policy_condition(&copied, "infra/p").as_deref(), Some("True/Accepted"), "a mirror is reached, too");
    assert_eq!(
        policy_condition(&scenario("backendRefs: [{name: v1, port: 8080}]", &policy("infra/v2")), "infra/p"),
        None
    );
    // An unpermitted reference is not reported to the owner of the Service.
    let foreign = "backendRefs: [{namespace: web, name: web, port: 8080}]";
    assert_eq!(policy_condition(&scenario(foreign, &policy("web/web")), "web/p"), None);
    let grant = "---\nkind: ReferenceGrant\nmetadata: {namespace: web, name: a}\nspec: {from: [{group: gateway.networking.k8s.io, \
                 kind: HTTPRoute, namespace: infra}], to: [{group: '', kind: Service}]}\n";
    let granted = scenario(foreign, &(policy("web/web") + grant));
    assert_eq!(policy_condition(&granted, "web/p").as_deref(), Some("True/Accepted"));
    let missing = scenario("backendRefs: [{name: gone, port: 8080}]", &policy("infra/gone"));
    assert_eq!(policy_condition(&missing, "infra/p").as_deref(), Some("False/TargetNotFound"));
}

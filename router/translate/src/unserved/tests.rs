//! Warnings for objects that no status covers, with the verdict and the fix of `explain`.

use router_api::testing::{controller, resources, route};
use router_table::live_state::Trust;
use serde_json::{Value, json};

use super::*;
use crate::explain::explain;
use crate::explain::explanation::Explanation;
use crate::explain::facts::Facts;
use crate::explain::query::Query;
use crate::settings::Settings;
use crate::translate::translate;
use crate::warning::Warning;

/// Warnings of `validate` and the log about these objects, except those on endpoints, and the explanation of
/// `http://h.test/`.
fn findings(objects: Vec<Value>) -> (Vec<String>, Explanation) {
    let resources = resources(objects);
    let translation = translate(&resources, &Settings::default());
    let about_endpoints = |warning: &&Warning| !warning.message.contains("Service");
    let warnings = translation.warnings.iter().filter(about_endpoints);
    let warnings = warnings.map(|it| format!("{}: {}: {}", it.object, it.path, it.message)).collect();
    (
        warnings,
        explain(
            Facts::of(&translation.table, &translation.report, &resources, Trust::default()),
            &Query::parse("http://h.test/").unwrap(),
        ),
    )
}

fn class(name: &str, controller: &str) -> Value {
    json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": { "name": name },
        "spec": { "controllerName": controller } })
}

fn gateway(name: &str, class: &str) -> Value {
    json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": { "namespace": "a", "name": name },
        "spec": { "gatewayClassName": class, "listeners": [{ "name": "web", "port": 80, "protocol": "HTTP" }] } })
}

fn http_route(name: &str, parents: Value) -> Value {
    json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": { "namespace": "a", "name": name },
        "spec": { "parentRefs": parents, "hostnames": ["h.test"], "rules": [{ "backendRefs": [{ "name": "web", "port": 80 }] }] } })
}

#[track_caller]
fn expect(objects: Vec<Value>, warnings: &[&str], verdict: &str, fix: &str) {
    let (found, explanation) = findings(objects);
    assert_eq!(found, warnings);
    assert_eq!(explanation.verdict, verdict, "{explanation}");
    assert_eq!(explanation.fix.as_deref(), Some(fix), "{explanation}");
    assert!(!explanation.served);
}

#[test]
fn objects_of_another_controllers_class_are_reported_down_to_their_routes() {
    let objects = vec![
        class("nginx", "example.com/nginx"),
        gateway("public", "nginx"),
        http_route("web", json!([{ "name": "public" }])),
    ];
    expect(
        objects,
        &[
            "GatewayClass nginx: spec.controllerName: it is of controller example.com/nginx, so that nothing of its \
             Gateways is served here; write sluice.dev/gateway-controller, if it is meant for Sluice",
            "Gateway a/public: spec.gatewayClassName: GatewayClass nginx is of controller example.com/nginx, not of \
             Sluice; name a GatewayClass of controller sluice.dev/gateway-controller",
            "HTTPRoute a/web: spec.parentRefs[0]: its parent Gateway a/public is not served: GatewayClass nginx \
             is of controller example.com/nginx, not of Sluice; correct spec.gatewayClassName of the Gateway, or name \
             another",
        ],
        "503: HTTPRoute a/web claims it and is not served: its parent Gateway a/public is not served: GatewayClass \
         nginx is of controller example.com/nginx, not of Sluice",
        "correct spec.gatewayClassName of the Gateway, or name another",
    );
}

#[test]
fn a_missing_class_or_gateway_is_reported_with_an_existing_one() {
    let served = || [class("sluice", "sluice.dev/gateway-controller"), gateway("good", "sluice")];
    let mut objects = served().to_vec();
    objects.extend([gateway("public", "typo"), http_route("web", json!([{ "name": "public" }]))]);
    expect(
        objects,
        &[
            "Gateway a/public: spec.gatewayClassName: there is no GatewayClass typo; write sluice",
            "HTTPRoute a/web: spec.parentRefs[0]: its parent Gateway a/public is not served: there is no \
             GatewayClass typo; correct spec.gatewayClassName of the Gateway, or name another, such as a/good",
        ],
        "404: Gateway a/good#web has *, and no route with it is attached there; HTTPRoute a/web claims h.test and is not \
         served: its parent Gateway a/public is not served: there is no GatewayClass typo",
        "correct spec.gatewayClassName of the Gateway, or name another, such as a/good",
    );
    let mut objects = served().to_vec();
    objects.push(http_route("web", json!([{ "name": "public", "namespace": "b" }])));
    expect(
        objects,
        &[
            "HTTPRoute a/web: spec.parentRefs[0]: there is no Gateway b/public; create it, or name another, such as a/good",
        ],
        "404: Gateway a/good#web has *, and no route with it is attached there; HTTPRoute a/web claims h.test and is not \
         served: there is no Gateway b/public",
        "create it, or name another, such as a/good",
    );
}

#[test]
fn a_route_without_a_serving_parent_is_reported() {
    expect(
        vec![http_route("web", json!([]))],
        &[
            "HTTPRoute a/web: spec: it is attached to nothing: it has no parentRefs; write spec.parentRefs with the name of a Gateway",
        ],
        "503: HTTPRoute a/web claims it and is not served: it is attached to nothing: it has no parentRefs",
        "write spec.parentRefs with the name of a Gateway",
    );
    expect(
        vec![http_route("web", json!([{ "group": "", "kind": "Service", "name": "web" }]))],
        &[],
        "503: HTTPRoute a/web claims it and is not served: its parent Service web of group core serves nothing here",
        "name a Gateway of group gateway.networking.k8s.io",
    );
}

#[test]
fn one_gateway_of_ours_is_enough_unless_another_is_missing() {
    let objects = vec![
        class("sluice", "sluice.dev/gateway-controller"),
        class("nginx", "example.com/nginx"),
        gateway("good", "sluice"),
        gateway("other", "nginx"),
        http_route("web", json!([{ "name": "good" }, { "name": "other" }, { "name": "gone" }])),
    ];
    let (found, explanation) = findings(objects);
    let of_route: Vec<_> = found.iter().filter(|warning| warning.starts_with("HTTPRoute")).collect();
    assert_eq!(
        of_route,
        ["HTTPRoute a/web: spec.parentRefs[2]: there is no Gateway a/gone; create it, or name another, such as a/good"]
    );
    assert!(explanation.verdict.starts_with("500: HTTPRoute a/web has it"), "{explanation}");
}

#[test]
fn contours_objects_of_another_class_are_reported_at_the_field_of_the_class() {
    let proxy = |member: Value, annotations: Value| {
        let mut proxy = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
            "metadata": { "namespace": "a", "name": "p", "annotations": annotations },
            "spec": { "virtualhost": { "fqdn": "h.test" }, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] } });
        proxy["spec"].as_object_mut().unwrap().extend(member.as_object().unwrap().clone());
        proxy
    };
    let why = "it is of ingress class \"nginx\", which other controllers serve";
    let verdict = format!("503: HTTPProxy a/p claims it and is not served: {why}");
    let fix = "write contour, or leave the class out";
    expect(
        vec![proxy(json!({ "ingressClassName": "nginx" }), json!({}))],
        &[&format!("HTTPProxy a/p: spec.ingressClassName: {why}; {fix}")],
        &verdict,
        fix,
    );
    expect(
        vec![proxy(json!({}), json!({ "kubernetes.io/ingress.class": "nginx" }))],
        &[&format!("HTTPProxy a/p: metadata.annotations[kubernetes.io/ingress.class]: {why}; {fix}")],
        &verdict,
        fix,
    );
}

#[test]
fn a_route_that_no_router_selects_is_reported_with_the_selector() {
    let one = controller("default", json!({ "routeSelector": { "matchLabels": { "shard": "one" } } }));
    let labels = "its labels are not those of spec.routeSelector of IngressController default";
    let verdict = |why: &str| format!("503: Route a/r claims it and is not served: no router selects it: {why}");
    let fix = "correct the labels or the selector";
    let of_route = |why: &str| format!("Route a/r: : no router selects it: {why}; {fix}");
    let objects = vec![one.clone(), route("a/r", 1, json!({ "host": "h.test" }))];
    expect(objects, &[&of_route(labels)], &verdict(labels), fix);
    let two = controller(
        "two",
        json!({ "domain": "two.test", "namespaceSelector": { "matchLabels": { "shard": "two" } },
        "endpointPublishingStrategy": { "type": "HostNetwork", "hostNetwork": { "httpPort": 81, "httpsPort": 444 } } }),
    );
    let objects = vec![one, two, route("a/r", 1, json!({ "host": "h.test" }))];
    let both = format!("{labels}, and 1 more do not select it");
    expect(objects, &[&of_route(&both)], &verdict(&both), fix);
}

#[test]
fn a_query_on_a_port_of_an_unserved_gateway_shows_the_objects_that_claim_the_host() {
    let mut gateway = gateway("public", "gone");
    gateway["spec"]["listeners"][0]["port"] = json!(8080);
    let resources = resources([gateway, http_route("web", json!([{ "name": "public" }]))]);
    let translation = translate(&resources, &Settings::default());
    let explanation = explain(
        Facts::of(&translation.table, &translation.report, &resources, Trust::default()),
        &Query::parse("http://h.test:8080/").unwrap(),
    );
    assert_eq!(
        explanation.verdict,
        "no router listens on port 8080 for http; HTTPRoute a/web claims h.test and is not served: its parent Gateway \
         a/public is not served: there is no GatewayClass gone"
    );
}

#[test]
fn a_route_claims_the_hosts_of_the_listeners_that_it_names() {
    let listener = |name: &str, host: &str| json!({ "name": name, "port": 80, "protocol": "HTTP", "hostname": host });
    let mut public = gateway("public", "nginx");
    public["spec"]["listeners"] = json!([listener("one", "*.one.test"), listener("two", "*.two.test")]);
    let wanted = |hosts: Value, parent: Value| {
        let mut route = http_route("web", json!([parent]));
        route["spec"]["hostnames"] = hosts;
        let resources = resources([class("nginx", "example.com/nginx"), public.clone(), route]);
        let report = translate(&resources, &Settings::default()).report;
        let all = unserved(&resources, &report).into_iter();
        all.filter(|it| it.object.kind == Kind::HttpRoute).flat_map(|it| it.hosts).collect::<Vec<_>>()
    };
    let both = || json!(["a.one.test", "a.two.test"]);
    assert_eq!(wanted(both(), json!({ "name": "public" })), ["a.one.test", "a.two.test"]);
    assert_eq!(wanted(both(), json!({ "name": "public", "sectionName": "two" })), ["a.two.test"]);
    assert_eq!(wanted(json!([]), json!({ "name": "public", "sectionName": "one" })), ["*.one.test"]);
    assert_eq!(wanted(json!(["a.two.test"]), json!({ "name": "public", "sectionName": "one" })), ["a.two.test"]);
}

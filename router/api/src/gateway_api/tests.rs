//! Gateway API objects: the results of valid manifests.

mod properties;
mod unsupported;

use std::time::Duration;

use router_model::names::Hostname;
use router_table::header_modifier::HeaderModifier;
use router_table::host_pattern::HostPattern;
use router_table::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use router_table::rule::Retry;
use serde_json::json;

use super::*;
use crate::gateway_api::types::{Filter, FromNamespaces, GatewayRoute};
use crate::redirect::PathModifier;
use crate::testing::{good, parsed, refusals};

fn object(kind: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": { "namespace": "shop", "name": "it" },
        "spec": spec,
    })
}

fn route(kind: &str, spec: Value) -> Arc<GatewayRoute> {
    match good(object(kind, spec)) {
        Object::HttpRoute(route) | Object::GrpcRoute(route) | Object::TlsRoute(route) => route,
        other => panic!("no route: {other:?}"),
    }
}

fn gateway(spec: Value) -> Arc<crate::gateway_api::types::Gateway> {
    match good(object("Gateway", spec)) {
        Object::Gateway(gateway) => gateway,
        other => panic!("no Gateway: {other:?}"),
    }
}

fn name(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

#[test]
fn a_gateway_is_stored_with_the_defaults_of_the_api() {
    let gateway = gateway(json!({
        "gatewayClassName": "sluice",
        "listeners": [
            { "name": "web", "port": 80, "protocol": "HTTP" },
            { "name": "tls", "port": 443, "protocol": "HTTPS", "hostname": "*.example.com",
              "tls": { "certificateRefs": [{ "name": "cert" }, { "name": "other", "namespace": "certs" }] },
              "allowedRoutes": { "kinds": [{ "kind": "HTTPRoute" }], "namespaces": { "from": "All" } } },
            { "name": "raw", "port": 443, "protocol": "TLS", "hostname": "raw.example.com", "tls": { "mode": "Passthrough" },
              "allowedRoutes": { "namespaces": { "from": "Selector", "selector": { "matchLabels": { "team": "a" } } } } },
        ],
        "addresses": [{ "value": "192.0.2.1" }],
    }));
    let stored = gateway.manifest.value();
    assert_eq!(stored["spec"]["listeners"][0]["allowedRoutes"], json!({ "namespaces": { "from": "Same" } }));
    assert_eq!(
        stored["spec"]["listeners"][1]["tls"],
        json!({ "mode": "Terminate", "certificateRefs": [
            { "name": "cert", "group": "", "kind": "Secret" },
            { "name": "other", "namespace": "certs", "group": "", "kind": "Secret" },
        ] })
    );
    assert_eq!(stored["spec"]["addresses"], json!([{ "value": "192.0.2.1", "type": "IPAddress" }]));
    let [web, tls, raw] = gateway.listeners.as_slice() else { panic!() };
    assert!(web.hostname == HostPattern::Any && web.tls.is_none() && web.allowed.kinds.is_none());
    assert!(matches!(web.allowed.from, FromNamespaces::Same));
    assert_eq!(tls.hostname, HostPattern::Suffix(name("example.com")));
    assert_eq!(tls.tls.as_ref().unwrap().certificates[1].namespace.as_deref(), Some("certs"));
    assert_eq!(tls.allowed.kinds, Some(vec![("gateway.networking.k8s.io".into(), "HTTPRoute".into())]));
    assert!(raw.tls.as_ref().unwrap().passthrough && matches!(raw.allowed.from, FromNamespaces::Selector(_)));
    assert!(gateway.unsupported.is_empty() && !gateway.has_parameters);
}

#[test]
fn a_selector_that_is_missing_selects_nothing() {
    let found = gateway(json!({ "gatewayClassName": "c", "listeners": [
        { "name": "web", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "Selector" } } },
    ] }));
    assert!(matches!(found.listeners[0].allowed.from, FromNamespaces::None));
}

#[test]
fn an_http_route_is_stored_with_the_defaults_of_the_api() {
    let found = route("HTTPRoute", json!({ "parentRefs": [{ "name": "gw" }], "hostnames": ["a.test", "*.b.test"] }));
    let stored = found.manifest.value();
    let parent = json!({ "name": "gw", "group": "gateway.networking.k8s.io", "kind": "Gateway" });
    assert_eq!(stored["spec"]["parentRefs"], json!([parent]));
    assert_eq!(stored["spec"]["rules"], json!([{ "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }] }]));
    assert_eq!(found.hostnames, [HostPattern::Exact(name("a.test")), HostPattern::Suffix(name("b.test"))]);
    let [rule] = found.rules.as_slice() else { panic!() };
    assert!(matches!(&rule.matches[0].path, PathMatcher::Prefix(path) if &**path == "/"));
    assert!(rule.backends.is_empty() && rule.filters.is_empty());
}

#[test]
fn a_rule_keeps_all_that_was_written() {
    let found = route(
        "HTTPRoute",
        json!({ "rules": [{
        "name": "cart",
        "matches": [{
            "path": { "value": "/cart/" }, "method": "GET",
            "headers": [
                { "name": "X-Version", "value": "2" },
                { "name": "x-version", "value": "3" },
                { "name": "X-Id", "type": "RegularExpression", "value": "[0-9]+" },
            ],
            "queryParams": [{ "name": "Q", "value": "a" }, { "name": "q", "value": "b" }],
        }, { "path": { "type": "Exact", "value": "/cart/" } }, { "path": { "type": "RegularExpression", "value": "/a|/b" } }],
        "filters": [
            { "type": "RequestHeaderModifier", "requestHeaderModifier": {
                "set": [{ "name": "X-A", "value": "1" }], "add": [{ "name": "X-B", "value": "a b" }], "remove": ["X-C"] } },
            { "type": "URLRewrite", "urlRewrite": { "hostname": "up.test", "path": { "type": "ReplaceFullPath", "replaceFullPath": "/new" } } },
            { "type": "RequestMirror", "requestMirror": { "backendRef": { "name": "m", "port": 1 }, "fraction": { "numerator": 1 } } },
            { "type": "CORS", "cors": { "allowOrigins": ["https://*.a.test"], "allowMethods": ["*"] } },
        ],
        "backendRefs": [{ "name": "web", "port": 8080 }, { "name": "slot", "group": "gateway.sluice.dev", "kind": "RouteSlot", "weight": 0 }],
        "timeouts": { "request": "10s", "backendRequest": "0s" },
    }] }),
    );
    let [rule] = found.rules.as_slice() else { panic!() };
    let RequestMatcher { path, method, headers, query } = &rule.matches[0];
    assert!(matches!(path, PathMatcher::Prefix(path) if &**path == "/cart"));
    assert_eq!(method.as_deref(), Some("GET"));
    let names: Vec<_> = headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["x-version", "x-id"]);
    assert!(matches!(&headers[0].1, ValueMatcher::Exact(value) if &**value == "2"));
    assert!(matches!(&headers[1].1, ValueMatcher::Regex(it) if it.is_match("12") && !it.is_match("12a")));
    assert_eq!(query.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["Q", "q"]);
    assert!(matches!(&rule.matches[1].path, PathMatcher::Exact(path) if &**path == "/cart/"));
    assert!(matches!(&rule.matches[2].path, PathMatcher::Regex(it) if it.is_match("/b") && !it.is_match("/bc")));
    let modifier = HeaderModifier {
        set: vec![("x-a".into(), "1".into())],
        add: vec![("x-b".into(), "a b".into())],
        remove: vec!["x-c".into()],
    };
    assert_eq!(rule.filters[0], Filter::RequestHeaders(modifier));
    let Filter::Rewrite(rewrite) = &rule.filters[1] else { panic!() };
    assert_eq!(rewrite.path, Some(PathModifier::Full("/new".into())));
    let Filter::Mirror(mirror) = &rule.filters[2] else { panic!() };
    assert_eq!((mirror.share, &*mirror.object.kind), ((1, 100), "Service"));
    let Filter::Cors(cors) = &rule.filters[3] else { panic!() };
    assert_eq!(cors.max_age, 5);
    assert_eq!((rule.backends[0].weight, rule.backends[1].weight), (1, 0));
    assert_eq!((rule.request_timeout, rule.backend_timeout), (Some(Duration::from_secs(10)), None));
    assert_eq!(rule.unsupported, Vec::<String>::new());
}

#[test]
fn a_rule_says_what_is_tried_again() {
    let told =
        |retry: serde_json::Value| route("HTTPRoute", json!({ "rules": [{ "retry": retry }] })).rules[0].retry.clone();
    let retry = |count, statuses, backoff| {
        let backoff = Duration::from_millis(backoff);
        Some(Retry { count, statuses, unanswered: true, unreachable: true, backoff })
    };
    assert_eq!(route("HTTPRoute", json!({ "rules": [{}] })).rules[0].retry, None);
    assert_eq!(told(json!({})), retry(1, vec![], 25));
    assert_eq!(told(json!({ "attempts": 3 })), retry(3, vec![], 25));
    assert_eq!(told(json!({ "codes": [500, 503], "backoff": "1s" })), retry(1, vec![500..=500, 503..=503], 1000));
    assert_eq!(told(json!({ "attempts": 0 })), None);
    let refused = |retry: serde_json::Value| {
        let told = refusals(json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": { "namespace": "a", "name": "b" },
            "spec": { "rules": [{ "retry": retry }] },
        }));
        told.join("; ")
    };
    assert_eq!(
        refused(json!({ "codes": [200] })),
        "spec.rules[0].retry.codes[0]: Invalid value: 200; write a status from 400 to 599"
    );
    assert!(refused(json!({ "attempts": 101 })).starts_with("spec.rules[0].retry.attempts: "));
}

#[test]
fn method_matches_of_grpc_are_paths() {
    let found = route(
        "GRPCRoute",
        json!({ "rules": [{ "matches": [
        { "method": { "service": "shop.v1.Cart", "method": "Add" } },
        { "method": { "service": "shop.v1.Cart" } },
        { "method": { "method": "Add" } },
        { "method": { "type": "RegularExpression", "service": "a|b", "method": "Get.*" } },
        { "headers": [{ "name": "x", "value": "y" }] },
    ] }, {}] }),
    );
    let [rule, any] = found.rules.as_slice() else { panic!() };
    let matches = |path: &PathMatcher, request: &str| match path {
        PathMatcher::Exact(exact) => **exact == *request,
        PathMatcher::Prefix(prefix) => &**prefix == "/" || request.starts_with(&format!("{prefix}/")),
        PathMatcher::Regex(regex) => regex.is_match(request),
    };
    let table = [
        (0, "/shop.v1.Cart/Add", "/shop.v1.Cart/Get"),
        (1, "/shop.v1.Cart/Get", "/shop.v1.CartX/Get"),
        (2, "/any/Add", "/any/AddX"),
        (3, "/b/GetIt", "/ab/GetIt"),
        (4, "/x/y", ""),
    ];
    for (index, good, bad) in table {
        let matcher = &rule.matches[index];
        assert!(matches(&matcher.path, good), "{matcher:?}");
        assert!(bad.is_empty() || !matches(&matcher.path, bad), "{matcher:?}");
        assert_eq!(matcher.method.as_deref(), Some("POST"));
    }
    assert!(matches!(&rule.matches[1].path, PathMatcher::Prefix(_)));
    assert_eq!(any.matches.len(), 1);
}

#[test]
fn a_tls_route_has_one_rule_that_matches_everything() {
    let spec = json!({ "hostnames": ["a.test"], "rules": [{ "backendRefs": [{ "name": "web", "port": 443 }] }] });
    let found = route("TLSRoute", spec);
    assert_eq!((found.rules.len(), found.rules[0].matches.len()), (1, 1));
    assert_eq!(
        refusals(object("TLSRoute", json!({ "rules": [] }))),
        [
            "spec.hostnames: Required value: write at least one item",
            "spec.rules: Required value: write at least one item",
        ]
    );
}

#[test]
fn a_definition_tells_whether_rules_have_allowed_routes() {
    let definition = |name: &str, storage: bool, member: &str| {
        let rule = json!({ member: { "type": "object" } });
        let schema =
            json!({ "properties": { "spec": { "properties": { "rules": { "items": { "properties": rule } } } } } });
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
            "spec": { "versions": [{ "name": "v1", "storage": storage, "schema": { "openAPIV3Schema": schema } }] },
        });
        match good(object) {
            Object::CustomResourceDefinition(definition) => definition.has_inclusions,
            other => panic!("{other:?}"),
        }
    };
    let name = "httproutes.gateway.networking.k8s.io";
    assert!(definition(name, true, "allowedRoutes"));
    assert!(!definition(name, true, "backendRefs"));
    assert!(!definition(name, false, "allowedRoutes"));
    assert!(!definition("grpcroutes.gateway.networking.k8s.io", true, "allowedRoutes"));
}

#[test]
fn unknown_fields_are_warnings() {
    let spec = json!({ "rules": [{ "backendRef": [], "matches": [{ "Path": {} }] }], "hostname": "a.test" });
    let warnings: Vec<String> = parsed(object("HTTPRoute", spec)).warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "spec.rules[0].matches[0].Path: unknown field, ignored; write path",
        "spec.rules[0].backendRef: unknown field, ignored; remove it, or check its spelling",
        "spec.hostname: unknown field, ignored; remove it, or check its spelling",
    ];
    assert_eq!(warnings, expected);
}

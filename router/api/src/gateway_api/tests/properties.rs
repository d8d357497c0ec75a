//! Every input results in an object or in errors; and a stored object parses to the same object.

use proptest::prelude::*;
use router_model::certificate::MaterialCache;
use router_model::object::Origin;
use serde_json::{Map, Value, json};

use super::*;
use crate::defaults::Defaults;
use crate::parse::{ParseOutcome, Parsed, parse};

const KINDS: [(&str, &str); 9] = [
    ("gateway.networking.k8s.io/v1", "GatewayClass"),
    ("gateway.networking.k8s.io/v1", "Gateway"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("gateway.networking.k8s.io/v1", "GRPCRoute"),
    ("gateway.networking.k8s.io/v1", "TLSRoute"),
    ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"),
    ("gateway.networking.k8s.io/v1", "BackendTLSPolicy"),
    ("gateway.sluice.dev/v1alpha1", "RouteSlot"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
];

/// Keywords of the parsers, and texts that may confuse them.
const WORDS: [&str; 70] = [
    "spec",
    "rules",
    "matches",
    "path",
    "type",
    "value",
    "Exact",
    "PathPrefix",
    "RegularExpression",
    "headers",
    "name",
    "queryParams",
    "method",
    "GET",
    "filters",
    "RequestHeaderModifier",
    "requestHeaderModifier",
    "set",
    "add",
    "remove",
    "RequestRedirect",
    "requestRedirect",
    "statusCode",
    "replacePrefixMatch",
    "ReplacePrefixMatch",
    "URLRewrite",
    "urlRewrite",
    "CORS",
    "cors",
    "allowOrigins",
    "RequestMirror",
    "requestMirror",
    "backendRef",
    "backendRefs",
    "port",
    "weight",
    "kind",
    "group",
    "namespace",
    "parentRefs",
    "sectionName",
    "hostnames",
    "listeners",
    "protocol",
    "HTTP",
    "TLS",
    "tls",
    "certificateRefs",
    "mode",
    "Passthrough",
    "allowedRoutes",
    "namespaces",
    "from",
    "Selector",
    "timeouts",
    "request",
    "targetRefs",
    "validation",
    "subjectAltNames",
    "versions",
    "",
    "*",
    "*.a.test",
    "a.test",
    "/",
    "/é%",
    "(((",
    "\u{0}",
    "10s",
    "99999h",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..70_000i64).prop_map(Value::from),
        Just(json!(1.5)),
        prop::sample::select(&WORDS[..]).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        let key = prop_oneof![9 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn good_specs() -> Vec<Value> {
    vec![
        json!({ "controllerName": "a.test/b", "parametersRef": { "group": "", "kind": "A", "name": "b" } }),
        json!({ "gatewayClassName": "c", "addresses": [{ "value": "192.0.2.1" }], "listeners": [
            { "name": "a", "port": 1, "protocol": "HTTPS", "hostname": "*.a.test", "tls": { "certificateRefs": [{ "name": "c" }] } },
            { "name": "b", "port": 2, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "Selector", "selector": {
                "matchExpressions": [{ "key": "k", "operator": "In", "values": ["v"] }] } }, "kinds": [{ "kind": "HTTPRoute" }] } } ] }),
        json!({ "parentRefs": [{ "name": "g", "sectionName": "s", "port": 1 }], "hostnames": ["a.test"], "rules": [{
            "matches": [{ "path": { "value": "/a" }, "headers": [{ "name": "x", "value": "y" }],
                "queryParams": [{ "name": "q", "value": "v", "type": "RegularExpression" }], "method": "GET" }],
            "filters": [
                { "type": "RequestHeaderModifier", "requestHeaderModifier": { "set": [{ "name": "a", "value": "b" }], "remove": ["c"] } },
                { "type": "RequestMirror", "requestMirror": { "backendRef": { "name": "m", "port": 1 }, "fraction": { "numerator": 1 } } },
                { "type": "URLRewrite", "urlRewrite": { "path": { "type": "ReplacePrefixMatch", "replacePrefixMatch": "/" } } },
                { "type": "CORS", "cors": { "allowOrigins": ["https://a.test"] } } ],
            "backendRefs": [{ "name": "w", "port": 1, "filters": [] }],
            "timeouts": { "request": "1s", "backendRequest": "1s" } }] }),
        json!({ "rules": [{ "matches": [{ "method": { "type": "RegularExpression", "service": "a", "method": "b" } }] }] }),
        json!({ "hostnames": ["a.test"], "rules": [{ "backendRefs": [{ "name": "w", "port": 1 }] }] }),
        json!({ "from": [{ "group": "", "kind": "A", "namespace": "b" }], "to": [{ "group": "", "kind": "Secret" }] }),
        json!({ "targetRefs": [{ "group": "", "kind": "Service", "name": "w", "sectionName": "p" }], "validation": {
            "hostname": "a.test", "caCertificateRefs": [{ "group": "", "kind": "ConfigMap", "name": "c" }],
            "subjectAltNames": [{ "type": "Hostname", "hostname": "*.a.test" }] } }),
        json!({ "allowedRoutes": { "namespaces": { "from": "All" } } }),
        json!({ "versions": [{ "storage": true, "schema": {} }] }),
    ]
}

fn whole(kind: usize, spec: Value) -> Value {
    let (api_version, kind) = KINDS[kind];
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "it" }, "spec": spec })
}

fn read(object: Value) -> Parsed {
    parse(object, Origin::default(), &Defaults::default(), &mut MaterialCache::new())
}

/// Replaces the `nth` value inside another one, counted from the outside in, by a value.
fn graft(target: &mut Value, nth: &mut usize, graft_in: &Value) {
    if *nth == 0 {
        *target = graft_in.clone();
    }
    *nth = nth.wrapping_sub(1);
    match target {
        Value::Array(items) => items.iter_mut().for_each(|item| graft(item, nth, graft_in)),
        Value::Object(members) => members.values_mut().for_each(|member| graft(member, nth, graft_in)),
        _ => {}
    }
}

fn manifest(object: &Object) -> Option<Value> {
    Some(match object {
        Object::GatewayClass(it) => it.manifest.value(),
        Object::Gateway(it) => it.manifest.value(),
        Object::HttpRoute(it) | Object::GrpcRoute(it) | Object::TlsRoute(it) => it.manifest.value(),
        Object::BackendTlsPolicy(it) => it.manifest.value(),
        Object::RouteSlot(it) => it.manifest.value(),
        _ => return None,
    })
}

/// Parses an object twice: as it is, and as it was stored. The results must be equal.
fn check(object: Value) {
    match read(object).outcome {
        ParseOutcome::Good(first) => {
            let Some(stored) = manifest(&first) else { return };
            match read(stored.clone()).outcome {
                ParseOutcome::Good(second) => assert_eq!(manifest(&second), Some(stored)),
                other => panic!("stored and refused: {stored} {other:?}"),
            }
        }
        ParseOutcome::Refused { errors, .. } | ParseOutcome::Unidentified(errors) => assert!(!errors.is_empty()),
        ParseOutcome::UnknownKind { kind, .. } => panic!("{kind}"),
    }
}

#[test]
fn the_specs_that_are_changed_below_are_good() {
    for (kind, spec) in good_specs().into_iter().enumerate() {
        let outcome = read(whole(kind, spec)).outcome;
        assert!(matches!(outcome, ParseOutcome::Good(_)), "{outcome:?}");
    }
}

proptest! {
    #[test]
    fn any_spec_is_read_or_refused(kind in 0..KINDS.len(), spec in value()) {
        check(whole(kind, spec));
    }

    #[test]
    fn a_good_spec_with_anything_in_the_place_of_anything_is_read_or_refused(
        kind in 0..KINDS.len(),
        mut place in 0..60usize,
        other in value(),
    ) {
        let mut spec = good_specs().swap_remove(kind);
        graft(&mut spec, &mut place, &other);
        check(whole(kind, spec));
    }
}

//! The documentation lists every field and annotation that is read, and none that is not.
//!
//! `tests/stories/claims` checks that each line has a story with traffic.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fields::read_members;
use crate::openshift::route::annotations::names::ANNOTATIONS;
use crate::testing::{documented, parsed};

/// The fields that parsing these objects reads, without indices: `Route.spec.host`.
fn fields_of(kind: &str, manifests: &[Value]) -> BTreeSet<String> {
    read_members::take();
    manifests.iter().for_each(|manifest| drop(parsed(manifest.clone())));
    let names = read_members::take().into_iter().filter(|name| name.starts_with("spec."));
    let name = |name: String| format!("{kind}.{}", name.replace("[0]", ""));
    names.map(name).collect()
}

/// Each field, one of its parents or all of its members are listed, and nothing else.
fn check_fields(kind: &str, manifests: &[Value]) {
    let known = fields_of(kind, manifests);
    let listed = documented("openshift.md");
    let within = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    for name in &known {
        let is_listed = listed.iter().any(|listed| listed == name || within(name, listed) || within(listed, name));
        assert!(is_listed, "docs/openshift.md does not list {name}");
    }
    for name in listed.iter().filter(|name| within(name, kind)) {
        assert!(known.contains(name), "docs/openshift.md lists {name}, which is not read");
    }
    assert!(known.len() > 20, "the manifest lacks something: {known:?}");
}

#[test]
fn every_field_of_routes_is_listed() {
    let route = |tls: Value| {
        json!({
            "apiVersion": "route.openshift.io/v1",
            "kind": "Route",
            "metadata": { "name": "a", "namespace": "b" },
            "spec": {
                "host": "a.test",
                "to": { "name": "a" },
                "alternateBackends": [{ "name": "b" }],
                "tls": tls,
                "httpHeaders": { "actions": {
                    "request": [{ "name": "X", "action": { "type": "Set", "set": { "value": "x" } } }],
                    "response": [{ "name": "X", "action": { "type": "Delete" } }],
                } },
            },
        })
    };
    let edge = route(json!({ "termination": "edge", "externalCertificate": { "name": "x" } }));
    check_fields("Route", &[edge, route(json!({ "termination": "passthrough" }))]);
}

#[test]
fn every_field_of_ingress_controllers_is_listed() {
    let controller = |kind: &str| {
        let selector =
            json!({ "matchLabels": { "a": "b" }, "matchExpressions": [{ "key": "a", "operator": "Exists" }] });
        json!({
            "apiVersion": "operator.openshift.io/v1",
            "kind": "IngressController",
            "metadata": { "name": "a" },
            "spec": {
                "namespaceSelector": selector,
                "routeSelector": selector,
                "tlsSecurityProfile": {
                    "type": "Custom",
                    "custom": { "minTLSVersion": "VersionTLS12", "ciphers": ["TLS_AES_128_GCM_SHA256"] },
                },
                "httpHeaders": { "actions": {
                    "request": [{ "name": "X", "action": { "type": "Set", "set": { "value": "x" } } }],
                } },
                "logging": { "access": {
                    "destination": { "type": kind, "syslog": { "address": "192.0.2.1", "port": 514 } },
                    "httpCaptureHeaders": { "request": [{ "name": "X", "maxLength": 1 }] },
                    "httpCaptureCookies": [{ "name": "x", "matchType": "Exact", "maxLength": 1 }],
                } },
            },
        })
    };
    check_fields("IngressController", &[controller("Syslog"), controller("Container")]);
}

#[test]
fn every_annotation_is_listed() {
    // Annotations of other kinds, and those that the API server reads.
    const OTHERS: [&str; 7] = [
        "openshift.io/host.generated",
        "route.openshift.io/allow-non-dns-compliant-host",
        "ingress.operator.openshift.io/default-enable-http2",
        "ingress.operator.openshift.io/hard-stop-after",
        "idling.alpha.openshift.io/idled-at",
        "router.sluice.dev/normalize-path",
        "router.sluice.dev/merge-slashes",
    ];
    let listed: BTreeSet<String> = documented("openshift.md").into_iter().filter(|name| name.contains('/')).collect();
    let known = ANNOTATIONS.iter().chain(&OTHERS).map(|name| (*name).to_owned()).collect();
    assert_eq!(listed, known);
}

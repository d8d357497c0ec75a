//! IngressControllers as typed data, and what is said of fields that nothing acts on.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::parse::Object;
use crate::testing::{controller, good, parsed};

fn controller_of(spec: Value) -> std::sync::Arc<IngressController> {
    match good(controller("c", spec)) {
        Object::IngressController(controller) => controller,
        other => panic!("no controller: {other:?}"),
    }
}

#[test]
fn the_default_controller_of_a_cluster_asks_for_nothing() {
    let spec = json!({
        "clientTLS": { "clientCA": { "name": "" }, "clientCertificatePolicy": "" },
        "httpCompression": {},
        "httpEmptyRequestsPolicy": "Respond",
        "httpErrorCodePages": { "name": "" },
        "replicas": 2,
        "tuningOptions": { "reloadInterval": "0s" },
        "unsupportedConfigOverrides": null,
    });
    assert!(parsed(controller("default", spec.clone())).warnings.is_empty());
    let found = controller_of(spec);
    assert_eq!(found.tls_profile, TlsProfile::default());
    assert_eq!((found.tls_profile.min_version, found.tls_profile.ciphers.len()), (TlsVersion::Tls12, 11));
    assert_eq!(found.client_tls, None);
    assert_eq!(found.http, HttpPolicy::default());
    assert!(found.tuning.is_default());
    assert!(found.without_effect.is_empty());
}

#[test]
fn security_is_typed() {
    let profile = |profile: Value| controller_of(json!({ "tlsSecurityProfile": profile })).tls_profile.clone();
    let old = profile(json!({ "type": "Old", "old": {} }));
    assert_eq!((old.kind, old.min_version, old.ciphers.len()), (ProfileKind::Old, TlsVersion::Tls10, 29));
    let modern = profile(json!({ "type": "Modern" }));
    assert_eq!((modern.min_version, modern.ciphers.len()), (TlsVersion::Tls13, 3));
    let ciphers = ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "NULL-MD5"];
    let custom = json!({ "type": "Custom", "custom": { "minTLSVersion": "VersionTLS11", "ciphers": ciphers } });
    let custom = profile(custom);
    assert_eq!(custom.min_version, TlsVersion::Tls11);
    assert_eq!(custom.ciphers, ["ECDHE-RSA-AES128-GCM-SHA256".into()]);

    let client = json!({
        "clientCertificatePolicy": "Required",
        "clientCA": { "name": "clients" },
        "allowedSubjectPatterns": ["^/CN=a"],
    });
    let client = controller_of(json!({ "clientTLS": client })).client_tls.clone().unwrap();
    assert!(client.required);
    assert_eq!((&*client.ca, &*client.subject_patterns[0]), ("clients", "^/CN=a"));
}

#[test]
fn http_and_tuning_are_typed() {
    let found = controller_of(json!({
        "httpHeaders": {
            "forwardedHeaderPolicy": "IfNone",
            "uniqueId": { "name": "X-Id", "format": "%rt" },
            "headerNameCaseAdjustments": ["Cache-Control"],
            "actions": { "response": [{ "name": "Server", "action": { "type": "Delete" } }] },
        },
        "httpErrorCodePages": { "name": "pages" },
        "httpCompression": { "mimeTypes": ["text/html", "text/css; charset=utf-8"] },
        "httpEmptyRequestsPolicy": "Ignore",
        "idleConnectionTerminationPolicy": "Deferred",
        "closedClientConnectionPolicy": "Abort",
        "tuningOptions": { "clientTimeout": "45s", "tunnelTimeout": "0s", "maxConnections": -1, "threadCount": 8 },
    }));
    let http = &found.http;
    assert_eq!(http.forwarded, ForwardedHeaders::IfNone);
    assert_eq!(http.unique_id.as_ref().map(|id| (&*id.name, &*id.format)), Some(("X-Id", "%rt")));
    assert_eq!((http.actions.response.len(), http.compress.len(), http.case_adjustments.len()), (1, 2, 1));
    assert!(http.ignore_empty_requests && http.defer_idle_termination && http.abort_closed_clients);
    assert_eq!(found.tuning.client, Some(Duration::from_secs(45)));
    assert_eq!((found.tuning.tunnel, found.tuning.max_connections), (None, Some(MaxConnections::Computed)));
    let paths: Vec<String> = found.without_effect.iter().map(ToString::to_string).collect();
    let expected = [
        "spec.closedClientConnectionPolicy",
        "spec.httpCompression",
        "spec.httpEmptyRequestsPolicy",
        "spec.httpErrorCodePages",
        "spec.httpHeaders.actions",
        "spec.httpHeaders.forwardedHeaderPolicy",
        "spec.httpHeaders.headerNameCaseAdjustments",
        "spec.httpHeaders.uniqueId",
        "spec.idleConnectionTerminationPolicy",
        "spec.tuningOptions",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn fields_without_effect_are_warned_of_at_their_place() {
    let spec = json!({
        "endpointPublishingStrategy": { "type": "NodePortService", "nodePort": { "protocol": "PROXY" } },
        "logging": { "access": { "destination": { "type": "Container" } } },
        "tlsSecurityProfile": { "type": "Modern" },
    });
    let warnings: Vec<String> =
        parsed(controller("c", spec.clone())).warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "spec.endpointPublishingStrategy.nodePort.protocol: has no effect: Sluice does not act on this field yet",
        "spec.logging: has no effect: Sluice does not act on this field yet",
        "spec.tlsSecurityProfile: has no effect: Sluice does not act on this field yet",
    ];
    assert_eq!(warnings, expected);
    assert_eq!(controller_of(spec).publishing.kind, PublishingKind::NodePortService);
}

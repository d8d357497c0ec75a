//! IngressControllers as typed data, and warnings about fields without effect.

use std::time::Duration;

use router_table::policy::access_log::Syslog;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::tls_profile::{ProfileKind, TlsVersion};
use router_table::policy::unique_id::{UniqueId, UniqueIdField, UniqueIdPart};
use serde_json::json;

use super::*;
use crate::object::Object;
use crate::openshift::ingress_controller::publishing::PublishingKind;
use crate::openshift::ingress_controller::tuning::MaxConnections;
use crate::parse::ParseOutcome;
use crate::testing::{controller, good, parsed, refusals};

fn controller_of(spec: Value) -> std::sync::Arc<IngressController> {
    match good(controller("c", spec)) {
        Object::IngressController(controller) => controller,
        other => panic!("no controller: {other:?}"),
    }
}

#[test]
fn the_default_controller_of_a_cluster_sets_nothing() {
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
    assert!(found.client_tls.is_none());
    assert_eq!(found.http, HttpPolicy::default());
    assert_eq!(found.tuning, Tuning::default());
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
    assert_eq!((&*client.ca, client.subject_patterns[0].as_str()), ("clients", "^/CN=a"));
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
    let counter = [UniqueIdPart::Field { what: UniqueIdField::Counter, hex: false }];
    assert_eq!(http.unique_id, Some(UniqueId { name: "X-Id".into(), parts: counter.into() }));
    assert_eq!((http.actions.response.len(), http.compress.len(), http.case_adjustments.len()), (1, 2, 1));
    assert!(http.ignore_empty_requests && http.defer_idle_termination && http.abort_closed_clients);
    assert_eq!(found.tuning.client, Some(Duration::from_secs(45)));
    assert_eq!((found.tuning.tunnel, found.tuning.max_connections), (None, Some(MaxConnections::Computed)));
    assert_eq!(found.without_effect, []);
}

#[test]
fn fields_without_effect_are_warned_of_at_their_place() {
    let spec = json!({
        "endpointPublishingStrategy": { "type": "NodePortService", "nodePort": { "protocol": "PROXY" } },
        "logging": { "access": { "destination": { "type": "Container" } } },
        "tuningOptions": { "serverFinTimeout": "2s" },
    });
    let warnings: Vec<String> =
        parsed(controller("c", spec.clone())).warnings.iter().map(ToString::to_string).collect();
    let expected = ["spec.tuningOptions.serverFinTimeout: has no effect: Sluice does not act on this field yet"];
    assert_eq!(warnings, expected);
    let publishing = controller_of(spec).publishing.clone();
    assert_eq!((publishing.kind, publishing.proxy_protocol), (PublishingKind::NodePortService, true));
}

#[test]
fn a_port_for_statistics_has_no_effect_and_the_others_have() {
    let network = |ports: serde_json::Value| json!({ "endpointPublishingStrategy": { "hostNetwork": ports } });
    let paths = |ports| -> Vec<String> {
        controller_of(network(ports)).without_effect.iter().map(ToString::to_string).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(paths(json!({ "httpPort": 8080, "httpsPort": 8443 })), none);
    let path = "spec.endpointPublishingStrategy.hostNetwork.statsPort";
    assert_eq!(paths(json!({ "httpPort": 8080, "httpsPort": 8443, "statsPort": 1937 })), [path]);
    assert_eq!(paths(json!({ "httpPort": 8080, "httpsPort": 8443, "statsPort": 1936 })), none, "the API's default");
}

/// The paths without effect of a controller with this `logging.access`, or its errors.
fn logged(access: serde_json::Value) -> Result<Vec<String>, Vec<String>> {
    let object = controller("c", json!({ "logging": { "access": access } }));
    match parsed(object).outcome {
        ParseOutcome::Good(Object::IngressController(found)) => {
            Ok(found.without_effect.iter().map(|path| path.to_string().replace("spec.logging.access.", "")).collect())
        }
        ParseOutcome::Refused { errors, .. } => {
            Err(errors.iter().map(|error| error.to_string().replace("spec.logging.access.", "")).collect())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_access_log_in_the_container_is_what_there_is() {
    let container = json!({ "type": "Container" });
    assert_eq!(logged(json!({ "destination": container, "logEmptyRequests": "Log" })), Ok(Vec::new()));
    let everything = json!({
        "destination": { "type": "Syslog", "syslog": { "address": "10.0.0.7", "port": 514, "facility": "local1" } },
        "httpLogFormat": "%ci %HQ",
        "httpCaptureHeaders": { "request": [{ "name": "X-Id", "maxLength": 9 }] },
        "httpCaptureCookies": [{ "matchType": "Prefix", "namePrefix": "s", "maxLength": 9 }],
        "logEmptyRequests": "Ignore",
    });
    assert_eq!(logged(everything), Ok(vec!["httpLogFormat".to_owned()]));
    let cut = json!({ "destination": { "type": "Container", "container": { "maxLength": 480 } } });
    assert_eq!(logged(cut), Ok(vec!["destination.container.maxLength".to_owned()]));
}

#[test]
fn an_access_log_may_go_to_a_server_in_a_form_of_its_own() {
    let log = |syslog: serde_json::Value| {
        let destination = json!({ "type": "Syslog", "syslog": syslog });
        let access = json!({ "destination": destination, "httpLogFormat": "%ci %ST" });
        let found = controller_of(json!({ "logging": { "access": access } }));
        assert_eq!(found.without_effect, []);
        assert_eq!(found.logging.format.as_ref().map(|format| format.0.len()), Some(3));
        found.logging.syslog.unwrap()
    };
    let address = "10.0.0.7:514".parse().unwrap();
    assert_eq!(log(json!({ "address": "10.0.0.7", "port": 514 })), Syslog { address, facility: 17, max_length: 1024 });
    let address = "[fd00::1]:1514".parse().unwrap();
    assert_eq!(
        log(json!({ "address": "fd00::1", "port": 1514, "facility": "cron2", "maxLength": 480 })),
        Syslog { address, facility: 15, max_length: 480 }
    );
}

#[test]
fn a_bad_access_log_is_refused_with_what_to_write() {
    let to = |destination| json!({ "destination": destination });
    let with = |name: &str, value| json!({ "destination": { "type": "Container" }, name: value });
    let cases = [
        (json!({}), "destination.type: Required value: write Container"),
        (to(json!({ "type": "File" })), "destination.type: Unsupported value: \"File\"; write Container or Syslog"),
        (
            to(json!({ "type": "Container", "container": { "maxLength": 1 } })),
            "destination.container.maxLength: Invalid",
        ),
        (to(json!({ "type": "Syslog", "syslog": { "port": 514 } })), "destination.syslog.address: Required value"),
        (
            to(json!({ "type": "Syslog", "syslog": { "address": "log.test", "port": 514 } })),
            "destination.syslog.address: Invalid value: \"log.test\"; write the server's IP address",
        ),
        (to(json!({ "type": "Syslog", "syslog": { "address": "::1" } })), "destination.syslog.port: Required value"),
        (
            to(json!({ "type": "Syslog", "syslog": { "address": "::1", "port": 514, "facility": "mine" } })),
            "destination.syslog.facility: Unsupported value: \"mine\"; write one of kern, user",
        ),
        (with("httpLogFormat", json!("%{+Q")), "httpLogFormat: Invalid value: \"%{+Q\": the '{' after '%' has no '}'"),
        (with("logEmptyRequests", json!("No")), "logEmptyRequests: Unsupported value: \"No\"; write Log or Ignore"),
        (
            with("httpCaptureHeaders", json!({ "response": [{ "name": "a b", "maxLength": 9 }] })),
            "httpCaptureHeaders.response[0].name: Invalid value: \"a b\": is not a valid header name; write one such as",
        ),
        (
            with("httpCaptureHeaders", json!({ "request": [{ "name": "a" }] })),
            "httpCaptureHeaders.request[0].maxLength: Required value: write how many bytes",
        ),
        (
            with("httpCaptureCookies", json!([{ "matchType": "Exact", "namePrefix": "a", "maxLength": 9 }])),
            "httpCaptureCookies[0].name: Required value: write the cookie's name",
        ),
        (
            with("httpCaptureCookies", json!([{ "name": "a", "maxLength": 9 }])),
            "httpCaptureCookies[0].matchType: Required value; write Exact or Prefix",
        ),
        (
            with(
                "httpCaptureCookies",
                json!([
                    { "matchType": "Exact", "name": "a", "maxLength": 9 }, { "matchType": "Exact", "name": "b", "maxLength": 9 }
                ]),
            ),
            "httpCaptureCookies: Too many: there are 2; capture at most one cookie",
        ),
    ];
    for (access, expected) in cases {
        let errors = logged(access).unwrap_err();
        assert!(errors.len() == 1 && errors[0].starts_with(expected), "{errors:?}, expected {expected}");
    }
}

#[test]
fn patterns_of_subjects_match_in_linear_time_or_are_refused() {
    let errors = |pattern: &str| {
        let client_tls = json!({
            "clientCertificatePolicy": "Optional",
            "clientCA": { "name": "clients" },
            "allowedSubjectPatterns": [pattern],
        });
        refusals(controller("c", json!({ "clientTLS": client_tls })))
    };
    for (pattern, why) in [
        ("(", "unclosed group"),
        ("(?!x)", "look-around"),
        ("(a)\\1", "backreferences"),
        ("(a{999}){999}", "too large"),
    ] {
        let errors = errors(pattern);
        assert!(errors[0].starts_with("spec.clientTLS.allowedSubjectPatterns[0]: Invalid value: "), "{errors:?}");
        assert!(errors[0].contains(why), "{errors:?}");
    }
}

#[test]
fn an_id_of_unknown_fields_is_not_sent_and_that_is_said() {
    let unique_id = |format: &str| json!({ "httpHeaders": { "uniqueId": { "name": "X-Id", "format": format } } });
    let found = controller_of(unique_id("%ST"));
    assert!(found.http.unique_id.is_none());
    assert_eq!(found.without_effect[0].to_string(), "spec.httpHeaders.uniqueId.format");
    let warnings: Vec<String> =
        parsed(controller("c", unique_id("%ST"))).warnings.iter().map(ToString::to_string).collect();
    assert!(warnings[0].contains("%ST cannot be written here, so the header is not sent; use %ci"), "{warnings:?}");
    let errors = refusals(controller("c", unique_id("100%")));
    assert!(
        errors[0].starts_with("spec.httpHeaders.uniqueId.format: Invalid value: \"100%\": has a '%'"),
        "{errors:?}"
    );
}

#[test]
fn what_only_openshifts_own_router_has_is_said_to_be_without_effect() {
    let mut object =
        controller("c", json!({ "unsupportedConfigOverrides": { "loadBalancingAlgorithm": "leastconn" } }));
    object["metadata"]["annotations"] = json!({
        "ingress.operator.openshift.io/default-enable-http2": "false",
        "ingress.operator.openshift.io/hard-stop-after": "30m",
    });
    let Object::IngressController(found) = good(object.clone()) else { panic!("{object}") };
    let paths: Vec<String> = found.without_effect.iter().map(ToString::to_string).collect();
    let expected = [
        "metadata.annotations[ingress.operator.openshift.io/default-enable-http2]",
        "metadata.annotations[ingress.operator.openshift.io/hard-stop-after]",
        "spec.unsupportedConfigOverrides",
    ];
    assert_eq!(paths, expected);
    object["metadata"]["annotations"] = json!({ "ingress.operator.openshift.io/default-enable-http2": "true" });
    object["spec"]["unsupportedConfigOverrides"] = json!({});
    let Object::IngressController(found) = good(object.clone()) else { panic!("{object}") };
    assert!(found.without_effect.is_empty());
}

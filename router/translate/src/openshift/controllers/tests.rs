//! Statuses of IngressControllers: effective settings and faults.

use std::num::NonZeroU32;
use std::time::Duration;

use router_api::openshift::route::annotations::values::MAX_TIMEOUT;
use router_api::testing::{authority, config_map, controller, resources};
use router_table::policy::access_log::{CookieCapture, HeaderCapture, Syslog};
use router_table::policy::log_format::LogFormat;
use router_table::policy::tls_profile::ProfileKind;
use router_table::policy::{AccessLogPolicy, ErrorPages, Limits, Timeouts};
use serde_json::{Value, json};

use super::*;

/// The status of each controller as `type=status reason: message`, in order of name.
fn conditions(plan: &RouterPlan) -> Vec<String> {
    let text = |condition: &Condition| {
        let Condition { kind, reason, message, .. } = condition;
        format!("{kind}={} {reason}: {message}", condition.status())
    };
    plan.statuses.values().flat_map(|status| status.conditions.iter().map(text)).collect()
}

fn planned(objects: impl IntoIterator<Item = Value>) -> RouterPlan {
    plan(&resources(objects), &Settings::default())
}

fn aged(name: &str, created: u32, spec: Value) -> Value {
    let mut object = controller(name, spec);
    object["metadata"]["creationTimestamp"] = json!(format!("2024-01-01T00:00:{created:02}Z"));
    object
}

#[test]
fn what_is_effective_is_in_the_status() {
    let spec = json!({
        "namespaceSelector": { "matchLabels": { "team": "a" } },
        "routeSelector": { "matchExpressions": [{ "key": "shard", "operator": "Exists" }] },
        "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" },
    });
    let plan = planned([controller("one", spec.clone())]);
    let status = plan.statuses.values().next().unwrap();
    assert_eq!(status.domain, "apps.localhost");
    assert_eq!(status.ports, Some((80, 443)));
    assert_eq!(status.route_admission, Some(("Strict", "WildcardsAllowed")));
    assert_eq!(status.namespace_selector.as_ref(), Some(&spec["namespaceSelector"]));
    assert_eq!(status.route_selector.as_ref(), Some(&spec["routeSelector"]));
    assert_eq!(conditions(&plan), ["Admitted=True Valid: ", "Available=True : ", "Degraded=False : "]);
}

#[test]
fn of_two_controllers_with_one_domain_the_older_one_has_it() {
    let plan =
        planned([aged("younger", 2, json!({ "domain": "a.test" })), aged("older", 1, json!({ "domain": "a.test" }))]);
    assert_eq!(plan.routers.iter().map(|router| &*router.name.0).collect::<Vec<_>>(), ["older"]);
    let expected = "Admitted=False Invalid: domain \"a.test\" is that of IngressController \"older\", which is older; \
                    a domain cannot be changed: delete this one and create it anew with another";
    assert_eq!(conditions(&plan)[3], expected);
    assert!(conditions(&plan)[4].starts_with("Available=False NotAdmitted: "));
}

#[test]
fn names_of_routers_that_are_made_for_ports_are_kept_for_them() {
    for (name, is_kept) in [
        ("gateway-8080", true),
        ("gateway-1", true),
        ("gateway-70000", false),
        ("gateway-web", false),
        ("gateway", false),
        ("my-gateway-8080", false),
    ] {
        let plan = planned([controller(name, json!({}))]);
        assert_eq!(plan.routers.is_empty(), is_kept, "{name}");
        let kept = format!(
            "Admitted=False Invalid: the name {name:?} is kept for the router of a port that only Gateways have; choose another"
        );
        assert_eq!(conditions(&plan)[0] == kept, is_kept, "{:?}", conditions(&plan));
    }
}

#[test]
fn a_port_conflict_degrades_the_younger_one() {
    let ports = json!({ "hostNetwork": { "httpPort": 8080, "httpsPort": 443 } });
    let plan = planned([
        aged("older", 1, json!({ "domain": "a.test" })),
        aged("younger", 2, json!({ "domain": "b.test", "endpointPublishingStrategy": ports })),
    ]);
    let found = conditions(&plan);
    assert_eq!(found[3], "Admitted=True Valid: ");
    let problem = "port 443 is that of IngressController \"older\", which is older; set \
                   spec.endpointPublishingStrategy.hostNetwork.httpPort and httpsPort";
    assert_eq!(found[4], format!("Available=False PortConflict: {problem}"));
    assert_eq!(found[5], format!("Degraded=True PortConflict: {problem}"));
}

#[test]
fn fields_without_effect_degrade_a_router_that_serves() {
    let spec = json!({
        "logging": { "access": { "destination": { "type": "Container" }, "httpLogFormat": "%HQ" } },
        "tuningOptions": { "tunnelTimeout": "2h", "serverFinTimeout": "2s" },
    });
    let plan = planned([controller("one", spec.clone())]);
    assert_eq!(plan.routers.len(), 1);
    let expected = "Degraded=True FieldsWithoutEffect: these fields have no effect yet: \
                    spec.tuningOptions.serverFinTimeout, spec.logging.access.httpLogFormat";
    assert_eq!(conditions(&plan)[2], expected);

    // A missing certificate is reported first.
    let mut both = spec;
    both["defaultCertificate"] = json!({ "name": "gone" });
    let found = conditions(&planned([controller("one", both)]));
    assert!(found[2].starts_with("Degraded=True DefaultCertificateUnusable: Secret \"gone\""), "{found:?}");
    let fields = "; these fields have no effect yet: spec.tuningOptions.serverFinTimeout, \
                  spec.logging.access.httpLogFormat";
    assert!(found[2].ends_with(fields), "{found:?}");
}

/// The only router, and the messages of its controller's status.
fn served(objects: impl IntoIterator<Item = Value>) -> (Arc<RouterPolicy>, Vec<String>) {
    let plan = planned(objects);
    (Arc::clone(&plan.routers[0].served), conditions(&plan))
}

#[test]
fn a_router_without_settings_has_the_defaults() {
    let (policy, told) = served([controller("one", json!({}))]);
    assert_eq!((policy.timeouts, policy.limits), Default::default());
    assert!(policy.client_tls.is_none() && policy.actions.is_none() && policy.unique_id.is_none());
    assert!(policy.compress.is_empty() && policy.case_adjustments.is_empty() && !policy.accept_proxy);
    assert_eq!((policy.pages.clone(), policy.log.clone()), Default::default());
    assert_eq!(told[2], "Degraded=False : ");
}

#[test]
fn tuning_options_are_what_the_proxy_keeps() {
    let limits = |tuning: Value| served([controller("one", json!({ "tuningOptions": tuning }))]).0.limits;
    let (policy, told) = served([controller(
        "one",
        json!({ "tuningOptions": {
            "clientTimeout": "1m",
            "clientFinTimeout": "2s",
            "serverTimeout": "3s",
            "connectTimeout": "500ms",
            "httpKeepAliveTimeout": "1000h",
            "tlsInspectDelay": "6s",
            "tunnelTimeout": "7h",
            "healthCheckInterval": "8s",
            "headerBufferBytes": 65536,
            "maxConnections": -1,
        } }),
    )]);
    let seconds = Duration::from_secs;
    let expected = Timeouts {
        hello: seconds(6),
        keep_alive: MAX_TIMEOUT,
        client: seconds(60),
        client_fin: seconds(2),
        connect: Duration::from_millis(500),
        server: seconds(3),
        tunnel: seconds(7 * 3600),
        health_check: seconds(8),
        ..Timeouts::default()
    };
    assert_eq!(policy.timeouts, expected);
    assert_eq!(policy.limits, Limits { head: 32_768, connections: None });
    assert!(
        told[2].contains(
            "HeaderLimitReduced: spec.tuningOptions.headerBufferBytes: less headerBufferMaxRewriteBytes it is 57344"
        ),
        "{told:?}"
    );
    assert_eq!(limits(json!({ "headerBufferBytes": 16384 })).head, 16_384 - 8192);
    assert_eq!(limits(json!({ "headerBufferMaxRewriteBytes": 4096 })).head, 32_768 - 4096);
    assert_eq!(limits(json!({ "maxConnections": 2000 })).connections, NonZeroU32::new(2000));
    assert_eq!(limits(json!({ "maxConnections": 0 })), Limits::default());
}

#[test]
fn profiles_report_unsupported_values() {
    let told = |profile: Value| {
        let (policy, told) = served([controller("one", json!({ "tlsSecurityProfile": profile }))]);
        (policy.tls.kind, told[1].clone(), told[2].clone())
    };
    // The few missing suites of these profiles are not reported.
    for kind in ["Intermediate", "Modern"] {
        let (_, available, degraded) = told(json!({ "type": kind }));
        assert_eq!(available, "Available=True : ");
        assert!(!degraded.contains("TLSProfile"), "{degraded}");
    }
    let (kind, available, degraded) = told(json!({ "type": "Old" }));
    assert_eq!((kind, &*available), (ProfileKind::Old, "Available=True : "));
    assert!(
        degraded.starts_with("Degraded=True TLSProfileReduced: spec.tlsSecurityProfile: not offered, "),
        "{degraded}"
    );
    for missing in ["DHE-RSA-AES128-GCM-SHA256", "AES128-SHA", "DES-CBC3-SHA", "VersionTLS10"] {
        assert!(degraded.contains(missing), "{missing}: {degraded}");
    }
    let custom = |ciphers: &[&str]| {
        told(json!({ "type": "Custom", "custom": { "minTLSVersion": "VersionTLS12", "ciphers": ciphers } }))
    };
    let (_, available, degraded) = custom(&["AES128-SHA", "ECDHE-RSA-AES128-GCM-SHA256"]);
    assert_eq!(available, "Available=True : ");
    assert!(degraded.contains("TLS library: AES128-SHA"), "{degraded}");
    let (_, available, degraded) = custom(&["AES128-SHA", "DES-CBC3-SHA"]);
    assert!(available.starts_with("Available=False TLSProfileUnusable: spec.tlsSecurityProfile: no cipher suite"));
    assert!(degraded.starts_with("Degraded=True TLSProfileUnusable: "), "{degraded}");
}

fn client_tls(policy: &str) -> Value {
    let client_tls = json!({
        "clientCertificatePolicy": policy,
        "clientCA": { "name": "clients" },
        "allowedSubjectPatterns": ["^/CN=a", "O=b$"],
    });
    controller("one", json!({ "clientTLS": client_tls }))
}

#[test]
fn client_certificates_are_checked_against_the_ca_of_the_config_map() {
    for (text, required) in [("Required", true), ("Optional", false)] {
        let map = config_map("openshift-config/clients", json!({ "ca-bundle.pem": authority("clients") }));
        let (policy, told) = served([client_tls(text), map]);
        let auth = policy.client_tls.as_ref().unwrap();
        assert_eq!((auth.required, auth.roots.len()), (required, 1));
        assert!(auth.subjects[0].is_match("/CN=abc") && !auth.subjects[0].is_match("/O=x/CN=abc"));
        assert_eq!(told[1], "Available=True : ");
    }
}

#[test]
fn without_a_ca_for_client_certificates_tls_is_refused() {
    let cases = [
        (None, "is not in openshift-config"),
        (Some(config_map("other/clients", json!({ "ca-bundle.pem": authority("x") }))), "is not in openshift-config"),
        (Some(config_map("openshift-config/clients", json!({ "ca.pem": "x" }))), "has no key ca-bundle.pem"),
        (Some(config_map("openshift-config/clients", json!({ "ca-bundle.pem": "x" }))), "holds no certificate"),
    ];
    for (map, why) in cases {
        for required in ["Required", "Optional"] {
            let (policy, told) = served([client_tls(required)].into_iter().chain(map.clone()));
            assert!(policy.client_tls.as_ref().unwrap().roots.is_empty());
            for (condition, told) in [("Available=False", &told[1]), ("Degraded=True", &told[2])] {
                assert!(told.starts_with(&format!("{condition} ClientCAUnusable: ")), "{told}");
                assert!(told.contains(why) && told.contains("until it is there TLS is refused"), "{told}");
            }
        }
    }
}

#[test]
fn error_pages_are_those_of_the_config_map() {
    let one = || controller("one", json!({ "httpErrorCodePages": { "name": "pages" } }));
    let map = |data: Value| config_map("openshift-config/pages", data);
    let good = "HTTP/1.0 503 Busy\nContent-Type: text/html\n\nbusy";
    let (policy, told) = served([one(), map(json!({ "error-page-503.http": good }))]);
    assert_eq!(policy.pages.unavailable.as_ref().unwrap().body, "busy");
    assert!(policy.pages.not_found.is_none() && !told[2].contains("ErrorPagesUnusable"));

    let (policy, told) = served([one(), map(json!({ "error-page-503.http": "busy", "error-page-404.http": good }))]);
    assert!(policy.pages.unavailable.is_none() && policy.pages.not_found.is_some());
    let message = "ErrorPagesUnusable: error-page-503.http in ConfigMap \"pages\" of spec.httpErrorCodePages is no";
    assert!(told[2].contains(message), "{told:?}");
    for (objects, why) in [(vec![one()], "is not in"), (vec![one(), map(json!({}))], "has neither error-page-503.http")]
    {
        let (policy, told) = served(objects);
        assert_eq!(policy.pages, ErrorPages::default());
        assert!(told[2].contains(why) && told[2].contains("; the router's own pages are sent"), "{told:?}");
        assert_eq!(told[1], "Available=True : ");
    }
}

#[test]
fn the_rest_is_passed_on() {
    let (policy, _) = served([controller(
        "one",
        json!({
            "endpointPublishingStrategy": { "type": "Private", "private": { "protocol": "PROXY" } },
            "httpCompression": { "mimeTypes": ["text/html"] },
            "httpEmptyRequestsPolicy": "Ignore",
            "httpHeaders": {
                "actions": { "response": [{ "name": "Server", "action": { "type": "Delete" } }] },
                "headerNameCaseAdjustments": ["X-Forwarded-For"],
                "uniqueId": { "name": "X-Id" },
            },
            "logging": { "access": {
                "destination": { "type": "Syslog", "syslog": { "address": "10.0.0.7", "port": 514 } },
                "httpLogFormat": "%ci",
                "httpCaptureHeaders": { "request": [{ "name": "Referer", "maxLength": 9 }] },
                "httpCaptureCookies": [{ "matchType": "Prefix", "namePrefix": "s", "maxLength": 5 }],
                "logEmptyRequests": "Ignore",
            } },
        }),
    )]);
    assert!(policy.accept_proxy && policy.ignore_empty_requests);
    assert_eq!(policy.compress.iter().map(|text| &**text).collect::<Vec<_>>(), ["text/html"]);
    assert_eq!(policy.actions.as_ref().unwrap().response.len(), 1);
    assert_eq!(&*policy.case_adjustments[0], "X-Forwarded-For");
    assert_eq!(policy.unique_id.as_ref().unwrap().parts.len(), 13);
    let expected = AccessLogPolicy {
        request_headers: [HeaderCapture { name: "Referer".into(), max_length: 9 }].into(),
        response_headers: Arc::default(),
        cookie: Some(CookieCapture { name: "s".into(), is_prefix: true, max_length: 5 }),
        ignore_empty: true,
        syslog: Some(Syslog { address: "10.0.0.7:514".parse().unwrap(), facility: 17, max_length: 1024 }),
        format: Some(LogFormat::read("%ci").unwrap()),
    };
    assert_eq!(policy.log, expected);
}

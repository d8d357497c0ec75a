//! Manifests: defaults, hosts, and rejections with their messages.

use router_table::policy::header_actions::HeaderChange;
use serde_json::json;

use super::*;
use crate::testing::{good, parsed, refusals, route, slice};

fn route_of(value: Value) -> Arc<Route> {
    match good(value) {
        Object::Route(route) => route,
        other => panic!("no route: {other:?}"),
    }
}

/// The only error of a route with this spec.
fn refusal(spec: Value) -> String {
    let refusals = refusals(route("shop/cart", 1, spec));
    let [only] = refusals.as_slice() else { panic!("{refusals:?}") };
    only.clone()
}

#[test]
fn defaults_are_those_of_the_api_server() {
    let route = route_of(json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": { "name": "my.route" },
        "spec": {
            "to": { "name": "web", "weight": null },
            "alternateBackends": [{ "kind": "Service", "name": "other", "weight": 7 }],
            "tls": {},
        },
    }));
    assert_eq!(&*route.host, "my-route-default.apps.localhost");
    let stored = route.manifest.value();
    assert_eq!(stored["metadata"]["namespace"], "default");
    assert_eq!(stored["metadata"]["annotations"]["openshift.io/host.generated"], "true");
    let expected = json!({
        "to": { "name": "web", "weight": 100, "kind": "Service" },
        "alternateBackends": [{ "kind": "Service", "name": "other", "weight": 7 }],
        "tls": { "termination": "edge" },
        "host": "my-route-default.apps.localhost",
        "wildcardPolicy": "None",
    });
    assert_eq!(stored["spec"], expected);
}

#[test]
fn no_host_is_generated_where_a_subdomain_or_a_wildcard_stands() {
    assert_eq!(&*route_of(route("shop/cart", 1, json!({ "subdomain": "cart" }))).host, "");
    let message = refusal(json!({ "wildcardPolicy": "Subdomain" }));
    assert_eq!(message, "spec.host: Required value: wildcardPolicy Subdomain needs a host, such as www.example.test");
}

#[test]
fn a_wildcard_of_one_label_is_warned_of() {
    let parsed = parsed(route("a/b", 1, json!({ "host": "org", "wildcardPolicy": "Subdomain" })));
    let warnings: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["spec.wildcardPolicy: has no effect on a host of one label; write www.org to serve *.org"]);
}

#[test]
fn a_generated_host_that_is_too_long_says_what_to_write() {
    let name = format!("shop/{}", "a".repeat(60));
    let refusals = refusals(route(&name, 1, json!({})));
    assert!(refusals[0].starts_with("spec.host: the generated host"), "{refusals:?}");
    assert!(refusals[0].ends_with("write spec.host or spec.subdomain"), "{refusals:?}");
}

#[test]
fn terminations_may_begin_with_a_capital() {
    for (written, stored) in [("Edge", "edge"), ("Reencrypt", "reencrypt"), ("Passthrough", "passthrough")] {
        let route = route_of(route("a/b", 1, json!({ "host": "h.test", "tls": { "termination": written } })));
        assert_eq!(route.manifest.value()["spec"]["tls"]["termination"], stored);
        assert_eq!(route.traffic.is_passthrough(), written == "Passthrough");
    }
}

#[test]
fn hosts_are_checked_as_a_whole_and_by_label() {
    let host = |host: &str| refusals(route("a/b", 1, json!({ "host": host })));
    assert!(host("UPPER.test")[0].starts_with("spec.host: Invalid value: \"UPPER.test\": label \"UPPER\""));
    assert!(
        host("*.d.test")[0]
            .ends_with("for a wildcard write any first label, such as www, and wildcardPolicy: Subdomain")
    );
    for bad in ["a..b", "a.test.", "-a.test", "a_b.test", "a.test:80", "[::1]", "**", "abc.test.com.-"] {
        assert_eq!(host(bad).len(), 1, "{bad}");
    }
    let long_label = format!("{}.test", "a".repeat(64));
    assert_eq!(host(&long_label).len(), 1);
    assert_eq!(host(&["a".repeat(60).as_str(); 5].join(".")).len(), 1);
    for fine in ["www.example.test", "1.2.3.4", "1.abc.test.com.2", "host", &format!("{}.test", "a".repeat(63))] {
        route_of(route("a/b", 1, json!({ "host": fine })));
    }
    // The annotation disables the check of labels, and no other check.
    let mut annotated = route("a/b", 1, json!({ "host": long_label }));
    annotated["metadata"]["annotations"] = json!({ "route.openshift.io/allow-non-dns-compliant-host": "true" });
    route_of(annotated.clone());
    annotated["spec"]["host"] = json!("abc.*.test.com");
    assert_eq!(refusals(annotated).len(), 1);
}

#[test]
fn all_errors_of_an_object_are_found_at_once() {
    let mut object = route("shop/cart", 1, json!({ "path": "x", "host": "A", "to": { "weight": 300 } }));
    object["metadata"]["labels"] = json!({ "app": true });
    object["metadata"]["creationTimestamp"] = json!("yesterday");
    let paths: Vec<String> = refusals(object).iter().map(|text| text.split(": ").next().unwrap().to_owned()).collect();
    let expected = [
        "metadata.creationTimestamp",
        "metadata.labels.app",
        "spec.host",
        "spec.path",
        "spec.to.name",
        "spec.to.weight",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn material_that_is_no_good_leaves_a_route_that_holds_its_host() {
    let object = route("a/b", 1, json!({ "host": "h.test", "tls": { "certificate": "SECRET", "key": "SECRET" } }));
    let route = route_of(object);
    let [error] = route.material_errors() else { panic!() };
    assert!(error.to_string().starts_with("spec.tls.certificate: Invalid value: (redacted): holds no certificate"));
    assert!(!format!("{route:?}").contains("SECRET"));
    assert_eq!(route.manifest.redacted()["spec"]["tls"]["key"], "(redacted)");
}

#[test]
fn unknown_fields_are_warnings_with_advice() {
    let mut object = route("a/b", 1, json!({ "host": "h.test", "Path": "/x", "nonsense": 1 }));
    object["spec"]["tls"] = json!({ "terminations": "edge" });
    let warnings: Vec<String> = parsed(object).warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "spec.tls.terminations: unknown field, ignored; remove it, or check its spelling",
        "spec.Path: unknown field, ignored; write path",
        "spec.nonsense: unknown field, ignored; remove it, or check its spelling",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_service_that_is_named_twice_has_its_last_weight() {
    let spec = json!({ "to": { "name": "a", "weight": 1 }, "alternateBackends": [{ "name": "b" }, { "name": "a", "weight": 9 }] });
    let backends = route_of(route("x/y", 1, spec)).backends.clone();
    let weights: Vec<_> = backends.iter().map(|backend| (&*backend.service, backend.weight)).collect();
    assert_eq!(weights, [("a", 9), ("b", 100)]);
}

#[test]
fn objects_without_a_name_or_kind_are_rejected() {
    assert!(refusals(json!({ "kind": "Route" }))[0].starts_with("apiVersion: Required value"));
    assert!(refusals(json!("text"))[0].contains("is a text; write a mapping here"));
    let nameless = json!({ "apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {} });
    assert_eq!(refusals(nameless), ["metadata.name: Required value: write the object's name"]);
    let outcome = parsed(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x" } })).outcome;
    assert!(matches!(outcome, ParseOutcome::UnknownKind { kind, .. } if kind == "Pod"));
}

#[test]
fn slices_are_checked_and_keep_ready_tcp_endpoints() {
    let Object::EndpointSlice(found) = good(json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": { "name": "s", "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4",
        "endpoints": [
            { "addresses": ["10.0.0.1"], "targetRef": { "kind": "Pod", "name": "web-1" } },
            { "addresses": ["10.0.0.2"], "conditions": { "ready": false, "serving": true } },
            { "addresses": ["10.0.0.3"], "conditions": { "ready": null } },
        ],
        "ports": [{ "port": 8080 }, { "name": "dns", "port": 53, "protocol": "UDP" }],
    })) else {
        panic!()
    };
    assert_eq!(found.endpoints.len(), 2);
    assert_eq!(found.endpoints[0].target.as_deref(), Some("web-1"));
    assert_eq!(found.ports.len(), 1);

    let mut wrong = slice("a/web", &["10.0.0.1", "ten"], 0);
    wrong["endpoints"][0]["addresses"] = json!(["::1"]);
    assert_eq!(
        refusals(wrong),
        [
            "endpoints[0].addresses[0]: Invalid value: \"::1\": is of the other family than addressType says",
            "endpoints[1].addresses[0]: Invalid value: \"ten\"; write an IP address, such as 10.0.0.7",
            "ports[0].port: Invalid value: 0; write a number from 1 to 65535",
        ]
    );
}

#[test]
fn secrets_are_read_from_data_and_string_data_and_never_shown() {
    let made = rcgen::generate_simple_self_signed(vec!["h.test".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let secret = |member: &str, certificate: &str, key: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": { "name": "s", "annotations": { "copy": key } },
            member: { "tls.crt": certificate, "tls.key": key },
        })
    };
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let encoded = secret("data", &STANDARD.encode(&certificate), &STANDARD.encode(&key));
    for object in [secret("stringData", &certificate, &key), encoded] {
        let object = good(object);
        let Object::Secret(read) = &object else { panic!() };
        assert!(read.pair.is_some());
        assert!(!format!("{object:?}").contains(key.lines().nth(1).unwrap()));
    }
    let refusals = refusals(secret("data", "not base64!", &STANDARD.encode("no key")));
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].starts_with("data[tls.crt]: Invalid value: (redacted): is not valid base64"), "{refusals:?}");
}

#[test]
fn header_actions_are_kept_in_order() {
    let actions = json!({
        "request": [
            { "name": "X-Client", "action": { "type": "Set", "set": { "value": "%{+Q}[ssl_c_der,base64]" } } },
            { "name": "Accept", "action": { "type": "Delete" } },
        ],
        "response": [{ "name": "Server", "action": { "type": "Delete" } }],
    });
    let object = route("a/b", 1, json!({ "host": "h.test", "httpHeaders": { "actions": actions } }));
    let parsed = parsed(object.clone());
    let warnings: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, Vec::<String>::new());
    let route = route_of(object);
    let actions = route.header_actions().unwrap();
    let names: Vec<&str> = actions.request.iter().map(|action| &*action.name).collect();
    assert_eq!(names, ["X-Client", "Accept"]);
    assert_eq!(actions.request[1].change, HeaderChange::Delete);
    assert_eq!(actions.response.len(), 1);
    assert!(route_of(super::super::testing::route("a/b", 1, json!({}))).header_actions().is_none());
}

#[test]
fn a_key_or_ca_without_a_certificate_is_warned_of_and_serves_the_default() {
    let object = route("a/b", 1, json!({ "host": "h.test", "tls": { "termination": "edge", "key": "SECRET" } }));
    let parsed = parsed(object.clone());
    let warnings: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["spec.tls.key: is not used without a certificate; write certificate, or remove it"]);
    assert!(route_of(object).material_errors().is_empty());
    let bad = route("a/b", 1, json!({ "host": "h.test", "tls": { "caCertificate": "SECRET" } }));
    let errors: Vec<String> = route_of(bad).material_errors().iter().map(ToString::to_string).collect();
    assert!(
        errors[0].starts_with("spec.tls.caCertificate: Invalid value: (redacted): holds no certificate"),
        "{errors:?}"
    );
}

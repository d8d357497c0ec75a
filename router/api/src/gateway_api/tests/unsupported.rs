//! Features of the API that Sluice does not support, with the messages of conditions.

use serde_json::{Value, json};

use super::{gateway, object, route};
use crate::object::Object;
use crate::testing::good;

#[test]
fn unsupported_fields_of_the_api_are_reported() {
    let of_rule = |rule: Value| route("HTTPRoute", json!({ "rules": [rule] })).rules[0].unsupported.clone();
    let auth = json!({ "protocol": "HTTP", "backendRef": { "name": "a", "port": 1 }, "http": {} });
    let rewrite = |path: &str| {
        json!([{ "type": "URLRewrite", "urlRewrite": { "path": {
        "type": "ReplaceFullPath", "replaceFullPath": path } } }])
    };
    let of_rules = [
        (
            json!({ "matches": [{ "path": { "type": "RegularExpression", "value": "(" } }] }),
            "matches[0].path.value: \"(\" is not a valid regular expression (RE2 syntax); correct it, or write another type",
        ),
        (
            json!({ "matches": [{ "headers": [{ "name": "a", "type": "RegularExpression", "value": "a)(b" }] }] }),
            "matches[0].headers[0].value: \"a)(b\" is not a valid regular expression (RE2 syntax); correct it, or write another type",
        ),
        (
            json!({ "sessionPersistence": { "type": "Cookie" } }),
            "sessionPersistence: sessions are not kept with one backend; remove it",
        ),
        (
            json!({ "filters": [{ "type": "ExternalAuth", "externalAuth": auth }] }),
            "filters[0].externalAuth.protocol: requests are not authorised by another service; remove the filter",
        ),
        (
            json!({ "backendRefs": [{ "name": "a", "port": 1, "filters": [{ "type": "CORS", "cors": {} }] }] }),
            "backendRefs[0].filters[0].type: CORS is not done for single backends; write it in the rule's filters",
        ),
        (
            json!({ "filters": rewrite("new") }),
            "filters[0].urlRewrite.path.replaceFullPath: \"new\" is not a valid path; write one that begins with a slash and has no ?, # or space",
        ),
        (
            json!({ "filters": rewrite("/a?b") }),
            "filters[0].urlRewrite.path.replaceFullPath: \"/a?b\" is not a valid path; write one that begins with a slash and has no ?, # or space",
        ),
    ];
    for (rule, expected) in of_rules {
        assert_eq!(of_rule(rule), [format!("spec.rules[0].{expected}")]);
    }
    let listener = json!({ "name": "web", "port": 443, "protocol": "HTTPS",
        "tls": { "certificateRefs": [{ "name": "c" }], "options": { "a.test/b": "c" } } });
    let found = gateway(json!({
        "gatewayClassName": "c",
        "listeners": [listener],
        "defaultScope": "All",
        "allowedListeners": { "namespaces": { "from": "Same" } },
        "tls": { "frontend": { "default": {} }, "backend": {} },
    }));
    assert_eq!(
        found.listeners[0].unsupported,
        ["spec.listeners[0].tls.options[a.test/b]: no TLS option is known; remove it"]
    );
    let expected = [
        "spec.tls.frontend: clients' certificates are not checked for Gateways; remove it, or use an IngressController's \
         clientTLS",
        "spec.tls.backend: no certificate is shown to backends; remove it",
        "spec.defaultScope: Sluice has no default Gateways; remove it, and name the Gateway in parentRefs of routes",
        "spec.allowedListeners: ListenerSets are not read; remove it, and write listeners here",
    ];
    assert_eq!(found.unsupported, expected);
    let Object::BackendTlsPolicy(policy) = good(object(
        "BackendTLSPolicy",
        json!({
            "targetRefs": [{ "group": "", "kind": "Service", "name": "a" }],
            "options": { "a.test/b": "c" },
            "validation": {
                "hostname": "a.test",
                "wellKnownCACertificates": "a.test/roots",
            },
        }),
    )) else {
        panic!()
    };
    let expected = [
        "spec.options[a.test/b]: no TLS option is known; remove it",
        "spec.validation.wellKnownCACertificates: \"a.test/roots\" is not known; write System, or caCertificateRefs",
    ];
    assert_eq!(policy.unsupported, expected);
}

#[test]
fn headers_that_cannot_be_changed_or_sent_are_reported() {
    let modifier = json!({
        "set": [{ "name": "Host", "value": "a.test" }, { "name": "X-A", "value": "a\nb" }, { "name": "X-B", "value": "a  b" }],
        "add": [{ "name": "X-C", "value": " a" }, { "name": "X-D", "value": "é" }],
        "remove": ["Connection", "Content-Length"],
    });
    let of = |kind: &str, member: &str| {
        let rules = json!([{ "filters": [{ "type": kind, member: modifier }] }]);
        let found = route("HTTPRoute", json!({ "rules": rules }));
        let fields = found.rules[0].unsupported.iter().map(|text| text.split(": ").next().unwrap().to_owned());
        fields.map(|field| field.replacen(&format!("spec.rules[0].filters[0].{member}."), "", 1)).collect::<Vec<_>>()
    };
    let values = ["set[1].value", "add[0].value", "add[1].value"];
    let framing = ["remove[0]", "remove[1]"];
    let request = [&values[..], &["set[0].name"], &framing[..]].concat();
    assert_eq!(of("RequestHeaderModifier", "requestHeaderModifier"), request);
    assert_eq!(of("ResponseHeaderModifier", "responseHeaderModifier"), [&values[..], &framing[..]].concat());
}

#[test]
fn an_expression_that_would_take_much_memory_is_not_compiled() {
    let matches = json!([{ "path": { "type": "RegularExpression", "value": r"(\w{1000}){1000}" } }]);
    let found = route("HTTPRoute", json!({ "rules": [{ "matches": matches }] }));
    assert!(found.rules[0].unsupported[0].contains("the expression is too large"), "{:?}", found.rules[0].unsupported);
}

//! Listeners: protocols, kinds, certificates, ports, conflicts.

use serde_json::json;

use crate::scenario::{Scenario, TestRequest, secret};

fn gateway(name: &str, listeners: &[&str]) -> String {
    let listeners: Vec<String> = listeners.iter().map(|listener| format!("  - {listener}\n")).collect();
    format!(
        "---\nkind: Gateway\nmetadata: {{namespace: infra, name: {name}}}\nspec:\n  gatewayClassName: sluice\n  \
         listeners:\n{}",
        listeners.concat()
    )
}

/// GatewayListenerUnsupportedProtocol.
#[test]
fn unsupported_protocols_are_rejected() {
    let udp = "{name: udp, port: 53, protocol: UDP}";
    let http = "{name: http, port: 80, protocol: HTTP}";
    for (listeners, accepted, programmed) in [
        (vec![udp], "False/ListenersNotValid", "False/Invalid"),
        (vec![udp, http], "True/ListenersNotValid", "True/Programmed"),
    ] {
        let scenario = Scenario::new(&gateway("g", &listeners));
        assert_eq!(scenario.of_listener("infra/g", "udp", "Accepted"), "False/UnsupportedProtocol");
        assert_eq!(scenario.listener("infra/g", "udp")["supportedKinds"], json!([]));
        assert_eq!(scenario.condition("Gateway infra/g", "Accepted"), accepted);
        assert_eq!(scenario.condition("Gateway infra/g", "Programmed"), programmed);
    }
}

/// GatewayInvalidRouteKind, TLSRouteListenerPassthroughSupportedKinds, TLSRouteListenerTerminateSupportedKinds.
#[test]
fn kinds_are_those_that_the_protocol_supports() {
    let pair = secret("infra/tls", &["*.test"]);
    let tls = "tls: {certificateRefs: [{name: tls}]}";
    let http = "port: 80, protocol: HTTP";
    let terminate = format!("port: 443, protocol: TLS, {tls}");
    let cases = [
        (http.to_owned(), None, vec!["HTTPRoute", "GRPCRoute"], "True/ResolvedRefs"),
        (http.to_owned(), Some("[{kind: HTTPRoute}]"), vec!["HTTPRoute"], "True/ResolvedRefs"),
        (http.to_owned(), Some("[{kind: InvalidRoute}]"), vec![], "False/InvalidRouteKinds"),
        (
            http.to_owned(),
            Some("[{kind: InvalidRoute}, {kind: HTTPRoute}]"),
            vec!["HTTPRoute"],
            "False/InvalidRouteKinds",
        ),
        (http.to_owned(), Some("[{group: example.com, kind: HTTPRoute}]"), vec![], "False/InvalidRouteKinds"),
        (http.to_owned(), Some("[{kind: TLSRoute}]"), vec![], "False/InvalidRouteKinds"),
        (format!("port: 443, protocol: HTTPS, {tls}"), None, vec!["HTTPRoute", "GRPCRoute"], "True/ResolvedRefs"),
        (terminate.clone(), None, vec!["TLSRoute"], "True/ResolvedRefs"),
        (terminate, Some("[{kind: HTTPRoute}]"), vec![], "False/InvalidRouteKinds"),
        ("port: 443, protocol: TLS, tls: {mode: Passthrough}".to_owned(), None, vec!["TLSRoute"], "True/ResolvedRefs"),
    ];
    for (listener, kinds, supported, resolved) in cases {
        let allowed = kinds.map(|kinds| format!(", allowedRoutes: {{kinds: {kinds}}}")).unwrap_or_default();
        let listener = format!("{{name: l, {listener}{allowed}}}");
        let scenario = Scenario::with(&gateway("g", &[&listener]), [pair.clone()]);
        assert_eq!(scenario.of_listener("infra/g", "l", "ResolvedRefs"), resolved, "{listener}");
        let status = scenario.listener("infra/g", "l");
        let found: Vec<_> =
            status["supportedKinds"].as_array().unwrap().iter().map(|kind| kind["kind"].clone()).collect();
        assert_eq!(found, supported, "{listener}");
    }
}

/// GatewayInvalidTLSConfiguration.
#[test]
fn unusable_certificates_are_reported() {
    let opaque = json!({ "kind": "Secret", "metadata": { "namespace": "infra", "name": "opaque" }, "type": "Opaque" });
    let cases = [
        ("[{name: tls}]", "True/ResolvedRefs", "True/Programmed"),
        ("[{name: missing}]", "False/InvalidCertificateRef", "False/Invalid"),
        ("[{name: opaque}]", "False/InvalidCertificateRef", "False/Invalid"),
        ("[{group: example.com, kind: Secret, name: tls}]", "False/InvalidCertificateRef", "False/Invalid"),
        ("[{kind: ConfigMap, name: tls}]", "False/InvalidCertificateRef", "False/Invalid"),
        // Valid certificates are presented nevertheless.
        ("[{name: missing}, {name: tls}]", "False/InvalidCertificateRef", "True/Programmed"),
    ];
    for (references, resolved, programmed) in cases {
        let listener = format!("{{name: l, port: 443, protocol: HTTPS, tls: {{certificateRefs: {references}}}}}");
        let scenario = Scenario::with(&gateway("g", &[&listener]), [secret("infra/tls", &["*.test"]), opaque.clone()]);
        assert_eq!(scenario.of_listener("infra/g", "l", "Accepted"), "True/Accepted", "{references}");
        assert_eq!(scenario.of_listener("infra/g", "l", "ResolvedRefs"), resolved, "{references}");
        assert_eq!(scenario.of_listener("infra/g", "l", "Programmed"), programmed, "{references}");
    }
}

/// GatewaySecretInvalidReferenceGrant, GatewaySecretMissingReferenceGrant, GatewaySecretReferenceGrantAllInNamespace,
/// GatewaySecretReferenceGrantSpecific.
#[test]
fn certificates_of_other_namespaces_need_a_grant() {
    let grant = |from: &str, to: &str| {
        format!(
            "---\nkind: ReferenceGrant\nmetadata: {{namespace: web, name: g}}\nspec: {{from: [{from}], to: [{to}]}}\n"
        )
    };
    let gateways = "{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}";
    let (rejected, granted) = ("False/RefNotPermitted", "True/ResolvedRefs");
    let cases = [
        ("none", String::new(), rejected),
        ("of the Secret", grant(gateways, "{group: '', kind: Secret, name: tls}"), granted),
        ("of all Secrets", grant(gateways, "{group: '', kind: Secret}"), granted),
        ("of another Secret", grant(gateways, "{group: '', kind: Secret, name: other}"), rejected),
        ("of another kind", grant(gateways, "{group: '', kind: Service}"), rejected),
        (
            "to another namespace",
            grant("{group: gateway.networking.k8s.io, kind: Gateway, namespace: app}", "{group: '', kind: Secret}"),
            rejected,
        ),
        (
            "to another kind",
            grant("{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: infra}", "{group: '', kind: Secret}"),
            rejected,
        ),
        (
            "to another group",
            grant("{group: example.com, kind: Gateway, namespace: infra}", "{group: '', kind: Secret}"),
            rejected,
        ),
    ];
    let listener = "{name: l, port: 443, protocol: HTTPS, tls: {certificateRefs: [{namespace: web, name: tls}]}}";
    for (case, grant, resolved) in cases {
        let scenario =
            Scenario::with(&format!("{}{grant}", gateway("g", &[listener])), [secret("web/tls", &["*.test"])]);
        assert_eq!(scenario.of_listener("infra/g", "l", "ResolvedRefs"), resolved, "{case}");
        let programmed = if resolved == granted { "True/Programmed" } else { "False/Invalid" };
        assert_eq!(scenario.of_listener("infra/g", "l", "Programmed"), programmed, "{case}");
        let shown = if resolved == granted { "404" } else { "default certificate, 404" };
        assert_eq!(scenario.https(443, &TestRequest::get("a.test/")), shown, "{case}");
    }
}

/// TLSRouteListenerMixedTerminationNotSupported (it is supported: TLSRouteModeMixed), and the rules of distinct
/// listeners. A Gateway with two listeners of the same port, protocol and hostname is rejected when it is parsed.
#[test]
fn indistinguishable_listeners_of_a_gateway_are_all_rejected() {
    let ok = ("True/Accepted", "False/NoConflicts");
    let protocol = ("False/ProtocolConflict", "True/ProtocolConflict");
    let cases = [
        (["80, protocol: HTTP", "80, protocol: HTTP, hostname: a.test"], ok),
        (["80, protocol: HTTP, hostname: '*.test'", "80, protocol: HTTP, hostname: a.test"], ok),
        (["80, protocol: HTTP", "8080, protocol: HTTP"], ok),
        (
            ["8443, protocol: HTTP", "8443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: tls}]}"],
            protocol,
        ),
        (
            [
                "443, protocol: HTTPS, hostname: '*.test', tls: {certificateRefs: [{name: tls}]}",
                "443, protocol: TLS, hostname: a.test, tls: {mode: Passthrough}",
            ],
            ok,
        ),
        (
            [
                "443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: tls}]}",
                "443, protocol: TLS, hostname: a.test, tls: {mode: Passthrough}",
            ],
            protocol,
        ),
        (
            [
                "443, protocol: TLS, hostname: a.test, tls: {certificateRefs: [{name: tls}]}",
                "443, protocol: TLS, hostname: b.test, tls: {mode: Passthrough}",
            ],
            ok,
        ),
    ];
    for ([one, other], (accepted, conflicted)) in cases {
        let listeners = [format!("{{name: one, port: {one}}}"), format!("{{name: other, port: {other}}}")];
        let listeners: Vec<_> = listeners.iter().map(|listener| &**listener).collect();
        let manifests = gateway("g", &listeners);
        let scenario = Scenario::with(&manifests, [secret("infra/tls", &["*.test"])]);
        for name in ["one", "other"] {
            assert_eq!(scenario.of_listener("infra/g", name, "Accepted"), accepted, "{name}: {listeners:?}");
            assert_eq!(scenario.of_listener("infra/g", name, "Conflicted"), conflicted, "{name}: {listeners:?}");
        }
    }
}

#[test]
fn the_older_gateway_keeps_a_hostname_and_a_port() {
    let old = gateway(
        "old",
        &["{name: any, port: 80, protocol: HTTP}", "{name: a, port: 8080, protocol: HTTP, hostname: a.test}"],
    )
    .replace("name: old", "name: old, creationTimestamp: '2024-01-01T00:00:00Z'");
    let young = gateway(
        "young",
        &[
            "{name: any, port: 80, protocol: HTTP}",
            "{name: b, port: 8080, protocol: HTTP, hostname: b.test}",
            "{name: tls, port: 8080, protocol: TLS, hostname: c.test, tls: {mode: Passthrough}}",
            "{name: on-80, port: 80, protocol: TLS, tls: {mode: Passthrough}}",
        ],
    )
    .replace("name: young", "name: young, creationTimestamp: '2024-01-02T00:00:00Z'");
    // In either order.
    for manifests in [format!("{old}{young}"), format!("{young}{old}")] {
        let scenario = Scenario::new(&manifests);
        for (gateway, listener, accepted) in [
            ("infra/old", "any", "True/Accepted"),
            ("infra/old", "a", "True/Accepted"),
            // Within one Gateway, a port has one protocol.
            ("infra/young", "any", "False/ProtocolConflict"),
            ("infra/young", "b", "False/ProtocolConflict"),
        ] {
            assert_eq!(scenario.of_listener(gateway, listener, "Accepted"), accepted, "{gateway} {listener}");
        }
    }
    let young = gateway("young", &["{name: any, port: 80, protocol: HTTP}", "{name: b, port: 8080, protocol: HTTP}"])
        .replace("name: young", "name: young, creationTimestamp: '2024-01-02T00:00:00Z'");
    let tls = gateway(
        "tls",
        &[
            "{name: on-80, port: 80, protocol: TLS, tls: {mode: Passthrough}}",
            "{name: on-8080, port: 8080, protocol: TLS, tls: {mode: Passthrough}}",
            "{name: on-443, port: 443, protocol: HTTP}",
            "{name: on-9443, port: 9443, protocol: TLS, tls: {mode: Passthrough}}",
        ],
    )
    .replace("name: tls", "name: tls, creationTimestamp: '2024-01-03T00:00:00Z'");
    let scenario = Scenario::new(&format!("{old}{young}{tls}"));
    for (gateway, listener, accepted) in [
        ("infra/young", "any", "False/PortUnavailable"),
        ("infra/young", "b", "True/Accepted"),
        ("infra/tls", "on-80", "False/PortUnavailable"),
        ("infra/tls", "on-8080", "False/PortUnavailable"),
        ("infra/tls", "on-443", "False/PortUnavailable"),
        ("infra/tls", "on-9443", "True/Accepted"),
    ] {
        assert_eq!(scenario.of_listener(gateway, listener, "Accepted"), accepted, "{gateway} {listener}");
    }
    let ports = scenario.ports();
    assert_eq!(ports["default"], (Some(80), Some(443)));
    assert_eq!(ports["gateway-8080"], (Some(8080), None));
    assert_eq!(ports["gateway-9443"], (None, Some(9443)));
    let message = scenario.listener("infra/young", "any")["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("port 80: Gateway old already exposes * and is older; choose another hostname or port"),
        "{message}"
    );
}

#[test]
fn a_younger_gateway_takes_no_host_from_an_older_route() {
    let at = |name: &str, day: u8| format!("name: {name}, creationTimestamp: '2024-01-0{day}T00:00:00Z'");
    let old = gateway("old", &["{name: web, port: 80, protocol: HTTP, hostname: '*.test'}"])
        .replace("name: old", &at("old", 1));
    let young = gateway("young", &["{name: web, port: 80, protocol: HTTP, hostname: bank.test}"])
        .replace("name: young", &at("young", 3));
    let route = |name: &str, day: u8, gateway: &str, host: &str, backend: &str| {
        format!(
            "---\nkind: HTTPRoute\nmetadata: {{namespace: infra, {}}}\nspec:\n  parentRefs: [{{name: {gateway}}}]\n  hostnames: \
             ['{host}']\n  rules:\n  - backendRefs: [{{name: {backend}, port: 8080}}]\n",
            at(name, day)
        )
    };
    for (day, host, serves, own, other) in [
        // The route is older than the other Gateway.
        (2, "bank.test", "v1", "", "not served here, as an older route of another Gateway has it: bank.test"),
        // The route is younger than the other Gateway: the more specific listener gets the host.
        (4, "bank.test", "v2", "not served here, as a more specific listener of the port has it: bank.test", ""),
        // The route does not claim exactly this host.
        (2, "*.test", "v2", "", ""),
    ] {
        let scenario = Scenario::new(
            &[&*old, &*young, &*route("bank", day, "old", host, "v1"), &*route("thief", 5, "young", "bank.test", "v2")]
                .concat(),
        );
        assert_eq!(scenario.http(80, &TestRequest::get("bank.test/")), serves, "{day} {host}");
        for (name, expected) in [("bank", own), ("thief", other)] {
            let status = scenario.status(&format!("HTTPRoute infra/{name}"));
            assert_eq!(status["parents"][0]["conditions"][0]["message"], expected, "{name}, {day} {host}");
        }
    }
}

#[test]
fn listeners_that_may_share_connections_are_reported() {
    let https = |name: &str, hostname: &str, certificate: &str| {
        format!(
            "{{name: {name}, port: 443, protocol: HTTPS, hostname: '{hostname}', tls: {{certificateRefs: [{{name: {certificate}}}]}}}}"
        )
    };
    let cases = [
        ("*.x.test", "wide", "a.x.test", "wide", "True/OverlappingHostnames"),
        ("a.x.test", "wide", "b.x.test", "wide", "True/OverlappingCertificates"),
        ("a.x.test", "a", "b.x.test", "b", "-"),
    ];
    for (one, its, other, others, overlapping) in cases {
        let listeners = [https("one", one, its), https("other", other, others)];
        let listeners: Vec<_> = listeners.iter().map(|listener| &**listener).collect();
        let secrets =
            [secret("infra/wide", &["*.x.test"]), secret("infra/a", &["a.x.test"]), secret("infra/b", &["b.x.test"])];
        let scenario = Scenario::with(&gateway("g", &listeners), secrets);
        assert_eq!(scenario.of_listener("infra/g", "one", "OverlappingTLSConfig"), overlapping, "{one} {other}");
    }
}

#[test]
fn only_the_most_specific_listener_serves_a_host() {
    let manifests = gateway(
        "g",
        &[
            "{name: any, port: 80, protocol: HTTP}",
            "{name: wide, port: 80, protocol: HTTP, hostname: '*.test'}",
            "{name: deep, port: 80, protocol: HTTP, hostname: '*.a.test'}",
            "{name: exact, port: 80, protocol: HTTP, hostname: x.a.test}",
        ],
    );
    let route = |name: &str, backend: &str| {
        format!(
            "---\nkind: HTTPRoute\nmetadata: {{namespace: infra, name: {name}}}\nspec:\n  parentRefs: [{{name: g, sectionName: \
             {name}}}]\n  hostnames: [other.org, '*.test', '*.a.test', x.a.test]\n  rules:\n  - matches: [{{path: {{value: \
             /{name}}}}}]\n    backendRefs: [{{name: {backend}, port: 8080}}]\n"
        )
    };
    let scenario = Scenario::new(
        &[manifests, route("any", "v1"), route("wide", "v2"), route("deep", "v3"), route("exact", "v1")].concat(),
    );
    for name in ["any", "wide", "deep", "exact"] {
        assert_eq!(
            scenario.parents(&format!("HTTPRoute infra/{name}")),
            [format!("g#{name} True/Accepted True/ResolvedRefs")]
        );
    }
    for (host, own) in
        [("other.org", "any"), ("b.test", "wide"), ("y.a.test", "deep"), ("z.y.a.test", "deep"), ("x.a.test", "exact")]
    {
        for listener in ["any", "wide", "deep", "exact"] {
            let found = scenario.http(80, &TestRequest::get(&format!("{host}/{listener}")));
            assert_eq!(found != "404", listener == own, "{host}/{listener} → {found}");
        }
    }
    let status = scenario.status("HTTPRoute infra/any");
    let message = status["parents"][0]["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(message, "not served here, as a more specific listener of the port has it: *.a.test, *.test, x.a.test");
}

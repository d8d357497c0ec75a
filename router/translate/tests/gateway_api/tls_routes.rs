//! TLSRoutes on passthrough and terminating listeners.

use crate::scenario::{Scenario, TestRequest, secret};

fn scenario(listeners: &[&str], routes: &[(&str, &str)]) -> Scenario {
    let mut manifests =
        "\nkind: Gateway\nmetadata: {namespace: infra, name: g}\nspec:\n  gatewayClassName: sluice\n  listeners:\n"
            .to_owned();
    manifests.extend(listeners.iter().map(|listener| format!("  - {listener}\n")));
    for (metadata, spec) in routes {
        manifests += &format!(
            "---\nkind: TLSRoute\nmetadata: {{namespace: infra, {metadata}}}\nspec: {{parentRefs: [{{name: g}}], {spec}}}\n"
        );
    }
    Scenario::with(&manifests, [secret("infra/tls", &["*.test"])])
}

fn sni(scenario: &Scenario, host: &str) -> String {
    scenario.https(443, &TestRequest::get(host))
}

const PASSTHROUGH: &str = "{name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}}";
const V1: &str = "rules: [{backendRefs: [{name: v1, port: 8080}]}]";
const V2: &str = "rules: [{backendRefs: [{name: v2, port: 8080}]}]";

/// TLSRouteSimpleSameNamespace.
#[test]
fn connections_are_passed_through_by_sni() {
    let scenario = scenario(&[PASSTHROUGH], &[("name: r", &format!("hostnames: [abc.example.com], {V1}"))]);
    assert_eq!(scenario.parents("TLSRoute infra/r"), ["g True/Accepted True/ResolvedRefs"]);
    assert_eq!(sni(&scenario, "abc.example.com"), "passthrough v1");
    // Clients do not expect a certificate of this listener.
    assert_eq!(sni(&scenario, "x.example.com"), "passthrough nowhere");
    assert_eq!(scenario.listener("infra/g", "tls")["attachedRoutes"], 1);
}

/// TLSRouteHostnameIntersection.
#[test]
fn hosts_are_the_intersection_of_listener_and_route() {
    let listener = |hostname: &str| {
        format!("{{name: tls, port: 443, protocol: TLS, hostname: '{hostname}', tls: {{mode: Passthrough}}}}")
    };
    for (hostname, hosts, cases) in [
        ("very.specific.com", "'*.specific.com'", [("very.specific.com", true), ("non.specific.com", false)]),
        ("very.specific.com", "very.specific.com", [("very.specific.com", true), ("specific.com", false)]),
        ("*.wildcard.io", "foo.wildcard.io, wildcard.io", [("foo.wildcard.io", true), ("bar.wildcard.io", false)]),
        ("*.wildcard.io", "'*.wildcard.io'", [("a.b.wildcard.io", true), ("wildcard.io", false)]),
    ] {
        let scenario = scenario(&[&listener(hostname)], &[("name: r", &format!("hostnames: [{hosts}], {V1}"))]);
        assert_eq!(scenario.parents("TLSRoute infra/r"), ["g True/Accepted True/ResolvedRefs"]);
        for (host, served) in cases {
            assert_eq!(sni(&scenario, host) == "passthrough v1", served, "{hostname} {hosts} {host}");
        }
    }
}

/// TLSRouteInvalidBackendRefNonexistent, TLSRouteInvalidBackendRefUnknownKind, TLSRouteInvalidReferenceGrant.
#[test]
fn connections_for_invalid_backends_fail() {
    for (backend, reason, served) in [
        ("{name: nonexistent, port: 8080}", "False/BackendNotFound", "passthrough nonexistent!500"),
        (
            "{group: unknownkind.example.com, kind: NonExistent, name: x, port: 8080}",
            "False/InvalidKind",
            "passthrough x!500",
        ),
        ("{namespace: web, name: web, port: 8080}", "False/RefNotPermitted", "passthrough web/web!500"),
        (
            "{name: v1, port: 8080}, {name: nonexistent, port: 8080}",
            "False/BackendNotFound",
            "passthrough v1×1 nonexistent×1!500",
        ),
    ] {
        let spec = format!("hostnames: [a.test], rules: [{{backendRefs: [{backend}]}}]");
        let scenario = scenario(&[PASSTHROUGH], &[("name: r", &spec)]);
        assert_eq!(scenario.parents("TLSRoute infra/r"), [format!("g True/Accepted {reason}")]);
        assert_eq!(sni(&scenario, "a.test"), served);
    }
}

/// TLSRouteInvalidNoMatchingListener, TLSRouteInvalidNoMatchingListenerHostname.
#[test]
fn routes_without_a_listener_are_rejected() {
    let https = "{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: tls}]}}";
    let named = "{name: tls, port: 443, protocol: TLS, hostname: a.test, tls: {mode: Passthrough}}";
    let closed = "{name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: app}}}}}";
    for (listener, reason) in [
        (https, "False/UnsupportedValue"),
        ("{name: http, port: 80, protocol: HTTP}", "False/UnsupportedValue"),
        (named, "False/NoMatchingListenerHostname"),
        (closed, "False/NotAllowedByListeners"),
    ] {
        let scenario = scenario(&[listener], &[("name: r", &format!("hostnames: [b.test], {V1}"))]);
        assert_eq!(scenario.parents("TLSRoute infra/r"), [format!("g {reason} True/ResolvedRefs")], "{listener}");
        assert!(!sni(&scenario, "b.test").contains("v1"), "{listener}");
    }
    let scenario = Scenario::new(&format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: g}}
spec: {{gatewayClassName: sluice, listeners: [{PASSTHROUGH}]}}
---
kind: TLSRoute
metadata: {{namespace: infra, name: r}}
spec: {{parentRefs: [{{name: g, sectionName: other}}], hostnames: [a.test], {V1}}}
"
    ));
    assert_eq!(scenario.parents("TLSRoute infra/r"), ["g#other False/NoMatchingParent True/ResolvedRefs"]);
}

/// TLSRouteTerminateSimpleSameNamespace; TLSRouteListenerTerminateNotSupported does not apply, as termination is
/// supported.
#[test]
fn tls_is_terminated_and_the_bytes_are_relayed() {
    let listener = "{name: tls, port: 443, protocol: TLS, tls: {mode: Terminate, certificateRefs: [{name: tls}]}}";
    let scenario = scenario(&[listener], &[("name: r", &format!("hostnames: [a.test], {V1}"))]);
    assert_eq!(scenario.parents("TLSRoute infra/r"), ["g True/Accepted True/ResolvedRefs"]);
    assert_eq!(sni(&scenario, "a.test"), "tcp v1");
    assert_eq!(sni(&scenario, "b.test"), "tcp nowhere");
}

/// TLSRouteMixedTerminationSameNamespace, and HTTPS and passthrough on one port.
#[test]
fn one_port_has_listeners_of_all_kinds() {
    let scenario = scenario(
        &[
            "{name: pass, port: 443, protocol: TLS, hostname: pass.test, tls: {mode: Passthrough}}",
            "{name: stop, port: 443, protocol: TLS, hostname: stop.test, tls: {certificateRefs: [{name: tls}]}}",
            "{name: https, port: 443, protocol: HTTPS, hostname: '*.test', tls: {certificateRefs: [{name: tls}]}}",
        ],
        &[
            ("name: pass", &format!("hostnames: [pass.test], {V1}")),
            ("name: stop", &format!("hostnames: [stop.test], {V2}")),
        ],
    );
    for (host, served) in [("pass.test", "passthrough v1"), ("stop.test", "tcp v2"), ("other.test", "404")] {
        assert_eq!(sni(&scenario, host), served, "{host}");
    }
}

#[test]
fn the_older_of_two_routes_with_one_host_serves() {
    let host = |backend: &str| format!("hostnames: [a.test, '*.b.test'], {backend}");
    let scenario = scenario(
        &[PASSTHROUGH],
        &[
            ("name: young, creationTimestamp: '2024-01-02T00:00:00Z'", &host(V2)),
            ("name: old, creationTimestamp: '2024-01-01T00:00:00Z'", &host(V1)),
            ("name: deep, creationTimestamp: '2024-01-03T00:00:00Z'", &format!("hostnames: [x.b.test], {V2}")),
        ],
    );
    for (host, served) in [("a.test", "v1"), ("y.b.test", "v1"), ("x.b.test", "v2")] {
        assert_eq!(sni(&scenario, host), format!("passthrough {served}"), "{host}");
    }
    let message =
        |route: &str| scenario.status(route)["parents"][0]["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert_eq!(
        message("TLSRoute infra/young"),
        "connections for *.b.test go to another TLSRoute, which takes precedence; connections for a.test go to another TLSRoute, \
         which takes precedence"
    );
    assert_eq!(message("TLSRoute infra/old"), "");
}

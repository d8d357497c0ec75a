//! HTTPRoutes: the listeners that they attach to, and their hosts.

use crate::scenario::{Scenario, TestRequest, secret};

fn route(name: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or(("infra", name));
    let metadata = format!("{{namespace: {namespace}, name: {name}}}");
    format!("---\nkind: HTTPRoute\nmetadata: {metadata}\nspec: {spec}\n")
}

const SAME: &str = "
kind: Gateway
metadata: {namespace: infra, name: same}
spec:
  gatewayClassName: sluice
  listeners: [{name: http, port: 80, protocol: HTTP}]
";

/// HTTPRouteSimpleSameNamespace.
#[test]
fn a_route_in_the_namespace_of_its_gateway_is_accepted() {
    let scenario = Scenario::new(
        &[SAME, &route("r", "{parentRefs: [{name: same}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}")].concat(),
    );
    assert_eq!(scenario.parents("HTTPRoute infra/r"), ["same True/Accepted True/ResolvedRefs"]);
    assert_eq!(scenario.http(80, &TestRequest::get("any.test/")), "v1");
    let status = scenario.status("HTTPRoute infra/r");
    assert_eq!(status["parents"][0]["controllerName"], "sluice.dev/gateway-controller");
    assert_eq!(
        status["parents"][0]["parentRef"],
        serde_json::json!({ "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "same" })
    );
    assert_eq!(scenario.condition("Gateway infra/same", "Programmed"), "True/Programmed");
}

/// HTTPRouteCrossNamespace, HTTPRouteInvalidCrossNamespaceParentRef.
#[test]
fn listeners_limit_the_namespaces_of_their_routes() {
    let spec = "{parentRefs: [{name: g, namespace: infra}], rules: [{backendRefs: [{name: web, port: 8080}]}]}";
    for (from, accepted, served) in [
        ("", "False/NotAllowedByListeners", "404"),
        ("from: Same", "False/NotAllowedByListeners", "404"),
        ("from: All", "True/Accepted", "web"),
        ("from: Selector, selector: {matchLabels: {team: web}}", "True/Accepted", "web"),
        ("from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: web}}", "True/Accepted", "web"),
        ("from: Selector, selector: {matchLabels: {team: app}}", "False/NotAllowedByListeners", "404"),
        (
            "from: Selector, selector: {matchExpressions: [{key: team, operator: In, values: [app, web]}]}",
            "True/Accepted",
            "web",
        ),
    ] {
        let gateway = SAME
            .replace("name: same", "name: g")
            .replace("protocol: HTTP", &format!("protocol: HTTP, allowedRoutes: {{namespaces: {{{from}}}}}"));
        let scenario = Scenario::new(&[gateway, route("web/r", spec)].concat());
        assert_eq!(scenario.parents("HTTPRoute web/r"), [format!("g {accepted} True/ResolvedRefs")], "{from}");
        assert_eq!(scenario.http(80, &TestRequest::get("any.test/")), served, "{from}");
    }
}

/// HTTPRouteInvalidParentRefNotMatchingSectionName, and ports of parents (HTTPRouteParentRefPort).
#[test]
fn a_parent_is_selected_by_section_and_port() {
    let gateway = "
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: one, port: 80, protocol: HTTP}
  - {name: two, port: 8080, protocol: HTTP}
";
    for (parent, accepted, on_80, on_8080) in [
        ("", "True/Accepted", "v1", "v1"),
        (", sectionName: one", "True/Accepted", "v1", "404"),
        (", sectionName: three", "False/NoMatchingParent", "404", "404"),
        (", port: 8080", "True/Accepted", "404", "v1"),
        (", port: 81", "False/NoMatchingParent", "404", "404"),
        (", sectionName: one, port: 8080", "False/NoMatchingParent", "404", "404"),
    ] {
        let spec =
            format!("{{parentRefs: [{{name: g{parent}}}], rules: [{{backendRefs: [{{name: v1, port: 8080}}]}}]}}");
        let scenario = Scenario::new(&[gateway, &route("r", &spec)].concat());
        let rows = scenario.parents("HTTPRoute infra/r");
        assert!(rows.len() == 1 && rows[0].contains(accepted), "{parent}: {rows:?}");
        assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), on_80, "{parent}");
        assert_eq!(scenario.http(8080, &TestRequest::get("a.test/")), on_8080, "{parent}");
    }
}

#[test]
fn parents_of_other_controllers_get_no_row() {
    let foreign = "
kind: Gateway
metadata: {namespace: infra, name: foreign}
spec: {gatewayClassName: other, listeners: [{name: http, port: 80, protocol: HTTP}]}
";
    let spec = "{parentRefs: [{name: foreign}, {name: missing}, {name: same}, {kind: Service, group: '', name: v1}], rules: \
                [{backendRefs: [{name: v1, port: 8080}]}]}";
    let scenario = Scenario::new(&[SAME, "---", foreign, &route("r", spec)].concat());
    assert_eq!(scenario.parents("HTTPRoute infra/r"), ["same True/Accepted True/ResolvedRefs"]);
    assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), "v1");
}

/// HTTPRouteMultipleGateways.
#[test]
fn a_route_attaches_to_several_gateways() {
    let other = SAME.replace("name: same", "name: other").replace("port: 80", "port: 8081");
    let spec = "{parentRefs: [{name: same}, {name: other}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}";
    let only = "{parentRefs: [{name: other}], hostnames: [b.test], rules: [{backendRefs: [{name: v2, port: 8080}]}]}";
    let scenario = Scenario::new(&[SAME, "---", &other, &route("r", spec), &route("only", only)].concat());
    assert_eq!(
        scenario.parents("HTTPRoute infra/r"),
        ["same True/Accepted True/ResolvedRefs", "other True/Accepted True/ResolvedRefs"]
    );
    for (port, host, served) in
        [(80, "a.test", "v1"), (8081, "a.test", "v1"), (80, "b.test", "v1"), (8081, "b.test", "v2")]
    {
        assert_eq!(scenario.http(port, &TestRequest::get(host)), served, "{host}:{port}");
    }
}

/// HTTPRouteHostnameIntersection.
#[test]
fn hosts_are_the_intersection_of_listener_and_route() {
    let scenario = Scenario::new(
        &[
            "
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: exact, port: 80, protocol: HTTP, hostname: very.specific.com}
  - {name: wide, port: 80, protocol: HTTP, hostname: '*.wildcard.io'}
  - {name: deep, port: 80, protocol: HTTP, hostname: '*.anotherwildcard.io'}
",
            &route(
                "exact-on-exact",
                "{parentRefs: [{name: g}], hostnames: [non.matching.com, '*.nonmatchingwildcard.io', very.specific.com], rules: \
                 [{matches: [{path: {value: /s1}}], backendRefs: [{name: v1, port: 8080}]}]}",
            ),
            &route(
                "exact-on-wide",
                "{parentRefs: [{name: g}], hostnames: [non.matching.com, wildcard.io, foo.wildcard.io, bar.wildcard.io, \
                 foo.bar.wildcard.io], rules: [{matches: [{path: {value: /s2}}], backendRefs: [{name: v2, port: 8080}]}]}",
            ),
            &route(
                "wide-on-exact",
                "{parentRefs: [{name: g}], hostnames: ['*.specific.com'], rules: [{matches: [{path: {value: /s3}}], backendRefs: \
                 [{name: v3, port: 8080}]}]}",
            ),
            &route(
                "wide-on-wide",
                "{parentRefs: [{name: g}], hostnames: ['*.anotherwildcard.io'], rules: [{matches: [{path: {value: /s4}}], \
                 backendRefs: [{name: v1, port: 8080}]}]}",
            ),
            &route("none", "{parentRefs: [{name: g}], hostnames: [specific.but.wrong.com, wildcard.io], rules: [{backendRefs: [{name: v1, port: 8080}]}]}"),
        ]
        .concat(),
    );
    for name in ["exact-on-exact", "exact-on-wide", "wide-on-exact", "wide-on-wide"] {
        assert_eq!(
            scenario.parents(&format!("HTTPRoute infra/{name}")),
            ["g True/Accepted True/ResolvedRefs"],
            "{name}"
        );
    }
    assert_eq!(scenario.parents("HTTPRoute infra/none"), ["g False/NoMatchingListenerHostname True/ResolvedRefs"]);
    for (url, served) in [
        ("very.specific.com/s1", "v1"),
        ("very.specific.com/s3", "v3"),
        ("very.specific.com/non-matching", "404"),
        ("non.matching.com/s1", "404"),
        ("foo.nonmatchingwildcard.io/s1", "404"),
        ("foo.wildcard.io/s2", "v2"),
        ("bar.wildcard.io/s2", "v2"),
        ("foo.bar.wildcard.io/s2", "v2"),
        ("foo.wildcard.io/non-matching", "404"),
        ("wildcard.io/s2", "404"),
        ("baz.wildcard.io/s2", "404"),
        ("other.specific.com/s3", "404"),
        ("one.anotherwildcard.io/s4", "v1"),
        ("one.two.anotherwildcard.io/s4", "v1"),
        ("anotherwildcard.io/s4", "404"),
    ] {
        assert_eq!(scenario.http(80, &TestRequest::get(url)), served, "{url}");
    }
}

/// HTTPRouteListenerHostnameMatching.
#[test]
fn the_most_specific_listener_serves() {
    let scenario = Scenario::new(
        &[
            "
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: listener-1, port: 80, protocol: HTTP, hostname: bar.com}
  - {name: listener-2, port: 80, protocol: HTTP, hostname: foo.bar.com}
  - {name: listener-3, port: 80, protocol: HTTP, hostname: '*.bar.com'}
  - {name: listener-4, port: 80, protocol: HTTP, hostname: '*.foo.com'}
",
            &route("backend-v1", "{parentRefs: [{name: g, sectionName: listener-1}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}"),
            &route("backend-v2", "{parentRefs: [{name: g, sectionName: listener-2}], rules: [{backendRefs: [{name: v2, port: 8080}]}]}"),
            &route(
                "backend-v3",
                "{parentRefs: [{name: g, sectionName: listener-3}, {name: g, sectionName: listener-4}], rules: [{backendRefs: \
                 [{name: v3, port: 8080}]}]}",
            ),
        ]
        .concat(),
    );
    for (host, served) in [
        ("bar.com", "v1"),
        ("foo.bar.com", "v2"),
        ("baz.bar.com", "v3"),
        ("boo.bar.com", "v3"),
        ("multiple.prefixes.bar.com", "v3"),
        ("multiple.prefixes.foo.com", "v3"),
        ("foo.com", "404"),
        ("no.matching.host", "404"),
    ] {
        assert_eq!(scenario.http(80, &TestRequest::get(host)), served, "{host}");
    }
}

/// HTTPRouteHTTPSListener, and hosts of distinct listeners (GatewayHTTPSListenerDetectMisdirectedRequests).
#[test]
fn https_listeners_serve_with_their_certificates() {
    let scenario = Scenario::with(
        &[
            "
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: https, port: 443, protocol: HTTPS, hostname: '*.example.org', tls: {certificateRefs: [{name: wide}, {name: exact}]}}
  - {name: own, port: 443, protocol: HTTPS, hostname: own.example.org, tls: {certificateRefs: [{name: exact}]}}
",
            &route("r", "{parentRefs: [{name: g}], hostnames: [example.org, a.example.org, second.example.org], rules: [{backendRefs: [{name: v1, port: 8080}]}]}"),
            &route("o", "{parentRefs: [{name: g, sectionName: own}], rules: [{backendRefs: [{name: v2, port: 8080}]}]}"),
        ]
        .concat(),
        [secret("infra/wide", &["*.example.org"]), secret("infra/exact", &["own.example.org", "second.example.org"])],
    );
    for (host, served) in [
        ("a.example.org", "v1"),
        ("own.example.org", "v2"),
        ("b.example.org", "404"),
        ("example.org", "default certificate, 404"),
    ] {
        assert_eq!(scenario.https(443, &TestRequest::get(host)), served, "{host}");
    }
    let listener = |host: &str| scenario.host_rules(443, host).map(|host_rules| host_rules.listener.to_string());
    assert_eq!(listener("a.example.org").as_deref(), Some("Gateway infra/g#https"));
    assert_eq!(listener("own.example.org").as_deref(), Some("Gateway infra/g#own"));
    // The certificate that covers the name comes first.
    let first = |host: &str| {
        let tls = scenario.host_rules(443, host).and_then(|host_rules| host_rules.tls).unwrap();
        (router_model::certificate::subject::covers(&tls.certificates[0], host), tls.certificates.len())
    };
    assert_eq!(first("second.example.org"), (true, 2));
    assert_eq!(first("a.example.org"), (true, 2));
}

#[test]
fn a_host_is_served_by_http_and_https_listeners() {
    let scenario = Scenario::with(
        &[
            "
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: tls}]}}
",
            &route(
                "plain",
                "{parentRefs: [{name: g, sectionName: http}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}",
            ),
            &route(
                "tls",
                "{parentRefs: [{name: g, sectionName: https}], rules: [{backendRefs: [{name: v2, port: 8080}]}]}",
            ),
        ]
        .concat(),
        [secret("infra/tls", &["a.test"])],
    );
    // The host of the HTTPS listener also has the rules of the wider HTTP listener.
    assert_eq!(scenario.http(80, &TestRequest::get("a.test")), "v1");
    assert_eq!(scenario.https(443, &TestRequest::get("a.test")), "v2");
    assert_eq!(scenario.http(80, &TestRequest::get("b.test")), "v1");
    assert_eq!(scenario.https(443, &TestRequest::get("b.test")), "default certificate, 404");
}

/// HTTPRoutes with unsupported rules.
#[test]
fn unsupported_rules_are_dropped_and_the_others_serve() {
    let valid = "{matches: [{path: {value: /good}}], backendRefs: [{name: v1, port: 8080}]}";
    let bad =
        "{matches: [{path: {value: /bad}}], sessionPersistence: {type: Cookie}, backendRefs: [{name: v2, port: 8080}]}";
    let scenario = Scenario::new(
        &[
            SAME,
            &route(
                "part",
                &format!("{{parentRefs: [{{name: same}}], hostnames: [part.test], rules: [{valid}, {bad}]}}"),
            ),
            &route("all", &format!("{{parentRefs: [{{name: same}}], hostnames: [all.test], rules: [{bad}]}}")),
        ]
        .concat(),
    );
    assert_eq!(scenario.parents("HTTPRoute infra/part"), ["same True/Accepted True/ResolvedRefs"]);
    let row = &scenario.status("HTTPRoute infra/part")["parents"][0];
    assert_eq!(crate::scenario::status_and_reason(row, "PartiallyInvalid"), "True/UnsupportedValue");
    let message = row["conditions"][2]["message"].as_str().unwrap();
    assert!(message.starts_with("Dropped Rule 1: rule 1: "), "{message}");
    assert_eq!(scenario.parents("HTTPRoute infra/all"), ["same False/UnsupportedValue True/ResolvedRefs"]);
    for (url, served) in [("part.test/good", "v1"), ("part.test/bad", "404"), ("all.test/bad", "404")] {
        assert_eq!(scenario.http(80, &TestRequest::get(url)), served, "{url}");
    }
}

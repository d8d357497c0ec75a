//! The rule of an HTTPRoute that matches a request.

use crate::scenario::{Scenario, TestRequest};

fn scenario(routes: &[(&str, &str)]) -> Scenario {
    let mut manifests = "
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: sluice
  listeners: [{name: http, port: 80, protocol: HTTP}]
"
    .to_owned();
    for (metadata, spec) in routes {
        manifests += &format!(
            "---\nkind: HTTPRoute\nmetadata: {{namespace: infra, {metadata}}}\nspec:\n  parentRefs: [{{name: g}}]\n{spec}\n"
        );
    }
    Scenario::new(&manifests)
}

fn check(scenario: &Scenario, cases: &[(TestRequest, &str)]) {
    for (request, served) in cases {
        assert_eq!(scenario.http(80, request), *served, "{request:?}");
    }
}

/// HTTPRouteExactPathMatching.
#[test]
fn exact_paths_match_exactly() {
    let scenario = scenario(&[(
        "name: r",
        "  rules:
  - {matches: [{path: {type: Exact, value: /one}}], backendRefs: [{name: v1, port: 8080}]}
  - {matches: [{path: {type: Exact, value: /two}}], backendRefs: [{name: v2, port: 8080}]}",
    )]);
    check(
        &scenario,
        &[
            (TestRequest::get("a.test/one"), "v1"),
            (TestRequest::get("a.test/two"), "v2"),
            (TestRequest::get("a.test/one?x=y"), "v1"),
            (TestRequest::get("a.test/"), "404"),
            (TestRequest::get("a.test/one/example"), "404"),
            (TestRequest::get("a.test/two/"), "404"),
            (TestRequest::get("a.test/Two"), "404"),
        ],
    );
}

/// HTTPRouteMatching.
#[test]
fn paths_and_headers() {
    let scenario = scenario(&[(
        "name: r",
        "  rules:
  - matches: [{path: {value: /}}, {headers: [{name: version, value: one}]}]
    backendRefs: [{name: v1, port: 8080}]
  - matches: [{path: {value: /v2}}, {headers: [{name: version, value: two}]}]
    backendRefs: [{name: v2, port: 8080}]",
    )]);
    check(
        &scenario,
        &[
            (TestRequest::get("a.test/"), "v1"),
            (TestRequest::get("a.test/example"), "v1"),
            (TestRequest::get("a.test/").with("Version", "one"), "v1"),
            (TestRequest::get("a.test/v2"), "v2"),
            // A path element matches as a whole.
            (TestRequest::get("a.test/v2/"), "v2"),
            (TestRequest::get("a.test/v2/example"), "v2"),
            (TestRequest::get("a.test/v2example"), "v1"),
            (TestRequest::get("a.test/foo/v2/example"), "v1"),
            (TestRequest::get("a.test/").with("Version", "two"), "v2"),
        ],
    );
}

/// HTTPRouteMatchingAcrossRoutes.
#[test]
fn rules_of_several_routes_are_merged() {
    let scenario = scenario(&[
        (
            "name: part1",
            "  hostnames: [example.com, example.net]
  rules:
  - matches: [{path: {value: /}}, {headers: [{name: version, value: one}]}]
    backendRefs: [{name: v1, port: 8080}]",
        ),
        (
            "name: part2",
            "  hostnames: [example.com]
  rules:
  - matches: [{path: {value: /v2}}, {headers: [{name: version, value: two}]}]
    backendRefs: [{name: v2, port: 8080}]",
        ),
    ]);
    check(
        &scenario,
        &[
            (TestRequest::get("example.com/"), "v1"),
            (TestRequest::get("example.com/example"), "v1"),
            (TestRequest::get("example.net/example"), "v1"),
            (TestRequest::get("example.com/example").with("version", "one"), "v1"),
            (TestRequest::get("example.com/v2"), "v2"),
            (TestRequest::get("example.com/v2/example"), "v2"),
            (TestRequest::get("example.com/").with("version", "two"), "v2"),
            (TestRequest::get("example.net/v2"), "v1"),
            (TestRequest::get("example.net/").with("version", "two"), "v1"),
            (TestRequest::get("example.org/"), "404"),
        ],
    );
}

/// HTTPRouteHeaderMatching.
#[test]
fn all_headers_of_a_match_must_match() {
    let scenario = scenario(&[(
        "name: r",
        "  rules:
  - matches: [{headers: [{name: version, value: one}]}]
    backendRefs: [{name: v1, port: 8080}]
  - matches: [{headers: [{name: version, value: two}]}]
    backendRefs: [{name: v2, port: 8080}]
  - matches: [{headers: [{name: version, value: two}, {name: color, value: orange}]}]
    backendRefs: [{name: v1, port: 8080}]
  - matches: [{headers: [{name: color, value: blue}]}, {headers: [{name: color, value: green}]}]
    backendRefs: [{name: v1, port: 8080}]
  - matches: [{headers: [{name: color, value: red}]}, {headers: [{name: color, value: yellow}]}]
    backendRefs: [{name: v2, port: 8080}]
  - matches: [{headers: [{name: shade, type: RegularExpression, value: 'dark-[a-z]+'}]}]
    backendRefs: [{name: v3, port: 8080}]",
    )]);
    let request = |headers: &[(&str, &str)]| {
        headers.iter().fold(TestRequest::get("a.test/"), |request, (name, value)| request.with(name, value))
    };
    check(
        &scenario,
        &[
            (request(&[("Version", "one")]), "v1"),
            (request(&[("Version", "two")]), "v2"),
            (request(&[("Version", "two"), ("Color", "orange")]), "v1"),
            (request(&[("Color", "orange")]), "404"),
            (request(&[("Some-Other-Header", "one")]), "404"),
            (request(&[]), "404"),
            (request(&[("Color", "blue")]), "v1"),
            (request(&[("Color", "green")]), "v1"),
            (request(&[("Color", "red")]), "v2"),
            (request(&[("Color", "yellow")]), "v2"),
            (request(&[("Color", "purple")]), "404"),
            (request(&[("Shade", "dark-red")]), "v3"),
            (request(&[("Shade", "very-dark-red")]), "404"),
        ],
    );
}

/// HTTPRoutePathMatchOrder.
#[test]
fn exact_paths_come_before_prefixes_and_longer_prefixes_before_shorter() {
    let scenario = scenario(&[(
        "name: r",
        "  rules:
  - {matches: [{path: {type: PathPrefix, value: /match}}], backendRefs: [{name: v3, port: 8080}]}
  - {matches: [{path: {type: PathPrefix, value: /match/prefix}}], backendRefs: [{name: v2, port: 8080}]}
  - {matches: [{path: {type: PathPrefix, value: /match/prefix/one}}], backendRefs: [{name: v1, port: 8080}]}
  - {matches: [{path: {type: Exact, value: /match/exact}}], backendRefs: [{name: v2, port: 8080}]}
  - {matches: [{path: {type: Exact, value: /match/exact/one}}], backendRefs: [{name: v1, port: 8080}]}
  - {matches: [{path: {type: RegularExpression, value: '/match/prefix/[0-9]+'}}], backendRefs: [{name: idle, port: 8080}]}",
    )]);
    check(
        &scenario,
        &[
            (TestRequest::get("a.test/match/exact/one"), "v1"),
            (TestRequest::get("a.test/match/exact"), "v2"),
            (TestRequest::get("a.test/match"), "v3"),
            (TestRequest::get("a.test/match/prefix/one/any"), "v1"),
            (TestRequest::get("a.test/match/prefix/any"), "v2"),
            (TestRequest::get("a.test/match/any"), "v3"),
            // Regular expressions come between them.
            (TestRequest::get("a.test/match/prefix/17"), "idle(idle)"),
            (TestRequest::get("a.test/match/prefix/17a"), "v2"),
        ],
    );
}

/// The API's order of matches beyond paths (HTTPRouteMethodMatching, HTTPRouteQueryParamMatching).
#[test]
fn method_then_headers_then_query_then_age_then_name_then_place() {
    let scenario = scenario(&[(
        "name: r",
        "  rules:
  - matches: [{queryParams: [{name: animal, value: whale}, {name: colour, value: blue}]}]
    backendRefs: [{name: v1, port: 8080}]
  - matches: [{headers: [{name: version, value: one}]}]
    backendRefs: [{name: v2, port: 8080}]
  - matches: [{method: POST}]
    backendRefs: [{name: v3, port: 8080}]
  - matches: [{path: {value: /deep}}]
    backendRefs: [{name: idle, port: 8080}]",
    )]);
    let whale = || TestRequest::get("a.test/?animal=whale&colour=blue");
    check(
        &scenario,
        &[
            (whale(), "v1"),
            (TestRequest::get("a.test/?colour=blue&animal=wh%61le&x"), "v1"),
            (TestRequest::get("a.test/?animal=whale"), "404"),
            (TestRequest::get("a.test/?animal=dog&animal=whale&colour=blue"), "404"),
            (whale().with("version", "one"), "v2"),
            (whale().with("version", "one").method("POST"), "v3"),
            (
                TestRequest::get("a.test/deep?animal=whale&colour=blue").with("version", "one").method("POST"),
                "idle(idle)",
            ),
        ],
    );
    let rule =
        |backend: &str| format!("  hostnames: [a.test]\n  rules: [{{backendRefs: [{{name: {backend}, port: 8080}}]}}]");
    let (one, two, three) = (rule("v1"), rule("v2"), rule("v3"));
    let old = "name: z, creationTimestamp: '2024-01-01T00:00:00Z'";
    let young = "creationTimestamp: '2024-01-02T00:00:00Z'";
    let (a, b) = (format!("name: a, {young}"), format!("name: b, {young}"));
    for (routes, served) in
        [(vec![(&*a, &*one), (&*b, &*two), (old, &*three)], "v3"), (vec![(&*b, &*two), (&*a, &*one)], "v1")]
    {
        check(&self::scenario(&routes), &[(TestRequest::get("a.test/"), served)]);
    }
    let twice = "  rules:\n  - {backendRefs: [{name: v1, port: 8080}]}\n  - {backendRefs: [{name: v2, port: 8080}]}";
    check(&self::scenario(&[("name: r", twice)]), &[(TestRequest::get("a.test/"), "v1")]);
}

/// A more specific hostname comes before everything else; requests that its rules do not match fall through to the
/// wider one.
#[test]
fn hostnames_come_first() {
    let rule = |hosts: &str, path: &str, backend: &str| {
        format!(
            "  hostnames: [{hosts}]\n  rules: [{{matches: [{{path: {{value: {path}}}}}], backendRefs: [{{name: {backend}, port: 8080}}]}}]"
        )
    };
    let (wide, deep, exact) =
        (rule("'*.test'", "/a/b/c", "v1"), rule("'*.a.test'", "/a/b", "v2"), rule("x.a.test", "/a", "v3"));
    let scenario = scenario(&[("name: wide", &wide), ("name: deep", &deep), ("name: exact", &exact)]);
    check(
        &scenario,
        &[
            (TestRequest::get("x.a.test/a/b/c"), "v3"),
            (TestRequest::get("y.a.test/a/b/c"), "v2"),
            (TestRequest::get("z.y.a.test/a/b/c"), "v2"),
            (TestRequest::get("b.test/a/b/c"), "v1"),
            (TestRequest::get("b.test/a/b"), "404"),
            (TestRequest::get("y.a.test/a"), "404"),
        ],
    );
}

/// HTTPRouteServiceTypes concerns endpoint discovery; this includes the order of several ports.
#[test]
fn ports_of_services_are_found_by_name() {
    let headless = serde_json::json!([
        {
            "kind": "Service",
            "metadata": { "namespace": "infra", "name": "headless" },
            "spec": { "clusterIP": "None", "ports": [
                { "name": "first", "port": 8080, "targetPort": 3000 },
                { "name": "second", "port": 8081, "targetPort": "named" },
            ] },
        },
        {
            "kind": "EndpointSlice",
            "metadata": { "namespace": "infra", "name": "headless-1", "labels": { "kubernetes.io/service-name": "headless" } },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": ["10.1.0.1"] }, { "addresses": ["10.1.0.2"], "conditions": { "ready": false } }],
            "ports": [{ "name": "first", "port": 3000 }, { "name": "second", "port": 4000 }],
        },
        {
            "kind": "Service",
            "metadata": { "namespace": "infra", "name": "manual" },
            "spec": { "ports": [{ "port": 8080, "targetPort": 3000 }] },
        },
        {
            "kind": "EndpointSlice",
            "metadata": { "namespace": "infra", "name": "manual-1", "labels": { "kubernetes.io/service-name": "manual" } },
            "addressType": "IPv6",
            "endpoints": [{ "addresses": ["2001:db8::1"] }],
            "ports": [{ "name": "", "port": 3000 }],
        },
    ]);
    let rules: Vec<String> = [("first", "headless", 8080), ("second", "headless", 8081), ("manual", "manual", 8080)]
        .map(|(path, service, port)| {
            format!(
                "  - {{matches: [{{path: {{value: /{path}}}}}], backendRefs: [{{name: {service}, port: {port}}}]}}\n"
            )
        })
        .into();
    let manifests = format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: g}}
spec: {{gatewayClassName: sluice, listeners: [{{name: http, port: 80, protocol: HTTP}}]}}
---
kind: HTTPRoute
metadata: {{namespace: infra, name: r}}
spec:
  parentRefs: [{{name: g}}]
  rules:
{}",
        rules.concat()
    );
    let scenario = Scenario::with(&manifests, headless.as_array().unwrap().clone());
    assert_eq!(scenario.parents("HTTPRoute infra/r"), ["g True/Accepted True/ResolvedRefs"]);
    for (path, address) in [("first", "10.1.0.1:3000"), ("second", "10.1.0.1:4000"), ("manual", "[2001:db8::1]:3000")] {
        let route = scenario.route(80, &TestRequest::get(&format!("a.test/{path}"))).unwrap();
        let endpoints = scenario.table.endpoints.of(&route.cluster.services[0]).iter();
        let endpoints: Vec<_> = endpoints.map(|endpoint| endpoint.address.to_string()).collect();
        assert_eq!(endpoints, [address], "{path}");
    }
}

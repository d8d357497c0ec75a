//! GRPCRoutes: matching, weights, and conflicts with HTTPRoutes.

use crate::scenario::{Scenario, TestRequest};

fn scenario(listeners: &str, spec: &str) -> Scenario {
    Scenario::new(&format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: g}}
spec:
  gatewayClassName: sluice
  listeners: [{listeners}]
---
kind: GRPCRoute
metadata: {{namespace: infra, name: r}}
spec: {spec}
"
    ))
}

const HTTP: &str = "{name: http, port: 80, protocol: HTTP}";
const ECHO: &str = "gateway_api_conformance.echo_basic.grpcecho.GrpcEcho";

/// GRPCExactMethodMatching.
#[test]
fn methods_are_matched() {
    let spec = format!(
        "{{parentRefs: [{{name: g}}], rules: [\
         {{matches: [{{method: {{service: {ECHO}, method: Echo}}}}], backendRefs: [{{name: v1, port: 8080}}]}}, \
         {{matches: [{{method: {{service: {ECHO}, method: EchoTwo}}}}], backendRefs: [{{name: v2, port: 8080}}]}}, \
         {{matches: [{{method: {{service: whole.Service}}}}], backendRefs: [{{name: v3, port: 8080}}]}}, \
         {{matches: [{{method: {{method: Health}}}}], backendRefs: [{{name: v1, port: 8080}}]}}]}}"
    );
    let scenario = scenario(HTTP, &spec);
    assert_eq!(scenario.parents("GRPCRoute infra/r"), ["g True/Accepted True/ResolvedRefs"]);
    for (method, served) in [
        (format!("{ECHO}/Echo"), "v1"),
        (format!("{ECHO}/EchoTwo"), "v2"),
        (format!("{ECHO}/EchoThree"), "404"),
        (format!("{ECHO}/echo"), "404"),
        ("whole.Service/Any".to_owned(), "v3"),
        ("whole.ServiceTwo/Any".to_owned(), "404"),
        ("any.Service/Health".to_owned(), "v1"),
    ] {
        assert_eq!(scenario.http(80, &TestRequest::grpc(&format!("a.test/{method}"))), served, "{method}");
    }
}

/// GRPCRouteHeaderMatching.
#[test]
fn headers_are_matched() {
    let rule = |headers: &str, backend: &str| {
        format!("{{matches: [{{headers: [{headers}]}}], backendRefs: [{{name: {backend}, port: 8080}}]}}")
    };
    let rules = [
        rule("{name: version, value: one}", "v1"),
        rule("{name: version, value: two}", "v2"),
        rule("{name: version, value: two}, {name: color, value: orange}", "v3"),
    ];
    let scenario = scenario(HTTP, &format!("{{parentRefs: [{{name: g}}], rules: [{}]}}", rules.join(", ")));
    let request = |headers: &[(&str, &str)]| {
        headers
            .iter()
            .fold(TestRequest::grpc("a.test/any.Service/Any"), |request, (name, value)| request.with(name, value))
    };
    for (headers, served) in [
        (vec![("version", "one")], "v1"),
        (vec![("version", "two")], "v2"),
        (vec![("version", "two"), ("color", "orange")], "v3"),
        (vec![("color", "orange")], "404"),
        (vec![], "404"),
    ] {
        assert_eq!(scenario.http(80, &request(&headers)), served, "{headers:?}");
    }
}

/// GRPCRouteListenerHostnameMatching.
#[test]
fn the_most_specific_listener_serves() {
    let listener = |name: &str, host: &str| format!("{{name: {name}, port: 80, protocol: HTTP, hostname: '{host}'}}");
    let listeners = [listener("one", "bar.com"), listener("two", "foo.bar.com"), listener("three", "*.bar.com")];
    let route = |name: &str, backend: &str| {
        format!(
            "---\nkind: GRPCRoute\nmetadata: {{namespace: infra, name: {name}}}\nspec: {{parentRefs: [{{name: g, sectionName: \
             {name}}}], rules: [{{backendRefs: [{{name: {backend}, port: 8080}}]}}]}}\n"
        )
    };
    let rest = [route("two", "v2"), route("three", "v3")].concat();
    let spec = "{parentRefs: [{name: g, sectionName: one}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}";
    let scenario = scenario(&listeners.join(", "), &format!("{spec}\n{rest}"));
    for (host, served) in
        [("bar.com", "v1"), ("foo.bar.com", "v2"), ("baz.bar.com", "v3"), ("a.b.bar.com", "v3"), ("foo.com", "404")]
    {
        assert_eq!(scenario.http(80, &TestRequest::grpc(&format!("{host}/any.Service/Any"))), served, "{host}");
    }
}

/// GRPCRouteWeight; endpoints speak HTTP/2.
#[test]
fn weights_are_preserved() {
    let scenario = scenario(
        HTTP,
        "{parentRefs: [{name: g}], rules: [{backendRefs: [{name: v1, port: 8080, weight: 70}, {name: v2, port: 8080, weight: 30}, \
         {name: v3, port: 8080, weight: 0}]}]}",
    );
    let request = TestRequest::grpc("a.test/any.Service/Any");
    assert_eq!(scenario.http(80, &request), "v1×70 v2×30");
    let route = scenario.route(80, &request).unwrap();
    let mut endpoints = route.cluster.services.iter().flat_map(|service| scenario.table.endpoints.of(service));
    assert!(endpoints.all(|endpoint| endpoint.h2c));
}

/// If an HTTPRoute and a GRPCRoute share hosts on a listener, the older one is accepted.
#[test]
fn http_and_grpc_routes_do_not_share_a_host() {
    let route = |kind: &str, name: &str, day: u32, hosts: &str| {
        format!(
            "---\nkind: {kind}\nmetadata: {{namespace: infra, name: {name}, creationTimestamp: '2024-01-0{day}T00:00:00Z'}}\nspec: \
             {{parentRefs: [{{name: g}}], hostnames: [{hosts}], rules: [{{backendRefs: [{{name: v1, port: 8080}}]}}]}}\n"
        )
    };
    let gateway = "
kind: Gateway
metadata: {namespace: infra, name: g}
spec: {gatewayClassName: sluice, listeners: [{name: http, port: 80, protocol: HTTP}]}
";
    let (yes, no) = ("True/Accepted", "False/HostnameConflict");
    for (http, grpc, accepted) in [
        ((1, "a.test"), (2, "a.test"), (yes, no)),
        ((2, "a.test"), (1, "a.test"), (no, yes)),
        ((1, "'*.test'"), (2, "a.test"), (yes, no)),
        ((2, "'*.test'"), (1, "a.test"), (no, yes)),
        ((1, "a.test"), (2, "'*.b.test'"), (yes, yes)),
        // Of equal age: by name.
        ((1, "a.test"), (1, "a.test"), (no, yes)),
    ] {
        let routes = [route("HTTPRoute", "web", http.0, http.1), route("GRPCRoute", "rpc", grpc.0, grpc.1)];
        let scenario = Scenario::new(&[gateway, &routes.concat()].concat());
        let row = |route: &str| scenario.parents(route)[0].split(' ').nth(1).unwrap().to_owned();
        let found = (row("HTTPRoute infra/web"), row("GRPCRoute infra/rpc"));
        assert_eq!((&*found.0, &*found.1), accepted, "{http:?} {grpc:?}");
    }
}

#[test]
fn a_status_names_listeners_with_an_older_route_of_the_other_kind() {
    let manifests = "
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: one, port: 80, protocol: HTTP}
  - {name: two, port: 8080, protocol: HTTP}
  - {name: three, port: 8081, protocol: HTTP}
---
kind: HTTPRoute
metadata: {namespace: infra, name: web, creationTimestamp: '2024-01-01T00:00:00Z'}
spec:
  parentRefs: [{name: g, sectionName: two}, {name: g, sectionName: three}]
  hostnames: [a.test]
  rules: [{backendRefs: [{name: v1, port: 8080}]}]
---
kind: GRPCRoute
metadata: {namespace: infra, name: rpc, creationTimestamp: '2024-01-02T00:00:00Z'}
spec: {parentRefs: [{name: g}], hostnames: [a.test], rules: [{backendRefs: [{name: v1, port: 8080}]}]}
";
    let scenario = Scenario::new(manifests);
    let accepted = scenario.status("GRPCRoute infra/rpc")["parents"][0]["conditions"][0].clone();
    assert_eq!((&accepted["type"], &accepted["status"]), (&"Accepted".into(), &"True".into()));
    assert_eq!(
        accepted["message"],
        "not on two, three, where an HTTPRoute of higher precedence has one of the hostnames"
    );
    assert_eq!(scenario.http(80, &TestRequest::grpc("a.test/any.Service/Any")), "v1");
}

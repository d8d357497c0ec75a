//! Queries with a method, header fields and a query string, and their outcomes as data.

use super::*;
use crate::explain::query::QueryError;

/// A rule for each of several requests to one host.
fn versions() -> Vec<Value> {
    let class = json!({ "apiVersion": API, "kind": "GatewayClass", "metadata": { "name": "sluice" },
        "spec": { "controllerName": "sluice.dev/gateway-controller" } });
    let listener = json!({ "name": "web", "port": 80, "protocol": "HTTP" });
    let rule = |name: &str, wanted: Value| json!({ "name": name, "matches": [wanted], "backendRefs": [{ "name": name, "port": 80 }] });
    let path = json!({ "type": "PathPrefix", "value": "/v" });
    let value = |value: &str| json!([{ "name": "v", "value": value }]);
    let service = |name: &str| {
        let id = format!("shop/{name}");
        let mut service = of_gateway_api("Service", &id, 1, json!({ "ports": [{ "name": "http", "port": 80 }] }));
        service["apiVersion"] = json!("v1");
        service
    };
    let rules = json!([
        rule("query", json!({ "path": path, "queryParams": value("2") })),
        rule("header", json!({ "path": path, "headers": value("3") })),
        rule("method", json!({ "path": path, "method": "PUT" })),
    ]);
    let spec = json!({ "parentRefs": [{ "name": "public" }], "hostnames": ["h.test"], "rules": rules });
    let mut objects = vec![
        class,
        of_gateway_api("Gateway", "shop/public", 1, json!({ "gatewayClassName": "sluice", "listeners": [listener] })),
        of_gateway_api("HTTPRoute", "shop/versions", 2, spec),
    ];
    for (name, address) in [("query", "10.0.0.2"), ("header", "10.0.0.3"), ("method", "10.0.0.4")] {
        objects.extend([service(name), slice(&format!("shop/{name}"), &[address], 8080)]);
    }
    objects
}

fn explain_request(objects: &[Value], url: &str, method: &str, fields: &[&str]) -> Explanation {
    let resources = resources(objects.iter().cloned());
    let translation = translate(&resources, &Settings::default());
    let facts = Facts::of(&translation.table, &translation.report, &resources, Trust::default());
    let query = Query::parse(url).unwrap().with_method(method).unwrap();
    explain(facts, &fields.iter().fold(query, |query, field| query.with_header(field).unwrap()))
}

#[track_caller]
fn outcome(explanation: &Explanation) -> Value {
    serde_json::to_value(&explanation.outcome).unwrap()
}

fn on(endpoint: &str) -> Value {
    json!([{ "kind": "endpoints", "endpoints": [endpoint] }])
}

fn answered(status: u16, cause: &str) -> Value {
    json!([{ "kind": "response", "status": status, "cause": cause }])
}

#[test]
fn method_fields_and_query_count() {
    let objects = versions();
    for (url, method, fields, expected) in [
        ("http://h.test/v?v=2", "GET", &[][..], "10.0.0.2:8080"),
        ("http://h.test/v?x=1&v=%32#v=3", "DELETE", &[], "10.0.0.2:8080"),
        ("http://h.test/v", "GET", &["V: 3"], "10.0.0.3:8080"),
        ("http://h.test/v?v=9", "PUT", &["V:3 "], "10.0.0.4:8080"),
        ("http://h.test/v?v=9", "PUT", &["v: 4"], "10.0.0.4:8080"),
        ("http://elsewhere.test/v", "PUT", &["Host: H.test:80"], "10.0.0.4:8080"),
    ] {
        let explanation = explain_request(&objects, url, method, fields);
        assert_eq!(outcome(&explanation), on(expected), "{explanation}");
        assert!(explanation.served, "{explanation}");
    }
}

#[test]
fn conditions_that_the_query_lacks_are_shown() {
    let explanation = explain_request(&versions(), "http://h.test/v", "GET", &[]);
    assert_eq!(outcome(&explanation), answered(404, "no-match"), "{explanation}");
    let text = explanation.to_string();
    for line in [
        "- /v…, query v=2 of HTTPRoute shop/versions: would take it with query v=2\n",
        "- /v…, header v=3 of HTTPRoute shop/versions: would take it with -H 'v: 3'\n",
        "- /v…, method PUT of HTTPRoute shop/versions: would take it with -X PUT\n",
        "fix: HTTPRoute shop/versions takes it with -X PUT; HTTPRoute shop/versions takes it with -H 'v: 3'; \
         HTTPRoute shop/versions takes it with query v=2\n",
        "cause: no-match\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    // A match: rules before it are near misses, rules after it are not reached.
    let explanation = explain_request(&versions(), "http://h.test/v", "GET", &["v: 3"]);
    let text = explanation.to_string();
    assert!(text.contains("method PUT of HTTPRoute shop/versions: would take it with -X PUT"), "{text}");
    assert!(text.contains("query v=2 of HTTPRoute shop/versions: takes the path too, but an earlier"), "{text}");
    // A rule for another value of the field: the advice must not add a second one.
    let text = explain_request(&versions(), "http://h.test/v", "GET", &["v: 4"]).to_string();
    assert!(text.contains("would take it with -H 'v: 3' instead of 'v: 4'\n"), "{text}");
}

#[test]
fn unroutable_methods_and_targets_are_rejected() {
    let objects = versions();
    assert_eq!(outcome(&explain_request(&objects, "http://h.test/v", "TRACE", &[])), answered(405, "bad-request"));
    assert_eq!(outcome(&explain_request(&objects, "http://h.test/%00", "GET", &[])), answered(400, "bad-request"));
    // gRPC errors are responses with status 200.
    let grpc = explain_request(&objects, "http://h.test/x", "POST", &["content-type: application/grpc"]);
    assert_eq!(outcome(&grpc), answered(200, "no-match"));
    let unserved = explain_request(&objects, "http://h.test:81/v", "GET", &[]);
    assert_eq!(outcome(&unserved), json!([{ "kind": "close" }]));
}

#[test]
fn an_address_matches_rules_for_every_host() {
    let mut objects = versions();
    objects[2]["spec"].as_object_mut().unwrap().remove("hostnames");
    let explanation = explain_request(&objects, "http://192.0.2.1/v?v=2", "GET", &[]);
    assert_eq!(outcome(&explanation), on("10.0.0.2:8080"), "{explanation}");
    let explanation = explain_request(&versions(), "http://192.0.2.1/v?v=2", "GET", &[]);
    assert_eq!(outcome(&explanation), answered(404, "no-match"), "{explanation}");
}

#[test]
fn redirects_have_the_location_that_clients_get() {
    let redirect = |hidden: &str| {
        let tls = json!({ "termination": hidden, "insecureEdgeTerminationPolicy": "Redirect" });
        let ports = json!({ "endpointPublishingStrategy": { "hostNetwork": { "httpPort": 8080, "httpsPort": 8443 } } });
        [route("a/r", 1, json!({ "host": "h.test", "tls": tls })), controller("default", ports)]
    };
    let to = |location: &str| json!([{ "kind": "response", "status": 302, "location": location, "cause": "none" }]);
    for termination in ["edge", "passthrough"] {
        let explanation = explain_request(&redirect(termination), "http://h.test:8080/x?y=1", "GET", &[]);
        assert_eq!(outcome(&explanation), to("https://h.test:8443/x?y=1"), "{explanation}");
    }
    // A load balancer in between may have another port.
    let explanation = explain_request(&redirect("edge"), "http://h.test:8080/", "GET", &["Host: h.test"]);
    assert_eq!(outcome(&explanation), to("https://h.test/"), "{explanation}");

    let explanation = explained(&delegated(), "http://www.shop.test/old/x?y");
    assert_eq!(outcome(&explanation), to("http://new.shop.test/old/x?y"), "{explanation}");
}

#[test]
fn shares_have_an_outcome_for_each_case() {
    let service = |name: &str, weight: u32| json!({ "name": name, "weight": weight });
    let mut spec = json!({ "host": "h.test", "to": service("web", 1) });
    spec["alternateBackends"] = json!([service("none", 5), service("drained", 0)]);
    let objects = [
        route("a/r", 1, spec.clone()),
        slice("a/web", &["10.0.0.2", "10.0.0.1"], 8080),
        slice("a/drained", &["10.0.0.3"], 8080),
    ];
    // Other services of a Route take the share of one without endpoints.
    let kept = json!({ "kind": "endpoints", "endpoints": ["10.0.0.3:8080"], "when": "its cookie names one of them" });
    let both = json!({ "kind": "endpoints", "endpoints": ["10.0.0.1:8080", "10.0.0.2:8080"] });
    assert_eq!(outcome(&explained(&objects, "http://h.test/")), json!([both, kept]));

    let mut objects = versions();
    let backend = |name: &str| json!({ "name": name, "port": 80 });
    objects[2]["spec"]["rules"] = json!([{ "backendRefs": [backend("query"), backend("gone"), backend("empty")] }]);
    let mut empty = of_gateway_api("Service", "shop/empty", 1, json!({ "ports": [{ "name": "http", "port": 80 }] }));
    empty["apiVersion"] = json!("v1");
    objects.push(empty);
    let explanation = explained(&objects, "http://h.test/");
    let expected = json!([
        { "kind": "endpoints", "endpoints": ["10.0.0.2:8080"] },
        { "kind": "response", "status": 500, "cause": "invalid-backend" },
        { "kind": "response", "status": 503, "cause": "no-endpoints" },
    ]);
    assert_eq!(outcome(&explanation), expected, "{explanation}");
    let text = explanation.to_string();
    assert!(text.ends_with("or: 500 (invalid-backend)\nor: 503 (no-endpoints)\n"), "{text}");
}

#[test]
fn clients_and_limits_are_cases_of_their_own() {
    let mut object = route("a/r", 1, json!({ "host": "h.test", "tls": { "termination": "edge" } }));
    object["metadata"]["annotations"] = json!({
        "haproxy.router.openshift.io/ip_allowlist": "10.0.0.0/8",
        "haproxy.router.openshift.io/rate-limit-connections": "true",
        "haproxy.router.openshift.io/rate-limit-connections.rate-http": "7",
        "haproxy.router.openshift.io/pod-concurrent-connections": "2",
    });
    let objects = [object, slice("a/web", &["10.0.0.1"], 8080)];
    let explanation = explained(&objects, "https://h.test/");
    let found: Vec<String> =
        explanation.to_string().lines().skip_while(|line| !line.starts_with("served")).map(str::to_owned).collect();
    assert_eq!(
        found,
        [
            "served: Route a/r gets it, on 1 endpoint, for clients of its allow-list",
            "or: 429 (rate-limited), when the client's address has more than 7 requests in 10 s",
            "or: 503 (backends-busy), when every endpoint has 2 requests and none ends in time",
            "or: 403 (source-not-allowed), when the client's address is not in the allow-list",
        ]
    );
}

#[test]
fn fields_and_methods_have_curls_syntax() {
    let url = || Query::parse("http://a.test/").unwrap();
    let read = |line: &str| url().with_header(line).map(|query| query.headers);
    let field = |name: &str, value: &str| Ok(vec![(name.to_owned(), value.to_owned())]);
    assert_eq!(read("X-A:  1 "), field("x-a", "1"));
    assert_eq!(read("X-A;"), field("x-a", ""));
    assert_eq!(read("X-A:"), Ok(vec![]), "not sent");
    assert_eq!(read("X-A: a:b;"), field("x-a", "a:b;"));
    for wrong in ["X-A", "", ": 1", "X A: 1", "X-A: a\nb", "Host: a b", "Host: a.test/x"] {
        assert_eq!(read(wrong), Err(QueryError::Header(wrong.to_owned())));
    }
    assert_eq!(url().with_method("get").unwrap().to_string(), "get http://a.test:80/");
    assert_eq!(url().with_method("GET").unwrap(), url());
    for wrong in ["", "GE T", "GET\r"] {
        assert_eq!(url().with_method(wrong), Err(QueryError::Method(wrong.to_owned())));
    }
    let text = url().with_header("X-A: 1").and_then(|query| query.with_method("PUT")).unwrap().to_string();
    assert_eq!(text, "PUT http://a.test:80/, x-a: 1");
    let name = Query::parse("a.test").unwrap();
    assert_eq!(name.with_header("X-A: 1"), Err(QueryError::NoRequest("a.test".to_owned())));
}

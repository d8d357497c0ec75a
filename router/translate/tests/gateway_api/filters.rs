//! Filters of HTTPRoutes in the routing table.

use std::time::Duration;

use router_table::rule::{Action, PathChange};

use crate::scenario::{Scenario, TestRequest, status_and_reason};

fn scenario(rule: &str) -> Scenario {
    Scenario::new(&format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: g}}
spec:
  gatewayClassName: sluice
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
---
kind: HTTPRoute
metadata: {{namespace: infra, name: r}}
spec:
  parentRefs: [{{name: g}}]
  rules:
  - {rule}
"
    ))
}

const BACKEND: &str = "backendRefs: [{name: v1, port: 8080}]";

/// HTTPRouteRedirectHostAndStatus, and the extended redirects of scheme, port, path and status.
#[test]
fn redirects() {
    for (redirect, served) in [
        ("{hostname: example.org}", "302 host=example.org"),
        ("{hostname: example.org, statusCode: 301}", "301 host=example.org"),
        ("{scheme: https}", "302 scheme=https"),
        ("{scheme: https, port: 8443, statusCode: 308}", "308 scheme=https port=8443"),
        ("{path: {type: ReplaceFullPath, replaceFullPath: /new}}", "302 path=/new"),
        ("{path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}", "302 prefix=/old→/new"),
    ] {
        let scenario = scenario(&format!(
            "{{matches: [{{path: {{value: /old}}}}], filters: [{{type: RequestRedirect, requestRedirect: {redirect}}}]}}"
        ));
        assert_eq!(scenario.http(80, &TestRequest::get("a.test/old/path")), served, "{redirect}");
        assert_eq!(scenario.parents("HTTPRoute infra/r"), ["g True/Accepted True/ResolvedRefs"]);
    }
}

/// HTTPRouteRequestHeaderModifier, HTTPRouteResponseHeaderModification, HTTPRouteBackendRequestHeaderModification.
#[test]
fn headers() {
    let modifier = "{set: [{name: X-Set, value: s}], add: [{name: X-Add, value: a}], remove: [X-Remove]}";
    let scenario = scenario(&format!(
        "{{filters: [{{type: RequestHeaderModifier, requestHeaderModifier: {modifier}}}, {{type: ResponseHeaderModifier, \
         responseHeaderModifier: {modifier}}}], backendRefs: [{{name: v1, port: 8080, filters: [{{type: RequestHeaderModifier, \
         requestHeaderModifier: {modifier}}}]}}]}}"
    ));
    let rule = scenario.rule(80, &TestRequest::get("a.test/"));
    let route = scenario.route(80, &TestRequest::get("a.test/")).unwrap();
    let own = route.cluster.services[0].policy.clone().unwrap();
    for modifiers in [&rule.request_headers, &rule.response_headers, &own.request_headers] {
        let [modifier] = &modifiers[..] else { panic!("{modifiers:?}") };
        assert_eq!(modifier.set, [("x-set".into(), "s".into())]);
        assert_eq!(modifier.add, [("x-add".into(), "a".into())]);
        assert_eq!(modifier.remove, ["x-remove".into()]);
    }
    assert!(own.response_headers.is_empty());
}

#[test]
fn rewrites() {
    let scenario = scenario(&format!(
        "{{matches: [{{path: {{value: /old}}}}], filters: [{{type: URLRewrite, urlRewrite: {{hostname: in.test, path: {{type: \
         ReplacePrefixMatch, replacePrefixMatch: /new}}}}}}], {BACKEND}}}"
    ));
    let rule = scenario.rule(80, &TestRequest::get("a.test/old/x"));
    assert_eq!(rule.rewrite_host.unwrap().as_str(), "in.test");
    assert_eq!(rule.rewrite_path, Some(PathChange::Prefix("/new".into())));
}

#[test]
fn resolved_mirrors_get_copies() {
    let mirror = |name: &str, share: &str| {
        format!("{{type: RequestMirror, requestMirror: {{backendRef: {{name: {name}, port: 8080}}{share}}}}}")
    };
    let filters = [
        mirror("v2", ""),
        mirror("v3", ", percent: 10"),
        mirror("idle", ", fraction: {numerator: 1, denominator: 3}"),
        mirror("missing", ""),
    ];
    let scenario = scenario(&format!("{{filters: [{}], {BACKEND}}}", filters.join(", ")));
    assert_eq!(scenario.parents("HTTPRoute infra/r"), ["g True/Accepted False/BackendNotFound"]);
    assert_eq!(scenario.http(80, &TestRequest::get("a.test/")), "v1");
    let mirrors = scenario.rule(80, &TestRequest::get("a.test/")).mirrors;
    let shown: Vec<_> =
        mirrors.iter().map(|mirror| (mirror.cluster.services[0].service.to_string(), mirror.share)).collect();
    let shown: Vec<_> = shown.iter().map(|(name, (of, all))| (&**name, f64::from(*of) / f64::from(*all))).collect();
    assert_eq!(shown, [("v2", 1.0), ("v3", 0.1), ("idle", 1.0 / 3.0)]);
}

#[test]
fn time_outs_and_cors() {
    let scenario = scenario(&format!(
        "{{timeouts: {{request: 10s, backendRequest: 500ms}}, filters: [{{type: CORS, cors: {{allowOrigins: ['https://a.test'], \
         allowMethods: [GET]}}}}], {BACKEND}}}"
    ));
    let rule = scenario.rule(80, &TestRequest::get("a.test/"));
    assert_eq!(rule.request_timeout, Some(Duration::from_secs(10)));
    assert_eq!(rule.backend_timeout, Some(Duration::from_millis(500)));
    assert_eq!(rule.cors.unwrap().origins, ["https://a.test".into()]);
    let none = self::scenario(&format!("{{timeouts: {{request: 0s}}, {BACKEND}}}"));
    assert_eq!(none.rule(80, &TestRequest::get("a.test/")).request_timeout, None);
}

/// An unknown filter is never skipped.
#[test]
fn unknown_filters_fail_requests() {
    let filter = "filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Auth, name: sso}}]";
    let scenario = scenario(&format!("{{{filter}, {BACKEND}}}"));
    assert_eq!(scenario.rule(80, &TestRequest::get("a.test/")).action, Action::Answer(500));
    let row = &scenario.status("HTTPRoute infra/r")["parents"][0];
    assert_eq!(status_and_reason(row, "ResolvedRefs"), "False/InvalidKind");
    let of_backend = self::scenario(&format!("{{backendRefs: [{{name: v1, port: 8080, {filter}}}]}}"));
    assert_eq!(of_backend.rule(80, &TestRequest::get("a.test/")).action, Action::Answer(500));
    assert_eq!(of_backend.parents("HTTPRoute infra/r"), ["g True/Accepted False/InvalidKind"]);
}

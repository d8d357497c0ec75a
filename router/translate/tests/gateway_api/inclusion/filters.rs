//! Combined filters, time-outs and references of parent and child.

use std::time::Duration;

use router_table::rule::{PathChange, RulePolicy};

use super::{
    GW, accepted, get, prefix, route, route_parent, rule_to_service, rule_to_slot, scenario, slot, slot_state,
};
use crate::scenario::{Scenario, TestRequest};

/// A slot under `/store` whose rule has these further members, and a child under `/c` with these.
fn parent_and_child(parent: &str, child: &str) -> Scenario {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", &prefix("/store"), parent)]);
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", &prefix("/c"), child)]);
    scenario(&[top, slot("infra/s", "Same"), child])
}

fn policy(scenario: &Scenario) -> RulePolicy {
    scenario.rule(80, &TestRequest::get("x.test/store/c"))
}

/// Members with these filters.
fn filters(filters: &[&str]) -> String {
    format!(", filters: [{}]", filters.join(", "))
}

fn modifier(kind: &str, value: &str) -> String {
    let member = format!("{}{}", &kind[..1].to_ascii_lowercase(), &kind[1..]);
    format!("{{type: {kind}, {member}: {{set: [{{name: x, value: {value}}}]}}}}")
}

#[test]
fn the_parents_filters_come_first() {
    let both = |who: &str| {
        filters(&[
            &modifier("RequestHeaderModifier", &format!("{who}-request")),
            &modifier("ResponseHeaderModifier", &format!("{who}-response")),
            &format!(
                "{{type: RequestMirror, requestMirror: {{backendRef: {{name: {}, port: 8080}}}}}}",
                if who == "parent" { "v2" } else { "v3" }
            ),
        ])
    };
    let policy = policy(&parent_and_child(&both("parent"), &both("child")));
    let values = |modifiers: &[router_table::header_modifier::HeaderModifier]| -> Vec<String> {
        modifiers.iter().flat_map(|modifier| modifier.set.iter().map(|(_, value)| value.to_string())).collect()
    };
    assert_eq!(values(&policy.request_headers), ["parent-request", "child-request"]);
    assert_eq!(values(&policy.response_headers), ["parent-response", "child-response"]);
    let mirrors: Vec<_> = policy.mirrors.iter().map(|mirror| &*mirror.cluster.services[0].service).collect();
    assert_eq!(mirrors, ["v2", "v3"]);
}

#[test]
fn a_parent_replaces_its_own_prefix_and_a_child_the_whole() {
    let rewrite = |path: &str| {
        filters(&[&format!(
            "{{type: URLRewrite, urlRewrite: {{path: {{type: ReplacePrefixMatch, replacePrefixMatch: {path}}}}}}}"
        )])
    };
    for (parent, child, replaced, by) in
        [(rewrite("/"), String::new(), "/store", "/"), (String::new(), rewrite("/new"), "/store/c", "/new")]
    {
        let scenario = parent_and_child(&parent, &child);
        assert_eq!(policy(&scenario).rewrite_path, Some(PathChange::Prefix(by.into())));
        assert_eq!(scenario.prefix(80, &TestRequest::get("x.test/store/c/d")), replaced);
    }
}

#[test]
fn filters_that_cannot_be_combined_conflict() {
    let rewrite = "{type: URLRewrite, urlRewrite: {hostname: other.test}}";
    let cors = "{type: CORS, cors: {allowOrigins: ['https://a.test']}}";
    let mirrors = |n: usize| vec!["{type: RequestMirror, requestMirror: {backendRef: {name: v2, port: 8080}}}"; n];
    let cases = [
        (vec![rewrite], vec![rewrite], "URLRewrite or RequestRedirect, and its parent has URLRewrite"),
        (vec![cors], vec![cors], "CORS, and its parent has CORS"),
        (mirrors(5), mirrors(4), "9 RequestMirror filters with its parent's; at most 8 are allowed"),
    ];
    for (parent, child, why) in cases {
        let scenario = parent_and_child(&filters(&parent), &filters(&child));
        assert_eq!(
            accepted(&scenario, "infra/child", "top"),
            format!("False Conflicted: via infra/top#s: rule 0: {why}")
        );
        assert_eq!(
            slot_state(&scenario, "infra/s"),
            [
                "0".to_owned(),
                format!("False FilterConflict: infra/child: rule 0: {why}"),
                format!("Conflicted True FilterConflict: infra/child: rule 0: {why}"),
            ]
        );
        assert_eq!(get(&scenario, "x.test/store/c"), "500");
    }
    // No conflict if only one of the two has the filter.
    for (parent, child) in [
        (filters(&[rewrite]), String::new()),
        (String::new(), filters(&[rewrite])),
        (filters(&[cors]), filters(&[rewrite])),
        (filters(&mirrors(4)), filters(&mirrors(4))),
    ] {
        assert_eq!(get(&parent_and_child(&parent, &child), "x.test/store/c"), "v1", "{parent} ▸ {child}");
    }
    let inherited = policy(&parent_and_child(&filters(&[cors]), ""));
    assert!(inherited.cors.is_some() && policy(&parent_and_child("", &filters(&[cors]))).cors.is_some());
}

#[test]
fn a_conflict_affects_only_that_slot() {
    let rewrite = filters(&["{type: URLRewrite, urlRewrite: {hostname: other.test}}"]);
    let top =
        route("infra/top", GW, "", &[rule_to_slot("a", &prefix("/a"), &rewrite), rule_to_slot("b", &prefix("/b"), "")]);
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", "", &rewrite)]);
    let other = route("infra/other", &route_parent("infra/top"), "", &[rule_to_service("v2", &prefix("/x"), "")]);
    let scenario = scenario(&[top, slot("infra/a", "Same"), slot("infra/b", "Same"), child, other]);
    for (url, answer) in [("t.test/a", "404"), ("t.test/b", "v1"), ("t.test/a/x", "v2"), ("t.test/b/x", "v2")] {
        assert_eq!(get(&scenario, url), answer, "{url}");
    }
    assert_eq!(accepted(&scenario, "infra/child", "top"), "True PartiallyAccepted: 1 of 2 inclusion paths");
    assert_eq!(
        slot_state(&scenario, "infra/a")[..2],
        [
            "1",
            "True PartiallyAttached: infra/child: rule 0: URLRewrite or RequestRedirect, and its parent has URLRewrite",
        ]
    );
}

#[test]
fn a_childs_redirect_applies_to_its_own_rule() {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", &prefix("/store"), "")]);
    let redirect = "{filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]}".to_owned();
    let child = route("infra/child", &route_parent("infra/top"), "", &[redirect]);
    let scenario = scenario(&[top, slot("infra/s", "Same"), child]);
    assert_eq!(get(&scenario, "x.test/store"), "301 scheme=https");
}

#[test]
fn a_slot_that_redirects_has_no_children() {
    let literal = "{name: s, allowedRoutes: {}, filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}";
    let top = route("infra/top", GW, "", &[literal.to_owned()]);
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", "", "")]);
    let scenario = scenario(&[super::OVERLAY.to_owned(), top, child]);
    assert_eq!(get(&scenario, "x.test/"), "500");
    assert_eq!(
        accepted(&scenario, "infra/child", "top"),
        "False Conflicted: via infra/top#s: RequestRedirect in a rule with a slot"
    );
    let row = super::row(&scenario, "HTTPRoute infra/top", "gw").unwrap();
    assert_eq!(
        super::condition(&row["inclusions"][0], "Conflicted"),
        "True FilterConflict: RequestRedirect in a rule with a slot: no route can attach to it; leave it out"
    );
}

#[test]
fn the_shorter_time_out_counts() {
    let limits =
        |request: &str, backend: &str| format!(", timeouts: {{request: {request}, backendRequest: {backend}}}");
    let seconds = |policy: RulePolicy| {
        let text = |limit: Option<Duration>| limit.map_or("-".to_owned(), |limit| limit.as_secs().to_string());
        (text(policy.request_timeout), text(policy.backend_timeout))
    };
    let cases = [
        (limits("10s", "5s"), String::new(), "10", "5"),
        (String::new(), limits("7s", "3s"), "7", "3"),
        (limits("10s", "2s"), limits("7s", "3s"), "7", "2"),
        (limits("6s", "4s"), limits("9s", "8s"), "6", "4"),
        (limits("0s", "0s"), limits("9s", "8s"), "9", "8"),
        (limits("9s", "8s"), limits("0s", "0s"), "9", "8"),
    ];
    for (parent, child, request, backend) in cases {
        let found = seconds(policy(&parent_and_child(&parent, &child)));
        assert_eq!(found, (request.to_owned(), backend.to_owned()), "{parent} ▸ {child}");
    }
}

#[test]
fn retries_of_the_child_precede_those_of_the_parent() {
    let retry = |attempts: u32| format!(", retry: {{attempts: {attempts}, codes: [503]}}");
    for (parent, child, attempts) in [
        (retry(3), String::new(), Some(3)),
        (String::new(), retry(2), Some(2)),
        (retry(3), retry(5), Some(5)),
        (String::new(), String::new(), None),
    ] {
        let found = policy(&parent_and_child(&parent, &child)).retry;
        assert_eq!(found.as_ref().map(|retry| retry.count), attempts, "{parent} ▸ {child}");
        assert!(found.is_none_or(|retry| retry.statuses == [503..=503]));
    }
}

#[test]
fn references_are_authorised_from_the_namespace_of_their_author() {
    let grant = |from: &str| {
        format!(
            "
kind: ReferenceGrant
metadata: {{namespace: app, name: g}}
spec:
  from: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: {from}}}]
  to: [{{group: \"\", kind: Service}}]"
        )
    };
    let top = route("infra/top", GW, "", &[rule_to_slot("s", "", "")]);
    let rule = "{backendRefs: [{name: v1, namespace: app, port: 8080}]}".to_owned();
    let child = route("web/child", &route_parent("infra/top"), "", &[rule]);
    for (from, answer, resolved) in [("web", "app/v1", "True ResolvedRefs"), ("infra", "500", "False RefNotPermitted")]
    {
        let scenario = scenario(&[top.clone(), slot("infra/s", "All"), child.clone(), grant(from)]);
        assert_eq!(get(&scenario, "x.test/"), answer, "granted to {from}");
        for parent in ["top", "gw#http"] {
            let row = super::row(&scenario, "HTTPRoute web/child", parent).unwrap();
            assert!(super::condition(&row, "ResolvedRefs").starts_with(resolved), "granted to {from}: {row:#}");
        }
    }
    // References without a namespace mean the child's own.
    let own = route("web/child", &route_parent("infra/top"), "", &[rule_to_service("web", "", "")]);
    let foreign = route("web/child", &route_parent("infra/top"), "", &[rule_to_service("v3", "", "")]);
    assert_eq!(get(&scenario(&[top.clone(), slot("infra/s", "All"), own]), "x.test/"), "web");
    assert_eq!(get(&scenario(&[top, slot("infra/s", "All"), foreign]), "x.test/"), "500");
}

//! Combined hosts and matches of parent and child.

use super::{
    GW, accepted, exact, get, prefix, route, route_of_age, route_parent, rule_to_service, rule_to_slot, scenario, slot,
    slot_state,
};
use crate::scenario::{Scenario, TestRequest};

/// A root route with a slot of these matches, and a child in it with these.
fn parent_and_child(parent: &str, child: &str) -> Scenario {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", parent, "")]);
    scenario(&[
        top,
        slot("infra/s", "Same"),
        route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", child, "")]),
    ])
}

#[test]
fn hosts_narrow_from_level_to_level() {
    // Hosts of listener, root, middle and leaf; names that reach the leaf, and names that do not.
    #[rustfmt::skip]
    let cases: [(&str, &str, &str, &str, &str, &str); 16] = [
        ("", "", "", "", "a.test b.c.test", ""),
        ("", "a.test", "", "", "a.test", "b.test"),
        ("", "", "a.test", "", "a.test", "b.test"),
        ("", "", "", "a.test", "a.test", "b.test"),
        ("", "'*.test'", "", "", "a.test b.a.test", "test"),
        ("", "", "'*.test'", "", "a.test", "test"),
        ("", "", "", "'*.test'", "a.test", "test"),
        ("", "'*.test'", "a.test", "", "a.test", "b.test"),
        ("", "a.test", "'*.test'", "", "a.test", "b.test"),
        ("", "'*.test'", "'*.a.test'", "b.a.test", "b.a.test", "c.a.test a.test"),
        ("", "b.a.test", "'*.a.test'", "'*.test'", "b.a.test", "c.a.test c.test"),
        ("", "'*.test'", "", "'*.a.test'", "b.a.test", "a.test b.test"),
        ("'*.test'", "", "a.test, b.test", "b.test, c.test", "b.test", "a.test c.test"),
        ("'*.test'", "", "", "a.other, a.test", "a.test", "a.other b.test"),
        ("a.test", "'*.test'", "", "", "a.test", "b.test"),
        ("'*.test'", "a.test", "a.test", "a.test", "a.test", "b.test"),
    ];
    for (listener, top, middle, leaf, served, others) in cases {
        let scenario = three_levels(listener, top, middle, leaf);
        let what = format!("{listener} ▸ {top} ▸ {middle} ▸ {leaf}");
        for host in served.split_whitespace() {
            assert_eq!(get(&scenario, &format!("{host}/")), "v1", "{host} by {what}");
        }
        for host in others.split_whitespace() {
            assert_ne!(get(&scenario, &format!("{host}/")), "v1", "{host} by {what}");
        }
        assert_eq!(accepted(&scenario, "infra/leaf", "middle"), "True Accepted: 1 inclusion path", "{what}");
    }
}

fn three_levels(listener: &str, top: &str, middle: &str, leaf: &str) -> Scenario {
    let hostname = if listener.is_empty() { String::new() } else { format!(", hostname: {listener}") };
    let gateway = format!(
        "
kind: Gateway
metadata: {{namespace: infra, name: own}}
spec: {{gatewayClassName: sluice, listeners: [{{name: http, port: 80, protocol: HTTP{hostname}}}]}}"
    );
    let objects = [
        gateway,
        slot("infra/s", "Same"),
        slot("infra/t", "Same"),
        route("infra/top", "{name: own}", top, &[rule_to_slot("s", "", "")]),
        route("infra/middle", &route_parent("infra/top"), middle, &[rule_to_slot("t", "", "")]),
        route("infra/leaf", &route_parent("infra/middle"), leaf, &[rule_to_service("v1", "", "")]),
    ];
    Scenario::new(&objects.join("\n---\n"))
}

#[test]
fn a_level_without_a_common_host_is_not_attached() {
    #[rustfmt::skip]
    let cases = [
        ("'*.test'", "'*.test'", "b.test", "a.test", "leaf", "middle", "a.test does not intersect b.test"),
        ("'*.test'", "a.test", "b.test, c.test", "", "middle", "top", "b.test, c.test do not intersect a.test"),
        ("", "'*.a.test'", "a.test", "", "middle", "top", "a.test does not intersect *.a.test"),
        ("x.test", "", "", "'*.y.test'", "leaf", "middle", "*.y.test does not intersect x.test"),
    ];
    for (listener, top, middle, leaf, route, parent, why) in cases {
        let scenario = three_levels(listener, top, middle, leaf);
        let reported = accepted(&scenario, &format!("infra/{route}"), parent);
        assert!(reported.starts_with("False NoMatchingListenerHostname: via infra/top#s"), "{reported}");
        assert!(reported.ends_with(&format!(": {why}")), "{reported}");
    }
}

#[test]
fn a_detached_parent_has_no_children() {
    let scenario = three_levels("x.test", "", "y.test", "");
    assert_eq!(
        accepted(&scenario, "infra/leaf", "middle"),
        "False NoMatchingParent: infra/middle is accepted by no Gateway"
    );
    assert_eq!(accepted(&scenario, "infra/leaf", "own#http"), "no row");
}

#[test]
fn a_childs_path_continues_its_parents() {
    // Path of the slot and of the child; paths that reach the child, and paths that do not.
    #[rustfmt::skip]
    let cases: [(String, String, &[&str], &[&str]); 12] = [
        (prefix("/"), prefix("/"), &["/", "/a"], &[]),
        (prefix("/"), prefix("/a"), &["/a", "/a/b"], &["/", "/ab"]),
        (prefix("/a"), prefix("/"), &["/a", "/a/", "/a/b"], &["/", "/ab"]),
        (prefix("/a"), prefix("/b"), &["/a/b", "/a/b/c"], &["/a", "/b", "/a/bc", "/b/a"]),
        (prefix("/a/"), prefix("/b/"), &["/a/b", "/a/b/", "/a/b/c"], &["/a", "/a/bc"]),
        (prefix("/a/b"), prefix("/a/b"), &["/a/b/a/b"], &["/a/b", "/a/b/b"]),
        (prefix("/a"), exact("/b"), &["/a/b"], &["/a/b/", "/a/b/c", "/a"]),
        (prefix("/a"), exact("/b/"), &["/a/b/"], &["/a/b", "/a/b/c"]),
        (prefix("/a"), exact("/"), &["/a"], &["/a/b", "/"]),
        (exact("/a"), prefix("/"), &["/a"], &["/a/", "/a/b", "/"]),
        (exact("/a"), String::new(), &["/a"], &["/a/b"]),
        (prefix("/"), "{path: {type: RegularExpression, value: '/v[0-9]+'}}".to_owned(), &["/v1"], &["/v", "/v1/x"]),
    ];
    for (parent, child, inside, outside) in cases {
        let scenario = parent_and_child(&parent, &child);
        for path in inside {
            assert_eq!(get(&scenario, &format!("x.test{path}")), "v1", "{path} by {parent} ▸ {child}");
        }
        for path in outside {
            assert_eq!(get(&scenario, &format!("x.test{path}")), "404", "{path} by {parent} ▸ {child}");
        }
    }
}

#[test]
fn path_prefixes_match_whole_elements() {
    let top = route(
        "infra/top",
        GW,
        "",
        &[rule_to_slot("one", &prefix("/team1"), ""), rule_to_slot("ten", &prefix("/team10"), "")],
    );
    let child = |id: &str, slot: &str, service| {
        route(id, &super::rule_parent("infra/top", slot), "", &[rule_to_service(service, "", "")])
    };
    let objects = [
        top,
        slot("infra/one", "Same"),
        slot("infra/ten", "All"),
        child("infra/a", "one", "v1"),
        child("web/b", "ten", "web"),
    ];
    let scenario = scenario(&objects);
    for (path, answer) in [
        ("/team1", "v1"),
        ("/team1/0", "v1"),
        ("/team10", "web"),
        ("/team10/x", "web"),
        ("/team100", "404"),
        ("/team", "404"),
    ] {
        assert_eq!(get(&scenario, &format!("x.test{path}")), answer, "{path}");
    }
}

#[test]
fn impossible_matches_are_reported() {
    let post = "{method: POST}";
    #[rustfmt::skip]
    let cases = [
        ("{method: GET}".to_owned(), post.to_owned(), "its parent does not take method POST"),
        (exact("/a"), prefix("/b"), "path /b below an exact path"),
        (exact("/a"), exact("/"), "path / below an exact path"),
    ];
    for (parent, child, why) in cases {
        let scenario = parent_and_child(&parent, &child);
        let expected = format!("match 0 of rule 0 can match no request: {why}");
        assert_eq!(accepted(&scenario, "infra/child", "top"), format!("False Conflicted: via infra/top#s: {expected}"));
        assert_eq!(
            slot_state(&scenario, "infra/s"),
            [
                "0".to_owned(),
                format!("False MatchConflict: infra/child: {expected}"),
                format!("Conflicted True MatchConflict: infra/child: {expected}"),
            ]
        );
    }
    // If another match remains, the child is attached with that one.
    let scenario = parent_and_child("{method: GET}", "{method: POST}, {method: GET}");
    assert_eq!(get(&scenario, "x.test/"), "v1");
    assert_eq!(scenario.http(80, &TestRequest::get("x.test/").method("POST")), "404");
    assert_eq!(
        accepted(&scenario, "infra/child", "top"),
        "True Accepted: 1 inclusion path; match 0 of rule 0 can match no request: its parent does not take method POST"
    );
    // Equal methods, or an unset one, do not conflict.
    for (parent, child) in [("{method: GET}", "{method: GET}"), ("{method: GET}", ""), ("", "{method: GET}")] {
        let scenario = parent_and_child(parent, child);
        assert_eq!(get(&scenario, "x.test/"), "v1", "{parent} ▸ {child}");
        assert_ne!(scenario.http(80, &TestRequest::get("x.test/").method("POST")), "v1", "{parent} ▸ {child}");
    }
}

#[test]
fn regular_expressions_below_a_path_are_rejected() {
    let regex = "{path: {type: RegularExpression, value: '/v[0-9]+'}}";
    #[rustfmt::skip]
    let cases = [
        (prefix("/a"), regex.to_owned(), "a path of type RegularExpression below a path; write PathPrefix or Exact"),
        (regex.to_owned(), prefix("/a"), "a slot whose path is of type RegularExpression; write PathPrefix or Exact there"),
        (regex.to_owned(), String::new(), "a slot whose path is of type RegularExpression; write PathPrefix or Exact there"),
        (exact("/a"), regex.to_owned(), "a path of type RegularExpression below an exact path; write no path"),
    ];
    for (parent, child, why) in cases {
        let scenario = parent_and_child(&parent, &child);
        assert_eq!(
            accepted(&scenario, "infra/child", "top"),
            format!("False UnsupportedValue: via infra/top#s: rule 0: {why}"),
            "{parent} ▸ {child}"
        );
        let slot = slot_state(&scenario, "infra/s");
        assert_eq!(slot[1], format!("False UnsupportedValue: infra/child: rule 0: {why}"));
        assert_eq!(slot[2], format!("NotSupported True UnsupportedValue: infra/child: rule 0: {why}"));
    }
}

#[test]
fn a_regular_expression_below_a_path_drops_only_its_rule() {
    let regex = "{path: {type: RegularExpression, value: '/v[0-9]+'}}";
    let top = route("infra/top", GW, "", &[rule_to_slot("s", &prefix("/a"), ""), rule_to_slot("t", &prefix("/"), "")]);
    let rules = [rule_to_service("v1", &prefix("/b"), ""), rule_to_service("v2", regex, "")];
    let child = |parent: &str| route("infra/child", parent, "", &rules);
    let with = |parent: &str| scenario(&[top.clone(), slot("infra/s", "Same"), slot("infra/t", "Same"), child(parent)]);
    let below_path = with(&super::rule_parent("infra/top", "s"));
    assert_eq!([get(&below_path, "x.test/a/b"), get(&below_path, "x.test/a/v1")], ["v1", "404"]);
    assert_eq!(accepted(&below_path, "infra/child", "top#s"), "True Accepted: 1 inclusion path");
    let expected = "True UnsupportedValue: Dropped Rule 1: rule 1: via infra/top#s: a path of type RegularExpression below a \
                path; write PathPrefix or Exact";
    for parent in ["top#s", "gw#http"] {
        let row = super::row(&below_path, "HTTPRoute infra/child", parent).unwrap();
        assert_eq!(super::condition(&row, "PartiallyInvalid"), expected, "{parent}");
    }
    assert_eq!(slot_state(&below_path, "infra/s"), ["1", "True Attached"]);
    // As a root rule, the same rule serves, and nothing is dropped.
    let at_top = with(&super::rule_parent("infra/top", "t"));
    assert_eq!([get(&at_top, "x.test/b"), get(&at_top, "x.test/v1")], ["v1", "v2"]);
    let row = super::row(&at_top, "HTTPRoute infra/child", "top#t").unwrap();
    assert_eq!(super::condition(&row, "PartiallyInvalid"), "-");
}

#[test]
fn conditions_of_the_parent_are_never_replaced() {
    let header = |name: &str, value: &str| format!("{{headers: [{{name: {name}, value: {value:?}}}]}}");
    let scenario = parent_and_child(&header("X-Team", "red"), &header("x-team", "blue"));
    // The parent's condition on a header is the only one that applies.
    for (value, answer) in [("red", "v1"), ("blue", "404")] {
        assert_eq!(scenario.http(80, &TestRequest::get("x.test/").with("x-team", value)), answer, "{value}");
    }
    let scenario = parent_and_child(&header("x-team", "red"), &header("x-user", "me"));
    let request = |team: &str, user: &str| {
        scenario.http(80, &TestRequest::get("x.test/").with("x-team", team).with("x-user", user))
    };
    assert_eq!([request("red", "me"), request("red", "you"), request("blue", "me")], ["v1", "404", "404"]);
    let query = |name: &str, value: &str| format!("{{queryParams: [{{name: {name}, value: {value:?}}}]}}");
    let scenario = parent_and_child(&query("v", "1"), &query("v", "2"));
    assert_eq!([get(&scenario, "x.test/?v=1"), get(&scenario, "x.test/?v=2")], ["v1", "404"]);
    let scenario = parent_and_child(&query("v", "1"), &query("w", "2"));
    assert_eq!(
        [get(&scenario, "x.test/?v=1&w=2"), get(&scenario, "x.test/?v=1"), get(&scenario, "x.test/?w=2")],
        ["v1", "404", "404"]
    );
}

#[test]
fn every_match_of_the_slot_is_combined_with_every_match_of_the_child() {
    let scenario =
        parent_and_child(&format!("{}, {}", prefix("/a"), prefix("/b")), &format!("{}, {}", prefix("/x"), exact("/y")));
    for path in ["/a/x", "/a/x/1", "/b/x", "/a/y", "/b/y"] {
        assert_eq!(get(&scenario, &format!("t.test{path}")), "v1", "{path}");
    }
    for path in ["/a", "/b/z", "/a/y/1", "/x"] {
        assert_eq!(get(&scenario, &format!("t.test{path}")), "404", "{path}");
    }
}

#[test]
fn matches_of_a_child_below_a_slot_are_limited() {
    let many = |n: usize, at: &str| (0..n).map(|i| prefix(&format!("/{at}{i}"))).collect::<Vec<_>>().join(", ");
    let scenario = parent_and_child(&many(16, "p"), &many(64, "c"));
    assert_eq!(get(&scenario, "x.test/p15/c63"), "v1");
    let scenario = parent_and_child(&many(17, "p"), &many(64, "c"));
    assert_eq!(get(&scenario, "x.test/p15/c63"), "500");
    assert_eq!(
        accepted(&scenario, "infra/child", "top"),
        "False UnsupportedValue: via infra/top#s: 1088 matches with those of the slot; at most 1024 are allowed"
    );
}

#[test]
fn at_most_sixteen_thousand_matches_attach_below_a_route() {
    let many = |n: usize, at: &str| (0..n).map(|i| prefix(&format!("/{at}{i}"))).collect::<Vec<_>>().join(", ");
    let top = route("infra/top", GW, "", &[rule_to_slot("s", &many(64, "p"), "")]);
    // 16 times 1,024 matches, and one.
    let child = |i: usize, n| {
        let rules = [rule_to_service("v1", &many(n, &format!("c{i:02}-")), "")];
        route_of_age(&format!("infra/c{i:02}"), i as u32, &route_parent("infra/top"), "", &rules)
    };
    let children = (0..16).map(|i| child(i, 16)).chain([child(16, 1)]);
    let objects: Vec<_> = [top, slot("infra/s", "Same")].into_iter().chain(children).collect();
    let scenario = scenario(&objects);
    assert_eq!(accepted(&scenario, "infra/c15", "top"), "True Accepted: 1 inclusion path");
    assert_eq!(get(&scenario, "x.test/p63/c15-15"), "v1");
    assert_eq!(
        accepted(&scenario, "infra/c16", "top"),
        "False UnsupportedValue: via infra/top#s: with it more than 16384 matches would be below one route"
    );
}

#[test]
fn rejected_children_do_not_count_towards_limits() {
    let many = |n: usize, at: &str| (0..n).map(|i| prefix(&format!("/{at}{i}"))).collect::<Vec<_>>().join(", ");
    let rewrite = ", filters: [{type: URLRewrite, urlRewrite: {hostname: else.test}}]";
    let top = route("infra/top", GW, "", &[rule_to_slot("s", &many(8, "p"), rewrite)]);
    // 17 times 1,024 matches: above the limit of one route, if they were attached.
    let rules = vec![rule_to_service("v2", &many(64, "c"), rewrite); 2];
    let conflicting = (0..17).map(|i| route_of_age(&format!("infra/c{i}"), 1, &route_parent("infra/top"), "", &rules));
    let valid =
        route_of_age("infra/good", 2, &route_parent("infra/top"), "", &[rule_to_service("v1", &prefix("/good"), "")]);
    let objects: Vec<_> = [top, slot("infra/s", "Same")].into_iter().chain(conflicting).chain([valid]).collect();
    let scenario = scenario(&objects);
    assert!(accepted(&scenario, "infra/c16", "top").starts_with("False Conflicted: "));
    assert_eq!(accepted(&scenario, "infra/good", "top"), "True Accepted: 1 inclusion path");
    assert_eq!(get(&scenario, "x.test/p7/good"), "v1");
}

#[test]
fn evaluated_matches_below_a_route_are_limited() {
    let many = |n: usize, at: &str| (0..n).map(|i| prefix(&format!("/{at}{i}"))).collect::<Vec<_>>().join(", ");
    let rewrite = ", filters: [{type: URLRewrite, urlRewrite: {hostname: else.test}}]";
    let top = route("infra/top", GW, "", &[rule_to_slot("s", &many(64, "p"), rewrite)]);
    // None of them can be attached. Evaluating each takes 1,024 matches; the limit is 256 times that.
    let rules = [rule_to_service("v2", &many(16, "c"), rewrite)];
    let conflicting =
        (0..257).map(|i| route_of_age(&format!("infra/c{i:03}"), 1, &route_parent("infra/top"), "", &rules));
    let objects: Vec<_> = [top, slot("infra/s", "Same")].into_iter().chain(conflicting).collect();
    let scenario = scenario(&objects);
    assert!(accepted(&scenario, "infra/c255", "top").starts_with("False Conflicted: "));
    assert_eq!(
        accepted(&scenario, "infra/c256", "top"),
        "False UnsupportedValue: via infra/top#s: more than 262144 matches of routes would be evaluated below one route"
    );
}

#[test]
fn a_more_specific_rule_of_the_parent_comes_before_its_slot() {
    let top = route(
        "infra/top",
        GW,
        "",
        &[
            rule_to_service("v2", &prefix("/store/admin"), ""),
            rule_to_slot("s", &prefix("/store"), ""),
            rule_to_service("v3", "", ""),
        ],
    );
    let child = route(
        "infra/child",
        &route_parent("infra/top"),
        "",
        &[rule_to_service("v1", &exact("/admin/x"), ""), rule_to_service("v1", &prefix("/cart"), "")],
    );
    let scenario = scenario(&[top, slot("infra/s", "Same"), child]);
    for (path, answer) in [
        // However specific the child is, the parent's own rule comes first.
        ("/store/admin/x", "v2"),
        ("/store/admin", "v2"),
        ("/store/cart", "v1"),
        // Inside the slot, requests do not fall back to the parent's wider rule.
        ("/store/other", "404"),
        ("/store", "404"),
        ("/else", "v3"),
    ] {
        assert_eq!(get(&scenario, &format!("x.test{path}")), answer, "{path}");
    }
}

#[test]
fn a_plain_rule_precedes_an_equal_slot_except_for_narrower_hosts() {
    for rules in [
        [rule_to_service("v2", &prefix("/s"), ""), rule_to_slot("s", &prefix("/s"), "")],
        [rule_to_slot("s", &prefix("/s"), ""), rule_to_service("v2", &prefix("/s"), "")],
    ] {
        for (hosts, answers) in [("", ["v2", "v2"]), ("x.test", ["v1", "v2"])] {
            let child = route("infra/child", &route_parent("infra/top"), hosts, &[rule_to_service("v1", "", "")]);
            let scenario = scenario(&[route("infra/top", GW, "", &rules), slot("infra/s", "Same"), child]);
            assert_eq!([get(&scenario, "x.test/s"), get(&scenario, "y.test/s")], answers, "hosts {hosts:?}");
        }
    }
}

#[test]
fn a_childs_narrower_host_does_not_override_other_rules_of_its_parent() {
    let top = route(
        "infra/top",
        GW,
        "'*.test'",
        &[rule_to_service("v2", &prefix("/store/admin"), ""), rule_to_slot("s", &prefix("/store"), "")],
    );
    let child =
        route("infra/child", &route_parent("infra/top"), "a.test", &[rule_to_service("v1", &prefix("/admin"), "")]);
    let other = route("infra/other", GW, "a.test", &[rule_to_service("v3", &prefix("/own"), "")]);
    let objects = [top, slot("infra/s", "Same"), child];
    let scenario = scenario(&objects);
    assert_eq!(get(&scenario, "a.test/store/admin"), "v2");
    // A route of the listener with a narrower host comes before the entire tree of the wider one, for the requests that
    // it matches.
    let scenario = super::scenario(&[objects.as_slice(), &[other]].concat());
    assert_eq!((get(&scenario, "a.test/own").as_str(), get(&scenario, "a.test/store/admin").as_str()), ("v3", "v2"));
}

#[test]
fn an_empty_slot_fails_and_a_full_one_finds_nothing() {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", &prefix("/s"), "")]);
    let empty = scenario(&[top.clone(), slot("infra/s", "Same")]);
    assert_eq!([get(&empty, "x.test/s"), get(&empty, "x.test/s/any"), get(&empty, "x.test/")], ["500", "500", "404"]);
    assert_eq!(slot_state(&empty, "infra/s"), ["0", "False NoRoutesAttached: no route names this slot"]);
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", &prefix("/c"), "")]);
    let full = scenario(&[top, slot("infra/s", "Same"), child]);
    assert_eq!([get(&full, "x.test/s"), get(&full, "x.test/s/c"), get(&full, "x.test/")], ["404", "v1", "404"]);
    assert_eq!(slot_state(&full, "infra/s"), ["1", "True Attached"]);
}

#[test]
fn the_older_of_two_children_with_one_match_serves_and_the_other_gets_a_note() {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", "", "")]);
    let child = |id: &str, age, service| {
        route_of_age(id, age, &route_parent("infra/top"), "", &[rule_to_service(service, &prefix("/c"), "")])
    };
    let objects =
        |one, other| [top.clone(), slot("infra/s", "Same"), child("infra/a", one, "v1"), child("infra/b", other, "v2")];
    for (one, other, answer, younger, older) in [(1, 2, "v1", "b", "a"), (2, 1, "v2", "a", "b"), (1, 1, "v1", "b", "a")]
    {
        let why = match one == other {
            true => "which comes first, as both were created at the same time",
            false => "which is older",
        };
        let scenario = scenario(&objects(one, other));
        assert_eq!(get(&scenario, "x.test/c"), answer);
        // Both are attached: this is no conflict.
        assert_eq!(slot_state(&scenario, "infra/s"), ["2", "True Attached"]);
        assert_eq!(accepted(&scenario, &format!("infra/{older}"), "gw#http"), "True Accepted: via infra/top#s");
        assert_eq!(
            accepted(&scenario, &format!("infra/{younger}"), "gw#http"),
            format!("True Accepted: via infra/top#s; match 0 of rule 0 is shadowed by that of infra/{older}, {why}")
        );
    }
}

#[test]
fn calls_of_grpc_routes_nest_by_name() {
    let grpc = |id: &str, parents: &str, rule: &str| {
        let (namespace, name) = id.split_once('/').unwrap();
        format!(
            "
kind: GRPCRoute
metadata: {{namespace: {namespace}, name: {name}}}
spec: {{parentRefs: [{parents}], rules: [{rule}]}}"
        )
    };
    let call = |service: &str| format!("{{method: {{service: {service}}}}}");
    let slot_rule = format!(
        "{{name: s, matches: [{}], backendRefs: [{{group: gateway.sluice.dev, kind: RouteSlot, name: s}}]}}",
        call("shop.Cart")
    );
    let child = |method: &str| {
        let rule = format!("{{matches: [{{method: {{{method}}}}}], backendRefs: [{{name: v1, port: 8080}}]}}");
        grpc("infra/child", "{kind: GRPCRoute, name: top}", &rule)
    };
    let with = |method: &str| scenario(&[grpc("infra/top", GW, &slot_rule), slot("infra/s", "Same"), child(method)]);
    let scenario = with("service: shop.Cart, method: Add");
    assert_eq!(scenario.http(80, &TestRequest::grpc("x.test/shop.Cart/Add")), "v1");
    assert_eq!(scenario.http(80, &TestRequest::grpc("x.test/shop.Cart/Remove")), "404");
    let scenario = with("service: shop.Other");
    let row = super::row(&scenario, "GRPCRoute infra/child", "top").unwrap();
    assert_eq!(
        super::condition(&row, "Accepted"),
        "False Conflicted: via infra/top#s: match 0 of rule 0 can match no request: its parent does not take /shop.Other"
    );
}

#[test]
fn tls_routes_attach_to_each_other_by_host() {
    let tls = |id: &str, parents: &str, hosts: &str, backend: &str| {
        let (namespace, name) = id.split_once('/').unwrap();
        format!(
            "
kind: TLSRoute
metadata: {{namespace: {namespace}, name: {name}}}
spec: {{parentRefs: [{parents}], hostnames: [{hosts}], rules: [{{name: r, backendRefs: [{backend}]}}]}}"
        )
    };
    let gateway = "
kind: Gateway
metadata: {namespace: infra, name: raw}
spec:
  gatewayClassName: sluice
  listeners: [{name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}}]"
        .to_owned();
    let top = tls("infra/top", "{name: raw}", "'*.test'", "{group: gateway.sluice.dev, kind: RouteSlot, name: s}");
    let child = tls("web/child", "{kind: TLSRoute, namespace: infra, name: top}", "a.test", "{name: web, port: 8080}");
    let scenario = scenario(&[gateway, top, slot("infra/s", "All"), child]);
    assert_eq!(scenario.https(443, &TestRequest::get("a.test/")), "passthrough web");
    let row = super::row(&scenario, "TLSRoute web/child", "top").unwrap();
    assert_eq!(super::condition(&row, "Accepted"), "True Accepted: 1 inclusion path");
    assert_ne!(scenario.https(443, &TestRequest::get("b.test/")), "passthrough web");
}

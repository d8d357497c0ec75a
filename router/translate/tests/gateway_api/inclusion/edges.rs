//! Attachment to slots: namespaces, sections, several parents.

use serde_json::json;

use super::{
    GW, accepted, documents, get, prefix, route, route_parent, rule_parent, rule_to_service, rule_to_slot, scenario,
    slot, slot_state,
};
use crate::scenario::Scenario;

fn parent() -> String {
    route("infra/top", GW, "", &[rule_to_slot("s", &prefix("/s"), "")])
}

#[test]
fn a_slot_admits_only_allowed_namespaces() {
    let team = |name: &str| format!("Selector, selector: {{matchLabels: {{team: {name}}}}}");
    let by_name = "Selector, selector: {matchLabels: {kubernetes.io/metadata.name: web}}".to_owned();
    let cases = [
        ("Same", "infra/child", "v1", true),
        ("Same", "web/child", "web", false),
        ("All", "web/child", "web", true),
        ("None", "infra/child", "v1", false),
        (&team("web"), "web/child", "web", true),
        (&team("app"), "web/child", "web", false),
        (&team("infra"), "infra/child", "v1", true),
        (&by_name, "web/child", "web", true),
        (&by_name, "app/child", "v1", false),
        ("Selector", "infra/child", "v1", false),
    ];
    for (from, child, service, admitted) in cases {
        let what = format!("{from} {child}");
        let child_route = route(child, &route_parent("infra/top"), "", &[rule_to_service(service, "", "")]);
        let scenario = scenario(&[parent(), slot("infra/s", from), child_route]);
        let namespace = child.split_once('/').unwrap().0;
        if admitted {
            assert_eq!(get(&scenario, "a.test/s"), service, "{what}");
            assert_eq!(accepted(&scenario, child, "top"), "True Accepted: 1 inclusion path", "{what}");
            assert_eq!(accepted(&scenario, child, "gw#http"), "True Accepted: via infra/top#s", "{what}");
            assert_eq!(slot_state(&scenario, "infra/s"), ["1", "True Attached"], "{what}");
        } else {
            let why = format!("infra/top admits no HTTPRoute of namespace {namespace}");
            assert_eq!(get(&scenario, "a.test/s"), "500", "{what}");
            assert_eq!(accepted(&scenario, child, "top"), format!("False NotAllowedByParent: {why}"), "{what}");
            // A route that is not admitted gets no rows for the listeners above the slot.
            assert_eq!(accepted(&scenario, child, "gw#http"), "no row", "{what}");
            assert_eq!(
                slot_state(&scenario, "infra/s"),
                [
                    "0".to_owned(),
                    format!("False RefNotPermitted: {child}: {why}"),
                    format!("ResolvedRefs False RefNotPermitted: {child}: {why}"),
                ],
                "{what}"
            );
        }
    }
}

#[test]
fn a_slot_admits_its_own_namespace_by_default() {
    let silent = "kind: RouteSlot\nmetadata: {namespace: infra, name: s}\nspec: {}".to_owned();
    let child = |id: &str, service| route(id, &route_parent("infra/top"), "", &[rule_to_service(service, "", "")]);
    let own = scenario(&[parent(), silent.clone(), child("infra/child", "v1")]);
    assert_eq!(get(&own, "a.test/s"), "v1");
    let other = scenario(&[parent(), silent, child("web/child", "web")]);
    assert_eq!(get(&other, "a.test/s"), "500");
}

#[test]
fn namespace_labels_decide_what_a_slot_admits() {
    let from = "Selector, selector: {matchLabels: {open: \"yes\"}}";
    let objects = [
        parent(),
        slot("infra/s", from),
        route("web/child", &route_parent("infra/top"), "", &[rule_to_service("web", "", "")]),
    ];
    let namespace = |open: &str| json!({ "kind": "Namespace", "metadata": { "name": "web", "labels": { "team": "web", "open": open } } });
    let mut scenario = Scenario::with(&documents(&objects), [namespace("no")]);
    for (open, answer, row) in [
        ("yes", "web", "True Accepted: 1 inclusion path"),
        ("no", "500", "False NotAllowedByParent: infra/top admits no HTTPRoute of namespace web"),
    ] {
        scenario.change(namespace(open));
        assert_eq!(get(&scenario, "a.test/s"), answer);
        assert_eq!(accepted(&scenario, "web/child", "top"), row);
    }
}

#[test]
fn every_step_depends_on_the_direct_parent_alone() {
    // The middle is in another namespace than the root, and admits routes of its own: the root does not restrict that.
    let middle = route("web/middle", &route_parent("infra/top"), "", &[rule_to_slot("m", &prefix("/m"), "")]);
    let leaf = |id: &str, service| route(id, &route_parent("web/middle"), "", &[rule_to_service(service, "", "")]);
    let slots = [slot("infra/s", "All"), slot("web/m", "Same")];
    let tree = |leaf: String| scenario(&[&[parent(), middle.clone(), leaf], slots.as_slice()].concat());
    let inside = tree(leaf("web/leaf", "web"));
    assert_eq!(get(&inside, "a.test/s/m"), "web");
    assert_eq!(accepted(&inside, "web/leaf", "gw#http"), "True Accepted: via infra/top#s ▸ web/middle#m");
    // To the middle, the namespace of the root is a foreign one like any other.
    let outside = tree(leaf("infra/leaf", "v1"));
    assert_eq!(get(&outside, "a.test/s/m"), "500");
    assert_eq!(
        accepted(&outside, "infra/leaf", "middle"),
        "False NotAllowedByParent: web/middle admits no HTTPRoute of namespace infra"
    );
}

#[test]
fn a_section_names_the_slot() {
    let top = route(
        "infra/top",
        GW,
        "",
        &[
            rule_to_slot("a", &prefix("/a"), ""),
            rule_to_slot("b", &prefix("/b"), ""),
            format!("{{name: plain, {}", rule_to_service("v3", &prefix("/plain"), "").trim_start_matches('{')),
        ],
    );
    let slots = [slot("infra/a", "Same"), slot("infra/b", "Same")];
    let with = |parent: &str| {
        let child = route("infra/child", parent, "", &[rule_to_service("v1", "", "")]);
        scenario(&[&[top.clone(), child], slots.as_slice()].concat())
    };
    let cases = [
        // No section: all slots.
        (route_parent("infra/top"), "v1", "v1", "top", "True Accepted: 2 inclusion paths"),
        (rule_parent("infra/top", "a"), "v1", "500", "top#a", "True Accepted: 1 inclusion path"),
        (rule_parent("infra/top", "b"), "500", "v1", "top#b", "True Accepted: 1 inclusion path"),
        (rule_parent("infra/top", "c"), "500", "500", "top#c", "False NoMatchingParent: infra/top has no rule named c"),
        (
            rule_parent("infra/top", "plain"),
            "500",
            "500",
            "top#plain",
            "False NoMatchingParent: rule plain of infra/top is no slot",
        ),
    ];
    for (parent, a, b, name, row) in cases {
        let scenario = with(&parent);
        assert_eq!((get(&scenario, "x.test/a").as_str(), get(&scenario, "x.test/b").as_str()), (a, b), "{name}");
        assert_eq!(get(&scenario, "x.test/plain"), "v3", "{name}");
        assert_eq!(accepted(&scenario, "infra/child", name), row, "{name}");
    }
    // Slots report routes that name an unknown section; nothing else of their status changes.
    let scenario = with(&rule_parent("infra/top", "c"));
    assert_eq!(
        slot_state(&scenario, "infra/a"),
        [
            "0",
            "False NoRoutesAttached: no route names this slot",
            "ResolvedRefs False SectionNotFound: infra/child: infra/top has no rule named c",
        ]
    );
}

#[test]
fn statuses_in_other_namespaces_do_not_reveal_rules() {
    let plain = format!("{{name: plain, {}", rule_to_service("v3", &prefix("/plain"), "").trim_start_matches('{'));
    let rules = [rule_to_slot("own", &prefix("/own"), ""), rule_to_slot("open", &prefix("/open"), ""), plain];
    let top = route("infra/top", GW, "", &rules);
    let accepted_by = |open: &str, rule: &str| {
        let child = route("web/child", &rule_parent("infra/top", rule), "", &[rule_to_service("web", "", "")]);
        let slots = [slot("infra/own", "Same"), slot("infra/open", open)];
        let scenario = scenario(&[&[top.clone(), child], slots.as_slice()].concat());
        accepted(&scenario, "web/child", &format!("top#{rule}"))
    };
    for open in ["Same", "All"] {
        for rule in ["own", "plain", "none"] {
            let why = format!("infra/top has no rule {rule} that admits an HTTPRoute of namespace web");
            assert_eq!(accepted_by(open, rule), format!("False NotAllowedByParent: {why}"), "{open}");
        }
    }
    assert_eq!(accepted_by("All", "open"), "True Accepted: 1 inclusion path");
}

#[test]
fn a_child_attaches_to_the_slots_that_admit_it() {
    let top = route("infra/top", GW, "", &[rule_to_slot("a", &prefix("/a"), ""), rule_to_slot("b", &prefix("/b"), "")]);
    let child = route("web/child", &route_parent("infra/top"), "", &[rule_to_service("web", "", "")]);
    let scenario = scenario(&[top, child, slot("infra/a", "Same"), slot("infra/b", "All")]);
    assert_eq!((get(&scenario, "x.test/a").as_str(), get(&scenario, "x.test/b").as_str()), ("500", "web"));
    assert_eq!(accepted(&scenario, "web/child", "top"), "True Accepted: 1 inclusion path");
    assert_eq!(slot_state(&scenario, "infra/a"), ["0", "False NoRoutesAttached: no route names this slot"]);
}

#[test]
fn a_route_without_slots_accepts_no_children() {
    let top = route("infra/top", GW, "", &[rule_to_service("v1", "", "")]);
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v2", &prefix("/c"), "")]);
    let scenario = scenario(&[top, child]);
    assert_eq!(get(&scenario, "x.test/c"), "v1");
    assert_eq!(accepted(&scenario, "infra/child", "top"), "False NoMatchingParent: infra/top has no slot");
}

#[test]
fn a_port_of_a_parent_route_is_rejected() {
    let child = route("infra/child", "{kind: HTTPRoute, name: top, port: 80}", "", &[rule_to_service("v1", "", "")]);
    let scenario = scenario(&[parent(), slot("infra/s", "Same"), child]);
    assert_eq!(get(&scenario, "x.test/s"), "500");
    assert_eq!(
        accepted(&scenario, "infra/child", "top"),
        "False UnsupportedValue: port of a parentRef that names a route; leave it out"
    );
}

#[test]
fn a_child_may_exist_without_its_parent() {
    let child = route("infra/child", &route_parent("infra/top"), "", &[rule_to_service("v1", "", "")]);
    let mut scenario = scenario(&[child, slot("infra/s", "Same")]);
    // A missing parent gets no row.
    assert_eq!(accepted(&scenario, "infra/child", "top"), "no row");
    assert_eq!(get(&scenario, "x.test/s"), "404");
    assert_eq!(scenario.warnings(), ["HTTPRoute infra/child: spec.parentRefs[0]: there is no HTTPRoute infra/top"]);
    scenario.change(serde_saphyr::from_str(&parent()).unwrap());
    assert_eq!(accepted(&scenario, "infra/child", "top"), "True Accepted: 1 inclusion path");
    assert_eq!(get(&scenario, "x.test/s"), "v1");
    assert!(scenario.warnings().is_empty());
    scenario.remove("HTTPRoute infra/top");
    assert_eq!(scenario.status("HTTPRoute infra/child"), serde_json::Value::Null);
    assert_eq!(get(&scenario, "x.test/s"), "404");
}

#[test]
fn two_parents_are_two_edges() {
    let top = |id: &str, path: &str, slot: &str| route(id, GW, "", &[rule_to_slot(slot, &prefix(path), "")]);
    let parents = format!("{}, {}", route_parent("infra/one"), route_parent("web/two"));
    let child = route("infra/child", &parents, "", &[rule_to_service("v1", "", "")]);
    let slots = [slot("infra/s", "Same"), slot("web/t", "Same")];
    let scenario =
        scenario(&[&[top("infra/one", "/one", "s"), top("web/two", "/two", "t"), child], slots.as_slice()].concat());
    // A rejection by one parent does not affect the other.
    assert_eq!((get(&scenario, "x.test/one").as_str(), get(&scenario, "x.test/two").as_str()), ("v1", "500"));
    assert_eq!(accepted(&scenario, "infra/child", "one"), "True Accepted: 1 inclusion path");
    assert_eq!(
        accepted(&scenario, "infra/child", "two"),
        "False NotAllowedByParent: web/two admits no HTTPRoute of namespace infra"
    );
}

#[test]
fn a_child_may_attach_to_a_gateway_too() {
    let parents = format!("{GW}, {}", route_parent("infra/top"));
    let child = route("infra/child", &parents, "own.test", &[rule_to_service("v1", &prefix("/p"), "")]);
    let scenario = scenario(&[parent(), slot("infra/s", "Same"), child]);
    // On the Gateway, the child has its own path; in the slot, its path is below the slot's.
    for (url, answer) in [("own.test/p", "v1"), ("own.test/s/p", "v1"), ("x.test/p", "404"), ("x.test/s/p", "404")] {
        assert_eq!(get(&scenario, url), answer, "{url}");
    }
    assert_eq!(accepted(&scenario, "infra/child", "gw").split(':').next(), Some("True Accepted"));
    assert_eq!(accepted(&scenario, "infra/child", "top"), "True Accepted: 1 inclusion path");
}

#[test]
fn hosts_of_a_child_on_its_own_gateway_do_not_apply_below_its_parent() {
    let older = "
kind: Route
metadata: {namespace: web, name: shop, creationTimestamp: \"2023-01-01T00:00:00Z\"}
spec: {host: a.test, to: {name: v1}}"
        .to_owned();
    let top = route("infra/top", GW, "a.test", &[rule_to_slot("s", "", "")]);
    let parents = format!("{GW}, {}", route_parent("infra/top"));
    let child = route("infra/child", &parents, "a.test, b.test", &[rule_to_service("v2", "", "")]);
    let scenario = scenario(&[older, top, slot("infra/s", "Same"), child]);
    assert_eq!(get(&scenario, "b.test/"), "v2");
    let lost = "a Route in another namespace holds a.test and is older than child";
    assert_eq!(accepted(&scenario, "infra/child", "gw"), format!("True Accepted: {lost}"));
    assert_eq!(
        accepted(&scenario, "infra/child", "top"),
        format!("False HostAlreadyClaimed: 1 inclusion path; {lost}")
    );
}

#[test]
fn only_routes_of_one_kind_attach_to_each_other() {
    let child = "
kind: GRPCRoute
metadata: {namespace: infra, name: child}
spec:
  parentRefs: [{kind: HTTPRoute, name: top}]
  rules: [{backendRefs: [{name: v1, port: 8080}]}]"
        .to_owned();
    let scenario = scenario(&[parent(), slot("infra/s", "Same"), child]);
    assert_eq!(get(&scenario, "x.test/s"), "500");
    let row = super::row(&scenario, "GRPCRoute infra/child", "top").unwrap();
    assert_eq!(
        super::condition(&row, "Accepted"),
        "False NotAllowedByParent: a GRPCRoute cannot attach to an HTTPRoute"
    );
    let why = "infra/child: a GRPCRoute cannot attach to an HTTPRoute";
    assert_eq!(
        slot_state(&scenario, "infra/s"),
        ["0".to_owned(), format!("False UnsupportedKind: {why}"), format!("NotSupported True UnsupportedKind: {why}")]
    );
}

//! Attachment to slots: namespaces, sections, several parents.

use serde_json::json;

use super::{GW, accepted, documents, get, prefix, route, slot, state_of, to, to_slot, under, under_rule, world};
use crate::world::World;

fn parent() -> String {
    route("infra/top", GW, "", &[to_slot("s", &prefix("/s"), "")])
}

#[test]
fn a_slot_admits_the_namespaces_that_it_says() {
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
        let child_route = route(child, &under("infra/top"), "", &[to(service, "", "")]);
        let world = world(&[parent(), slot("infra/s", from), child_route]);
        let namespace = child.split_once('/').unwrap().0;
        if admitted {
            assert_eq!(get(&world, "a.test/s"), service, "{what}");
            assert_eq!(accepted(&world, child, "top"), "True Accepted: 1 inclusion path", "{what}");
            assert_eq!(accepted(&world, child, "gw#http"), "True Accepted: via infra/top#s", "{what}");
            assert_eq!(state_of(&world, "infra/s"), ["1", "True Attached"], "{what}");
        } else {
            let why = format!("infra/top admits no HTTPRoute of namespace {namespace}");
            assert_eq!(get(&world, "a.test/s"), "500", "{what}");
            assert_eq!(accepted(&world, child, "top"), format!("False NotAllowedByParent: {why}"), "{what}");
            // A route that is not admitted gets no rows for the listeners above the slot.
            assert_eq!(accepted(&world, child, "gw#http"), "no row", "{what}");
            assert_eq!(
                state_of(&world, "infra/s"),
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
fn without_a_word_about_namespaces_a_slot_is_for_its_own() {
    let silent = "kind: RouteSlot\nmetadata: {namespace: infra, name: s}\nspec: {}".to_owned();
    let child = |id: &str, service| route(id, &under("infra/top"), "", &[to(service, "", "")]);
    let own = world(&[parent(), silent.clone(), child("infra/child", "v1")]);
    assert_eq!(get(&own, "a.test/s"), "v1");
    let other = world(&[parent(), silent, child("web/child", "web")]);
    assert_eq!(get(&other, "a.test/s"), "500");
}

#[test]
fn a_label_of_a_namespace_opens_and_closes_a_slot() {
    let from = "Selector, selector: {matchLabels: {open: \"yes\"}}";
    let objects = [parent(), slot("infra/s", from), route("web/child", &under("infra/top"), "", &[to("web", "", "")])];
    let namespace = |open: &str| json!({ "kind": "Namespace", "metadata": { "name": "web", "labels": { "team": "web", "open": open } } });
    let mut world = World::with(&documents(&objects), [namespace("no")]);
    for (open, answer, row) in [
        ("yes", "web", "True Accepted: 1 inclusion path"),
        ("no", "500", "False NotAllowedByParent: infra/top admits no HTTPRoute of namespace web"),
    ] {
        world.change(namespace(open));
        assert_eq!(get(&world, "a.test/s"), answer);
        assert_eq!(accepted(&world, "web/child", "top"), row);
    }
}

#[test]
fn every_step_depends_on_the_direct_parent_alone() {
    // The middle is in another namespace than the root, and admits routes of its own: the root does not restrict that.
    let middle = route("web/middle", &under("infra/top"), "", &[to_slot("m", &prefix("/m"), "")]);
    let leaf = |id: &str, service| route(id, &under("web/middle"), "", &[to(service, "", "")]);
    let slots = [slot("infra/s", "All"), slot("web/m", "Same")];
    let tree = |leaf: String| world(&[&[parent(), middle.clone(), leaf], slots.as_slice()].concat());
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
            to_slot("a", &prefix("/a"), ""),
            to_slot("b", &prefix("/b"), ""),
            format!("{{name: plain, {}", to("v3", &prefix("/plain"), "").trim_start_matches('{')),
        ],
    );
    let slots = [slot("infra/a", "Same"), slot("infra/b", "Same")];
    let with = |parent: &str| {
        let child = route("infra/child", parent, "", &[to("v1", "", "")]);
        world(&[&[top.clone(), child], slots.as_slice()].concat())
    };
    let cases = [
        // No section: all slots.
        (under("infra/top"), "v1", "v1", "top", "True Accepted: 2 inclusion paths"),
        (under_rule("infra/top", "a"), "v1", "500", "top#a", "True Accepted: 1 inclusion path"),
        (under_rule("infra/top", "b"), "500", "v1", "top#b", "True Accepted: 1 inclusion path"),
        (under_rule("infra/top", "c"), "500", "500", "top#c", "False NoMatchingParent: infra/top has no rule named c"),
        (
            under_rule("infra/top", "plain"),
            "500",
            "500",
            "top#plain",
            "False NoMatchingParent: rule plain of infra/top is no slot",
        ),
    ];
    for (parent, a, b, name, row) in cases {
        let world = with(&parent);
        assert_eq!((get(&world, "x.test/a").as_str(), get(&world, "x.test/b").as_str()), (a, b), "{name}");
        assert_eq!(get(&world, "x.test/plain"), "v3", "{name}");
        assert_eq!(accepted(&world, "infra/child", name), row, "{name}");
    }
    // Slots report routes that name an unknown section; nothing else of their status changes.
    let world = with(&under_rule("infra/top", "c"));
    assert_eq!(
        state_of(&world, "infra/a"),
        [
            "0",
            "False NoRoutesAttached: no route names this slot",
            "ResolvedRefs False SectionNotFound: infra/child: infra/top has no rule named c",
        ]
    );
}

#[test]
fn another_namespace_does_not_learn_which_rules_there_are() {
    let plain = format!("{{name: plain, {}", to("v3", &prefix("/plain"), "").trim_start_matches('{'));
    let rules = [to_slot("own", &prefix("/own"), ""), to_slot("open", &prefix("/open"), ""), plain];
    let top = route("infra/top", GW, "", &rules);
    let told = |open: &str, rule: &str| {
        let child = route("web/child", &under_rule("infra/top", rule), "", &[to("web", "", "")]);
        let slots = [slot("infra/own", "Same"), slot("infra/open", open)];
        let world = world(&[&[top.clone(), child], slots.as_slice()].concat());
        accepted(&world, "web/child", &format!("top#{rule}"))
    };
    for open in ["Same", "All"] {
        for rule in ["own", "plain", "none"] {
            let why = format!("infra/top has no rule {rule} that admits an HTTPRoute of namespace web");
            assert_eq!(told(open, rule), format!("False NotAllowedByParent: {why}"), "{open}");
        }
    }
    assert_eq!(told("All", "open"), "True Accepted: 1 inclusion path");
}

#[test]
fn of_several_slots_those_count_that_admit_the_child() {
    let top = route("infra/top", GW, "", &[to_slot("a", &prefix("/a"), ""), to_slot("b", &prefix("/b"), "")]);
    let child = route("web/child", &under("infra/top"), "", &[to("web", "", "")]);
    let world = world(&[top, child, slot("infra/a", "Same"), slot("infra/b", "All")]);
    assert_eq!((get(&world, "x.test/a").as_str(), get(&world, "x.test/b").as_str()), ("500", "web"));
    assert_eq!(accepted(&world, "web/child", "top"), "True Accepted: 1 inclusion path");
    assert_eq!(state_of(&world, "infra/a"), ["0", "False NoRoutesAttached: no route names this slot"]);
}

#[test]
fn a_route_without_slots_takes_no_children() {
    let top = route("infra/top", GW, "", &[to("v1", "", "")]);
    let child = route("infra/child", &under("infra/top"), "", &[to("v2", &prefix("/c"), "")]);
    let world = world(&[top, child]);
    assert_eq!(get(&world, "x.test/c"), "v1");
    assert_eq!(accepted(&world, "infra/child", "top"), "False NoMatchingParent: infra/top has no slot");
}

#[test]
fn a_port_of_a_route_as_a_parent_is_refused() {
    let child = route("infra/child", "{kind: HTTPRoute, name: top, port: 80}", "", &[to("v1", "", "")]);
    let world = world(&[parent(), slot("infra/s", "Same"), child]);
    assert_eq!(get(&world, "x.test/s"), "500");
    assert_eq!(
        accepted(&world, "infra/child", "top"),
        "False UnsupportedValue: port of a parentRef that names a route; leave it out"
    );
}

#[test]
fn a_child_may_come_before_its_parent_and_outlive_it() {
    let child = route("infra/child", &under("infra/top"), "", &[to("v1", "", "")]);
    let mut world = world(&[child, slot("infra/s", "Same")]);
    // A missing parent gets no row.
    assert_eq!(accepted(&world, "infra/child", "top"), "no row");
    assert_eq!(get(&world, "x.test/s"), "404");
    assert_eq!(world.warnings(), ["HTTPRoute infra/child: spec.parentRefs[0]: there is no HTTPRoute infra/top"]);
    world.change(serde_saphyr::from_str(&parent()).unwrap());
    assert_eq!(accepted(&world, "infra/child", "top"), "True Accepted: 1 inclusion path");
    assert_eq!(get(&world, "x.test/s"), "v1");
    assert!(world.warnings().is_empty());
    world.remove("HTTPRoute infra/top");
    assert_eq!(world.status("HTTPRoute infra/child"), serde_json::Value::Null);
    assert_eq!(get(&world, "x.test/s"), "404");
}

#[test]
fn two_parents_are_two_edges() {
    let top = |id: &str, path: &str, slot: &str| route(id, GW, "", &[to_slot(slot, &prefix(path), "")]);
    let parents = format!("{}, {}", under("infra/one"), under("web/two"));
    let child = route("infra/child", &parents, "", &[to("v1", "", "")]);
    let slots = [slot("infra/s", "Same"), slot("web/t", "Same")];
    let world =
        world(&[&[top("infra/one", "/one", "s"), top("web/two", "/two", "t"), child], slots.as_slice()].concat());
    // A rejection by one parent does not affect the other.
    assert_eq!((get(&world, "x.test/one").as_str(), get(&world, "x.test/two").as_str()), ("v1", "500"));
    assert_eq!(accepted(&world, "infra/child", "one"), "True Accepted: 1 inclusion path");
    assert_eq!(
        accepted(&world, "infra/child", "two"),
        "False NotAllowedByParent: web/two admits no HTTPRoute of namespace infra"
    );
}

#[test]
fn a_child_may_attach_to_a_gateway_too() {
    let parents = format!("{GW}, {}", under("infra/top"));
    let child = route("infra/child", &parents, "own.test", &[to("v1", &prefix("/p"), "")]);
    let world = world(&[parent(), slot("infra/s", "Same"), child]);
    // On the Gateway, the child has its own path; in the slot, its path is below the slot's.
    for (url, answer) in [("own.test/p", "v1"), ("own.test/s/p", "v1"), ("x.test/p", "404"), ("x.test/s/p", "404")] {
        assert_eq!(get(&world, url), answer, "{url}");
    }
    assert_eq!(accepted(&world, "infra/child", "gw").split(':').next(), Some("True Accepted"));
    assert_eq!(accepted(&world, "infra/child", "top"), "True Accepted: 1 inclusion path");
}

#[test]
fn what_a_child_has_on_its_own_gateway_is_not_had_below_its_parent() {
    let older = "
kind: Route
metadata: {namespace: web, name: shop, creationTimestamp: \"2023-01-01T00:00:00Z\"}
spec: {host: a.test, to: {name: v1}}"
        .to_owned();
    let top = route("infra/top", GW, "a.test", &[to_slot("s", "", "")]);
    let parents = format!("{GW}, {}", under("infra/top"));
    let child = route("infra/child", &parents, "a.test, b.test", &[to("v2", "", "")]);
    let world = world(&[older, top, slot("infra/s", "Same"), child]);
    assert_eq!(get(&world, "b.test/"), "v2");
    let lost = "a Route in another namespace holds a.test and is older than child";
    assert_eq!(accepted(&world, "infra/child", "gw"), format!("True Accepted: {lost}"));
    assert_eq!(accepted(&world, "infra/child", "top"), format!("False HostAlreadyClaimed: 1 inclusion path; {lost}"));
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
    let world = world(&[parent(), slot("infra/s", "Same"), child]);
    assert_eq!(get(&world, "x.test/s"), "500");
    let row = super::row(&world, "GRPCRoute infra/child", "top").unwrap();
    assert_eq!(
        super::condition(&row, "Accepted"),
        "False NotAllowedByParent: a GRPCRoute cannot attach to an HTTPRoute"
    );
    let why = "infra/child: a GRPCRoute cannot attach to an HTTPRoute";
    assert_eq!(
        state_of(&world, "infra/s"),
        ["0".to_owned(), format!("False UnsupportedKind: {why}"), format!("NotSupported True UnsupportedKind: {why}")]
    );
}

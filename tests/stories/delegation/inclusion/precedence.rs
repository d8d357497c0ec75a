//! Precedence of rules: level by level from the listener down; a request in a slot does not leave it.

use super::manifests::{WEB, aged, exact, own, prefix, route, to_slot, under, under_rule};
use super::*;

#[test]
fn a_more_specific_rule_of_the_parent_comes_before_its_slot() -> Result<()> {
    let objects = [
        route(
            "shop/cut",
            WEB,
            "cut.t.test",
            &[own(&prefix("/store/admin"), ""), to_slot("s", "all", &prefix("/store"), ""), own("", "")],
        ),
        // However specific it is, the child comes later.
        route("red/cut", &under("shop/cut"), "", &[own(&exact("/admin/x"), ""), own(&prefix("/cart"), "")]),
        // Also with a narrower host.
        route(
            "shop/narrow",
            WEB,
            "'*.narrow.t.test'",
            &[own(&prefix("/store/admin"), ""), to_slot("s", "all", &prefix("/store"), "")],
        ),
        route("red/narrow", &under("shop/narrow"), "a.narrow.t.test", &[own(&prefix("/admin"), "")]),
        // A route of the listener with that host comes before the entire tree of the wider one, for the requests that
        // it matches.
        route("blue/narrow", WEB, "a.narrow.t.test", &[own(&prefix("/own"), "")]),
    ];
    Stage::of(&objects, &[])?.expect(&[
        ("cut.t.test:8080/store/admin/x", "shop /store/admin/x"),
        ("cut.t.test:8080/store/admin", "shop /store/admin"),
        ("cut.t.test:8080/store/cart", "red /store/cart"),
        // A request inside the slot never falls back to the parent's wider rule.
        ("cut.t.test:8080/store/other", "404"),
        ("cut.t.test:8080/store", "404"),
        ("cut.t.test:8080/stores", "shop /stores"),
        ("a.narrow.t.test:8080/store/admin", "shop /store/admin"),
        ("a.narrow.t.test:8080/own", "blue /own"),
    ])
}

#[test]
fn of_equal_rules_the_parents_own_serves_but_for_narrower_hosts() -> Result<()> {
    let rules = [own(&prefix("/s"), ""), to_slot("s", "all", &prefix("/s"), "")];
    let turned = [rules[1].clone(), rules[0].clone()];
    let mut objects = Vec::new();
    for (case, rules) in [("before", &rules), ("behind", &turned)] {
        for (kind, host) in [("same", ""), ("less", "a")] {
            let domain = format!("{case}-{kind}.t.test");
            let host = if host.is_empty() { String::new() } else { format!("{host}.{domain}") };
            let top = format!("shop/{case}-{kind}");
            objects.push(route(&top, WEB, &format!("'*.{domain}'"), rules));
            objects.push(route(&format!("red/{case}-{kind}"), &under(&top), &host, &[own("", "")]));
        }
    }
    let stage = Stage::of(&objects, &[])?;
    for case in ["before", "behind"] {
        for (url, expected) in [
            (format!("a.{case}-same.t.test:8080/s"), "shop /s"),
            (format!("a.{case}-less.t.test:8080/s"), "red /s"),
            (format!("b.{case}-less.t.test:8080/s"), "shop /s"),
        ] {
            stage.expect(&[(&url, expected)])?;
        }
    }
    Ok(())
}

#[test]
fn an_empty_slot_fails_and_a_full_one_finds_nothing() -> Result<()> {
    let top = |case: &str| {
        let slot = to_slot("s", "all", &prefix("/s"), "");
        route(&format!("shop/{case}"), WEB, &format!("{case}.t.test"), &[slot])
    };
    let child = |case: &str, path: &str| {
        route(&format!("red/{case}"), &under(&format!("shop/{case}")), "", &[own(&prefix(path), "")])
    };
    Stage::of(&[top("empty"), top("full"), child("full", "/c")], &[])?.expect(&[
        ("empty.t.test:8080/s", "500"),
        ("empty.t.test:8080/s/any", "500"),
        ("empty.t.test:8080/", "404"),
        ("full.t.test:8080/s/c", "red /s/c"),
        ("full.t.test:8080/s", "404"),
        ("full.t.test:8080/s/d", "404"),
        ("full.t.test:8080/", "404"),
    ])
}

#[test]
fn teams_whose_names_begin_alike_have_nothing_of_each_other() -> Result<()> {
    let slots = [to_slot("one", "all", &prefix("/team1"), ""), to_slot("ten", "all", &prefix("/team10"), "")];
    let objects = [
        route("shop/slots", WEB, "slots.t.test", &slots),
        route("red/slots", &under_rule("shop/slots", "one"), "", &[own("", "")]),
        route("blue/slots", &under_rule("shop/slots", "ten"), "", &[own("", "")]),
        // The same within one slot.
        route("shop/paths", WEB, "paths.t.test", &[to_slot("s", "all", "", "")]),
        route("red/paths", &under("shop/paths"), "", &[own(&prefix("/team1"), "")]),
        route("blue/paths", &under("shop/paths"), "", &[own(&prefix("/team10"), "")]),
    ];
    let stage = Stage::of(&objects, &[])?;
    for host in ["slots", "paths"] {
        for (path, who) in [("/team1", "red"), ("/team1/0", "red"), ("/team10", "blue"), ("/team10/x", "blue")] {
            stage.expect(&[(&format!("{host}.t.test:8080{path}"), &format!("{who} {path}"))])?;
        }
        for path in ["/team", "/team100", "/team1x"] {
            stage.expect(&[(&format!("{host}.t.test:8080{path}"), "404")])?;
        }
    }
    Ok(())
}

#[test]
fn of_two_children_with_one_match_the_older_serves() -> Result<()> {
    let mut objects = Vec::new();
    for (case, red, blue) in [("first", 2020, 2021), ("second", 2021, 2020), ("equal", 2020, 2020)] {
        let top = format!("shop/{case}");
        objects.push(route(&top, WEB, &format!("{case}.t.test"), &[to_slot("s", "all", "", "")]));
        let child = |id: &str, year| aged(id, year, &under(&top), "", &[own(&prefix("/c"), "")]);
        objects.push(child(&format!("red/{case}"), red));
        objects.push(child(&format!("blue/{case}"), blue));
    }
    Stage::of(&objects, &[])?.expect(&[
        ("first.t.test:8080/c", "red /c"),
        ("second.t.test:8080/c", "blue /c"),
        // Of equal age: by name.
        ("equal.t.test:8080/c", "blue /c"),
    ])
}

//! Which routes attach where: namespaces, sections, several parents, and parents that come and go.

use super::manifests::{WEB, own, prefix, route, to_slot, under, under_rule};
use super::*;

#[test]
fn a_slot_serves_the_namespaces_that_it_admits() -> Result<()> {
    // Name of the case, the slot, the namespace of the child, and whether it is admitted.
    let cases = [
        ("silent-own", "silent", "shop", true),
        ("silent-other", "silent", "red", false),
        ("same-own", "same", "shop", true),
        ("same-other", "same", "red", false),
        ("all-own", "all", "shop", true),
        ("all-other", "all", "red", true),
        ("none-own", "none", "shop", false),
        ("none-other", "none", "red", false),
        ("label-own", "labelled", "shop", true),
        ("label-other", "labelled", "red", true),
        ("label-closed", "labelled", "blue", false),
        ("name-other", "named", "red", true),
        ("name-own", "named", "shop", false),
        ("no-selector", "unselected", "shop", false),
    ];
    let objects = cases.map(|(case, slot, namespace, _)| {
        let top = format!("shop/{case}");
        let rules = [to_slot("s", slot, &prefix("/s"), ""), own("", "")];
        route(&top, WEB, &format!("{case}.t.test"), &rules)
            + &route(&format!("{namespace}/{case}-child"), &under(&top), "", &[own("", "")])
    });
    let stage = Stage::of(&objects, &[])?;
    for (case, _, namespace, admitted) in cases {
        let expected = if admitted { format!("{namespace} /s/x") } else { "500".to_owned() };
        stage.expect(&[
            (&format!("{case}.t.test:8080/s/x"), &expected),
            // The state of the slot does not affect other rules.
            (&format!("{case}.t.test:8080/x"), "shop /x"),
        ])?;
    }
    Ok(())
}

#[test]
fn every_step_depends_on_the_parent_that_has_the_slot() -> Result<()> {
    let tree = |case: &str, leaf: &str| {
        let [top, middle] = [format!("shop/{case}"), format!("red/{case}-middle")];
        route(&top, WEB, &format!("{case}.t.test"), &[to_slot("s", "all", &prefix("/s"), "")])
            + &route(&middle, &under(&top), "", &[to_slot("t", "same", &prefix("/t"), ""), own("", "")])
            + &route(&format!("{leaf}/{case}-leaf"), &under(&middle), "", &[own("", "")])
    };
    let stage = Stage::of(&[tree("inside", "red"), tree("outside", "shop")], &[])?;
    stage.expect(&[
        ("inside.t.test:8080/s/t", "red /s/t"),
        ("inside.t.test:8080/s", "red /s"),
        // To the middle, the namespace of the root is a foreign one like any other.
        ("outside.t.test:8080/s/t", "500"),
        ("outside.t.test:8080/s", "red /s"),
    ])
}

#[test]
fn a_section_names_the_slot_that_serves() -> Result<()> {
    let parent = |case: &str| format!("shop/{case}");
    // Name of the case, the child's parent, and the responses for `/a` and `/b`.
    let cases = [
        ("absent", under(&parent("absent")), "red", "red"),
        ("first", under_rule(&parent("first"), "a"), "red", "500"),
        ("second", under_rule(&parent("second"), "b"), "500", "red"),
        ("unknown", under_rule(&parent("unknown"), "c"), "500", "500"),
        ("plain", under_rule(&parent("plain"), "plain"), "500", "500"),
        ("port", under(&parent("port")).replace('}', ", port: 8080}"), "500", "500"),
    ];
    let rules = [
        to_slot("a", "all", &prefix("/a"), ""),
        to_slot("b", "all", &prefix("/b"), ""),
        own(&prefix("/plain"), "").replacen('{', "{name: plain, ", 1),
    ];
    let mut objects: Vec<String> = cases
        .iter()
        .map(|(case, above, ..)| {
            route(&parent(case), WEB, &format!("{case}.t.test"), &rules)
                + &route(&format!("red/{case}"), above, "", &[own("", "")])
        })
        .collect();
    // Of several slots, those that admit the child apply; a route without one accepts no child.
    let some = [to_slot("a", "same", &prefix("/a"), ""), to_slot("b", "all", &prefix("/b"), "")];
    objects.push(route("shop/some", WEB, "some.t.test", &some));
    objects.push(route("red/some", &under("shop/some"), "", &[own("", "")]));
    objects.push(route("shop/slotless", WEB, "slotless.t.test", &[own("", "")]));
    objects.push(route("red/slotless", &under("shop/slotless"), "", &[own(&prefix("/c"), "")]));
    let stage = Stage::of(&objects, &[])?;
    for (case, _, a, b) in &cases {
        for (path, expected) in [("/a", *a), ("/b", *b), ("/plain", "shop")] {
            let expected = if expected == "500" { expected.to_owned() } else { format!("{expected} {path}") };
            stage.expect(&[(&format!("{case}.t.test:8080{path}"), &expected)])?;
        }
    }
    stage.expect(&[
        ("some.t.test:8080/a", "500"),
        ("some.t.test:8080/b", "red /b"),
        ("slotless.t.test:8080/c", "shop /c"),
    ])
}

#[test]
fn a_child_of_two_parents_is_served_by_each_that_admits_it() -> Result<()> {
    let top = |name: &str, slot: &str| {
        route(&format!("shop/{name}"), WEB, &format!("{name}.t.test"), &[to_slot("s", slot, &prefix("/s"), "")])
    };
    let below = |name: &str, parents: [&str; 2]| {
        route(&format!("red/{name}"), &parents.map(under).join(", "), "", &[own(&prefix("/c"), "")])
    };
    let objects = [
        top("one", "all"),
        top("two", "named"),
        below("both", ["shop/one", "shop/two"]),
        top("open", "all"),
        top("closed", "same"),
        below("half", ["shop/open", "shop/closed"]),
    ];
    let stage = Stage::of(&objects, &[])?;
    stage.expect(&[
        ("one.t.test:8080/s/c", "red /s/c"),
        ("two.t.test:8080/s/c", "red /s/c"),
        // A rejection by one parent does not affect the other.
        ("open.t.test:8080/s/c", "red /s/c"),
        ("closed.t.test:8080/s/c", "500"),
    ])
}

#[test]
fn a_child_waits_for_its_parent_and_goes_with_it() -> Result<()> {
    let parent = route("shop/top", WEB, "late.t.test", &[to_slot("s", "all", &prefix("/s"), "")]);
    let child = route("red/child", &under("shop/top"), "", &[own("", "")]);
    let other = route("shop/other", WEB, "other.t.test", &[own("", "")]);
    let url = "late.t.test:8080/s";
    let stage = Stage::of(&[child.clone(), other.clone()], &[])?;
    let row_is = |there: bool| {
        let told = || stage.status("httproute.red.child").is_some_and(|status| status.contains("name: top")) == there;
        wait_until(&format!("a row of the parent: {there}"), PATIENCE, told)
    };
    stage.expect(&[(url, "404")])?;
    row_is(false)?;
    stage.change(&[child.clone(), other.clone(), parent].concat())?;
    stage.becomes(url, "red /s")?;
    row_is(true)?;
    // Without its parent the child serves nothing, and its row for the parent is removed.
    stage.change(&[child, other].concat())?;
    stage.becomes(url, "404")?;
    row_is(false)?;
    stage.expect(&[("other.t.test:8080/", "shop /")])
}

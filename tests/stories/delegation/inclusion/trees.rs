//! Maximum depth of trees, cycles, and diamonds.

use super::manifests::{WEB, own, prefix, route, to_slot, under};
use super::*;

/// A chain of this many routes on the host `CASE.t.test`, the last of which serves; also returns the prefixes of its
/// slots.
fn chain(case: &str, routes: usize) -> (String, String) {
    let id = |i: usize| format!("shop/{case}-{i}");
    let (mut text, mut path) = (String::new(), String::new());
    for i in 0..routes {
        let (parent, host) =
            if i == 0 { (WEB.to_owned(), format!("{case}.t.test")) } else { (under(&id(i - 1)), String::new()) };
        // Each has a rule of its own next to its slot.
        let mut rules = vec![own(&prefix("/own"), "")];
        if i + 1 == routes {
            rules.push(own("", ""));
        } else {
            rules.push(to_slot("s", "same", &prefix(&format!("/{i}")), ""));
            path += &format!("/{i}");
        }
        text += &route(&id(i), &parent, &host, &rules);
    }
    (text, path)
}

#[test]
fn a_way_of_as_many_routes_as_may_be_serves_and_a_longer_one_does_not() -> Result<()> {
    // With the router's default, and with the minimum and the maximum.
    for (arguments, depth) in
        [(&[][..], 4), (&["--max-inclusion-depth", "2"][..], 2), (&["--max-inclusion-depth", "8"][..], 8)]
    {
        let [(full, to_leaf), (over, too_far)] = [chain("full", depth), chain("over", depth + 1)];
        let stage = Stage::of(&[full, over], arguments)?;
        let last = too_far.rsplit_once('/').map_or("", |(rest, _)| rest);
        for (url, expected) in [
            (format!("full.t.test:8080{to_leaf}/x"), format!("shop {to_leaf}/x")),
            (format!("over.t.test:8080{too_far}/x"), "500".to_owned()),
            // The rest of the chain is unchanged.
            (format!("over.t.test:8080{last}/own"), format!("shop {last}/own")),
            ("over.t.test:8080/own".to_owned(), "shop /own".to_owned()),
        ] {
            stage.expect(&[(&url, &expected)])?;
        }
    }
    Ok(())
}

#[test]
fn cycles_are_cut_where_they_close_and_all_else_serves() -> Result<()> {
    let objects = [
        // A route included in itself.
        route(
            "shop/self",
            &format!("{WEB}, {}", under("shop/self")),
            "self.t.test",
            &[to_slot("s", "same", &prefix("/s"), ""), own("", "")],
        ),
        // Two routes included in each other, reached through a third.
        route("shop/top", WEB, "reached.t.test", &[to_slot("s", "all", &prefix("/s"), "")]),
        route(
            "red/a",
            &format!("{}, {}", under("shop/top"), under("blue/b")),
            "",
            &[to_slot("t", "all", &prefix("/t"), ""), own("", "")],
        ),
        route("blue/b", &under("red/a"), "", &[to_slot("u", "all", &prefix("/u"), ""), own("", "")]),
        // Two routes included in each other, which no Gateway reaches.
        route("shop/c", &under("shop/d"), "lost.t.test", &[to_slot("s", "same", "", ""), own("", "")]),
        route("shop/d", &under("shop/c"), "lost.t.test", &[to_slot("s", "same", "", ""), own("", "")]),
        // Two routes included in each other, one of which is attached to the Gateway.
        route(
            "shop/e",
            &format!("{WEB}, {}", under("shop/f")),
            "rooted.t.test",
            &[to_slot("s", "same", &prefix("/s"), ""), own("", "")],
        ),
        route("shop/f", &under("shop/e"), "", &[to_slot("t", "same", &prefix("/t"), ""), own(&prefix("/own"), "")]),
    ];
    Stage::of(&objects, &[])?.expect(&[
        ("self.t.test:8080/s", "500"),
        ("self.t.test:8080/s/s", "500"),
        ("self.t.test:8080/x", "shop /x"),
        ("reached.t.test:8080/s", "red /s"),
        ("reached.t.test:8080/s/t", "blue /s/t"),
        ("reached.t.test:8080/s/t/u", "500"),
        ("reached.t.test:8080/s/t/u/t", "500"),
        ("reached.t.test:8080/", "404"),
        ("lost.t.test:8080/", "404"),
        ("rooted.t.test:8080/", "shop /"),
        ("rooted.t.test:8080/s/own", "shop /s/own"),
        ("rooted.t.test:8080/s/t", "500"),
        ("rooted.t.test:8080/s/x", "404"),
    ])
}

#[test]
fn a_leaf_below_two_middles_is_served_by_both_ways() -> Result<()> {
    let tree = |case: &str, right: &str| {
        let [top, one, two] = ["", "-left", "-right"].map(|end| format!("shop/{case}{end}"));
        route(&top, WEB, &format!("{case}.t.test"), &[to_slot("s", "all", "", "")])
            + &route(&one, &under(&top), "", &[to_slot("s", "all", &prefix("/left"), "")])
            + &route(&two, &under(&top), "", &[to_slot("s", right, &prefix("/right"), "")])
            + &route(&format!("red/{case}-leaf"), &[under(&one), under(&two)].join(", "), "", &[own(&prefix("/x"), "")])
    };
    Stage::of(&[tree("both", "all"), tree("half", "same")], &[])?.expect(&[
        ("both.t.test:8080/left/x/y", "red /left/x/y"),
        ("both.t.test:8080/right/x/y", "red /right/x/y"),
        ("both.t.test:8080/left/y", "404"),
        ("both.t.test:8080/x", "404"),
        // One path does not admit the leaf, the other one does.
        ("half.t.test:8080/left/x", "red /left/x"),
        ("half.t.test:8080/right/x", "500"),
    ])
}

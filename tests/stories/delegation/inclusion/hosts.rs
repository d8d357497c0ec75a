//! Combined hosts of listener, root, middle and leaf.

use super::manifests::{WEB, own, route, to_slot, under};
use super::*;

/// A chain of three routes with these hosts on a listener; the leaf is in `red`.
fn three(case: &str, listener: &str, [top, middle, leaf]: [&str; 3]) -> String {
    let [first, second] = [format!("shop/{case}"), format!("shop/{case}-middle")];
    route(&first, listener, top, &[to_slot("s", "all", "", "")])
        + &route(&second, &under(&first), middle, &[to_slot("t", "all", "", "")])
        + &route(&format!("red/{case}-leaf"), &under(&second), leaf, &[own("", "")])
}

#[test]
fn any_exact_and_wildcard_hosts_at_each_of_three_levels() -> Result<()> {
    // Every level has no host, one name, or all names below a domain: 27 trees, each with a domain of its own.
    let kinds = ["any", "exact", "wild"];
    let mut cases = Vec::new();
    for top in kinds {
        for middle in kinds {
            for leaf in kinds {
                cases.push([top, middle, leaf]);
            }
        }
    }
    let domain = |levels: &[&str; 3]| format!("{}.t.test", levels.join("-"));
    let trees: Vec<String> = cases
        .iter()
        .map(|levels| {
            let domain = domain(levels);
            let hosts = levels.map(|level| match level {
                "exact" => format!("a.{domain}"),
                "wild" => format!("'*.{domain}'"),
                _ => String::new(),
            });
            three(&levels.join("-"), WEB, [&hosts[0], &hosts[1], &hosts[2]])
        })
        .collect();
    // A root route with every host of the listener would match unclaimed names of other trees, so those run alone.
    let (open, closed): (Vec<_>, Vec<_>) = cases.iter().zip(trees).partition(|(levels, _)| levels[0] == "any");
    let all: Vec<String> = closed.iter().map(|(_, tree)| tree.clone()).collect();
    let stage = Stage::of(&all, &[])?;
    // The leaf serves the name that all levels have in common, and another name if no level has a single one.
    let expected = |levels: &[&str; 3]| {
        let domain = domain(levels);
        let other = if levels.contains(&"exact") { "404" } else { "red /x" };
        [(format!("a.{domain}:8080/x"), "red /x"), (format!("b.{domain}:8080/x"), other)]
    };
    for (levels, _) in &closed {
        expected(levels).iter().try_for_each(|(url, answer)| stage.expect(&[(url, answer)]))?;
    }
    for (levels, tree) in &open {
        stage.change(tree)?;
        // Both: the tree before may have every host.
        expected(levels).iter().try_for_each(|(url, answer)| stage.becomes(url, answer))?;
        expected(levels).iter().try_for_each(|(url, answer)| stage.expect(&[(url, answer)]))?;
    }
    Ok(())
}

#[test]
fn hosts_narrow_and_never_widen() -> Result<()> {
    let any = "{namespace: shop, name: public, sectionName: any}";
    let one = "{namespace: shop, name: public, sectionName: one}";
    let objects = [
        three("nested", WEB, ["'*.nested.t.test'", "'*.a.nested.t.test'", "b.a.nested.t.test"]),
        three("wider", WEB, ["b.a.wider.t.test", "'*.a.wider.t.test'", "'*.wider.t.test'"]),
        three("lists", WEB, ["a.lists.t.test, b.lists.t.test", "b.lists.t.test, c.lists.t.test", ""]),
        three("vanish", WEB, ["'*.vanish.t.test'", "", "a.vanish.other, a.vanish.t.test"]),
        // No host is left for the leaf, or for the middle.
        three("leaf", WEB, ["'*.leaf.t.test'", "b.leaf.t.test", "a.leaf.t.test"]),
        three("middle", WEB, ["a.middle.t.test", "b.middle.t.test", ""]),
        three("apex", WEB, ["apex.t.test", "'*.apex.t.test'", ""]),
        // A listener for every host, and one for a single host.
        three("free", any, ["", "'*.free.test'", "a.free.test, a.free.other"]),
        three("one", one, ["'*.one.t.test'", "", ""]),
    ];
    Stage::of(&objects, &[])?.expect(&[
        ("b.a.nested.t.test:8080/", "red /"),
        ("c.a.nested.t.test:8080/", "404"),
        ("b.nested.t.test:8080/", "404"),
        ("b.a.wider.t.test:8080/", "red /"),
        ("c.a.wider.t.test:8080/", "404"),
        ("c.wider.t.test:8080/", "404"),
        ("b.lists.t.test:8080/", "red /"),
        ("a.lists.t.test:8080/", "404"),
        ("c.lists.t.test:8080/", "404"),
        ("a.vanish.t.test:8080/", "red /"),
        ("b.vanish.t.test:8080/", "404"),
        ("b.leaf.t.test:8080/", "500"),
        ("a.middle.t.test:8080/", "500"),
        ("b.middle.t.test:8080/", "404"),
        ("apex.t.test:8080/", "500"),
        ("a.free.test:8081/", "red /"),
        ("b.free.test:8081/", "404"),
        ("a.free.other:8081/", "404"),
        ("a.one.t.test:8082/", "red /"),
        ("b.one.t.test:8080/", "404"),
        ("a.one.t.test:8080/", "404"),
    ])
}

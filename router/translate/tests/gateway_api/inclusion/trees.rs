//! Depth, cycles and diamonds.

use router_translate::settings::Settings;

use super::{GW, accepted, documents, get, prefix, route, slot, state_of, to, to_slot, under, world};
use crate::world::World;

/// A chain `r0 ▸ r1 ▸ …` of this many routes, the last of which serves.
fn chain(routes: usize, depth: Option<u8>) -> World {
    let mut objects = Vec::new();
    for i in 0..routes {
        let parent = if i == 0 { GW.to_owned() } else { under(&format!("infra/r{}", i - 1)) };
        let slot_name = format!("s{i}");
        let rule = match i + 1 == routes {
            true => to("v1", "", ""),
            false => to_slot(&slot_name, &prefix(&format!("/{i}")), ""),
        };
        objects.push(slot(&format!("infra/{slot_name}"), "Same"));
        objects.push(route(&format!("infra/r{i}"), &parent, "", &[rule]));
    }
    let depth = depth.map(|depth| depth.to_string().parse().unwrap()).unwrap_or_default();
    World::set(&Settings { max_inclusion_depth: depth, ..Settings::default() }, &documents(&objects), [])
}

#[test]
fn a_way_has_so_many_routes_at_most() {
    let path = |slots: usize| (0..slots).map(|i| format!("/{i}")).collect::<String>();
    // The default is 4.
    assert_eq!(get(&chain(4, None), &format!("x.test{}", path(3))), "v1");
    assert_eq!(get(&chain(5, None), &format!("x.test{}", path(4))), "500");
    for depth in 2..=8u8 {
        let routes = usize::from(depth);
        let full = chain(routes, Some(depth));
        assert_eq!(get(&full, &format!("x.test{}", path(routes - 1))), "v1", "{depth}");
        let deep = chain(routes + 1, Some(depth));
        assert_eq!(get(&deep, &format!("x.test{}", path(routes))), "500", "{depth}");
        let why = format!("route {} on the path from infra/gw#http; at most {depth} are allowed", depth + 1);
        let told = accepted(&deep, &format!("infra/r{depth}"), &format!("r{}", depth - 1));
        assert!(told.starts_with("False MaxDepthExceeded: via infra/r0#s0") && told.ends_with(&why), "{told}");
        // With a limit of two, a route is either parent or child.
        let reason = if depth == 2 { "ParentIsChild" } else { "MaxDepthExceeded" };
        let told = state_of(&deep, &format!("infra/s{}", depth - 1));
        assert_eq!(told[1], format!("False {reason}: infra/r{depth}: {why}"));
        assert_eq!(told[2], format!("NotSupported True {reason}: infra/r{depth}: {why}"));
        // The other routes of the chain are not affected.
        assert_eq!(accepted(&deep, "infra/r1", "r0"), "True Accepted: 1 inclusion path");
    }
    assert!("1".parse::<router_translate::settings::MaxDepth>().is_err());
    assert!("9".parse::<router_translate::settings::MaxDepth>().is_err());
}

#[test]
fn a_route_that_is_its_own_child_is_cut_there() {
    let parents = format!("{GW}, {}", under("infra/a"));
    let own = route("infra/a", &parents, "", &[to_slot("s", &prefix("/s"), ""), to("v1", "", "")]);
    let world = world(&[own, slot("infra/s", "Same")]);
    assert_eq!([get(&world, "x.test/s"), get(&world, "x.test/")], ["500", "v1"]);
    let why = "infra/gw#http -> infra/a -> infra/a";
    assert_eq!(accepted(&world, "infra/a", "a"), format!("False InclusionCycle: via infra/a#s: {why}"));
    assert_eq!(
        state_of(&world, "infra/s"),
        [
            "0".to_owned(),
            format!("False InclusionCycle: infra/a: {why}"),
            format!("NotSupported True InclusionCycle: infra/a: {why}"),
        ]
    );
}

#[test]
fn a_cycle_that_is_reached_is_cut_where_it_closes() {
    let top = route("infra/top", GW, "", &[to_slot("s", &prefix("/s"), "")]);
    let a = route(
        "infra/a",
        &format!("{}, {}", under("infra/top"), under("infra/b")),
        "",
        &[to_slot("t", &prefix("/t"), ""), to("v1", "", "")],
    );
    let b = route("infra/b", &under("infra/a"), "", &[to_slot("u", &prefix("/u"), ""), to("v2", "", "")]);
    let world = world(&[top, a, b, slot("infra/s", "Same"), slot("infra/t", "Same"), slot("infra/u", "Same")]);
    for (path, answer) in [("/s", "v1"), ("/s/t", "v2"), ("/s/t/u", "500"), ("/s/t/u/t", "500")] {
        assert_eq!(get(&world, &format!("x.test{path}")), answer, "{path}");
    }
    let why = "infra/gw#http -> infra/top -> infra/a -> infra/b -> infra/a";
    assert_eq!(accepted(&world, "infra/a", "top"), "True Accepted: 1 inclusion path");
    assert_eq!(
        accepted(&world, "infra/a", "b"),
        format!("False InclusionCycle: via infra/top#s ▸ infra/a#t ▸ infra/b#u: {why}")
    );
    assert_eq!(accepted(&world, "infra/b", "a"), "True Accepted: 1 inclusion path");
    // In the row of the listener, the cycle is reported after the valid path.
    assert_eq!(
        accepted(&world, "infra/a", "gw#http"),
        format!("True Accepted: via infra/top#s; not via infra/top#s ▸ infra/a#t ▸ infra/b#u: {why}")
    );
}

#[test]
fn a_cycle_that_no_gateway_reaches_gets_no_status() {
    let a = route("infra/a", &under("infra/b"), "", &[to_slot("s", "", "")]);
    let b = route("infra/b", &under("infra/a"), "", &[to_slot("t", "", "")]);
    let world = world(&[a, b, slot("infra/s", "Same"), slot("infra/t", "Same")]);
    assert_eq!(get(&world, "x.test/"), "404");
    for id in ["infra/a", "infra/b"] {
        assert_eq!(world.status(&format!("HTTPRoute {id}")), serde_json::Value::Null);
    }
    assert_eq!(world.status("RouteSlot infra/s"), serde_json::json!({ "inclusions": [] }));
}

#[test]
fn a_diamond_is_no_cycle() {
    let top = route("infra/top", GW, "", &[to_slot("s", "", "")]);
    let side =
        |id: &str, path: &str, slot: &str| route(id, &under("infra/top"), "", &[to_slot(slot, &prefix(path), "")]);
    let parents = format!("{}, {}", under("infra/left"), under("infra/right"));
    let leaf = route("infra/leaf", &parents, "", &[to("v1", "", "")]);
    let slots = ["s", "l", "r"].map(|name| slot(&format!("infra/{name}"), "Same"));
    let world = world(
        &[&[top, side("infra/left", "/left", "l"), side("infra/right", "/right", "r"), leaf], slots.as_slice()]
            .concat(),
    );
    assert_eq!([get(&world, "x.test/left"), get(&world, "x.test/right"), get(&world, "x.test/")], ["v1", "v1", "404"]);
    for parent in ["left", "right"] {
        assert_eq!(accepted(&world, "infra/leaf", parent), "True Accepted: 1 inclusion path");
    }
    assert_eq!(
        accepted(&world, "infra/leaf", "gw#http"),
        "True Accepted: via infra/top#s ▸ infra/left#l; via infra/top#s ▸ infra/right#r"
    );
}

#[test]
fn a_slot_has_room_for_thousands() {
    let objects = [route("infra/top", GW, "", &[to_slot("s", &prefix("/s"), "")]), slot("infra/s", "Same")];
    for has_host in [false, true] {
        let child = |i: usize| -> serde_json::Value {
            let host = if has_host { format!("h{i}.test") } else { String::new() };
            let rule = to("v1", &prefix(&format!("/{i}")), "");
            serde_saphyr::from_str(&route(&format!("infra/c{i}"), &under("infra/top"), &host, &[rule])).unwrap()
        };
        let world = World::with(&documents(&objects), (0..2000).map(child));
        for i in [0, 1, 998, 1999] {
            assert_eq!(get(&world, &format!("h{i}.test/s/{i}")), "v1", "{i}");
            assert_eq!(get(&world, &format!("h{i}.test/s/{}", i + 2000)), "404", "{i}");
        }
        assert_eq!(get(&world, "other.test/s/1"), if has_host { "404" } else { "v1" });
        assert_eq!(state_of(&world, "infra/s"), ["2000", "True Attached"]);
    }
}

#[test]
fn routes_that_all_name_each_other_come_to_an_end() {
    // Each of 30 routes is a child of all others: the number of paths is astronomical.
    let ids: Vec<String> = (0..30).map(|i| format!("infra/r{i:02}")).collect();
    let mut objects = vec![slot("infra/s", "Same")];
    for id in &ids {
        let others: Vec<_> = ids.iter().filter(|other| *other != id).map(|other| under(other)).collect();
        let parents = format!("{GW}, {}", others.join(", "));
        objects.push(route(id, &parents, "", &[to_slot("s", &prefix("/s"), ""), to("v1", &prefix("/own"), "")]));
    }
    let settings = Settings { max_inclusion_depth: "8".parse().unwrap(), ..Settings::default() };
    let world = World::set(&settings, &documents(&objects), []);
    assert_eq!([get(&world, "x.test/own"), get(&world, "x.test/s/own")], ["v1", "v1"]);
    assert!(accepted(&world, "infra/r00", "r01").starts_with("True PartiallyAccepted"));
}

/// A leaf with these rules at the end of `tops × mids` paths.
fn woven(tops: usize, mids: usize, rules: &[String]) -> World {
    let slots = |of: &str, n: usize| -> Vec<String> {
        (0..n).map(|i| to_slot(&format!("{of}{i}"), &prefix(&format!("/{of}{i}")), "")).collect()
    };
    let mut objects = vec![
        route("infra/top", GW, "", &slots("t", tops)),
        route("infra/mid", &under("infra/top"), "", &slots("m", mids)),
        route("infra/leaf", &under("infra/mid"), "", rules),
    ];
    for (of, n) in [("t", tops), ("m", mids)] {
        objects.extend((0..n).map(|i| slot(&format!("infra/{of}{i}"), "Same")));
    }
    world(&objects)
}

#[test]
fn sixty_four_ways_may_lead_to_a_route() {
    let rules = [to("v1", "", "")];
    let most = woven(8, 8, &rules);
    assert_eq!(accepted(&most, "infra/leaf", "mid"), "True Accepted: 64 inclusion paths");
    assert_eq!(get(&most, "x.test/t7/m7"), "v1");
    let more = woven(13, 5, &rules);
    assert_eq!(accepted(&more, "infra/leaf", "mid"), "True PartiallyAccepted: 64 of 65 inclusion paths");
    assert_eq!([get(&more, "x.test/t0/m0"), get(&more, "x.test/t12/m4")], ["v1", "500"]);
}

#[test]
fn matches_below_a_slot_are_counted_over_all_ways_to_it() {
    let many = |n: usize, at: usize| (0..n).map(|i| prefix(&format!("/r{at}c{i}"))).collect::<Vec<_>>().join(", ");
    let rules = |n: usize| (0..n).map(|at| to("v1", &many(64, at), "")).collect::<Vec<_>>();
    // Eight times 128 matches fit, the ninth does not.
    let fits = woven(8, 1, &rules(2));
    assert_eq!([get(&fits, "x.test/t0/m0/r1c63"), get(&fits, "x.test/t7/m0/r1c63")], ["v1", "v1"]);
    let more = woven(9, 1, &rules(2));
    assert_eq!([get(&more, "x.test/t7/m0/r1c63"), get(&more, "x.test/t8/m0/r1c63")], ["v1", "500"]);
}

//! Depth, cycles and diamonds.

use router_translate::settings::Settings;

use super::{
    GW, accepted, documents, get, prefix, route, route_parent, rule_to_service, rule_to_slot, scenario, slot,
    slot_state,
};
use crate::scenario::Scenario;

/// A chain `r0 ▸ r1 ▸ …` of this many routes, the last of which serves.
fn chain(routes: usize, depth: Option<u8>) -> Scenario {
    let mut objects = Vec::new();
    for i in 0..routes {
        let parent = if i == 0 { GW.to_owned() } else { route_parent(&format!("infra/r{}", i - 1)) };
        let slot_name = format!("s{i}");
        let rule = match i + 1 == routes {
            true => rule_to_service("v1", "", ""),
            false => rule_to_slot(&slot_name, &prefix(&format!("/{i}")), ""),
        };
        objects.push(slot(&format!("infra/{slot_name}"), "Same"));
        objects.push(route(&format!("infra/r{i}"), &parent, "", &[rule]));
    }
    let depth = depth.map(|depth| depth.to_string().parse().unwrap()).unwrap_or_default();
    Scenario::with_settings(&Settings { max_inclusion_depth: depth, ..Settings::default() }, &documents(&objects), [])
}

#[test]
fn the_depth_of_a_path_is_limited() {
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
        let reported = accepted(&deep, &format!("infra/r{depth}"), &format!("r{}", depth - 1));
        assert!(
            reported.starts_with("False MaxDepthExceeded: via infra/r0#s0") && reported.ends_with(&why),
            "{reported}"
        );
        // With a limit of two, a route is either parent or child.
        let reason = if depth == 2 { "ParentIsChild" } else { "MaxDepthExceeded" };
        let reported = slot_state(&deep, &format!("infra/s{}", depth - 1));
        assert_eq!(reported[1], format!("False {reason}: infra/r{depth}: {why}"));
        assert_eq!(reported[2], format!("NotSupported True {reason}: infra/r{depth}: {why}"));
        // The other routes of the chain are not affected.
        assert_eq!(accepted(&deep, "infra/r1", "r0"), "True Accepted: 1 inclusion path");
    }
    assert!("1".parse::<router_translate::settings::MaxDepth>().is_err());
    assert!("9".parse::<router_translate::settings::MaxDepth>().is_err());
}

#[test]
fn a_route_cannot_be_its_own_child() {
    let parents = format!("{GW}, {}", route_parent("infra/a"));
    let own = route("infra/a", &parents, "", &[rule_to_slot("s", &prefix("/s"), ""), rule_to_service("v1", "", "")]);
    let scenario = scenario(&[own, slot("infra/s", "Same")]);
    assert_eq!([get(&scenario, "x.test/s"), get(&scenario, "x.test/")], ["500", "v1"]);
    let why = "infra/gw#http -> infra/a -> infra/a";
    assert_eq!(accepted(&scenario, "infra/a", "a"), format!("False InclusionCycle: via infra/a#s: {why}"));
    assert_eq!(
        slot_state(&scenario, "infra/s"),
        [
            "0".to_owned(),
            format!("False InclusionCycle: infra/a: {why}"),
            format!("NotSupported True InclusionCycle: infra/a: {why}"),
        ]
    );
}

#[test]
fn a_reachable_cycle_is_rejected_where_it_closes() {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", &prefix("/s"), "")]);
    let a = route(
        "infra/a",
        &format!("{}, {}", route_parent("infra/top"), route_parent("infra/b")),
        "",
        &[rule_to_slot("t", &prefix("/t"), ""), rule_to_service("v1", "", "")],
    );
    let b = route(
        "infra/b",
        &route_parent("infra/a"),
        "",
        &[rule_to_slot("u", &prefix("/u"), ""), rule_to_service("v2", "", "")],
    );
    let scenario = scenario(&[top, a, b, slot("infra/s", "Same"), slot("infra/t", "Same"), slot("infra/u", "Same")]);
    for (path, answer) in [("/s", "v1"), ("/s/t", "v2"), ("/s/t/u", "500"), ("/s/t/u/t", "500")] {
        assert_eq!(get(&scenario, &format!("x.test{path}")), answer, "{path}");
    }
    let why = "infra/gw#http -> infra/top -> infra/a -> infra/b -> infra/a";
    assert_eq!(accepted(&scenario, "infra/a", "top"), "True Accepted: 1 inclusion path");
    assert_eq!(
        accepted(&scenario, "infra/a", "b"),
        format!("False InclusionCycle: via infra/top#s ▸ infra/a#t ▸ infra/b#u: {why}")
    );
    assert_eq!(accepted(&scenario, "infra/b", "a"), "True Accepted: 1 inclusion path");
    // In the row of the listener, the cycle is reported after the valid path.
    assert_eq!(
        accepted(&scenario, "infra/a", "gw#http"),
        format!("True Accepted: via infra/top#s; not via infra/top#s ▸ infra/a#t ▸ infra/b#u: {why}")
    );
}

#[test]
fn a_cycle_that_no_gateway_reaches_gets_no_status() {
    let a = route("infra/a", &route_parent("infra/b"), "", &[rule_to_slot("s", "", "")]);
    let b = route("infra/b", &route_parent("infra/a"), "", &[rule_to_slot("t", "", "")]);
    let scenario = scenario(&[a, b, slot("infra/s", "Same"), slot("infra/t", "Same")]);
    assert_eq!(get(&scenario, "x.test/"), "404");
    for id in ["infra/a", "infra/b"] {
        assert_eq!(scenario.status(&format!("HTTPRoute {id}")), serde_json::Value::Null);
    }
    assert_eq!(scenario.status("RouteSlot infra/s"), serde_json::json!({ "inclusions": [] }));
}

#[test]
fn a_diamond_is_not_a_cycle() {
    let top = route("infra/top", GW, "", &[rule_to_slot("s", "", "")]);
    let side = |id: &str, path: &str, slot: &str| {
        route(id, &route_parent("infra/top"), "", &[rule_to_slot(slot, &prefix(path), "")])
    };
    let parents = format!("{}, {}", route_parent("infra/left"), route_parent("infra/right"));
    let leaf = route("infra/leaf", &parents, "", &[rule_to_service("v1", "", "")]);
    let slots = ["s", "l", "r"].map(|name| slot(&format!("infra/{name}"), "Same"));
    let scenario = scenario(
        &[&[top, side("infra/left", "/left", "l"), side("infra/right", "/right", "r"), leaf], slots.as_slice()]
            .concat(),
    );
    assert_eq!(
        [get(&scenario, "x.test/left"), get(&scenario, "x.test/right"), get(&scenario, "x.test/")],
        ["v1", "v1", "404"]
    );
    for parent in ["left", "right"] {
        assert_eq!(accepted(&scenario, "infra/leaf", parent), "True Accepted: 1 inclusion path");
    }
    assert_eq!(
        accepted(&scenario, "infra/leaf", "gw#http"),
        "True Accepted: via infra/top#s ▸ infra/left#l; via infra/top#s ▸ infra/right#r"
    );
}

#[test]
fn a_slot_accepts_thousands_of_children() {
    let objects = [route("infra/top", GW, "", &[rule_to_slot("s", &prefix("/s"), "")]), slot("infra/s", "Same")];
    for has_host in [false, true] {
        let child = |i: usize| -> serde_json::Value {
            let host = if has_host { format!("h{i}.test") } else { String::new() };
            let rule = rule_to_service("v1", &prefix(&format!("/{i}")), "");
            serde_saphyr::from_str(&route(&format!("infra/c{i}"), &route_parent("infra/top"), &host, &[rule])).unwrap()
        };
        let scenario = Scenario::with(&documents(&objects), (0..2000).map(child));
        for i in [0, 1, 998, 1999] {
            assert_eq!(get(&scenario, &format!("h{i}.test/s/{i}")), "v1", "{i}");
            assert_eq!(get(&scenario, &format!("h{i}.test/s/{}", i + 2000)), "404", "{i}");
        }
        assert_eq!(get(&scenario, "other.test/s/1"), if has_host { "404" } else { "v1" });
        assert_eq!(slot_state(&scenario, "infra/s"), ["2000", "True Attached"]);
    }
}

#[test]
fn a_complete_graph_of_routes_terminates() {
    // Each of 30 routes is a child of all others: the number of paths is astronomical.
    let ids: Vec<String> = (0..30).map(|i| format!("infra/r{i:02}")).collect();
    let mut objects = vec![slot("infra/s", "Same")];
    for id in &ids {
        let others: Vec<_> = ids.iter().filter(|other| *other != id).map(|other| route_parent(other)).collect();
        let parents = format!("{GW}, {}", others.join(", "));
        objects.push(route(
            id,
            &parents,
            "",
            &[rule_to_slot("s", &prefix("/s"), ""), rule_to_service("v1", &prefix("/own"), "")],
        ));
    }
    let settings = Settings { max_inclusion_depth: "8".parse().unwrap(), ..Settings::default() };
    let scenario = Scenario::with_settings(&settings, &documents(&objects), []);
    assert_eq!([get(&scenario, "x.test/own"), get(&scenario, "x.test/s/own")], ["v1", "v1"]);
    assert!(accepted(&scenario, "infra/r00", "r01").starts_with("True PartiallyAccepted"));
}

/// A leaf with these rules at the end of `tops × mids` paths.
fn layered(tops: usize, mids: usize, rules: &[String]) -> Scenario {
    let slots = |of: &str, n: usize| -> Vec<String> {
        (0..n).map(|i| rule_to_slot(&format!("{of}{i}"), &prefix(&format!("/{of}{i}")), "")).collect()
    };
    let mut objects = vec![
        route("infra/top", GW, "", &slots("t", tops)),
        route("infra/mid", &route_parent("infra/top"), "", &slots("m", mids)),
        route("infra/leaf", &route_parent("infra/mid"), "", rules),
    ];
    for (of, n) in [("t", tops), ("m", mids)] {
        objects.extend((0..n).map(|i| slot(&format!("infra/{of}{i}"), "Same")));
    }
    scenario(&objects)
}

#[test]
fn paths_to_a_route_are_limited_to_64() {
    let rules = [rule_to_service("v1", "", "")];
    let most = layered(8, 8, &rules);
    assert_eq!(accepted(&most, "infra/leaf", "mid"), "True Accepted: 64 inclusion paths");
    assert_eq!(get(&most, "x.test/t7/m7"), "v1");
    let more = layered(13, 5, &rules);
    assert_eq!(accepted(&more, "infra/leaf", "mid"), "True PartiallyAccepted: 64 of 65 inclusion paths");
    assert_eq!([get(&more, "x.test/t0/m0"), get(&more, "x.test/t12/m4")], ["v1", "500"]);
}

#[test]
fn matches_below_a_slot_are_summed_over_all_paths() {
    let many = |n: usize, at: usize| (0..n).map(|i| prefix(&format!("/r{at}c{i}"))).collect::<Vec<_>>().join(", ");
    let rules = |n: usize| (0..n).map(|at| rule_to_service("v1", &many(64, at), "")).collect::<Vec<_>>();
    // Eight times 128 matches fit, the ninth does not.
    let fits = layered(8, 1, &rules(2));
    assert_eq!([get(&fits, "x.test/t0/m0/r1c63"), get(&fits, "x.test/t7/m0/r1c63")], ["v1", "v1"]);
    let more = layered(9, 1, &rules(2));
    assert_eq!([get(&more, "x.test/t7/m0/r1c63"), get(&more, "x.test/t8/m0/r1c63")], ["v1", "500"]);
}

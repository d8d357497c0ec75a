//! Ids of routers, and shadowed routes.

use router_api::testing::{resources, route};
use serde_json::json;

use super::*;
use crate::settings::Settings;
use crate::translate::translate;

/// `younger<older: schemes` of each shadowed route of a host.
fn shadowed(routes: Vec<serde_json::Value>) -> Vec<String> {
    let table = translate(&resources(routes), &Settings::default()).table;
    let host = table.routers[0].hosts.iter().next().unwrap();
    let name = |route: &ResolvedRoute| route.id.name.to_string();
    let line = |it: &Shadow<'_>| format!("{}<{}: {:?}", name(it.route), name(it.by), it.schemes);
    shadows(host).iter().map(line).collect()
}

#[test]
fn a_shadow_is_reported_once_with_its_schemes() {
    let edge = |insecure: &str| json!({"termination": "edge", "insecureEdgeTerminationPolicy": insecure});
    let of = |id: &str, age: u32, path: &str, tls: serde_json::Value| {
        route(id, age, json!({"host": "h.test", "path": path, "tls": tls}))
    };
    let allow = || edge("Allow");
    let both = vec![of("a/older", 1, "", allow()), of("a/younger", 2, "/", allow())];
    assert_eq!(shadowed(both), ["younger<older: {\"http\", \"https\"}"]);
    let tls_only = vec![of("a/older", 1, "", edge("None")), of("a/younger", 2, "/", edge("None"))];
    assert_eq!(shadowed(tls_only), ["younger<older: {\"https\"}"]);
    let mixed = vec![of("a/older", 1, "", allow()), of("a/younger", 2, "/", json!(null))];
    assert_eq!(shadowed(mixed), ["younger<older: {\"http\"}"]);
    let apart = vec![of("a/older", 1, "", allow()), of("a/younger", 2, "/x", allow())];
    assert_eq!(shadowed(apart), Vec::<String>::new());
}

#[test]
fn shadows_of_different_routes_on_the_two_schemes_are_two() {
    let of = |id: &str, age: u32, path: &str, tls: serde_json::Value| {
        route(id, age, json!({"host": "h.test", "path": path, "tls": tls}))
    };
    // In clear text the oldest route serves; it has no TLS, so over TLS the second one does.
    let allow = || json!({"termination": "edge", "insecureEdgeTerminationPolicy": "Allow"});
    let found = shadowed(vec![of("a/clear", 1, "", json!(null)), of("a/edge", 2, "/", allow())]);
    assert_eq!(found, ["edge<clear: {\"http\"}"]);
}

fn set(names: &[&str]) -> BTreeSet<RouterName> {
    names.iter().map(|name| RouterName((*name).into())).collect()
}

fn ids(names: &[&str]) -> BTreeMap<RouterName, u32> {
    router_ids(&set(names), &BTreeSet::new())
}

#[test]
fn ids_come_from_names_and_are_never_zero_or_equal() {
    let some = ids(&["default", "shard"]);
    let more = ids(&["another", "default", "shard"]);
    for (name, id) in &some {
        assert_eq!(more[name], *id);
        assert_ne!(*id, 0);
    }
    let distinct: BTreeSet<u32> = more.values().copied().collect();
    assert_eq!(distinct.len(), 3);
}

#[test]
fn names_that_collide_get_the_next_id_in_order_of_name() {
    // A known collision of 32-bit FNV-1a.
    let (first, second) = ("costarring", "liquid");
    assert_eq!(fnv1a(first.as_bytes()), fnv1a(second.as_bytes()));
    let ids = ids(&[second, first]);
    assert_eq!(ids[&RouterName(second.into())], ids[&RouterName(first.into())] + 1);
}

#[test]
fn routers_that_are_made_never_change_the_ids_of_others() {
    let (first, second) = ("costarring", "liquid");
    let name = |name: &str| RouterName(name.into());
    let ids = router_ids(&set(&[second]), &set(&[first, second]));
    assert_eq!(ids[&name(second)], fnv1a(second.as_bytes()));
    assert_eq!(ids[&name(first)], fnv1a(second.as_bytes()) + 1);
}

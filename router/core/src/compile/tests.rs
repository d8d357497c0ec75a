//! Ids of routers.

use super::*;

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

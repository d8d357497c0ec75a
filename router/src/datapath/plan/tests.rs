//! Whatever two images: the plan leads from one to the other, and no packet in between meets a contradiction.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use router_common::verdict::Reason;

use super::*;

fn names() -> impl Strategy<Value = (RouteMap, u32, String)> {
    let map = prop_oneof![Just(RouteMap::HttpBe), Just(RouteMap::EdgeReencrypt)];
    (map, 1u32..3, "[ab]\\.test")
}

fn entries() -> impl Strategy<Value = HostEntry> {
    (1u32..6, any::<bool>()).prop_map(|(route, allow_list)| HostEntry {
        route,
        reason: Reason::NeedsProxy,
        allow_list,
        backend: format!("be_http:ns:r{route}"),
    })
}

/// Images as `lower` makes them: passthrough hosts stand in both maps, and routes that entries name have counters.
fn images() -> impl Strategy<Value = MapImage> {
    let listeners = btree_map((0u8..3).prop_map(|n| (Ipv4Addr::new(127, 0, 0, n).into(), 80)), (1u32..3, 1u8..3), 0..3);
    let allow = btree_set((1u32..6).prop_map(|route| (route, [0; 16], 96)), 0..3);
    (listeners, btree_map(names(), entries(), 0..5), vec(("[cd]\\.test", entries()), 0..3), allow).prop_map(
        |(listeners, mut hosts, passthrough, allow)| {
            for (host, entry) in passthrough {
                hosts.insert((RouteMap::TcpBe, 1, host.clone()), entry.clone());
                hosts.insert((RouteMap::SniPassthrough, 1, host), entry);
            }
            let routes: BTreeSet<u32> = hosts.values().map(|entry| entry.route).collect();
            MapImage { listeners, hosts, allow, routes, left_out: 0 }
        },
    )
}

fn assert_consistent(image: &MapImage) {
    for ((map, router, host), entry) in &image.hosts {
        assert!(image.routes.contains(&entry.route), "{host} refers to a route without counters");
        if *map == RouteMap::SniPassthrough {
            let backend = image.hosts.get(&(RouteMap::TcpBe, *router, host.clone()));
            assert!(backend.is_some(), "{host} is listed as passthrough and has no backend");
        }
    }
}

proptest! {
    #[test]
    fn a_plan_leads_from_one_image_to_the_other(now in images(), wanted in images()) {
        let mut image = now.clone();
        for change in plan(&now, &wanted) {
            change.apply_to(&mut image);
            assert_consistent(&image);
        }
        prop_assert_eq!(image, wanted);
    }

    #[test]
    fn a_client_that_both_images_refuse_is_never_admitted(now in images(), wanted in images()) {
        // Whoever has no entry in the allow-list before and after has none in between, so a host entry with the
        // list's flag refuses all along.
        let mut image = now.clone();
        for change in plan(&now, &wanted) {
            change.apply_to(&mut image);
            for entry in &image.allow {
                prop_assert!(now.allow.contains(entry) || wanted.allow.contains(entry));
            }
            for (host, entry) in &image.hosts {
                prop_assert!(now.hosts.get(host) == Some(entry) || wanted.hosts.get(host) == Some(entry));
            }
        }
    }
}

#[test]
fn nothing_to_do_is_no_change() {
    let image = MapImage { routes: BTreeSet::from([1]), ..MapImage::default() };
    assert_eq!(plan(&image, &image), []);
}

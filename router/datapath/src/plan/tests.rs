//! For any two images, the plan leads from one to the other, and all states between are consistent for packets.

use std::net::Ipv4Addr;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use router_common::verdict::Reason;
use router_model::names::RouteId;

use super::*;
use crate::egress_routes::Path;
use crate::image::SlotEntry;

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

fn label(route: u32) -> RouteLabel {
    RouteLabel { router: 1, route: RouteId::of_route("ns", format!("r{route}")) }
}

/// A pool of `version` endpoints. Another version is another pool; `interface` is the interface to each endpoint.
fn add_pool(image: &mut MapImage, route: u32, version: u32, interface: u32) {
    let slots: PoolSlots = (0..version)
        .map(|slot| SlotEntry { endpoint: slot + 1 + route % 2, threshold: u32::MAX, alias: slot })
        .collect();
    for slot in slots.iter() {
        let path = Path { source: Ipv4Addr::LOCALHOST.into(), interface, max_segment: 1460 };
        let address = (Ipv4Addr::LOCALHOST, slot.endpoint as u16).into();
        image.endpoints.insert(slot.endpoint, EndpointEntry { address, path });
    }
    let id = route * 10 + version;
    image.pools.insert(route, PoolEntry { id, slots: version, flags: 0 });
    image.slots.insert(id, slots);
}

/// Images as `lower` makes them: passthrough hosts are in both maps and have pools, and routes of entries have
/// counters.
fn images() -> impl Strategy<Value = MapImage> {
    let listener = (1u32..3, 1u8..3, 0u16..2).prop_map(|(router, protocol, max_segment)| ListenerEntry {
        router,
        protocol,
        is_limited: false,
        max_segment,
    });
    let listeners = btree_map((0u8..3).prop_map(|n| (Ipv4Addr::new(127, 0, 0, n).into(), 80)), listener, 0..3);
    let allow = btree_set((1u32..6).prop_map(|route| (route, [0; 16], 96)), 0..3);
    let passthrough = vec(("[cd]\\.test", entries(), 0u32..4), 0..3);
    (listeners, btree_map(names(), entries(), 0..5), passthrough, allow, 1u32..3).prop_map(
        |(listeners, hosts, passthrough, allow, interface)| {
            let mut image = MapImage { listeners, hosts, allow, ..MapImage::default() };
            for (host, entry, version) in passthrough {
                let entry = HostEntry { reason: Reason::Passthrough, ..entry };
                if !image.pools.contains_key(&entry.route) {
                    add_pool(&mut image, entry.route, version, interface);
                }
                image.hosts.insert((RouteMap::TcpBe, 1, host.clone()), entry.clone());
                image.hosts.insert((RouteMap::SniPassthrough, 1, host), entry);
            }
            image.routes = image.hosts.values().map(|entry| (entry.route, label(entry.route))).collect();
            image.routes.extend(image.pools.keys().map(|route| (*route, label(*route))));
            image
        },
    )
}

fn assert_consistent(image: &MapImage) {
    for ((map, router, host), entry) in &image.hosts {
        assert!(image.routes.contains_key(&entry.route), "{host} refers to a route without counters");
        if *map == RouteMap::SniPassthrough {
            let backend = image.hosts.get(&(RouteMap::TcpBe, *router, host.clone()));
            assert!(backend.is_some(), "{host} is listed as passthrough and has no backend");
        }
        if entry.reason == Reason::Passthrough {
            assert!(image.pools.contains_key(&entry.route), "{host} would be dialed from a pool that is not there");
        }
    }
    for (route, pool) in &image.pools {
        assert!(image.routes.contains_key(route), "a pool of a route without a name");
        let slots = image.slots.get(&pool.id).expect("the pool's slots");
        assert_eq!(slots.len(), pool.slots as usize);
        for slot in slots.iter() {
            assert!(image.endpoints.contains_key(&slot.endpoint), "a slot of pool {} leads nowhere", pool.id);
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
        // A client without an allow-list entry before and after has none in between, so a host entry with the list's
        // flag always rejects it.
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
    let image = MapImage { routes: BTreeMap::from([(1, label(1))]), ..MapImage::default() };
    assert_eq!(plan(&image, &image), []);
}

#[test]
fn a_listener_that_tells_another_size_is_never_away() {
    let listener = |max_segment| ListenerEntry { router: 1, protocol: 2, is_limited: false, max_segment };
    let image = |max_segment| MapImage {
        listeners: BTreeMap::from([((Ipv4Addr::LOCALHOST.into(), 443), listener(max_segment))]),
        ..MapImage::default()
    };
    let changes = plan(&image(1460), &image(1360));
    assert_eq!(changes, [MapWrite::PutListener((Ipv4Addr::LOCALHOST.into(), 443), listener(1360))]);
}

#[test]
fn no_wildcard_has_a_name_that_comes_or_goes() {
    let entry = HostEntry { route: 1, reason: Reason::NeedsProxy, allow_list: false, backend: String::new() };
    let hosts = ["*.w.test", "a.w.test"].map(|host| ((RouteMap::HttpBe, 1, host.to_owned()), entry.clone()));
    let image = MapImage { hosts: hosts.into(), ..MapImage::default() };
    let written = |now: &MapImage, wanted: &MapImage| -> Vec<String> {
        let host = |change| match change {
            MapWrite::PutHost((.., host), _) | MapWrite::RemoveHost((.., host)) => host,
            other => panic!("{other:?}"),
        };
        plan(now, wanted).into_iter().map(host).collect()
    };
    assert_eq!(written(&MapImage::default(), &image), ["a.w.test", "*.w.test"]);
    assert_eq!(written(&image, &MapImage::default()), ["*.w.test", "a.w.test"]);
}

#[test]
fn a_listener_that_serves_something_else_waits_for_what_it_serves() {
    let image = |router, protocol| {
        let entry = ListenerEntry { router, protocol, is_limited: true, max_segment: 1460 };
        let routes = BTreeMap::from([(router, label(router))]);
        MapImage {
            listeners: BTreeMap::from([((Ipv4Addr::LOCALHOST.into(), 443), entry)]),
            routes,
            ..MapImage::default()
        }
    };
    for wanted in [image(2, 2), image(1, 1)] {
        let changes = plan(&image(1, 2), &wanted);
        assert!(matches!(changes.last(), Some(MapWrite::PutListener(..))), "{changes:?}");
    }
    let anew = plan(&MapImage::default(), &image(1, 2));
    assert!(matches!(anew.as_slice(), [MapWrite::AddRoute(..), MapWrite::PutListener(..)]), "{anew:?}");
}

#[test]
fn slots_go_with_their_number() {
    let mut image = MapImage::default();
    add_pool(&mut image, 1, 3, 1);
    let changes = plan(&image, &MapImage::default());
    assert!(changes.contains(&MapWrite::RemoveSlots(13, 3)), "{changes:?}");
}

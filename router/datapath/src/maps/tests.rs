//! Reconciling against maps that fail.

use std::net::Ipv4Addr;

use router_common::verdict::Reason;
use router_model::names::RouteId;

use super::*;
use crate::egress_routes::Path;
use crate::image::MapImage;

/// Maps in memory that reject some writes.
#[derive(Default)]
struct FaultyMaps {
    image: MapImage,
    calls: usize,
    /// Every n-th call fails; 0: none.
    fail_every: usize,
    /// Hosts beyond this many do not fit.
    room: Option<usize>,
    /// A change that always fails.
    refused: Option<MapWrite>,
}

impl Maps for FaultyMaps {
    fn make(&mut self, change: &MapWrite) -> io::Result<()> {
        self.calls += 1;
        if self.fail_every > 0 && self.calls.is_multiple_of(self.fail_every) {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        if self.refused.as_ref() == Some(change) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        let full = self.room.is_some_and(|room| self.image.hosts.len() >= room);
        if let MapWrite::PutHost(key, _) = change
            && full
            && !self.image.hosts.contains_key(key)
        {
            return Err(io::Error::from(io::ErrorKind::ArgumentListTooLong));
        }
        change.apply_to(&mut self.image);
        Ok(())
    }

    fn set_revision(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

fn label(route: u32) -> RouteLabel {
    RouteLabel { router: 1, route: RouteId::of_route("ns", format!("r{route}")) }
}

fn image(hosts: usize) -> MapImage {
    let entry = |route| HostEntry {
        route,
        reason: Reason::NeedsProxy,
        allow_list: false,
        backend: "be_http:ns:name".to_owned(),
    };
    MapImage {
        hosts: (0..hosts).map(|n| ((RouteMap::HttpBe, 1, format!("h{n:04}.test")), entry(n as u32 + 1))).collect(),
        routes: (1..=hosts as u32).map(|route| (route, label(route))).collect(),
        ..MapImage::default()
    }
}

#[test]
fn what_failed_is_tried_again_until_all_is_there() {
    let wanted = image(100);
    let mut maps = FaultyMaps { fail_every: 3, ..FaultyMaps::default() };
    let mut now = MapImage::default();
    let mut attempts = 0;
    loop {
        let undone = reconcile(&mut maps, &mut now, &wanted);
        assert_eq!(now, maps.image, "what is believed to be there is there");
        attempts += 1;
        if undone.failed == 0 {
            break;
        }
        assert!(undone.first.is_some());
        assert!(attempts < 20, "it never ends");
    }
    assert!(attempts > 1);
    assert_eq!(maps.image, wanted);
}

#[test]
fn a_full_map_keeps_what_it_has_and_takes_more_when_there_is_room() {
    let mut maps = FaultyMaps { room: Some(10), ..FaultyMaps::default() };
    let mut now = MapImage::default();
    let undone = reconcile(&mut maps, &mut now, &image(12));
    assert_eq!(undone.failed, 2);
    assert_eq!(maps.image.hosts.len(), 10);

    // The two that did not fit are written once others are removed.
    let mut wanted = image(12);
    wanted.hosts.retain(|(_, _, host), _| host.as_str() >= "h0002.test");
    wanted.routes = wanted.hosts.values().map(|entry| (entry.route, label(entry.route))).collect();
    reconcile(&mut maps, &mut now, &wanted);
    let undone = reconcile(&mut maps, &mut now, &wanted);
    assert_eq!(undone.failed, 0);
    assert_eq!(maps.image, wanted);
}

#[test]
fn an_equal_image_writes_nothing() {
    let wanted = image(10);
    let mut maps = FaultyMaps::default();
    let mut now = MapImage::default();
    reconcile(&mut maps, &mut now, &wanted);
    let calls = maps.calls;
    reconcile(&mut maps, &mut now, &wanted);
    assert_eq!(maps.calls, calls);
}

#[test]
fn a_name_that_does_not_fit_takes_its_wildcard_out_until_both_do() {
    let entry = |route, reason| HostEntry { route, reason, allow_list: false, backend: "be_tcp:ns:name".to_owned() };
    let passthrough = |image: &mut MapImage, host: &str, route| {
        for map in [RouteMap::TcpBe, RouteMap::SniPassthrough] {
            image.hosts.insert((map, 1, host.to_owned()), entry(route, Reason::Passthrough));
        }
        image.routes.insert(route, label(route));
    };
    let mut before = MapImage::default();
    passthrough(&mut before, "*.w.test", 1);
    passthrough(&mut before, "*.other.test", 2);
    let mut wanted = before.clone();
    wanted.hosts.insert((RouteMap::EdgeReencrypt, 1, "edge.w.test".to_owned()), entry(3, Reason::TlsTerminate));
    wanted.routes.insert(3, label(3));

    let mut maps = FaultyMaps { room: Some(4), ..FaultyMaps::default() };
    let mut now = MapImage::default();
    assert_eq!(reconcile(&mut maps, &mut now, &before).failed, 0);
    assert!(reconcile(&mut maps, &mut now, &wanted).failed > 0);
    let hosts: Vec<_> = maps.image.hosts.keys().map(|(_, _, host)| host.as_str()).collect();
    assert_eq!(hosts, ["*.other.test", "*.other.test"], "edge.w.test must not be taken for *.w.test");
    assert_eq!(now, maps.image);

    maps.room = None;
    assert_eq!(reconcile(&mut maps, &mut now, &wanted).failed, 0);
    assert_eq!(maps.image, wanted);
}

#[test]
fn a_wildcard_is_not_written_while_a_name_below_it_cannot_be() {
    let entry = |route| HostEntry { route, reason: Reason::NeedsProxy, allow_list: false, backend: String::new() };
    let key = |map, router, host: &str| (map, router, host.to_owned());
    let (edge, http) = (RouteMap::EdgeReencrypt, RouteMap::HttpBe);
    let mut wanted = MapImage::default();
    for (map, router, host) in [
        (edge, 1, "a.w.test"),
        (edge, 1, "*.w.test"),
        (http, 1, "*.w.test"),
        (http, 2, "*.w.test"),
        (http, 1, "b.test"),
    ] {
        wanted.hosts.insert(key(map, router, host), entry(1));
    }
    let refused = MapWrite::PutHost(key(edge, 1, "a.w.test"), entry(1));
    let mut maps = FaultyMaps { refused: Some(refused.clone()), ..FaultyMaps::default() };
    let mut now = MapImage::default();
    for _ in 0..2 {
        let undone = reconcile(&mut maps, &mut now, &wanted);
        assert_eq!(undone.failed, 3, "the name, and the wildcard in both maps");
        let (first, why) = undone.first.unwrap();
        assert_eq!((first, why.kind()), (refused.clone(), io::ErrorKind::PermissionDenied));
        let hosts: Vec<_> = now.hosts.keys().cloned().collect();
        assert_eq!(hosts, [key(http, 1, "b.test"), key(http, 2, "*.w.test")]);
    }
    maps.refused = None;
    assert_eq!(reconcile(&mut maps, &mut now, &wanted).failed, 0);
    assert_eq!(maps.image, wanted);
}

#[test]
fn a_wildcard_that_cannot_be_removed_is_an_error() {
    let entry = HostEntry { route: 1, reason: Reason::NeedsProxy, allow_list: false, backend: String::new() };
    let key = |host: &str| (RouteMap::HttpBe, 1, host.to_owned());
    let mut maps = FaultyMaps::default();
    let mut now = MapImage::default();
    let mut wanted = MapImage::default();
    wanted.hosts.insert(key("*.w.test"), entry.clone());
    assert_eq!(reconcile(&mut maps, &mut now, &wanted).failed, 0);
    wanted.hosts.insert(key("a.w.test"), entry);
    maps.fail_every = 1;
    assert_eq!(reconcile(&mut maps, &mut now, &wanted).failed, 2);
    assert!(now == maps.image && now.hosts.contains_key(&key("*.w.test")));
}

#[test]
fn what_nothing_refers_to_goes_though_something_else_failed() {
    let mut maps = FaultyMaps::default();
    let mut now = MapImage::default();
    let all = pools(3, 1);
    assert_eq!(reconcile(&mut maps, &mut now, &all).failed, 0);
    // Route 3 keeps its pool, with the pool's slots and endpoints; the others' are removed.
    maps.refused = Some(MapWrite::RemovePool(3));
    assert_eq!(reconcile(&mut maps, &mut now, &MapImage::default()).failed, 4);
    let kept = &now.slots[&1003];
    assert_eq!((now.pools.len(), now.slots.len(), now.endpoints.len()), (1, 1, 2));
    assert!(kept.iter().all(|slot| now.endpoints.contains_key(&slot.endpoint)));
}

/// Routes with a pool of two endpoints each; every other endpoint is shared with the next route. Another `version` has
/// other pools.
fn pools(routes: u32, version: u32) -> MapImage {
    let mut image = MapImage::default();
    for route in 1..=routes {
        image.routes.insert(route, label(route));
        let ids = [route + version, route + version + 1];
        for id in ids {
            let path = Path { source: Ipv4Addr::LOCALHOST.into(), interface: 1, max_segment: 1460 };
            let address = (Ipv4Addr::LOCALHOST, id as u16).into();
            image.endpoints.insert(id, EndpointEntry { address, path });
        }
        let pool = 1000 * version + route;
        image.slots.insert(pool, ids.map(|endpoint| SlotEntry { endpoint, threshold: u32::MAX, alias: 0 }).into());
        image.pools.insert(route, PoolEntry { id: pool, slots: 2, flags: 0 });
    }
    image
}

#[test]
fn whatever_fails_no_pool_has_a_slot_that_leads_nowhere() {
    for fail_every in [2, 3, 5, 7] {
        let mut maps = FaultyMaps { fail_every, ..FaultyMaps::default() };
        let mut now = MapImage::default();
        for wanted in [pools(20, 1), pools(20, 2), pools(5, 9), MapImage::default()] {
            let mut attempts = 0;
            while reconcile(&mut maps, &mut now, &wanted).failed > 0 {
                assert_eq!(now, maps.image);
                for pool in now.pools.values() {
                    let slots = now.slots.get(&pool.id).expect("the pool's slots are there");
                    assert!(slots.iter().all(|slot| now.endpoints.contains_key(&slot.endpoint)), "{pool:?}");
                }
                attempts += 1;
                assert!(attempts < 100, "it never ends");
            }
            assert_eq!(maps.image, wanted);
            assert!(attempts > 0, "nothing failed");
        }
    }
}

#[test]
fn names_of_routes_are_read_back_as_they_were_written_or_not_at_all() {
    let long = "n".repeat(253);
    let space = "s".repeat(63);
    let ids = [
        RouteId::of_route("shop", "cart"),
        RouteId::of_route(space.as_str(), long.as_str()),
        RouteId { kind: router_model::kind::Kind::TlsRoute, part: 12, ..RouteId::of_route("shop", "cart") },
    ];
    let written = |route: &RouteId| {
        let name = route_name(&RouteLabel { router: 1, route: route.clone() });
        router_common::hostname::field_text(&name.name).to_owned()
    };
    for id in &ids {
        assert_eq!(RouteId::parse(&written(id)).as_ref(), Some(id));
    }
    let too_long = |part| RouteId { kind: router_model::kind::Kind::TlsRoute, part, ..ids[1].clone() };
    let text = written(&too_long(12));
    assert_eq!((text.len(), RouteId::parse(&text)), (router_common::maps::ROUTE_NAME_FIELD, None));
    for bad in ["", "cart", "TLSRoute:shop/cart", "TLSRoute:shop/cart:x", "Route:shop/cart:0", "Nothing:shop/cart:0"] {
        assert_eq!(RouteId::parse(bad), None, "{bad}");
    }
}

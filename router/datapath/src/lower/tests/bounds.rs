//! Counts, entries that do not fit, and listeners left to the agent.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::*;
use crate::image::PoolEntry;
use crate::net_keys::Net;
use crate::obstacles::AgentAlone;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn entry(route: u32) -> HostEntry {
    HostEntry { route, reason: Reason::NeedsProxy, allow_list: false, backend: String::new() }
}

fn hosts(names: impl IntoIterator<Item = String>, route: u32) -> BTreeMap<HostName, HostEntry> {
    names.into_iter().map(|name| ((RouteMap::HttpBe, 1, name), entry(route))).collect()
}

fn allow(route: u32, networks: usize) -> BTreeSet<Net> {
    (0..networks as u128).map(|network| (route, network.to_be_bytes(), 128)).collect()
}

fn listeners(addresses: &[(IpAddr, u16)]) -> BTreeMap<(IpAddr, u16), ListenerEntry> {
    let entry = ListenerEntry { router: 1, protocol: PROTOCOL_TLS, is_limited: false, max_segment: 1460 };
    addresses.iter().map(|address| (*address, entry)).collect()
}

#[test]
fn what_connections_are_decided_by_is_counted() {
    let image = MapImage {
        listeners: listeners(&[(V4, 443), (V6, 443)]),
        hosts: hosts(["a.test", "b.test", "c.test"].map(str::to_owned), 1),
        allow: allow(1, 5),
        ..MapImage::default()
    };
    assert_eq!((image.len(), image.is_empty()), (10, false));
    let labels = BTreeMap::from([(1, RouteLabel { router: 1, route: RouteId::of_route("shop", "a") })]);
    let image = MapImage { routes: labels, ..MapImage::default() };
    assert_eq!((image.len(), image.is_empty()), (0, true), "nothing leads to the route");
}

#[test]
fn every_map_is_looked_through_for_the_highest_route() {
    let label = |id| (id, RouteLabel { router: 1, route: RouteId::of_route("shop", "a") });
    let pool = |id| (id, PoolEntry { id: 99, slots: 0, flags: 0 });
    let empty = MapImage::default;
    assert_eq!(empty().highest_route(), 0);
    for image in [
        MapImage { hosts: hosts(["a.test".to_owned()], 7), allow: allow(6, 1), ..empty() },
        MapImage { hosts: hosts(["a.test".to_owned()], 6), allow: allow(7, 1), ..empty() },
        MapImage { allow: allow(6, 1), routes: BTreeMap::from([label(5), label(7)]), ..empty() },
        MapImage { routes: BTreeMap::from([label(6)]), pools: BTreeMap::from([pool(7)]), ..empty() },
    ] {
        assert_eq!(image.highest_route(), 7);
    }
}

#[test]
fn there_is_room_up_to_the_maps_size() {
    let name = |n: usize| format!("h{n}.test");
    let (one, two) = (hosts([name(0)], 1), hosts([name(0), name(1)], 1));
    let full = MapImage { hosts: hosts((0..MAX_HOSTS - 1).map(name), 1), ..MapImage::default() };
    assert!(full.has_room_for(&MapImage { hosts: one, ..MapImage::default() }));
    assert!(!full.has_room_for(&MapImage { hosts: two, ..MapImage::default() }));
    let full = MapImage { allow: allow(1, MAX_ALLOW - 1), ..MapImage::default() };
    assert!(full.has_room_for(&MapImage { allow: allow(2, 1), ..MapImage::default() }));
    assert!(!full.has_room_for(&MapImage { allow: allow(2, 2), ..MapImage::default() }));
}

#[test]
fn the_last_hosts_by_name_stay_out_of_all_maps_with_their_wildcards() {
    let names = (0..MAX_HOSTS).map(|n| format!("h{n:06}.a.test"));
    let mut image = MapImage { hosts: hosts(names, 1), ..MapImage::default() };
    for (map, name) in [
        (RouteMap::HttpBe, "last.z.test"),
        (RouteMap::EdgeReencrypt, "last.z.test"),
        (RouteMap::EdgeReencrypt, "*.z.test"),
        (RouteMap::EdgeReencrypt, "fits.y.test"),
    ] {
        image.hosts.insert((map, 1, name.to_owned()), entry(1));
    }
    cut_to_size(&mut image);
    assert_eq!((image.hosts.len(), image.left_out), (MAX_HOSTS + 1, 3));
    let left: Vec<_> = image.hosts.keys().filter(|(map, ..)| *map == RouteMap::EdgeReencrypt).collect();
    assert_eq!(left, [&(RouteMap::EdgeReencrypt, 1, "fits.y.test".to_owned())]);
}

#[test]
fn a_route_whose_list_does_not_fit_has_none_of_it_and_no_host() {
    let mut image = MapImage { allow: allow(1, MAX_ALLOW - 1), ..MapImage::default() };
    image.allow.extend(allow(2, 2));
    for (name, route) in [("fits.test", 1), ("cut.test", 2), ("no-list.test", 3)] {
        image.hosts.extend(hosts([name.to_owned()], route));
    }
    cut_to_size(&mut image);
    assert_eq!((image.allow.len(), image.left_out), (MAX_ALLOW - 1, 1));
    let left: Vec<_> = image.hosts.keys().map(|(.., name)| name.as_str()).collect();
    assert_eq!(left, ["fits.test", "no-list.test"]);
}

#[test]
fn a_listener_that_is_relayed_is_reported_with_the_reason() {
    let mut image = MapImage { listeners: listeners(&[(V4, 443), (V6, 443)]), ..MapImage::default() };
    image.leave_to_agent(|address| address.is_ipv4().then(|| AgentAlone::HostRule("a rule".into())));
    assert_eq!(image.listeners, listeners(&[(V6, 443)]));
    let unsteered = Unsteered { router: 1, protocol: PROTOCOL_TLS, why: AgentAlone::HostRule("a rule".into()) };
    assert_eq!(image.unsteered, BTreeMap::from([((V4, 443), unsteered)]));
}

//! Segment sizes, the cache of routes, and obstacles.

use std::cell::Cell;
use std::collections::BTreeSet;

use super::*;
use crate::netfilter::firewall::Firewall;

fn hop(source: &str, interface: u32, mtu: Option<u32>) -> RouteLookup {
    RouteLookup { source: source.parse().unwrap(), interface, mtu, encapsulated: false, gateway: None }
}

#[test]
fn a_segment_is_what_the_headers_leave_of_the_smaller_mtu() {
    let attached = BTreeMap::from([(1, 65_536), (2, 1500), (3, 290)]);
    let segment = |hop| usable(hop, &attached).map(|path| path.max_segment);
    assert_eq!(segment(hop("10.0.0.1", 2, None)), Ok(1460));
    assert_eq!(segment(hop("fd00::1", 2, None)), Ok(1440));
    assert_eq!(segment(hop("10.0.0.1", 2, Some(1400))), Ok(1360));
    assert_eq!(segment(hop("10.0.0.1", 2, Some(9000))), Ok(1460));
    assert_eq!(segment(hop("127.0.0.1", 1, None)), Ok(65_496));
    assert_eq!(segment(hop("10.0.0.1", 1, Some(u32::MAX))), Ok(65_496));
    assert_eq!(segment(hop("10.0.0.1", 3, None)), Err(Obstacle::SmallMtu));
    assert_eq!(segment(hop("10.0.0.1", 4, None)), Err(Obstacle::Interface));
    assert_eq!(segment(hop("10.0.0.1", 2, Some(296))), Ok(256));
    assert_eq!(segment(hop("10.0.0.1", 2, Some(295))), Err(Obstacle::SmallMtu));
    assert_eq!(segment(RouteLookup { encapsulated: true, ..hop("10.0.0.1", 2, None) }), Err(Obstacle::Encapsulated));
}

#[test]
fn a_cache_looks_up_once_and_reports_changes() {
    let asked = Cell::new(0);
    let mut cache = PathCache::new(|to: SocketAddr| {
        asked.set(asked.get() + 1);
        Ok(Path { source: to.ip(), interface: 1, max_segment: 1460 })
    });
    let (a, b) = (SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 0, 2], 80)));
    for _ in 0..3 {
        assert_eq!(cache.path(a).map(|path| path.max_segment), Ok(1460));
        assert!(cache.path(b).is_ok());
    }
    assert_eq!(asked.get(), 2);
    cache.begin_round();
    assert!(cache.path(a).is_ok());
    cache.end_round();
    assert_eq!((cache.known(), asked.get()), (vec![a], 2), "the other is forgotten");
    let ways = |max_segment| {
        let way = Ok(Path { source: a.ip(), interface: 1, max_segment });
        HashMap::from([(a, way), (b, Err(Obstacle::NoRoute))])
    };
    assert!(!cache.renew(ways(1460), true));
    assert!(cache.renew(ways(1360), true));
    assert!(!cache.renew(HashMap::new(), false));
    assert_eq!(asked.get(), 2, "all of that was told");
    assert_eq!(cache.path(a).map(|path| path.max_segment), Ok(1360));
    assert!(cache.renew(HashMap::new(), true), "it is as it was at first");
}

#[test]
fn a_cache_tells_when_it_knows_too_much() {
    let mut cache = PathCache::new(|_: SocketAddr| Err(Obstacle::NoRoute));
    let address = |n: u32| SocketAddr::from((n.to_be_bytes(), 80));
    cache.begin_round();
    (0..100).for_each(|n| assert!(cache.path(address(n)).is_err()));
    cache.end_round();
    (0..(STALE + 200) as u32).for_each(|n| assert!(cache.path(address(n)).is_err()));
    assert!(!cache.is_stale());
    assert!(cache.path(address(1 << 20)).is_err());
    assert!(cache.is_stale());
    cache.begin_round();
    cache.end_round();
    assert!(!cache.is_stale());
}

/// Looks up the route to a loopback address in the namespace of the test run; changes nothing there.
#[test]
fn obstacles_of_a_dial_are_reported() {
    let mut paths = KernelPaths::new(Netlink::open().unwrap());
    let endpoint = SocketAddr::from(([127, 0, 0, 9], 80));
    assert_eq!(paths.path(endpoint), Err(Obstacle::Interface), "nothing is attached");
    let found = paths.netlink().interfaces().unwrap();
    let index = found.attachable["lo"];
    paths.attached = BTreeMap::from([(index, 1500)]);
    let path = paths.path(endpoint).unwrap();
    assert_eq!((path.interface, path.max_segment, path.source.is_loopback()), (index, 1460, true));

    let with = |firewall| Arc::new(HostState { firewall: Some(Arc::new(firewall)), ..HostState::default() });
    paths.follow(with(Firewall::default()));
    assert_eq!(paths.path(endpoint), Ok(path));
    // Verdicts of rules are computed again after the rules have changed.
    paths.follow(with(Firewall::unread("it cannot be read")));
    assert_eq!(paths.path(endpoint), Err(Obstacle::HostRule("it cannot be read".into())));
}

#[test]
fn each_obstacle_is_distinguished() {
    use Obstacle::{Encapsulated, Interface, Ipsec, IpsecBack, IpsecDefault, NoRoute, OtherRoute, SmallMtu, Unknown};
    let rule = Obstacle::HostRule("table inet f".into());
    let all = [NoRoute, Interface, Encapsulated, Ipsec, IpsecBack, IpsecDefault, OtherRoute, SmallMtu, Unknown, rule];
    let texts: BTreeSet<&str> = all.iter().map(Obstacle::text).collect();
    assert_eq!(texts.len(), all.len());
}

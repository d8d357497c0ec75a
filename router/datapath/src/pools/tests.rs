//! Ids of pools and endpoints through changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use router_listener::{BindState, Protocol};
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouteId, RouterName};
use router_table::table::{Cluster, RouteKind, WeightedService};

use super::*;
use crate::plan::plan;
use crate::testing::{endpoints, key};

/// Denotes a route that only the relay can use.
const TOO_SMALL: u16 = 0;

/// Maximum segment sizes by the last byte of the address; other addresses have no route.
type Ways = Rc<RefCell<BTreeMap<u8, u16>>>;

fn pools(ways: &Ways) -> Pools<impl Paths + use<>> {
    let ways = Rc::clone(ways);
    Pools::new(move |to: SocketAddr| {
        let IpAddr::V4(to) = to.ip() else { return Err(Obstacle::NoRoute) };
        let max_segment = *ways.borrow().get(&to.octets()[3]).ok_or(Obstacle::NoRoute)?;
        if max_segment == TOO_SMALL {
            return Err(Obstacle::SmallMtu);
        }
        Ok(Path { source: Ipv4Addr::LOCALHOST.into(), interface: 1, max_segment })
    })
}

fn all_ways() -> Ways {
    Rc::new(RefCell::new((0..=255).map(|host| (host, 1460)).collect()))
}

fn route(services: &[(u16, &[u8])]) -> ResolvedRoute {
    let services = services.iter().map(|(weight, hosts)| WeightedService {
        service: "web".into(),
        port: None,
        weight: u32::from(*weight),
        policy: None,
        key: Some(key(&hosts.iter().map(|host| format!("10.0.0.{host}:8443")).collect::<Vec<_>>())),
    });
    ResolvedRoute {
        id: RouteId::of_route("ns", "r"),
        host: HostMatch::Exact(Hostname::parse("a.test").unwrap()),
        kind: RouteKind::Passthrough { redirect: false },
        cluster: Cluster { services: services.collect::<Vec<_>>().into() },
        rare: None,
        proxy_protocol: false,
        forwarded: Default::default(),
        request_work: false,
        is_plain: false,
        relay_only: false,
        policy: Arc::default(),
        rule: None,
        derived: Default::default(),
    }
}

fn put(pools: &mut Pools<impl Paths>, id: u32, route: &ResolvedRoute) {
    pools.put(id, route, &endpoints(route));
}

fn image(pools: &mut Pools<impl Paths>) -> MapImage {
    let mut image = MapImage::default();
    pools.fill(&mut image);
    image
}

/// Shares of a route's pool, of 1, by the last byte of the endpoint's address.
fn shares(image: &MapImage, route: u32) -> BTreeMap<u8, f64> {
    let slots = &image.slots[&image.pools[&route].id];
    let mut shares = BTreeMap::new();
    for slot in slots.iter() {
        let own = if slot.threshold == u32::MAX { 1.0 } else { f64::from(slot.threshold) / 2_f64.powi(32) };
        for (slot, share) in [(slot, own), (&slots[slot.alias as usize], 1.0 - own)] {
            let IpAddr::V4(ip) = image.endpoints[&slot.endpoint].address.ip() else { panic!("IPv4 only") };
            *shares.entry(ip.octets()[3]).or_insert(0.0) += share / slots.len() as f64;
        }
    }
    shares
}

#[test]
fn endpoints_get_their_services_weight_and_one_slot_each() {
    let mut pools = pools(&all_ways());
    put(&mut pools, 1, &route(&[(3, &[1]), (1, &[2, 3])]));
    // Endpoint 1 belongs to two services: it has the sum of both shares.
    put(&mut pools, 2, &route(&[(1, &[1, 2]), (1, &[1, 3])]));
    let image = image(&mut pools);
    let close = |a: f64, b: f64| (a - b).abs() < 0.01;
    let first = shares(&image, 1);
    assert!(close(first[&1], 0.75) && close(first[&2], 0.125) && close(first[&3], 0.125), "{first:?}");
    let second = shares(&image, 2);
    assert!(close(second[&1], 0.5) && close(second[&2], 0.25), "{second:?}");
    assert_eq!((image.pools[&2].slots, image.endpoints.len()), (3, 3));
}

#[test]
fn a_route_with_an_endpoint_that_the_relay_alone_reaches_is_relayed() {
    let ways = all_ways();
    let mut pools = pools(&ways);
    ways.borrow_mut().insert(2, TOO_SMALL);
    for id in [1, 2] {
        put(&mut pools, id, &route(&[(1, &[1]), (1, &[2])]));
    }
    let endpoint = (Ipv4Addr::new(10, 0, 0, 2), 8443).into();
    let why = RelayReason { endpoint, obstacle: Obstacle::SmallMtu };
    assert_eq!(**pools.relayed(), BTreeMap::from([(1, why.clone()), (2, why)]));
    let relayed = image(&mut pools);
    assert_eq!((relayed.pools[&1].slots, relayed.endpoints.len()), (0, 0), "its share is not the other endpoint's");
    pools.remove(2);
    ways.borrow_mut().remove(&2);
    put(&mut pools, 1, &route(&[(1, &[1]), (1, &[2])]));
    assert!(pools.relayed().is_empty());
    assert_eq!(shares(&image(&mut pools), 1), BTreeMap::from([(1, 1.0)]), "nobody reaches the other one");
}

#[test]
fn rules_have_their_shares_as_good_as_exact() {
    let mut of_rule = route(&[(0, &[1]), (0, &[2, 3]), (0, &[4])]);
    of_rule.id.kind = Kind::TlsRoute;
    for (service, weight) in of_rule.cluster.services.iter_mut().zip([899_999, 100_000, 1]) {
        service.weight = weight;
    }
    let mut pools = pools(&all_ways());
    put(&mut pools, 1, &of_rule);
    let found = shares(&image(&mut pools), 1);
    for (endpoint, due) in [(1, 0.899_999), (2, 0.05), (3, 0.05), (4, 0.000_001)] {
        assert!((found[&endpoint] / due - 1.0).abs() < 0.01, "{endpoint}: {found:?}");
    }
}

#[test]
fn an_endpoint_has_one_id_as_long_as_any_route_has_it() {
    let mut pools = pools(&all_ways());
    let id = |image: &MapImage, host: u8| {
        let found = image.endpoints.iter().find(|(_, entry)| entry.address.ip() == Ipv4Addr::new(10, 0, 0, host));
        found.map(|(id, _)| *id)
    };
    put(&mut pools, 1, &route(&[(1, &[1, 2])]));
    put(&mut pools, 2, &route(&[(1, &[2, 3])]));
    let first = image(&mut pools);
    pools.remove(1);
    let second = image(&mut pools);
    assert_eq!((id(&second, 1), id(&second, 2)), (None, id(&first, 2)));
    put(&mut pools, 1, &route(&[(1, &[1])]));
    let third = image(&mut pools);
    assert!(id(&third, 1) > id(&first, 3), "an id is never given again");
    assert_ne!(third.pools[&1].id, first.pools[&1].id);
    assert_eq!(third.pools[&2], first.pools[&2]);
}

#[test]
fn without_a_way_there_is_no_slot_and_the_pool_says_so() {
    let ways = all_ways();
    let mut pools = pools(&ways);
    ways.borrow_mut().remove(&1);
    put(&mut pools, 1, &route(&[(1, &[1, 2])]));
    assert_eq!(shares(&image(&mut pools), 1).keys().copied().collect::<Vec<_>>(), [2]);
    ways.borrow_mut().clear();
    put(&mut pools, 1, &route(&[(1, &[1, 2])]));
    let none = image(&mut pools);
    assert_eq!((none.pools[&1].slots, none.endpoints.len(), pools.max_segment()), (0, 0, 0));
}

#[test]
fn the_smallest_segment_follows_the_endpoints() {
    let ways = all_ways();
    let mut pools = pools(&ways);
    put(&mut pools, 1, &route(&[(1, &[1])]));
    ways.borrow_mut().insert(2, 1360);
    put(&mut pools, 2, &route(&[(1, &[1, 2])]));
    assert_eq!(pools.max_segment(), 1360);
    ways.borrow_mut().insert(2, 8960);
    put(&mut pools, 2, &route(&[(1, &[1, 2])]));
    assert_eq!(pools.max_segment(), 1460);
    pools.remove(1);
    put(&mut pools, 2, &route(&[(1, &[2])]));
    assert_eq!(pools.max_segment(), 8960);
}

#[test]
fn a_new_agent_goes_on_with_the_same_ids() {
    let ways = all_ways();
    let (mut old, mut new) = (pools(&ways), pools(&ways));
    for (id, hosts) in [(1, &[1, 2][..]), (2, &[2, 3])] {
        put(&mut old, id, &route(&[(1, hosts)]));
    }
    let left = image(&mut old);
    new.adopt(&left, 77);
    assert_eq!(new.max_segment(), 1460);
    for (id, hosts) in [(1, &[1, 2][..]), (2, &[2, 3])] {
        put(&mut new, id, &route(&[(1, hosts)]));
    }
    assert_eq!(image(&mut new), left, "nothing is to be written");
    put(&mut new, 3, &route(&[(1, &[9])]));
    let more = image(&mut new);
    assert_eq!(more.endpoints.keys().next_back(), Some(&78), "a connection still names endpoint 77");
    assert!(!left.slots.contains_key(&more.pools[&3].id));
}

#[test]
fn a_pool_that_was_left_unfinished_is_made_anew() {
    let ways = all_ways();
    let (mut old, mut new) = (pools(&ways), pools(&ways));
    put(&mut old, 1, &route(&[(1, &[1, 2])]));
    let mut left = image(&mut old);
    let endpoint = *left.endpoints.keys().next().unwrap();
    left.endpoints.remove(&endpoint);
    new.adopt(&left, 0);
    put(&mut new, 1, &route(&[(1, &[1, 2])]));
    let made = image(&mut new);
    assert!(made.pools[&1].id > left.pools[&1].id);
    assert_eq!(shares(&made, 1).len(), 2);
}

/// A step's change of one route: its endpoints; `None` removes it.
fn steps() -> impl Strategy<Value = Vec<(u32, Option<Vec<u8>>)>> {
    vec((1u32..4, proptest::option::of(vec(0u8..6, 0..4))), 1..20)
}

proptest! {
    #[test]
    fn the_journal_leads_to_the_whole(steps in steps(), lost in vec((0u8..6, prop_oneof![Just(None), Just(Some(1300u16)), Just(Some(1460))]), 20)) {
        let ways = all_ways();
        let mut pools = pools(&ways);
        let mut image = MapImage::default();
        let mut ever: BTreeMap<u32, PoolSlots> = BTreeMap::new();
        for ((route_id, hosts), (host, way)) in steps.into_iter().zip(lost) {
            match way {
                Some(segment) => drop(ways.borrow_mut().insert(host, segment)),
                None => drop(ways.borrow_mut().remove(&host)),
            }
            match hosts {
                Some(hosts) => put(&mut pools, route_id, &route(&[(1, &hosts)])),
                None => pools.remove(route_id),
            }
            let (mut gone, mut come) = (MapImage::default(), MapImage::default());
            pools.changes(&mut gone, &mut come);
            plan(&gone, &come).iter().for_each(|change| change.apply_to(&mut image));
            let mut whole = MapImage::default();
            pools.fill(&mut whole);
            prop_assert_eq!(&image, &whole);
            for (id, slots) in &image.slots {
                prop_assert!(ever.entry(*id).or_insert_with(|| slots.clone()) == slots, "pool {} was given twice", id);
            }
            let smallest = image.endpoints.values().map(|entry| entry.path.max_segment).min();
            prop_assert_eq!(pools.max_segment(), smallest.unwrap_or_default());
        }
    }
}

#[test]
fn the_agent_gets_dial_events_where_it_needs_the_name() {
    let mut pools = pools(&all_ways());
    let any = || HostMatch::Wildcard(Hostname::parse("w.test").unwrap());
    put(&mut pools, 1, &route(&[(1, &[1])]));
    put(&mut pools, 2, &ResolvedRoute { host: any(), ..route(&[(1, &[1])]) });
    put(&mut pools, 3, &ResolvedRoute { host: any(), proxy_protocol: true, ..route(&[(1, &[1])]) });
    let image = image(&mut pools);
    let flags: Vec<_> = image.pools.values().map(|pool| pool.flags).collect();
    assert_eq!(flags, [0, POOL_TOLD, POOL_PROXY_V2 | POOL_TOLD]);
}

#[test]
fn what_would_lead_back_to_the_router_has_no_slot() {
    let listener = |address: &str| ListenerState {
        router: RouterName("default".into()),
        router_id: 1,
        protocol: Protocol::Https,
        address: address.parse().unwrap(),
        state: BindState::Bound,
    };
    let mut pools = pools(&all_ways());
    pools.set_own(&[listener("0.0.0.0:8443"), listener("10.0.0.2:8443")], &[Ipv4Addr::new(10, 0, 0, 1).into()]);
    put(&mut pools, 1, &route(&[(1, &[1, 2, 3])]));
    assert_eq!(shares(&image(&mut pools), 1), BTreeMap::from([(3, 1.0)]), "this host's address, and a listener's own");
    let mut loopback = route(&[(1, &[3])]);
    loopback.cluster.services[0].key = Some(key(&["127.0.0.9:8443".to_owned()]));
    put(&mut pools, 1, &loopback);
    assert!(image(&mut pools).endpoints.is_empty());
    pools.set_own(&[listener("0.0.0.0:443")], &[Ipv4Addr::new(10, 0, 0, 1).into()]);
    put(&mut pools, 1, &loopback);
    assert_eq!(image(&mut pools).endpoints.len(), 1, "another port");
}

#[test]
fn pools_of_routes_that_are_not_wanted_go() {
    let mut pools = pools(&all_ways());
    [1, 2, 3].into_iter().for_each(|id| put(&mut pools, id, &route(&[(1, &[id as u8])])));
    pools.retain(&[2].into());
    let image = image(&mut pools);
    assert_eq!(image.pools.keys().copied().collect::<Vec<_>>(), [2]);
    assert_eq!((image.slots.len(), image.endpoints.len()), (1, 1));
}

#[test]
fn an_adopted_pool_is_let_go_like_any_other() {
    let ways = all_ways();
    let (mut old, mut new) = (pools(&ways), pools(&ways));
    put(&mut old, 1, &route(&[(1, &[1, 2])]));
    let mut left = image(&mut old);
    // An endpoint without a pool was left, too.
    let path = left.endpoints.values().next().unwrap().path;
    left.endpoints.insert(9, EndpointEntry { address: (Ipv4Addr::new(10, 0, 0, 9), 1).into(), path });
    new.adopt(&left, 0);
    assert_eq!(image(&mut new), image(&mut old));
    new.remove(1);
    assert_eq!((image(&mut new), new.max_segment()), (MapImage::default(), 0));
}

#[test]
fn endpoints_that_the_map_has_no_room_for_are_relayed() {
    let mut pools = pools(&all_ways());
    pools.slots = MAX_ENDPOINTS - 2;
    put(&mut pools, 1, &route(&[(1, &[1, 2, 3])]));
    put(&mut pools, 2, &route(&[(1, &[4, 5])]));
    put(&mut pools, 3, &route(&[(1, &[6])]));
    let image = image(&mut pools);
    assert_eq!([1, 2, 3].map(|id| image.pools[&id].slots), [0, 2, 0]);
    assert_eq!(image.endpoints.len(), 2, "of what did not fit nothing is left");
}

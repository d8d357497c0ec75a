//! Choices under every balancing rule, with ejected, full and removed endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Instant as Now;

use futures_util::FutureExt;
use proptest::prelude::*;
use router_table::policy::{Affinity, Balance, RoutePolicy};
use router_table::table::ResolvedRoute;

use super::*;
use crate::upstream::health::ConnectStage;
use crate::upstream::testing::{address, plan as plan_of, route, rule};

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(20);
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

fn balanced(balance: Balance) -> RoutePolicy {
    RoutePolicy { balance: Some(balance), ..RoutePolicy::default() }
}

fn limited(limit: u32) -> RoutePolicy {
    RoutePolicy { endpoint_connections: NonZeroU32::new(limit), ..RoutePolicy::default() }
}

/// Ports in the order in which they are tried for a client, and the final error.
fn tried(balancer: &Balancer, route: &ResolvedRoute, client: IpAddr) -> (Vec<u16>, NoEndpoint) {
    let plan = plan_of(balancer, route);
    let mut choice = plan.choose(route, &route.cluster, Some(HashKey::of_client(client)), None);
    let mut ports = Vec::new();
    loop {
        match choice.next(balancer, PATIENCE).now_or_never().expect("nobody has to wait") {
            Ok(pick) => ports.push(pick.target.endpoint.address.port()),
            Err(why) => return (ports, why),
        }
    }
}

fn first(balancer: &Balancer, route: &ResolvedRoute, sticky: Option<Tag>) -> Option<(u16, bool)> {
    let plan = plan_of(balancer, route);
    let mut choice = plan.choose(route, &route.cluster, Some(HashKey::of_client(CLIENT)), sticky);
    let pick = choice.next(balancer, PATIENCE).now_or_never().expect("nobody has to wait").ok()?;
    Some((pick.target.endpoint.address.port(), pick.set_cookie.is_some()))
}

fn eject(balancer: &Balancer, port: u16) {
    (0..3).for_each(|_| balancer.health.failed(&ConnectStage::Tcp(address(port)), Now::now()));
}

#[test]
fn each_endpoint_is_tried_once_and_not_more_than_the_bound() {
    for balance in [Balance::Random, Balance::RoundRobin, Balance::LeastConnections, Balance::Source] {
        let balancer = Balancer::default();
        let three = route(&[(5, &[1, 2]), (1, &[3])], balanced(balance));
        for _ in 0..50 {
            let (ports, why) = tried(&balancer, &three, CLIENT);
            assert_eq!(ports.len(), 3, "{balance:?}");
            assert_eq!(BTreeSet::from_iter(ports), BTreeSet::from([1, 2, 3]), "{balance:?}");
            assert_eq!(why, NoEndpoint::Tried);
        }
        let many = route(&[(1, &[1, 2, 3, 4, 5, 6, 7, 8])], balanced(balance));
        let ports = tried(&Balancer::default(), &many, CLIENT).0;
        assert_eq!(BTreeSet::from_iter(ports).len(), MAX_ATTEMPTS, "{balance:?}");
    }
}

#[test]
fn no_endpoints_and_no_weight_select_none() {
    for services in [&[][..], &[(0, &[1, 2][..])], &[(9, &[])]] {
        assert_eq!(
            tried(&Balancer::default(), &route(services, RoutePolicy::default()), CLIENT),
            (vec![], NoEndpoint::NoEndpoints)
        );
    }
}

#[test]
fn the_service_is_that_of_the_endpoint() {
    // The same address in two services: the service is the one that was drawn.
    let balancer = Balancer::default();
    let route = route(&[(1, &[1]), (1, &[1])], RoutePolicy::default());
    let plan = plan_of(&balancer, &route);
    let mut choice = plan.choose(&route, &route.cluster, Some(HashKey::of_client(CLIENT)), None);
    let mut names = BTreeSet::new();
    while let Ok(pick) = choice.next(&balancer, PATIENCE).now_or_never().unwrap() {
        names.insert(Arc::clone(pick.target.service));
    }
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn random_choice_follows_the_weights_also_when_some_are_ejected() {
    let balancer = Balancer::default();
    let route = route(&[(30, &[1, 2, 3]), (10, &[4])], balanced(Balance::Random));
    let count = |balancer: &Balancer| {
        let mut counts = BTreeMap::<u16, u32>::new();
        (0..8_000).for_each(|_| *counts.entry(first(balancer, &route, None).unwrap().0).or_default() += 1);
        counts
    };
    // All have a share of 10.
    let near = |count: u32, expected: u32| count.abs_diff(expected) < 6 * expected.isqrt();
    let counts = count(&balancer);
    assert!(counts.len() == 4 && counts.values().all(|count| near(*count, 2_000)), "{counts:?}");
    eject(&balancer, 2);
    let counts = count(&balancer);
    assert!(counts.keys().eq(&[1, 3, 4]) && counts.values().all(|count| near(*count, 2_667)), "{counts:?}");
}

#[test]
fn round_robin_continues_with_a_new_version_and_skips_ejected_endpoints() {
    let balancer = Balancer::default();
    let version = || route(&[(1, &[1, 2, 3])], balanced(Balance::RoundRobin));
    let (one, two) = (version(), version());
    let next = |route: &ResolvedRoute| first(&balancer, route, None).unwrap().0;
    assert_eq!([next(&one), next(&one), next(&two), next(&two), next(&one)], [1, 2, 3, 1, 2]);
    eject(&balancer, 1);
    let next = || first(&balancer, &two, None).unwrap().0;
    assert_eq!([next(), next(), next(), next()], [3, 2, 3, 2]);
}

#[tokio::test]
async fn the_least_loaded_is_chosen_by_weight_and_in_turn_when_idle() {
    let balancer = Balancer::default();
    let one_each = route(&[(1, &[1, 2, 3])], balanced(Balance::LeastConnections));
    let idle: BTreeSet<_> = (0..3).map(|_| first(&balancer, &one_each, None).unwrap().0).collect();
    assert_eq!(idle.len(), 3);

    let mut held = Vec::new();
    let mut counts = BTreeMap::<u16, usize>::new();
    let heavy = route(&[(30, &[1]), (10, &[2])], balanced(Balance::LeastConnections));
    for _ in 0..40 {
        let plan = plan_of(&balancer, &heavy);
        let mut choice = plan.choose(&heavy, &heavy.cluster, Some(HashKey::of_client(CLIENT)), None);
        let pick = choice.next(&balancer, PATIENCE).await.unwrap();
        *counts.entry(pick.target.endpoint.address.port()).or_default() += 1;
        held.push((pick.target.endpoint.address.port(), pick.place.unwrap()));
    }
    assert!(counts[&1].abs_diff(30) <= 1, "{counts:?}");
    // A freed endpoint is chosen next.
    held.retain(|(port, _)| *port != 2);
    assert_eq!(first(&balancer, &heavy, None).unwrap().0, 2);
}

#[test]
fn ejected_endpoints_are_chosen_only_when_no_other_is_left() {
    for balance in [Balance::Random, Balance::RoundRobin, Balance::LeastConnections, Balance::Source] {
        let balancer = Balancer::default();
        let route = route(&[(1, &[1, 2, 3])], balanced(balance));
        eject(&balancer, 1);
        eject(&balancer, 2);
        for _ in 0..30 {
            let ports = tried(&balancer, &route, CLIENT).0;
            assert_eq!((ports.len(), ports[0]), (3, 3), "{balance:?}");
        }
        eject(&balancer, 3);
        assert_eq!(BTreeSet::from_iter(tried(&balancer, &route, CLIENT).0).len(), 3, "{balance:?}");
    }
}

#[test]
fn all_tries_share_the_time_to_connect_and_ejected_endpoints_have_little() {
    let balancer = Balancer::default();
    let times = |route: &ResolvedRoute| {
        let (mut left, mut times) = (Duration::from_secs(4), Vec::new());
        let plan = plan_of(&balancer, route);
        let mut choice = plan.choose(route, &route.cluster, Some(HashKey::of_client(CLIENT)), None);
        while choice.next(&balancer, PATIENCE).now_or_never().unwrap().is_ok() {
            times.push(choice.patience(left).as_millis());
            left -= choice.patience(left);
        }
        times
    };
    let of = |ports: &[u16]| route(&[(1, ports)], RoutePolicy::default());
    assert_eq!(times(&of(&[1])), [4_000]);
    assert_eq!(times(&of(&[1, 2, 3])), [2_000, 1_000, 1_000]);
    assert_eq!(times(&of(&[1, 2, 3, 4, 5])), [2_000, 1_000, 500, 500]);
    eject(&balancer, 1);
    assert_eq!(times(&of(&[1])), [100]);
    // Ejected endpoints do not shorten the time for others.
    assert_eq!(times(&of(&[1, 2])), [2_000, 50]);
    (2..=5).for_each(|port| eject(&balancer, port));
    assert_eq!(times(&of(&[1, 2, 3, 4, 5])), [25; 4]);
}

#[test]
fn a_cookie_is_followed_as_long_as_its_endpoint_serves() {
    let balancer = Balancer::default();
    let both = route(&[(1, &[1, 2])], RoutePolicy::default());
    let two = Tag::of(&both.id, address(2));
    for _ in 0..30 {
        assert_eq!(first(&balancer, &both, Some(two)), Some((2, false)));
    }
    let gone = Tag::of(&both.id, address(3));
    assert!(first(&balancer, &both, Some(gone)).is_some_and(|(_, new)| new));
    assert!(first(&balancer, &both, None).is_some_and(|(_, new)| new));
    // It has just failed: the client gets another endpoint and its cookie.
    let plan = plan_of(&balancer, &both);
    let mut choice = plan.choose(&both, &both.cluster, Some(HashKey::of_client(CLIENT)), Some(two));
    choice.next(&balancer, PATIENCE).now_or_never().unwrap().unwrap();
    let other = choice.next(&balancer, PATIENCE).now_or_never().unwrap().unwrap();
    assert!(other.target.endpoint.address == address(1) && other.set_cookie.is_some());
    eject(&balancer, 2);
    assert_eq!(first(&balancer, &both, Some(two)), Some((1, true)));

    let off = RoutePolicy { affinity: Affinity { disabled: true, ..Affinity::default() }, ..RoutePolicy::default() };
    let off = route(&[(1, &[1, 2])], off);
    assert!(first(&balancer, &off, None).is_some_and(|(_, new)| !new));
    let value = plan_of(&balancer, &both).cookie_for(1).unwrap();
    assert!(value.to_str().unwrap().contains(&format!("={:032x}; path=/", two.0)), "{value:?}");
}

#[test]
fn a_service_without_weight_serves_its_old_clients_only() {
    let balancer = Balancer::default();
    let route = route(&[(1, &[1]), (0, &[2])], RoutePolicy::default());
    assert!((0..50).all(|_| first(&balancer, &route, None) == Some((1, true))));
    let two = Tag::of(&route.id, address(2));
    assert_eq!(first(&balancer, &route, Some(two)), Some((2, false)));
    // Not even if no other endpoint is left.
    assert_eq!(tried(&balancer, &route, CLIENT).0, [1]);
    eject(&balancer, 2);
    assert_eq!(first(&balancer, &route, Some(two)), Some((1, true)));
}

#[tokio::test]
async fn who_finds_all_full_waits_for_one_who_ends() {
    let balancer = Balancer::default();
    let route = route(&[(1, &[1, 2])], limited(1));
    let plan = plan_of(&balancer, &route);
    let pick = async |patience| {
        plan.choose(&route, &route.cluster, Some(HashKey::of_client(CLIENT)), None)
            .next(&balancer, patience)
            .await
            .map(|pick| pick.place.unwrap())
    };
    let (one, two) = (pick(PATIENCE).await.unwrap(), pick(PATIENCE).await.unwrap());
    assert_eq!(pick(SHORT).await.unwrap_err(), NoEndpoint::Busy, "nobody ends within the time");
    // The first one is queued before the second future runs.
    let (third, ()) = tokio::join!(pick(PATIENCE), async { drop(two) });
    let third = third.unwrap();
    // A retry goes to the other endpoint.
    drop(one);
    drop(third);
    let mut choice = plan.choose(&route, &route.cluster, Some(HashKey::of_client(CLIENT)), None);
    let (first, second) =
        (choice.next(&balancer, PATIENCE).await.unwrap(), choice.next(&balancer, PATIENCE).await.unwrap());
    assert_ne!(first.target.endpoint, second.target.endpoint);
    assert_eq!(choice.next(&balancer, PATIENCE).await.unwrap_err(), NoEndpoint::Tried);
}

#[tokio::test]
async fn a_session_waits_for_its_endpoint_and_goes_elsewhere_in_the_end() {
    let balancer = Balancer::default();
    let route = route(&[(1, &[1, 2])], limited(1));
    let plan = plan_of(&balancer, &route);
    let two = Tag::of(&route.id, address(2));
    let held = plan
        .choose(&route, &route.cluster, Some(HashKey::of_client(CLIENT)), Some(two))
        .next(&balancer, PATIENCE)
        .await
        .unwrap()
        .place;
    let mut choice = plan.choose(&route, &route.cluster, Some(HashKey::of_client(CLIENT)), Some(two));
    let (next, ()) = tokio::join!(choice.next(&balancer, PATIENCE), async { drop(held) });
    let held = next.unwrap();
    assert!(held.target.endpoint.address == address(2) && held.set_cookie.is_none());
    let mut impatient = plan.choose(&route, &route.cluster, Some(HashKey::of_client(CLIENT)), Some(two));
    let elsewhere = impatient.next(&balancer, SHORT).await.unwrap();
    assert!(elsewhere.target.endpoint.address == address(1) && elsewhere.set_cookie.is_some());
}

/// Many threads, few permits: no endpoint exceeds its limit, and every thread is served.
#[test]
fn no_endpoint_has_more_than_the_limit() {
    let balancer = Balancer::default();
    for balance in [Balance::Random, Balance::RoundRobin, Balance::LeastConnections, Balance::Source] {
        let route = route(&[(3, &[1, 2]), (1, &[3])], RoutePolicy { balance: Some(balance), ..limited(2) });
        let route = ResolvedRoute {
            id: router_model::names::RouteId { name: format!("{balance:?}").into(), ..route.id },
            ..route
        };
        let active: [AtomicU32; 4] = Default::default();
        let most = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (balancer, route, active, most) = (&balancer, &route, &active, &most);
                scope.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                    let one = |number: u8| async move {
                        let client = IpAddr::from([192, 0, thread, number]);
                        let plan = plan_of(balancer, route);
                        let mut choice = plan.choose(route, &route.cluster, Some(HashKey::of_client(client)), None);
                        let pick = choice.next(balancer, Duration::from_secs(20)).await.unwrap();
                        let count = &active[usize::from(pick.target.endpoint.address.port())];
                        most.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        count.fetch_sub(1, Ordering::SeqCst);
                    };
                    for _ in 0..50 {
                        runtime.block_on(futures_util::future::join_all((0..8).map(one)));
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{balance:?}: {most:?}");
    }
}

proptest! {
    /// With the same endpoints a client always gets the same one; if one is removed, only its clients move.
    #[test]
    fn source_moves_only_who_must(ports in prop::collection::btree_set(1..200_u16, 2..12), gone in any::<prop::sample::Index>()) {
        let ports: Vec<u16> = ports.into_iter().collect();
        let without: Vec<u16> = ports.iter().copied().filter(|port| *port != *gone.get(&ports)).collect();
        let (all, fewer) = (route(&[(1, &ports)], balanced(Balance::Source)), route(&[(1, &without)], balanced(Balance::Source)));
        let balancer = Balancer::default();
        for client in 0..40_u8 {
            let client = IpAddr::from([198, 51, 100, client]);
            let before = tried(&balancer, &all, client).0;
            prop_assert_eq!(&tried(&balancer, &all, client).0, &before);
            let after = tried(&balancer, &fewer, client).0;
            if before[0] == *gone.get(&ports) {
                prop_assert_eq!(after[0], before[1], "the second best");
            } else {
                prop_assert_eq!(after[0], before[0]);
            }
        }
    }
}

#[test]
fn source_spreads_clients_by_weight_in_both_families() {
    let balancer = Balancer::default();
    let route = route(&[(30, &[1]), (10, &[2])], balanced(Balance::Source));
    for family in [4, 6] {
        let client = |number: u16| match family {
            4 => IpAddr::from((0x0a00_0000 + u32::from(number)).to_be_bytes()),
            _ => IpAddr::from([0x2001, 0xdb8, 0, number, 0, 0, 0, 1]),
        };
        let of_one = (0..4_000).filter(|number| tried(&balancer, &route, client(*number)).0[0] == 1).count();
        assert!(of_one.abs_diff(3_000) < 6 * 28, "{of_one} of IPv{family}");
    }
    // One client, in any form of its address.
    let mapped: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
    assert_eq!(tried(&balancer, &route, mapped), tried(&balancer, &route, CLIENT));
}

/// Distribution of a number of clients, by service: ports or failures.
fn shares(route: &ResolvedRoute, clients: u32) -> BTreeMap<String, u32> {
    let balancer = Balancer::default();
    let mut got = BTreeMap::new();
    for client in 0..clients {
        let client = IpAddr::from((0x0a00_0000 + client).to_be_bytes());
        let plan = plan_of(&balancer, route);
        let mut choice = plan.choose(route, &route.cluster, Some(HashKey::of_client(client)), None);
        let what = match choice.next(&balancer, PATIENCE).now_or_never().expect("nobody has to wait") {
            Ok(pick) => pick.target.endpoint.address.port().to_string(),
            Err(why) => format!("{why:?}"),
        };
        *got.entry(what).or_default() += 1;
    }
    got
}

#[test]
fn services_of_rules_keep_their_shares_by_every_balance() {
    let failing = Some(500);
    let services: [(u32, &[u16], Option<u16>); 5] = [
        (600_000, &[1, 2], None),
        (200_000, &[3], None),
        (100_000, &[], None),
        (100_000, &[4], failing),
        (0, &[5], None),
    ];
    let expected = [("1", 3000), ("2", 3000), ("3", 2000), ("NoEndpoints", 1000), ("Failing(500)", 1000)];
    for balance in [None, Some(Balance::Random), Some(Balance::LeastConnections), Some(Balance::Source)] {
        let policy = RoutePolicy { balance, ..RoutePolicy::default() };
        let got = shares(&rule(&services, policy), 10_000);
        assert_eq!(got.len(), expected.len(), "{balance:?}: {got:?}");
        for (what, due) in expected {
            let had = got[what];
            // Shares of services are exact, except for Source, whose shares depend on chance; the same holds for
            // endpoints.
            let is_exact = balance.is_none() || !matches!(what, "1" | "2") && balance != Some(Balance::Source);
            assert!(had.abs_diff(due) <= if is_exact { 1 } else { 250 }, "{balance:?}: {what} has {had}, not {due}");
        }
    }
}

#[test]
fn a_rule_with_a_single_service_fails_or_has_no_endpoint() {
    let one = |ports: &[u16], failure| shares(&rule(&[(1, ports, failure)], RoutePolicy::default()), 10);
    assert_eq!(one(&[1], None), [("1".to_owned(), 10)].into());
    assert_eq!(one(&[1], Some(500)), [("Failing(500)".to_owned(), 10)].into());
    assert_eq!(one(&[], None), [("NoEndpoints".to_owned(), 10)].into());
    // The other services of a Route take the share of one without endpoints.
    let route = route(&[(1, &[1]), (1, &[])], RoutePolicy::default());
    assert_eq!(shares(&route, 10), [("1".to_owned(), 10)].into());
}

#[test]
fn other_services_replace_endpoints_that_are_ejected_or_were_tried() {
    let balancer = Balancer::default();
    let both = rule(&[(1, &[1], None), (1, &[2], None), (1, &[3], Some(500))], RoutePolicy::default());
    eject(&balancer, 1);
    let first_of_each: Vec<Vec<u16>> = (0..6).map(|_| tried(&balancer, &both, CLIENT).0).collect();
    let well: Vec<_> = first_of_each.iter().filter(|ports| !ports.is_empty()).collect();
    assert_eq!(well.len(), 4, "the failing third fails: {first_of_each:?}");
    assert!(well.iter().all(|ports| **ports == [2, 1]), "{first_of_each:?}");
}

#[test]
fn copies_are_made_of_their_share() {
    let mirrored = || {
        let mut route = rule(&[(1, &[1], None)], RoutePolicy::default());
        let cluster = rule(&[(3, &[7], None), (1, &[8], None)], RoutePolicy::default()).cluster;
        let mirrors = [(1, 1), (1, 4), (0, 100)];
        let mirrors = mirrors.map(|share| router_table::rule::Mirror { cluster: cluster.clone(), share });
        route.rule = Some(Arc::new(router_table::rule::RulePolicy { mirrors: mirrors.into(), ..Default::default() }));
        route
    };
    let (route, changed) = (mirrored(), mirrored());
    let balancer = Balancer::default();
    let plan = plan_of(&balancer, &route);
    let due = || {
        let turns: Vec<u64> = (0..400).map(|_| plan.next_mirror_turn()).collect();
        [0, 1, 2].map(|number: usize| turns.iter().filter(|turn| plan.mirrors()[number].portion.has(**turn)).count())
    };
    assert_eq!(due(), [400, 100, 0]);
    // The counter outlives a change of the route, and is shared by workers.
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let workers = [0, 1, 2, 3].map(|_| {
            scope.spawn(|| {
                let plan = plan_of(&balancer, &changed);
                (0..251).filter(|_| plan.mirrors()[1].portion.has(plan.next_mirror_turn())).count()
            })
        });
        workers.map(|worker| worker.join().unwrap()).into()
    });
    assert_eq!(counts.iter().sum::<usize>(), 251);
    assert_eq!(plan.next_mirror_turn(), 400 + 4 * 251);
    let ports = (0..8).map(|_| {
        let mut choice = plan.mirrors()[0].plan.choose(
            &route,
            &route.rule.as_ref().unwrap().mirrors[0].cluster,
            Some(HashKey::of_client(CLIENT)),
            None,
        );
        let pick = choice.next(&balancer, PATIENCE).now_or_never().unwrap().unwrap();
        pick.target.endpoint.address.port()
    });
    assert_eq!(ports.filter(|port| *port == 7).count(), 6);
}

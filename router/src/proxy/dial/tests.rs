//! Order of endpoints.

use std::collections::BTreeMap;

use router_core::table::ServiceEndpoints;

use super::*;

fn service(name: &str, weight: u16, ports: std::ops::Range<u16>) -> ServiceEndpoints {
    let endpoints = ports.map(|port| Endpoint { address: ([127, 0, 0, 1], port).into(), target: None, h2c: false });
    ServiceEndpoints { service: name.into(), weight, endpoints: endpoints.collect() }
}

#[test]
fn every_endpoint_once_and_at_most_the_bound() {
    let cluster = Cluster { services: vec![service("a", 1, 1..3), service("b", 1, 3..4)].into() };
    let drawn = order(&cluster, |_| 0);
    let mut ports: Vec<u16> = drawn.iter().map(|t| t.endpoint.address.port()).collect();
    ports.sort_unstable();
    assert_eq!(ports, [1, 2, 3]);
    let many = Cluster { services: vec![service("a", 1, 1..100)].into() };
    assert_eq!(order(&many, |_| 0).len(), MAX_ATTEMPTS);
}

#[test]
fn no_weight_and_no_endpoints_give_no_order() {
    assert_eq!(order(&Cluster::default(), |_| 0), []);
    let cluster = Cluster { services: vec![service("a", 0, 1..3), service("b", 5, 3..3)].into() };
    assert_eq!(order(&cluster, |_| 0), []);
}

#[test]
fn targets_name_their_own_service() {
    // The same address in two services: the name must still be that of the service that was drawn.
    let cluster = Cluster { services: vec![service("a", 1, 1..2), service("b", 1, 1..2)].into() };
    let names: Vec<_> = order(&cluster, |_| 0).into_iter().map(|t| t.service).collect();
    assert!(names.contains(&"a".into()) && names.contains(&"b".into()), "{names:?}");
}

#[test]
fn first_choices_follow_the_weights() {
    let cluster = Cluster { services: vec![service("a", 3, 1..2), service("b", 1, 2..3)].into() };
    let mut firsts: BTreeMap<u16, u32> = BTreeMap::new();
    for _ in 0..40_000 {
        let first = order(&cluster, random_below).remove(0);
        *firsts.entry(first.endpoint.address.port()).or_default() += 1;
    }
    // 3 : 1, with a deviation that chance exceeds less than once in 10^9 runs.
    assert!((29_400..=30_600).contains(&firsts[&1]), "{firsts:?}");
}

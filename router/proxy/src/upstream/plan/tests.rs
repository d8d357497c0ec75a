//! Weights, turns, and state that outlives a version.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use router_table::policy::RoutePolicy;

use super::*;
use crate::upstream::testing::{endpoints, route};

fn plan(services: &[(u16, &[u16])], policy: RoutePolicy) -> BalancingPlan {
    let route = route(services, policy);
    BalancingPlan::new(&route, &endpoints(&route), Arc::default)
}

fn balanced(balance: Balance) -> RoutePolicy {
    RoutePolicy { balance: Some(balance), ..RoutePolicy::default() }
}

#[test]
fn the_default_is_by_chance_and_in_turn_for_several_services() {
    let default = RoutePolicy::default;
    assert_eq!(plan(&[(100, &[1, 2])], default()).balance, Balance::Random);
    assert_eq!(plan(&[(100, &[1]), (50, &[2])], default()).balance, Balance::RoundRobin);
    // Services without weight or endpoints do not count.
    assert_eq!(plan(&[(100, &[1]), (0, &[2]), (9, &[])], default()).balance, Balance::Random);
    assert_eq!(plan(&[(100, &[1]), (50, &[2])], balanced(Balance::Random)).balance, Balance::Random);
}

#[test]
fn only_what_is_counted_has_state() {
    let has_state = |policy| plan(&[(100, &[1, 2])], policy).state().is_some();
    assert!(!has_state(RoutePolicy::default()) && !has_state(balanced(Balance::Source)));
    assert!(has_state(balanced(Balance::RoundRobin)) && has_state(balanced(Balance::LeastConnections)));
    assert!(has_state(RoutePolicy { endpoint_connections: NonZeroU32::new(3), ..RoutePolicy::default() }));
}

#[test]
fn weights_without_endpoints_give_no_tickets() {
    for services in [&[][..], &[(0, &[1, 2][..])], &[(5, &[])]] {
        let plan = plan(services, RoutePolicy::default());
        assert_eq!((plan.total(), plan.holder(0)), (0, None));
    }
}

#[test]
fn counts_outlive_versions_and_absences() {
    let state = Arc::<RouteState>::default();
    let limit = |limit| RoutePolicy { endpoint_connections: NonZeroU32::new(limit), ..RoutePolicy::default() };
    let make = |services: &[(u16, &[u16])], policy| {
        let route = route(services, policy);
        BalancingPlan::new(&route, &endpoints(&route), || Arc::clone(&state))
    };
    let occupancy = |plan: &BalancingPlan, index: usize| Arc::clone(plan.kept()[index].occupancy.as_ref().unwrap());

    let first = make(&[(1, &[1, 2])], limit(2));
    let places = [occupancy(&first, 0).take().unwrap(), occupancy(&first, 0).take().unwrap()];
    assert!(occupancy(&first, 0).is_full());
    let without = make(&[(1, &[2])], limit(2));
    assert_eq!(occupancy(&without, 0).active(), 0);
    let back = make(&[(1, &[1, 2])], limit(3));
    assert_eq!(occupancy(&back, 0).active(), 2);
    assert!(!occupancy(&back, 0).is_full(), "the newest limit holds");
    drop(places);
    make(&[(1, &[2])], limit(3));
    assert_eq!(state.occupancies.lock().unwrap().len(), 1, "what nobody uses is forgotten");
}

#[test]
fn tickets_are_held_by_weight() {
    let plan = plan(&[(3, &[1]), (0, &[7]), (6, &[2, 3, 4])], RoutePolicy::default());
    let mut held = BTreeMap::<usize, u32>::new();
    (0..plan.total()).for_each(|ticket| *held.entry(plan.holder(ticket).unwrap()).or_default() += 1);
    assert_eq!(held, plan.weights().filter(|(_, weight)| *weight > 0).collect());
    assert_eq!(held, [(0, 256), (2, 170), (3, 170), (4, 170)].into());
    assert_eq!(plan.holder(plan.total()), None);
}

//! Shares and spread.

use proptest::prelude::*;

use super::*;

fn order(services: &[(u16, usize)], turns: u32) -> Vec<usize> {
    let order = Turns::new(services.iter().copied());
    (0..turns).map(|turn| order.holder(turn).unwrap()).collect()
}

#[test]
fn one_service_comes_endpoint_by_endpoint() {
    assert_eq!(order(&[(100, 3)], 7), [0, 1, 2, 0, 1, 2, 0]);
    // Those beside it that have no weight, or no endpoints, change nothing.
    assert_eq!(order(&[(0, 2), (100, 3), (50, 0)], 4), [2, 3, 4, 2]);
}

#[test]
fn services_take_turns_by_weight() {
    assert_eq!(order(&[(100, 1), (100, 1)], 4), [0, 1, 0, 1]);
    assert_eq!(order(&[(20, 1), (10, 2)], 6), [0, 1, 0, 0, 2, 0]);
    assert_eq!(order(&[(5, 1), (1, 1), (1, 1)], 7), [0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn without_weight_nobody_has_a_turn() {
    for services in [&[][..], &[(0, 3)], &[(9, 0)]] {
        assert_eq!(Turns::new(services.iter().copied()).holder(5), None);
    }
}

#[test]
fn the_last_turn_there_is_has_a_holder() {
    assert!(Turns::new([(256, 999), (255, 3)].into_iter()).holder(u32::MAX).is_some());
}

proptest! {
    #[test]
    fn nobody_is_far_from_its_share(
        services in prop::collection::vec((1..=256_u16, 1..6_usize), 1..5),
        begin in 0..100_000_u32,
    ) {
        let order = Turns::new(services.iter().copied());
        let weights: u32 = services.iter().map(|(weight, _)| u32::from(*weight)).sum();
        let mut counts = vec![0_u32; services.iter().map(|(_, endpoints)| endpoints).sum()];
        for turns in 1..=2 * weights {
            counts[order.holder(begin + turns - 1).unwrap()] += 1;
            let mut first = 0;
            for (weight, endpoints) in &services {
                let of_service = &counts[first..first + endpoints];
                let due = f64::from(turns) * f64::from(*weight) / f64::from(weights);
                let had = f64::from(of_service.iter().sum::<u32>());
                prop_assert!((had - due).abs() < 2.0 * services.len() as f64, "{had} of {due:.1} after {turns}");
                prop_assert!(of_service.iter().max().unwrap() - of_service.iter().min().unwrap() <= 1);
                first += endpoints;
            }
        }
    }
}

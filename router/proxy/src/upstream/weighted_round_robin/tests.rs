//! Shares and spread.

use proptest::prelude::*;

use super::*;

fn order(services: &[(u32, usize)], turns: u32) -> Vec<usize> {
    let order = Turns::new(services.iter().copied());
    (0..turns).map(|turn| order.holder(turn).unwrap().endpoint.unwrap()).collect()
}

#[test]
fn one_service_comes_endpoint_by_endpoint() {
    assert_eq!(order(&[(100, 3)], 7), [0, 1, 2, 0, 1, 2, 0]);
    // Services without weight do not affect the others.
    assert_eq!(order(&[(0, 2), (100, 3), (0, 0)], 4), [2, 3, 4, 2]);
}

#[test]
fn services_take_turns_by_weight() {
    assert_eq!(order(&[(100, 1), (100, 1)], 4), [0, 1, 0, 1]);
    assert_eq!(order(&[(20, 1), (10, 2)], 6), [0, 1, 0, 0, 2, 0]);
    assert_eq!(order(&[(5, 1), (1, 1), (1, 1)], 7), [0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn without_weight_no_service_is_picked() {
    for services in [&[][..], &[(0, 3)], &[(0, 0), (0, 1)]] {
        assert_eq!(Turns::new(services.iter().copied()).holder(5), None);
    }
}

#[test]
fn a_service_without_endpoints_has_its_turns() {
    for weight in [1, 250_000] {
        let order = Turns::new([(weight, 0), (3 * weight + 1, 2)].into_iter());
        let turns: Vec<Turn> = (0..4000).map(|turn| order.holder(turn).unwrap()).collect();
        let lost = turns.iter().filter(|turn| turn.service == 0);
        assert!(lost.clone().all(|turn| turn.endpoint.is_none()));
        let share = 4000 * weight / (4 * weight + 1);
        assert!((lost.count() as u32).abs_diff(share) <= 2, "weight {weight}");
    }
}

#[test]
fn one_in_a_million_has_its_turn() {
    let order = Turns::new([(1, 1), (1_000_000, 2)].into_iter());
    let mut counts = [0_u32; 3];
    for turn in 0..4_000_004 {
        counts[order.holder(turn).unwrap().endpoint.unwrap()] += 1;
    }
    assert!((3..=5).contains(&counts[0]), "{counts:?}");
    assert!(counts[1].abs_diff(counts[2]) < 20, "{counts:?}");
}

const PORTIONS: [(u32, u32); 12] = [
    (0, 1),
    (1, 1000),
    (1, 2),
    (1, 5),
    (7, 100),
    (50, 100),
    (99, 100),
    (1, 1),
    (3, 2),
    (5, 0),
    (999_983, 1_000_000),
    (u32::MAX - 1, u32::MAX),
];

#[test]
fn a_part_of_all_turns_is_spread() {
    for (part, whole) in PORTIONS {
        let portion = Portion::new(part, whole);
        let mut within = 0_u32;
        for turn in 0..10_000_u32 {
            within += u32::from(portion.has(u64::from(turn)));
            let due = (f64::from(turn + 1) * f64::from(part) / f64::from(whole)).min(f64::from(turn + 1));
            let allowed = 3.0 + f64::from(turn + 1).log2();
            assert!((f64::from(within) - due).abs() <= allowed, "{part} of {whole}: {within} after {}", turn + 1);
        }
    }
}

#[test]
fn a_part_is_exact_in_every_round() {
    for (part, whole) in PORTIONS.into_iter().filter(|(_, whole)| *whole <= 1000) {
        let portion = Portion::new(part, whole);
        for round in [0, 1, 2, 3, 500, u64::MAX / 1000 - 1] {
            let first = round * u64::from(whole);
            let within = (first..first + u64::from(whole)).filter(|turn| portion.has(*turn)).count();
            assert_eq!(within, part.min(whole) as usize, "{part} of {whole} from {first} on");
        }
        assert_eq!(portion.is_all(), part >= whole, "{part} of {whole}");
    }
}

#[test]
fn a_part_follows_no_rhythm() {
    // If requests of two kinds alternate, both are copied.
    let half = Portion::new(1, 2);
    let even = (0..1000).filter(|turn| half.has(2 * turn)).count();
    assert!((400..=600).contains(&even), "{even} of the first kind, {} of the second", 1000 - even);
}

#[test]
fn the_last_turn_there_is_has_a_holder() {
    assert!(Turns::new([(256, 999), (255, 3)].into_iter()).holder(u32::MAX).is_some());
}

proptest! {
    #[test]
    fn every_service_is_close_to_its_share(
        services in prop::collection::vec((1..=256_u32, 1..6_usize), 1..5),
        begin in 0..100_000_u32,
    ) {
        let order = Turns::new(services.iter().copied());
        let weights: u32 = services.iter().map(|(weight, _)| weight).sum();
        let mut counts = vec![0_u32; services.iter().map(|(_, endpoints)| endpoints).sum()];
        for turns in 1..=2 * weights {
            counts[order.holder(begin + turns - 1).unwrap().endpoint.unwrap()] += 1;
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

    #[test]
    fn large_weights_are_as_good_as_exact(
        services in prop::collection::vec((0..=1_000_000_u32, 0..4_usize), 1..16),
        begin in 0..=u32::MAX - 10_000,
    ) {
        let total: u64 = services.iter().map(|(weight, _)| u64::from(*weight)).sum();
        prop_assume!(total > 0);
        let order = Turns::new(services.iter().copied());
        let mut counts = vec![0_u32; services.len()];
        for turns in 1..=10_000 {
            counts[order.holder(begin + turns - 1).unwrap().service] += 1;
            let allowed = 3.0 + f64::from(turns).log2();
            for (had, (weight, _)) in counts.iter().zip(&services) {
                let due = f64::from(turns) * f64::from(*weight) / total as f64;
                prop_assert!((f64::from(*had) - due).abs() <= allowed, "{had} of {due:.1} after {turns}");
            }
        }
    }
}

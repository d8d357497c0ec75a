//! The table draws in proportion to the weights.

use proptest::prelude::*;

use super::columns;

/// Relative frequency of each index, as the kernel draws from the table.
fn drawn(table: &[(u32, u32)]) -> Vec<f64> {
    let mut drawn = vec![0.0; table.len()];
    for (own, (threshold, alias)) in table.iter().enumerate() {
        let stays = if *threshold == u32::MAX { 1.0 } else { f64::from(*threshold) / 2_f64.powi(32) };
        drawn[own] += stays / table.len() as f64;
        drawn[*alias as usize] += (1.0 - stays) / table.len() as f64;
    }
    drawn
}

fn is_as_weighted(weights: &[u32]) {
    let table = columns(weights);
    assert_eq!(table.len(), weights.len());
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    for (i, (weight, share)) in weights.iter().zip(drawn(&table)).enumerate() {
        let wanted = f64::from(*weight) / total;
        assert!((share - wanted).abs() < 2_f64.powi(-30), "{i}: {share} for {wanted} of {weights:?}");
    }
    for (own, (threshold, alias)) in table.iter().enumerate() {
        assert!(weights[own] != 0 || *threshold == 0, "column {own} of weight 0 keeps some");
        assert!(*threshold == u32::MAX || weights[*alias as usize] != 0, "column {own} goes to one of weight 0");
    }
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 0..257_u32, any::<u32>(), Just(1), Just(u32::MAX)]
}

proptest! {
    #[test]
    fn any_weights_are_drawn_as_they_say(
        weights in prop::collection::vec(weight(), 1..200)
            .prop_filter("all zero", |weights| weights.iter().any(|weight| *weight != 0)),
    ) {
        is_as_weighted(&weights);
        prop_assert_eq!(columns(&weights), columns(&weights));
    }
}

#[test]
fn usual_weights_are_drawn_as_they_say() {
    for weights in [&[1][..], &[1, 1], &[1, 3], &[0, 5], &[5, 0, 0], &[1, 2, 3, 4], &[256, 1, 0, 100], &[u32::MAX; 7]] {
        is_as_weighted(weights);
    }
    let many: Vec<u32> = (0..100_000).collect();
    is_as_weighted(&many);
}

#[test]
fn equal_weights_never_leave_their_column() {
    assert_eq!(columns(&[7; 3]), [(u32::MAX, 0), (u32::MAX, 1), (u32::MAX, 2)]);
}

#[test]
fn no_weight_is_no_column_and_weights_of_zero_are_equal() {
    assert_eq!(columns(&[]), []);
    assert_eq!(columns(&[0, 0]), [(u32::MAX, 0), (u32::MAX, 1)]);
}

//! In which order a measure goes over its ways.

/// The ways of one measure of a round, by number. Every `turn` begins with another one, so that whatever slows the
/// machine for a while slows all of them; and every round goes on with another stride, so that none of them always
/// comes behind the same one and finds what that has left: connections that close, threads that fall asleep, caches.
pub fn order(round: usize, turn: usize, ways: usize) -> impl Iterator<Item = usize> {
    let strides: Vec<usize> = (1..=ways).filter(|stride| greatest_common_divisor(*stride, ways) == 1).collect();
    let stride = strides.get(round % strides.len().max(1)).copied().unwrap_or(1);
    (0..ways).map(move |step| (turn + step * stride) % ways)
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_ways_have_a_turn_and_different_ones_before_them() {
        for (ways, befores) in [(0, 0), (1, 0), (2, 1), (4, 2), (7, 6), (8, 4)] {
            let mut pairs = BTreeSet::new();
            for round in 0..60 {
                let order: Vec<usize> = order(round, 3 * round, ways).collect();
                assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), (0..ways).collect(), "{order:?}");
                assert_eq!(order.first().copied(), (ways > 0).then(|| 3 * round % ways));
                pairs.extend(order.windows(2).map(|pair| (pair[0], pair[1])));
            }
            for way in 0..ways {
                assert_eq!(pairs.iter().filter(|(_, behind)| *behind == way).count(), befores, "{way} of {ways}");
            }
        }
    }
}

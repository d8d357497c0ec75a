//! Age of an object, formatted as `kubectl get` does.

use jiff::Timestamp;

/// `45s`, `12m`, `7h`, `40d`, `3y`: whole units, the largest that gives at least two of them; `0s` for the future.
pub fn age(created: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_second() - created.as_second()).max(0);
    let units = [(365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "m")];
    match units.into_iter().find(|(length, _)| seconds >= 2 * length) {
        Some((length, unit)) => format!("{}{unit}", seconds / length),
        None => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_unit_that_says_something() {
        let of = |seconds| age(Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(seconds));
        let found = [0, 119, 120, 7_199, 7_200, 172_800, 63_072_000, -5].map(of);
        assert_eq!(found, ["0s", "119s", "2m", "119m", "2h", "2d", "2y", "0s"]);
    }
}

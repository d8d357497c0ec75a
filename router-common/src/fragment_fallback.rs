//! Time for which a client's connections are relayed after one of its packets arrived in fragments that the kernel path
//! cannot carry. Each further attempt to steer such a client costs it a connection, so the time doubles with each
//! failure.

/// Relay time after the first failure, and its upper limit, in nanoseconds.
const FIRST: u64 = 4_000_000_000;
const LONGEST: u64 = 60_000_000_000;
/// After this many nanoseconds without fragments since the end of its relay time, a client starts with [`FIRST`] again.
const FORGOTTEN: u64 = 600_000_000_000;
/// The low bits of an entry count the failures; the clock's precision does not reach them.
const COUNT: u64 = 7;

/// The `fragmenting` entry of a client after a fragment at `now`; `before` is its previous entry. The entry is the
/// coarse monotonic time in nanoseconds until which the client's connections are relayed, with the number of failures
/// in the low bits.
#[must_use]
#[inline(always)]
pub const fn relayed_until(before: Option<u64>, now: u64) -> u64 {
    let count = match before {
        Some(until) if now < until => until & COUNT,
        Some(until) if now - until < FORGOTTEN && until & COUNT < COUNT => (until & COUNT) + 1,
        Some(until) if now - until < FORGOTTEN => COUNT,
        _ => 0,
    };
    let time = FIRST << count;
    let time = if time < LONGEST { time } else { LONGEST };
    now.wrapping_add(time) & !COUNT | count
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 4_000_000 * SECOND;

    /// Remaining relay time, in seconds, rounded.
    fn seconds(until: u64, now: u64) -> u64 {
        (until - now + SECOND / 2) / SECOND
    }

    #[test]
    fn each_failure_doubles_the_time_to_a_minute() {
        let (mut before, mut now) = (None, NOW);
        let times = [(); 12].map(|()| {
            let until = relayed_until(before, now);
            let time = seconds(until, now);
            (before, now) = (Some(until), until + SECOND);
            time
        });
        assert_eq!(times, [4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60, 60]);
    }

    #[test]
    fn fragments_of_a_relayed_client_begin_its_time_again() {
        let first = relayed_until(None, NOW);
        let later = NOW + 3 * SECOND;
        let again = relayed_until(Some(first), later);
        assert_eq!((seconds(again, later), again & COUNT), (4, 0));
    }

    #[test]
    fn a_client_without_fragments_for_ten_minutes_begins_anew() {
        let second = relayed_until(Some(relayed_until(None, NOW)), NOW + 6 * SECOND);
        assert_eq!(second & COUNT, 1);
        let later = second + FORGOTTEN;
        assert_eq!(seconds(relayed_until(Some(second), later), later), 4);
    }
}

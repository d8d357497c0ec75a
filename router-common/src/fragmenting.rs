//! For how long a client's connections are relayed because packets of one came in fragments that the kernel path cannot
//! carry. Each attempt to steer such a client again costs it a connection, so the time doubles with each failure.

/// Relay time after the first failure, and the longest one, in nanoseconds.
const FIRST: u64 = 4_000_000_000;
const LONGEST: u64 = 60_000_000_000;
/// A client without fragments for so many nanoseconds after its relay time begins with [`FIRST`] again.
const FORGOTTEN: u64 = 600_000_000_000;
/// The low bits of an entry count its failures; the clock is not that precise.
const COUNT: u64 = 7;

/// Entry of a client, `before` being its entry so far, after a fragment at `now`: coarse monotonic nanoseconds until which
/// its connections are relayed, with the number of its failures in the low bits.
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

    /// Seconds for which a client is relayed, rounded.
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

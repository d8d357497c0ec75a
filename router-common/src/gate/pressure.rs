//! Whether a listener is flooded with SYNs, by their rate, with hysteresis.
//!
//! Two words: the SYNs of the current window, and the window until which the pressure lasts. Several processors count at once;
//! one whose exchange fails loses its SYNs, which the decision does not need.

use super::bucket::Word;

/// Length of a window: 2²⁸ ns, 268 ms.
const UNIT: u32 = 28;
/// Windows for which the pressure lasts after the last one with half of the rate: 4.3 s.
const HOLD: u64 = 16;
/// Windows for which the stack accepts a cookie after the listener's last one: two minutes (Linux, `TCP_SYNCOOKIE_VALID`).
const VALID: u64 = 120_000_000_000 >> UNIT;
/// Bits of the first word that have the number of SYNs; the upper ones have the window.
const COUNT_BITS: u32 = 32;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// A window's part of a second, in units of 2⁻²², to multiply with: a division takes tens of cycles.
const SHARE: u64 = (1 << (UNIT + SHARE_BITS)) / 1_000_000_000;
const SHARE_BITS: u32 = 22;

/// Counts SYNs; whether the listener is under pressure. `above`: SYNs a second from which on it is; 0: it never is. `now_ns`:
/// monotonic time.
#[inline(always)]
pub fn count(seen: &impl Word, until: &impl Word, now_ns: u64, above: u32, syns: u32) -> bool {
    if above == 0 {
        return false;
    }
    let window = now_ns >> UNIT;
    let old = seen.load();
    let number = if old >> COUNT_BITS == window & COUNT { (old & COUNT) + syns as u64 } else { syns as u64 };
    seen.exchange(old, window << COUNT_BITS | number);
    let end = until.load();
    let lasts = is_on(end, now_ns);
    let limit = (above as u64 * SHARE) >> (SHARE_BITS + lasts as u32);
    if number < limit {
        return lasts;
    }
    if end != window + HOLD {
        until.exchange(end, window + HOLD);
    }
    true
}

/// Whether two times are in one window.
#[inline(always)]
pub fn are_together(now_ns: u64, then_ns: u64) -> bool {
    now_ns >> UNIT == then_ns >> UNIT
}

/// Whether a listener with this second word is under pressure.
#[inline(always)]
pub fn is_on(until: u64, now_ns: u64) -> bool {
    until != 0 && now_ns >> UNIT <= until
}

/// Whether it was lately, so that the stack may accept cookies.
#[inline(always)]
pub fn was_on(until: u64, now_ns: u64) -> bool {
    until != 0 && now_ns >> UNIT <= until + VALID
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU64;
    use std::vec::Vec;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[derive(Default)]
    struct Listener {
        seen: AtomicU64,
        until: AtomicU64,
    }

    impl Listener {
        /// Sends SYNs of a rate from one time to another, in ns; whether each met pressure.
        fn flood(&self, rate: u64, from: u64, to: u64) -> Vec<bool> {
            let times = (0..).map(|number| from + number * SECOND / rate).take_while(|now| *now < to);
            times.map(|now| count(&self.seen, &self.until, now, 1000, 1)).collect()
        }
    }

    #[test]
    fn pressure_begins_above_the_rate_and_ends_below_half_of_it() {
        let listener = Listener::default();
        let begin = 1000 * SECOND;
        assert!(listener.flood(900, begin, begin + 60 * SECOND).iter().all(|on| !on));
        let flooded = listener.flood(2000, begin + 60 * SECOND, begin + 70 * SECOND);
        let passed = flooded.iter().position(|on| *on).unwrap();
        assert!(passed < 1000, "{passed} passed at first");
        assert!(flooded[passed..].iter().all(|on| *on), "it does not flap");
        assert!(listener.flood(700, begin + 70 * SECOND, begin + 130 * SECOND).iter().all(|on| *on), "above half");
        let calm = listener.flood(400, begin + 130 * SECOND, begin + 190 * SECOND);
        let ended = calm.iter().rposition(|on| *on).unwrap();
        assert!((1200..2400).contains(&ended), "after {ended} at 400 a second");
        let (until, now) = (Word::load(&listener.until), begin + 190 * SECOND);
        assert!(!is_on(until, now) && was_on(until, now) && !was_on(until, now + 121 * SECOND));
    }

    #[test]
    fn none_is_under_pressure_without_a_rate_or_before_the_first_syn() {
        let (seen, until) = (AtomicU64::new(0), AtomicU64::new(0));
        assert!((0..10_000).all(|number| !count(&seen, &until, number, 0, 1)));
        assert!(!is_on(0, 0) && !was_on(0, 0));
        assert!(count(&seen, &until, 7, 1, 1), "a rate of less than one in a window is that of the first SYN");
    }

    #[test]
    fn eight_senders_at_once_are_noticed() {
        let listener = Listener::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| listener.flood(100_000, 1000 * SECOND, 1001 * SECOND));
            }
        });
        assert!(is_on(Word::load(&listener.until), 1001 * SECOND));
    }
}

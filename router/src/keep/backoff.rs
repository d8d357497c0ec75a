//! Delay before an agent is restarted.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(10);
/// An agent that was ready for this long was healthy: the delay starts over.
const HEALTHY: Duration = Duration::from_secs(60);

/// Doubles with each failure, from 100 ms to 10 s.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: FIRST }
    }
}

impl Backoff {
    /// The delay after the exit of an agent that had been ready for `ready_for`; `None` if it never was.
    pub fn after(&mut self, ready_for: Option<Duration>) -> Duration {
        if ready_for.is_some_and(|time| time >= HEALTHY) {
            self.next = FIRST;
        }
        let wait = self.next;
        self.next = (wait * 2).min(MOST);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_ten_seconds_and_starts_over_after_a_healthy_minute() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..9).map(|_| backoff.after(None).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(backoff.after(Some(Duration::from_secs(59))), MOST, "less than a minute is not health");
        assert_eq!(backoff.after(Some(HEALTHY)), FIRST);
        assert_eq!(backoff.after(None), FIRST * 2);
    }
}

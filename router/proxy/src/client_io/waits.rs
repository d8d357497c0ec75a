//! Waits for a client that are measured.

use std::time::Duration;

use tokio::time::Instant;

/// Least bytes a second of a body whose length is known, beyond `clientTimeout` in all; what is waited for on the
/// endpoint's behalf does not count.
const MIN_RATE: u64 = 512;

/// How a body has come so far.
#[derive(Debug, Default)]
pub struct Pace {
    /// Time spent on waiting for it.
    waited: Duration,
    bytes: u64,
    waits_since: Option<Instant>,
}

impl Pace {
    /// A wait for more begins, unless it has begun.
    pub fn begin_wait(&mut self) {
        self.waits_since.get_or_insert_with(Instant::now);
    }

    /// So many bytes have come.
    pub fn end_wait(&mut self, bytes: usize) {
        if let Some(since) = self.waits_since.take() {
            self.waited += since.elapsed();
        }
        self.bytes += bytes as u64;
    }

    /// How long it may go on at this pace.
    pub fn allowance(&self, grace: Duration) -> Duration {
        (grace + Duration::from_secs(self.bytes / MIN_RATE)).saturating_sub(self.waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_go_on_as_long_as_it_comes_fast_enough() {
        let grace = Duration::from_secs(30);
        let pace = |waited, bytes| Pace { waited: Duration::from_secs(waited), bytes, waits_since: None };
        assert_eq!(pace(0, 0).allowance(grace), grace);
        assert_eq!(pace(29, 0).allowance(grace), Duration::from_secs(1));
        assert_eq!(pace(40, 5120).allowance(grace), Duration::ZERO);
        assert_eq!(pace(40, 1 << 20).allowance(grace), Duration::from_secs(30 + 2048 - 40));
    }
}

//! Measures how long a client takes to send a body.

use std::time::Duration;

use tokio::time::Instant;

/// Lowest rate in bytes per second of a body of known length, beyond `clientTimeout` in all. Time spent waiting for the
/// endpoint does not count.
const MIN_RATE: u64 = 512;

/// Progress of a body.
#[derive(Debug, Default)]
pub struct BodyProgress {
    /// Time spent waiting for the client.
    waited: Duration,
    bytes: u64,
    waits_since: Option<Instant>,
}

impl BodyProgress {
    /// Begins a wait, unless one is in progress.
    pub fn begin_wait(&mut self) {
        self.waits_since.get_or_insert_with(Instant::now);
    }

    /// Records received bytes.
    pub fn end_wait(&mut self, bytes: usize) {
        if let Some(since) = self.waits_since.take() {
            self.waited += since.elapsed();
        }
        self.bytes += bytes as u64;
    }

    /// Longest further wait at this rate.
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
        let pace = |waited, bytes| BodyProgress { waited: Duration::from_secs(waited), bytes, waits_since: None };
        assert_eq!(pace(0, 0).allowance(grace), grace);
        assert_eq!(pace(29, 0).allowance(grace), Duration::from_secs(1));
        assert_eq!(pace(40, 5120).allowance(grace), Duration::ZERO);
        assert_eq!(pace(40, 1 << 20).allowance(grace), Duration::from_secs(30 + 2048 - 40));
    }
}

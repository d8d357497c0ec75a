//! A token bucket.

use std::time::{Duration, Instant};

/// A token bucket: a mean rate, and a burst.
#[derive(Debug)]
pub struct Tokens {
    /// Tokens a second.
    rate: f64,
    burst: f64,
    left: f64,
    at: Instant,
}

impl Tokens {
    /// A full bucket.
    pub fn new(rate: f64, burst: f64, now: Instant) -> Self {
        Tokens { rate, burst, left: burst, at: now }
    }

    /// When there is a token; not after `now` if there is one.
    pub fn ready(&self, now: Instant) -> Instant {
        let missing = 1.0 - self.left(now);
        if missing > 0.0 { now + Duration::from_secs_f64(missing / self.rate) } else { now }
    }

    /// Takes a token.
    pub fn take(&mut self, now: Instant) {
        (self.left, self.at) = (self.left(now) - 1.0, now);
    }

    fn left(&self, now: Instant) -> f64 {
        (self.left + now.saturating_duration_since(self.at).as_secs_f64() * self.rate).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_the_mean_rate() {
        let begin = Instant::now();
        let mut tokens = Tokens::new(10.0, 2.0, begin);
        for _ in 0..2 {
            assert_eq!(tokens.ready(begin), begin);
            tokens.take(begin);
        }
        let next = tokens.ready(begin);
        assert_eq!(next, begin + Duration::from_millis(100));
        tokens.take(next);
        assert!(tokens.ready(next) > next);
        // No more than the burst is saved.
        let later = begin + Duration::from_secs(60);
        for _ in 0..2 {
            assert_eq!(tokens.ready(later), later);
            tokens.take(later);
        }
        assert!(tokens.ready(later) > later);
    }
}

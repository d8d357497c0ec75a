//! Time of a connection's last activity, and the wait for inactivity.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Time of the last activity, set by both directions of a connection.
#[derive(Debug)]
pub struct Activity {
    start: Instant,
    last_ms: AtomicU64,
}

impl Activity {
    /// A connection that is active now.
    pub fn new() -> Self {
        Activity { start: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    /// Records activity.
    pub fn touch(&self) {
        let elapsed = self.start.elapsed().as_millis();
        self.last_ms.store(u64::try_from(elapsed).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Time of the last activity.
    pub fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    /// Waits until there was no activity for `limit`.
    pub async fn idle_for(&self, limit: Duration) {
        loop {
            let deadline = self.last() + limit;
            if Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }
}

//! Removes expired connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Bucket, Inner, MAX_AGE, lock};
use crate::dial::DESCRIPTOR_PAUSE;

/// Shortest time between two sweeps of a bucket with a short idle time.
const SHORTEST_SWEEP: Duration = Duration::from_millis(10);

impl Bucket {
    /// Whether connections expire before the pool is swept.
    pub(super) fn is_short(&self) -> bool {
        self.key.keep < MAX_AGE && !self.tied
    }

    /// Closes connections with a short idle time, by a task that runs while there are any.
    pub(super) fn sweep_in_time(self: &Arc<Self>, inner: &mut Inner) {
        if !self.is_short() || std::mem::replace(&mut inner.is_swept, true) {
            return;
        }
        let (bucket, keep) = (Arc::downgrade(self), self.key.keep.max(SHORTEST_SWEEP));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(keep).await;
                let Some(bucket) = bucket.upgrade() else { return };
                let mut inner = lock(&bucket.inner);
                if bucket.sweep_inner(&mut inner) {
                    inner.is_swept = false;
                    return;
                }
            }
        });
    }

    /// Closes connections that no request uses, except those used a moment ago.
    pub fn relieve(&self) {
        let mut inner = lock(&self.inner);
        inner.idle.retain(|idle| idle.since.elapsed() < DESCRIPTOR_PAUSE);
        inner.shared.retain(|(shared, _)| !shared.is_idle());
    }

    /// Removes expired connections; true when none is left.
    pub fn sweep(&self) -> bool {
        self.sweep_inner(&mut lock(&self.inner))
    }

    fn sweep_inner(&self, inner: &mut Inner) -> bool {
        let is_young = |age: Duration| self.tied || age < self.key.keep;
        inner.idle.retain(|idle| is_young(idle.since.elapsed()) && !idle.connection.sender.is_closed());
        let now = Instant::now();
        inner.shared.retain_mut(|(shared, last_used)| {
            if !shared.is_idle() {
                *last_used = now;
            }
            shared.is_usable() && is_young(now.duration_since(*last_used))
        });
        inner.idle.is_empty() && inner.shared.is_empty()
    }
}

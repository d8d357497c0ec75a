//! Whether the API server answers: what one request finds out, the retries of all others use.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::random;

/// Maximum random delay after the API server answers again, in milliseconds.
const SPREAD: u32 = 800;

/// Whether the last request had an answer, whatever its status.
#[derive(Clone, Debug)]
pub struct Reachability(Arc<watch::Sender<bool>>);

impl Default for Reachability {
    fn default() -> Self {
        Reachability(Arc::new(watch::Sender::new(true)))
    }
}

impl Reachability {
    /// Records whether a request had an answer.
    pub fn record(&self, answered: bool) {
        self.0.send_if_modified(|before| std::mem::replace(before, answered) != answered);
    }

    /// Whether it did.
    pub fn answers(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits before a request that had no answer is repeated: for this delay, or until shortly after another one had.
    pub async fn wait(&self, delay: Duration) {
        let again = async {
            // The sender is this value's.
            let _ = self.0.subscribe().wait_for(|answered| *answered).await;
            sleep(Duration::from_millis(random::within(0..SPREAD).into())).await;
        };
        let _ = timeout(delay, again).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_delay_ends_soon_after_the_outage() {
        let reachability = Reachability::default();
        reachability.record(false);
        let begin = Instant::now();
        reachability.wait(Duration::from_millis(20)).await;
        assert!(begin.elapsed() >= Duration::from_millis(20));
        let waiting = reachability.clone();
        let waiting = tokio::spawn(async move { waiting.wait(Duration::from_secs(3600)).await });
        reachability.record(true);
        waiting.await.unwrap();
    }
}

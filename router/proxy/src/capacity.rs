//! Connection limits. A router at its limit accepts no connection until one has ended. Until then clients wait in the
//! listening sockets' queues, as with HAProxy's `maxconn`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Shortest interval between two messages about a reached limit.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// A limited number of permits.
#[derive(Debug)]
pub struct Capacity {
    taken: AtomicUsize,
    most: AtomicUsize,
    freed: Notify,
    last_logged: Mutex<Option<Instant>>,
}

impl Default for Capacity {
    fn default() -> Self {
        Capacity {
            taken: AtomicUsize::new(0),
            most: AtomicUsize::new(usize::MAX),
            freed: Notify::new(),
            last_logged: Mutex::default(),
        }
    }
}

impl Capacity {
    /// Sets the limit. Connections beyond a lower limit continue.
    pub fn set(&self, most: usize) {
        if self.most.swap(most, Ordering::AcqRel) < most {
            self.freed.notify_waiters();
        }
    }

    /// Takes a permit even beyond the limit: an accepted connection is served.
    pub fn take(self: &Arc<Self>) -> ConnectionPermit {
        self.taken.fetch_add(1, Ordering::AcqRel);
        ConnectionPermit(Arc::clone(self))
    }

    /// Takes a permit if one is left.
    pub fn try_take(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let more = |taken: usize| (taken < self.most.load(Ordering::Acquire)).then(|| taken + 1);
        self.taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()
            .map(|_| ConnectionPermit(Arc::clone(self)))
    }

    /// Number of permits taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Whether no permit is left.
    pub fn is_full(&self) -> bool {
        self.taken() >= self.most.load(Ordering::Acquire)
    }

    /// Waits until a permit is left. True if it had to wait, and returned true to nobody in the last minute.
    pub async fn wait(&self) -> bool {
        let mut tell = false;
        loop {
            // Registered before the check, so that a release in between is not missed.
            let freed = self.freed.notified();
            if !self.is_full() {
                return tell;
            }
            tell |= self.is_news();
            freed.await;
        }
    }

    fn is_news(&self) -> bool {
        let mut last = self.last_logged.lock().unwrap_or_else(PoisonError::into_inner);
        let news = last.is_none_or(|last| last.elapsed() >= LOG_INTERVAL);
        if news {
            *last = Some(Instant::now());
        }
        news
    }
}

/// A permit; dropping it releases it.
#[derive(Debug)]
pub struct ConnectionPermit(Arc<Capacity>);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Capacity { taken, most, freed, .. } = &*self.0;
        let before = taken.fetch_sub(1, Ordering::AcqRel);
        // Only waiters for the last permit need a notification.
        if before == most.load(Ordering::Acquire) {
            freed.notify_waiters();
        }
    }
}

/// The permits of a connection: its router's, and the process's.
#[derive(Debug)]
pub struct Permits(#[expect(dead_code, reason = "held for its drop")] pub [ConnectionPermit; 2]);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_waiter_gets_the_next_free_permit() {
        let capacity = Arc::new(Capacity::default());
        capacity.set(2);
        let mut seats = vec![capacity.take(), capacity.take()];
        assert!(capacity.is_full());
        let waiting = tokio::spawn({
            let capacity = Arc::clone(&capacity);
            async move { capacity.wait().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        seats.pop();
        let is_first = tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("a seat").unwrap();
        assert!(is_first, "it is the first to hear of it");
        seats.push(capacity.take());
        let mut again = std::pin::pin!(capacity.wait());
        assert!(futures_util::poll!(again.as_mut()).is_pending());
        seats.pop();
        assert!(!again.await, "nothing new");
    }

    #[test]
    fn no_more_seats_are_given_than_there_are() {
        let capacity = Arc::new(Capacity::default());
        capacity.set(1);
        let seat = capacity.try_take();
        assert!(seat.is_some() && capacity.try_take().is_none() && capacity.taken() == 1);
        drop(seat);
        assert!(capacity.try_take().is_some());
    }

    #[tokio::test]
    async fn a_higher_limit_admits_and_a_lower_one_closes_no_connection() {
        let capacity = Arc::new(Capacity::default());
        let seats: Vec<ConnectionPermit> = (0..3).map(|_| capacity.take()).collect();
        capacity.set(1);
        assert!(capacity.is_full());
        let mut waiting = std::pin::pin!(capacity.wait());
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        capacity.set(4);
        waiting.await;
        assert_eq!(capacity.taken(), seats.len());
    }
}

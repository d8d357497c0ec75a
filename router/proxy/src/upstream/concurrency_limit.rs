//! Counts requests or connections of each endpoint, enforces the limit, and queues those that exceed it.
//!
//! When all endpoints are at their limit, a request waits in a queue for up to the connect timeout, as in HAProxy. A
//! request that ends passes its permit to the first in the queue.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Longest queue; beyond it the request fails at once.
const LONGEST_LINE: usize = 1024;

/// Load of an endpoint of a route. Outlives versions of the route.
#[derive(Debug)]
pub struct Occupancy {
    active: AtomicU32,
    limit: AtomicU32,
    /// Requests that need this endpoint.
    own: WaitQueue,
    /// Requests that accept any endpoint of the route.
    any: Arc<WaitQueue>,
}

impl Occupancy {
    /// An endpoint without load; `any` is the queue of its route.
    pub fn new(any: Arc<WaitQueue>) -> Self {
        Occupancy { active: AtomicU32::new(0), limit: AtomicU32::new(u32::MAX), own: WaitQueue::default(), any }
    }

    /// Current number of requests or connections.
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.active() >= self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit (`pod-concurrent-connections`). Lowering it does not affect requests in progress.
    pub fn set_limit(&self, limit: Option<NonZeroU32>) {
        self.limit.store(limit.map_or(u32::MAX, NonZeroU32::get), Ordering::Relaxed);
    }

    /// The queue of this endpoint.
    pub fn line(&self) -> &WaitQueue {
        &self.own
    }

    /// Takes a permit, unless the limit is reached.
    pub fn take(self: &Arc<Self>) -> Option<Permit> {
        let more = |active: u32| (active < self.limit.load(Ordering::Relaxed)).then(|| active + 1);
        // Sequentially consistent, as are `WaitQueue::enter` and `Permit::drop`: either the waiter sees the released
        // permit, or the releaser sees the waiter.
        self.active.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Permit(Arc::clone(self)))
    }
}

/// A request or connection of an endpoint; dropping it releases it.
#[derive(Debug)]
pub struct Permit(Arc<Occupancy>);

impl Permit {
    /// Whether the permit belongs to this endpoint.
    pub fn is_of(&self, occupancy: &Arc<Occupancy>) -> bool {
        Arc::ptr_eq(&self.0, occupancy)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let it = &self.0;
        it.active.fetch_sub(1, Ordering::SeqCst);
        if it.own.is_empty() && it.any.is_empty() {
            return;
        }
        let Some(place) = it.take() else { return };
        if let Some(first) = it.own.first().or_else(|| it.any.first()) {
            // If the waiter is gone, dropping the permit here passes it to the next one.
            drop(first.send(place));
        }
    }
}

/// A first-in, first-out queue of waiters.
#[derive(Debug, Default)]
pub struct WaitQueue {
    /// Number of waiters, so that an empty queue is recognized without the lock.
    length: AtomicUsize,
    waiting: Mutex<VecDeque<oneshot::Sender<Permit>>>,
}

impl WaitQueue {
    /// Joins the queue; `None` when it is full. The caller must try to take a permit once more afterwards, because a
    /// permit that was released before is passed to nobody.
    pub fn enter(&self) -> Option<oneshot::Receiver<Permit>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= LONGEST_LINE {
            waiting.retain(|place| !place.is_closed());
        }
        let (place, handed) = oneshot::channel();
        let has_room = waiting.len() < LONGEST_LINE;
        if has_room {
            waiting.push_back(place);
        }
        self.length.store(waiting.len(), Ordering::SeqCst);
        has_room.then_some(handed)
    }

    fn is_empty(&self) -> bool {
        self.length.load(Ordering::SeqCst) == 0
    }

    /// Removes the first waiter that still waits.
    fn first(&self) -> Option<oneshot::Sender<Permit>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let first = std::iter::from_fn(|| waiting.pop_front()).find(|place| !place.is_closed());
        self.length.store(waiting.len(), Ordering::SeqCst);
        first
    }
}

#[cfg(test)]
mod tests;

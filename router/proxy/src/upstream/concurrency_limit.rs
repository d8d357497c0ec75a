//! How many requests or connections an endpoint has, the limit on them, and the line of those who wait for one to end.
//!
//! Who comes when every endpoint has what it may have waits in line, as in HAProxy, for as long as a connection may
//! take to be made. Whoever ends hands his place to the first in line.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Most who wait in one line; beyond it the answer is "busy" at once.
const LONGEST_LINE: usize = 1024;

/// What an endpoint of a route has to do. Outlives versions of the route.
#[derive(Debug)]
pub struct Occupancy {
    active: AtomicU32,
    limit: AtomicU32,
    /// Those who must have this endpoint.
    own: WaitQueue,
    /// Those who take any endpoint of the route.
    any: Arc<WaitQueue>,
}

impl Occupancy {
    /// That of an endpoint without requests; `any` is the line of its route.
    pub fn new(any: Arc<WaitQueue>) -> Self {
        Occupancy { active: AtomicU32::new(0), limit: AtomicU32::new(u32::MAX), own: WaitQueue::default(), any }
    }

    /// Requests or connections at the moment.
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// Whether there are as many as there may be.
    pub fn is_full(&self) -> bool {
        self.active() >= self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit (`pod-concurrent-connections`). A lower one takes nothing away from those who are there.
    pub fn set_limit(&self, limit: Option<NonZeroU32>) {
        self.limit.store(limit.map_or(u32::MAX, NonZeroU32::get), Ordering::Relaxed);
    }

    /// The line for this endpoint alone.
    pub fn line(&self) -> &WaitQueue {
        &self.own
    }

    /// Counts one more, unless the limit is reached.
    pub fn take(self: &Arc<Self>) -> Option<Permit> {
        let more = |active: u32| (active < self.limit.load(Ordering::Relaxed)).then(|| active + 1);
        // Sequentially consistent, as are `Line::enter` and `Place::drop`: either the one who waits sees the place that
        // became free, or the one who leaves sees him wait.
        self.active.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Permit(Arc::clone(self)))
    }
}

/// One request or connection of an endpoint, until it is dropped.
#[derive(Debug)]
pub struct Permit(Arc<Occupancy>);

impl Permit {
    /// Whether it is one of this endpoint.
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
            // If he has gone meanwhile, the place goes on to the next one as it is dropped here.
            drop(first.send(place));
        }
    }
}

/// Those who wait, first come first served.
#[derive(Debug, Default)]
pub struct WaitQueue {
    /// How many wait, so that nobody takes the lock to see that nobody does.
    length: AtomicUsize,
    waiting: Mutex<VecDeque<oneshot::Sender<Permit>>>,
}

impl WaitQueue {
    /// Goes to the end of the line; `None` when it is too long. Whoever waits must look for a free place once more
    /// after this: what became free before it is handed to nobody.
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

    /// Takes the first of those out who still wait.
    fn first(&self) -> Option<oneshot::Sender<Permit>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let first = std::iter::from_fn(|| waiting.pop_front()).find(|place| !place.is_closed());
        self.length.store(waiting.len(), Ordering::SeqCst);
        first
    }
}

#[cfg(test)]
mod tests;

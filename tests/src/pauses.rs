//! Measures how long the machine delays runnable threads, so that tests can subtract such delays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time for which the watching thread sleeps.
const NAP: Duration = Duration::from_millis(5);

/// A thread that sleeps for short times, and adds up the delays of its wake-ups.
pub struct Pauses {
    watched: Arc<Watched>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Watched {
    /// Microseconds.
    lost: AtomicU64,
    naps: AtomicU64,
    ended: AtomicBool,
}

impl Pauses {
    /// Runs until the value is dropped.
    pub fn watch() -> Self {
        let watched = Arc::<Watched>::default();
        let of_thread = Arc::clone(&watched);
        let thread = thread::spawn(move || {
            while !of_thread.ended.load(Ordering::Relaxed) {
                let start = Instant::now();
                thread::sleep(NAP);
                let late = start.elapsed().saturating_sub(NAP);
                of_thread.lost.fetch_add(late.as_micros() as u64, Ordering::Relaxed);
                of_thread.naps.fetch_add(1, Ordering::Release);
            }
        });
        Pauses { watched, thread: Some(thread) }
    }

    /// Restarts the count.
    pub fn reset(&self) {
        self.watched.lost.store(0, Ordering::Relaxed);
    }

    /// Total delay since then. Waits for the next wake-up, as the thread may be late at the moment.
    pub fn lost(&self) -> Duration {
        let seen = self.watched.naps.load(Ordering::Acquire);
        while self.watched.naps.load(Ordering::Acquire) == seen {
            thread::yield_now();
        }
        Duration::from_micros(self.watched.lost.load(Ordering::Relaxed))
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.watched.ended.store(true, Ordering::Relaxed);
        // The thread does not panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

//! Wakes a task that waits repeatedly.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;

/// No task is registered.
const NOBODY: u8 = 0;
/// One task is registered.
const ONE: u8 = 1;
/// Other tasks are registered, too.
const OTHERS: u8 = 2;

/// Wakes the registered tasks. If the first task registers again, that costs a comparison, where an [`AtomicWaker`]
/// clones the waker and contends with `wake()`. So the first task may get spurious wake-ups.
///
/// The condition must be written before [`TaskWaker::wake`] and read after [`TaskWaker::register`], both with
/// [`Ordering::SeqCst`].
#[derive(Debug, Default)]
pub struct TaskWaker {
    who: AtomicU8,
    first: OnceLock<Waker>,
    other: AtomicWaker,
}

impl TaskWaker {
    /// Registers a task. Of the tasks after the first, only the latest stays registered.
    pub fn register(&self, task: &Waker) {
        let is_first = || self.first.get().is_some_and(|first| first.will_wake(task));
        if self.who.load(Ordering::SeqCst) != NOBODY && is_first() {
            return;
        }
        if self.first.set(task.clone()).is_ok() {
            self.who.fetch_max(ONE, Ordering::SeqCst);
        } else if !is_first() {
            self.other.register(task);
            self.who.fetch_max(OTHERS, Ordering::SeqCst);
        }
    }

    /// Wakes the tasks.
    pub fn wake(&self) {
        let who = self.who.load(Ordering::SeqCst);
        if who == NOBODY {
            return;
        }
        if let Some(first) = self.first.get() {
            first.wake_by_ref();
        }
        if who == OTHERS {
            self.other.wake();
        }
    }
}

/// A task that counts its wake-ups.
#[cfg(test)]
#[derive(Default)]
pub struct Count(std::sync::atomic::AtomicUsize);

#[cfg(test)]
impl std::task::Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
impl Count {
    /// Number of wake-ups since the last call.
    pub fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_task_that_waits_is_woken_and_the_first_one_always() {
        let counts: [Arc<Count>; 3] = Default::default();
        let woken = || [0, 1, 2].map(|at: usize| counts[at].take());
        let [a, b, c] = [0, 1, 2].map(|at: usize| Waker::from(Arc::clone(&counts[at])));
        let waker = TaskWaker::default();
        waker.wake();
        waker.register(&a);
        assert_eq!(woken(), [0, 0, 0]);
        waker.wake();
        waker.wake();
        assert_eq!(woken(), [2, 0, 0]);
        waker.register(&b);
        waker.wake();
        waker.wake();
        assert_eq!(woken(), [2, 1, 0]);
        waker.register(&b);
        waker.register(&c);
        waker.wake();
        assert_eq!(woken(), [1, 0, 1]);
    }

    /// A task that registers and then sees no event is woken, whatever the timing of the two threads.
    #[test]
    fn no_wake_up_is_lost() {
        for _ in 0..2000 {
            let (shared, count) = (Arc::new((TaskWaker::default(), AtomicU8::new(0))), Arc::<Count>::default());
            let other = Arc::clone(&shared);
            let teller = std::thread::spawn(move || {
                other.1.store(1, Ordering::SeqCst);
                other.0.wake();
            });
            shared.0.register(&Waker::from(Arc::clone(&count)));
            let seen = shared.1.load(Ordering::SeqCst);
            teller.join().unwrap();
            assert!(seen == 1 || count.take() == 1);
        }
    }
}

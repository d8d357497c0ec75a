//! Suppresses wake-ups that would find nothing to do.
//!
//! hyper wakes the task of an upstream connection whenever a part of a response body is consumed, so that the
//! connection reads the next part. After the last part there is nothing to read. Without this module that wake-up would
//! cost each request one poll of the connection task.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

thread_local!(static SUPPRESSION: Cell<Suppression> = const { Cell::new(Suppression::Off) });

/// State of wake-up suppression on this thread.
#[derive(Default)]
enum Suppression {
    /// Wake-ups are passed on.
    #[default]
    Off,
    /// Wake-ups are held back.
    On,
    /// A wake-up is held back.
    Kept(Arc<SuppressibleWaker>),
}

/// Wakes a task, unless suppression is on.
struct SuppressibleWaker(Waker);

impl Wake for SuppressibleWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match SUPPRESSION.take() {
            Suppression::Off => self.0.wake_by_ref(),
            Suppression::On => SUPPRESSION.set(Suppression::Kept(Arc::clone(self))),
            Suppression::Kept(other) => {
                // Only one wake-up can be held back; the earlier one is delivered.
                if !Arc::ptr_eq(self, &other) {
                    other.0.wake_by_ref();
                }
                SUPPRESSION.set(Suppression::Kept(Arc::clone(self)));
            }
        }
    }
}

/// Runs a task whose wake-ups can be suppressed.
pub async fn sleeper<F: Future>(task: F) -> F::Output {
    let mut task = pin!(task);
    let mut known: Option<(Arc<SuppressibleWaker>, Waker)> = None;
    poll_fn(|cx| {
        let is_same = known.as_ref().is_some_and(|(sleeper, _)| sleeper.0.will_wake(cx.waker()));
        if !is_same {
            let sleeper = Arc::new(SuppressibleWaker(cx.waker().clone()));
            known = Some((Arc::clone(&sleeper), sleeper.into()));
        }
        let waker = known.as_ref().map_or(cx.waker(), |(_, waker)| waker);
        task.as_mut().poll(&mut Context::from_waker(waker))
    })
    .await
}

/// A wake-up that was held back.
#[must_use = "the task may have something to do"]
pub struct WakeUp(Option<Arc<SuppressibleWaker>>);

impl WakeUp {
    /// Delivers the wake-up.
    pub fn wake(self) {
        if let WakeUp(Some(sleeper)) = self {
            sleeper.0.wake_by_ref();
        }
    }

    /// Drops the wake-up, because the task has nothing to do.
    pub fn forget(self) {}
}

/// Polls, and holds back the wake-up of a [`sleeper`] task meanwhile.
pub fn during<T>(poll: impl FnOnce() -> Poll<T>) -> (Poll<T>, WakeUp) {
    /// Ends the suppression, also on a panic.
    struct Guard;
    impl Guard {
        fn kept(&self) -> WakeUp {
            match SUPPRESSION.take() {
                Suppression::Kept(sleeper) => WakeUp(Some(sleeper)),
                Suppression::Off | Suppression::On => WakeUp(None),
            }
        }
    }
    impl Drop for Guard {
        fn drop(&mut self) {
            self.kept().wake();
        }
    }
    SUPPRESSION.set(Suppression::On);
    let guard = Guard;
    let polled = poll();
    let kept = guard.kept();
    (polled, kept)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::rt::task_waker::Count;

    /// The waker that a task inside `sleeper` gets.
    fn waker(count: &Arc<Count>) -> Waker {
        let got = Mutex::new(None);
        let task = poll_fn(|cx| {
            *got.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        let outer = Waker::from(Arc::clone(count));
        let mut task = pin!(sleeper(task));
        assert!(task.as_mut().poll(&mut Context::from_waker(&outer)).is_pending());
        got.lock().unwrap().take().unwrap()
    }

    #[test]
    fn a_task_is_woken_unless_its_wake_up_is_suppressed_and_dropped() {
        let (count, other) = (Arc::<Count>::default(), Arc::<Count>::default());
        let woken = || (count.take(), other.take());
        let (task, second) = (waker(&count), waker(&other));
        task.wake_by_ref();
        assert_eq!(woken(), (1, 0));

        let wakes = |wakers: &[&Waker]| {
            wakers.iter().for_each(|waker| waker.wake_by_ref());
            Poll::<()>::Pending
        };
        let (_, kept) = during(|| wakes(&[&task, &task]));
        assert_eq!(woken(), (0, 0));
        kept.wake();
        assert_eq!(woken(), (1, 0));
        during(|| wakes(&[&task])).1.forget();
        during(|| wakes(&[])).1.wake();
        assert_eq!(woken(), (0, 0));
        // At most one wake-up can be suppressed.
        during(|| wakes(&[&task, &second])).1.forget();
        assert_eq!(woken(), (1, 0));
        task.wake();
        assert_eq!(woken(), (1, 0));
    }

    #[test]
    fn a_panic_leaves_no_wake_up_suppressed() {
        let count = Arc::<Count>::default();
        let task = waker(&count);
        let panics = std::panic::AssertUnwindSafe(|| {
            let _ = during(|| -> Poll<()> {
                task.wake_by_ref();
                std::panic::resume_unwind(Box::new(()));
            });
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(count.take(), 1);
        task.wake_by_ref();
        assert_eq!(count.take(), 1);
    }
}

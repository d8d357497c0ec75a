//! Timers for waits that begin and end with each request or connection. A timer of the runtime is reused: registering
//! and cancelling it is the most expensive part of a wait.

use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::coop;
use tokio::time::{Instant, Sleep};
use try_lock::TryLock;

/// Most spare timers. Each keeps the memory of the task that used it last until it fires.
const MAX_SPARE: usize = 256;

/// A reusable timeout; rescheduled only when it fires too early.
#[derive(Debug, Default)]
pub struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    deadline: Option<Instant>,
    /// Waker that the runtime wakes when it fires.
    waiter: Option<Waker>,
}

impl Timer {
    /// Ends the wait.
    pub fn stop(&mut self) {
        self.deadline = None;
    }

    /// Ready when the wait has lasted for `limit`. Begins the wait unless it has begun.
    pub fn poll(&mut self, cx: &mut Context<'_>, limit: Duration) -> Poll<()> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + limit);
        self.poll_until(cx, deadline)
    }

    /// Ready at `deadline` or later.
    pub fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
            self.waiter = None;
        }
        // A registered waker is not registered again, which would be the most expensive part.
        if self.waiter.as_ref().is_some_and(|waiter| waiter.will_wake(cx.waker())) && !sleep.is_elapsed() {
            return Poll::Pending;
        }
        self.waiter = None;
        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
        // tokio's budget is used up; the waker was not registered.
        if coop::has_budget_remaining() {
            self.waiter = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// A timer that one task uses repeatedly, so that its waker stays registered.
#[derive(Debug, Default)]
pub struct TaskTimer(TryLock<Timer>);

/// Spare timers of a runtime.
#[derive(Debug, Default)]
pub struct Timers(Mutex<Vec<Timer>>);

impl Timers {
    /// A timer, returned when dropped.
    pub fn lend(&self) -> PooledTimer<'_> {
        let timer = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        PooledTimer { owner: TimerOwner::All(self), timer }
    }
}

impl TaskTimer {
    /// The timer, returned when dropped; a new one while it is in use.
    pub fn lend(&self) -> PooledTimer<'_> {
        let timer = self.0.try_lock().map(|mut timer| std::mem::take(&mut *timer)).unwrap_or_default();
        PooledTimer { owner: TimerOwner::One(self), timer }
    }
}

/// A timer in use.
#[derive(Debug)]
pub struct PooledTimer<'t> {
    owner: TimerOwner<'t>,
    timer: Timer,
}

/// Where the timer is returned to.
#[derive(Debug)]
enum TimerOwner<'t> {
    All(&'t Timers),
    One(&'t TaskTimer),
}

impl Deref for PooledTimer<'_> {
    type Target = Timer;

    fn deref(&self) -> &Timer {
        &self.timer
    }
}

impl DerefMut for PooledTimer<'_> {
    fn deref_mut(&mut self) -> &mut Timer {
        &mut self.timer
    }
}

impl Drop for PooledTimer<'_> {
    fn drop(&mut self) {
        self.timer.stop();
        if self.timer.sleep.is_none() {
            return;
        }
        match self.owner {
            TimerOwner::All(timers) => {
                self.timer.waiter = None;
                let mut spare = timers.0.lock().unwrap_or_else(PoisonError::into_inner);
                if spare.len() < MAX_SPARE {
                    spare.push(std::mem::take(&mut self.timer));
                }
            }
            TimerOwner::One(own) => {
                if let Some(mut place) = own.0.try_lock() {
                    *place = std::mem::take(&mut self.timer);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn a_timer_is_as_good_as_new_whatever_it_was_used_for() {
        let timers = Timers::default();
        for milliseconds in [30, 1, 5, 60, 2] {
            let mut timer = timers.lend();
            let (begun, wanted) = (Instant::now(), Duration::from_millis(milliseconds));
            let waited = poll_fn(|cx| timer.poll_until(cx, begun + wanted));
            tokio::time::timeout(LONG / 2, waited).await.expect("an end");
            assert!(begun.elapsed() >= wanted);
            drop(timer);
            // A timer that is dropped long before its deadline.
            let mut timer = timers.lend();
            let until = Instant::now() + LONG;
            assert!(poll_fn(|cx| Poll::Ready(timer.poll_until(cx, until))).await.is_pending());
        }
        assert_eq!(timers.0.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_task_timer_fires_for_any_task() {
        let own = TaskTimer::default();
        let (begun, wanted) = (Instant::now(), Duration::from_millis(20));
        for task in 0..4_u32 {
            // The same task twice, then others; a lent timer does not block others.
            let mut timer = own.lend();
            let mut second = own.lend();
            let until = begun + wanted * (task + 1);
            let both = poll_fn(|cx| {
                let polled = (timer.poll_until(cx, until), second.poll_until(cx, until));
                if polled.0.is_ready() && polled.1.is_ready() { Poll::Ready(()) } else { Poll::Pending }
            });
            if task % 2 == 0 {
                tokio::time::timeout(LONG, both).await.expect("an end");
            } else {
                let other = tokio::task::LocalSet::new();
                other.run_until(async { tokio::time::timeout(LONG, both).await.expect("an end") }).await;
            }
            assert!(begun.elapsed() >= wanted * (task + 1));
        }
        assert!(own.0.try_lock().unwrap().sleep.is_some());
    }

    #[tokio::test]
    async fn the_last_poller_is_woken() {
        let (mut timer, limit) = (Timer::default(), Duration::from_millis(50));
        let begun = Instant::now();
        // Another task's waker, twice.
        let mut cx = Context::from_waker(Waker::noop());
        assert!(timer.poll(&mut cx, limit).is_pending());
        assert!(timer.poll(&mut cx, limit).is_pending());
        tokio::time::timeout(LONG, poll_fn(|cx| timer.poll(cx, limit))).await.expect("an end");
        assert!(begun.elapsed() >= limit);
        // The timer fires while nothing polls it.
        timer.stop();
        assert!(timer.poll(&mut cx, limit).is_pending());
        tokio::time::sleep(2 * limit).await;
        assert!(timer.poll(&mut cx, limit).is_ready());
    }

    #[tokio::test]
    async fn not_more_are_kept_than_the_bound() {
        let timers = Timers::default();
        let mut lent: Vec<PooledTimer<'_>> = (0..MAX_SPARE + 10).map(|_| timers.lend()).collect();
        let until = Instant::now() + Duration::from_secs(60);
        poll_fn(|cx| {
            assert!(lent.iter_mut().all(|timer| timer.poll_until(cx, until).is_pending()));
            Poll::Ready(())
        })
        .await;
        drop(lent);
        assert_eq!(timers.0.lock().unwrap().len(), MAX_SPARE);
        drop(timers.lend());
        assert_eq!(timers.0.lock().unwrap().len(), MAX_SPARE);
    }
}

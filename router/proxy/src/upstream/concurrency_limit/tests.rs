//! Limits and queues.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;

use super::*;

fn limited(limit: u32) -> Arc<Occupancy> {
    let occupancy = Occupancy::new(Arc::default());
    occupancy.set_limit(NonZeroU32::new(limit));
    Arc::new(occupancy)
}

#[test]
fn no_more_than_the_limit_from_any_number_of_threads() {
    let occupancy = limited(5);
    let (barrier, most) = (Barrier::new(8), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..2_000 {
                    if let Some(place) = occupancy.take() {
                        most.fetch_max(occupancy.active(), Ordering::Relaxed);
                        std::thread::yield_now();
                        drop(place);
                    }
                }
            });
        }
    });
    assert_eq!(occupancy.active(), 0);
    assert!((1..=5).contains(&most.load(Ordering::Relaxed)));
}

#[tokio::test]
async fn the_first_in_line_gets_what_becomes_free() {
    let occupancy = limited(1);
    let place = occupancy.take().unwrap();
    assert!(occupancy.is_full() && occupancy.take().is_none());
    let (own, any) = (occupancy.line().enter().unwrap(), occupancy.any.enter().unwrap());
    let gone = occupancy.line().enter().unwrap();
    let last = occupancy.line().enter().unwrap();
    drop(gone);
    drop(place);
    // A waiter for this endpoint comes before those for any endpoint.
    let handed = own.await.unwrap();
    assert!(handed.is_of(&occupancy) && occupancy.active() == 1);
    drop(handed);
    drop(last.await.unwrap());
    drop(any.await.unwrap());
    assert_eq!(occupancy.active(), 0);
}

#[test]
fn a_lowered_limit_is_kept_as_places_become_free() {
    let occupancy = limited(2);
    let places = [occupancy.take().unwrap(), occupancy.take().unwrap()];
    occupancy.set_limit(NonZeroU32::new(1));
    let mut waiting = occupancy.line().enter().unwrap();
    let [first, second] = places;
    drop(first);
    assert!(waiting.try_recv().is_err(), "there is still one");
    drop(second);
    assert!(waiting.try_recv().is_ok());
}

#[test]
fn lines_have_an_end_and_those_who_left_make_room() {
    let line = WaitQueue::default();
    let mut waiting: Vec<_> = (0..LONGEST_LINE).map(|_| line.enter().unwrap()).collect();
    assert!(line.enter().is_none());
    waiting.truncate(10);
    assert!(line.enter().is_some());
    assert!(line.length.load(Ordering::Relaxed) <= 11);
}

/// Every waiter is served, in whatever order threads come and go.
#[test]
fn no_waiter_is_left() {
    let occupancy = limited(1);
    let stuck = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                for _ in 0..2_000 {
                    let served = runtime.block_on(async {
                        let handed = occupancy.any.enter().unwrap();
                        if let Some(place) = occupancy.take() {
                            return Some(place);
                        }
                        tokio::time::timeout(std::time::Duration::from_secs(20), handed).await.ok()?.ok()
                    });
                    stuck.fetch_or(served.is_none(), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(!stuck.load(Ordering::Relaxed));
    assert_eq!(occupancy.active(), 0);
}

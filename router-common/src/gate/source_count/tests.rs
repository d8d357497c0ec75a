//! Numbers of connections under several processors.

use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::vec::Vec;

use super::super::tests::SharedSet;
use super::*;

impl Counts for SharedSet {
    fn subtract_one(&self, index: u32) {
        self.0[index as usize].fetch_sub(1, Ordering::SeqCst);
    }
}

/// Hash of a source of which the tag is `number`.
fn tagged(number: u64) -> u64 {
    number << COUNT_BITS
}

fn place(counted: Counted) -> u32 {
    let Counted::In(index) = counted else { panic!("{counted:?}") };
    index
}

#[test]
fn a_source_has_as_many_as_its_limit() {
    let set = SharedSet::default();
    let places: Vec<u32> = (0..3).map(|_| place(take(&set, tagged(7), 3))).collect();
    assert_eq!((take(&set, tagged(7), 3), count(&set, tagged(7))), (Counted::Full, 3));
    assert_eq!(take(&set, tagged(8), 0), Counted::Full);
    // Another limit follows at once; what is above it stays.
    assert_eq!(take(&set, tagged(7), 2), Counted::Full);
    let more = place(take(&set, tagged(7), UNLIMITED));
    for at in places.into_iter().chain([more]) {
        set.subtract_one(at);
    }
    assert_eq!(count(&set, tagged(7)), 0);
    assert_eq!(place(take(&set, tagged(7), 1)), 0);
}

#[test]
fn a_source_with_connections_is_never_evicted() {
    let set = SharedSet::default();
    for source in 1..=8 {
        place(take(&set, tagged(source), 1));
    }
    for source in 9..10_000 {
        assert_eq!(take(&set, tagged(source), 1), Counted::NoRoom);
        assert_eq!(count(&set, tagged(source)), 0);
    }
    assert!((1..=8).all(|source| take(&set, tagged(source), 1) == Counted::Full));
    set.subtract_one(3);
    assert_eq!(place(take(&set, tagged(99), 1)), 3);
}

/// Eight senders of four sources, in a set in which words are freed and taken all the time.
#[test]
fn eight_senders_at_once_never_exceed_the_limit_and_leave_nothing() {
    const LIMIT: u64 = 3;
    const EACH: usize = 50_000;
    let (set, live, most) = (SharedSet::default(), [const { AtomicU64::new(0) }; 4], AtomicU64::new(0));
    thread::scope(|scope| {
        for sender in 0..8_usize {
            let (set, live, most) = (&set, &live, &most);
            scope.spawn(move || {
                let mut held = Vec::new();
                for turn in 0..EACH {
                    let source = (sender + turn / 7) % 4;
                    if let Counted::In(at) = take(set, tagged(source as u64 + 1), LIMIT as u32) {
                        most.fetch_max(live[source].fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        held.push((source, at));
                    }
                    if turn % 3 == 0 || held.len() > 1 {
                        held.drain(..).for_each(|(source, at)| {
                            live[source].fetch_sub(1, Ordering::SeqCst);
                            set.subtract_one(at);
                        });
                    }
                }
                for (source, at) in held {
                    live[source].fetch_sub(1, Ordering::SeqCst);
                    set.subtract_one(at);
                }
            });
        }
    });
    assert_eq!(most.load(Ordering::SeqCst), LIMIT);
    assert!((0..4).all(|source| count(&set, tagged(source + 1)) == 0));
}

#[test]
fn of_eight_senders_at_once_exactly_as_many_as_the_limit_are_counted() {
    for limit in 1..=8 {
        for _ in 0..200 {
            let set = SharedSet::default();
            let counted: usize = thread::scope(|scope| {
                let senders: Vec<_> = (0..8)
                    .map(|_| scope.spawn(|| usize::from(matches!(take(&set, tagged(1), limit), Counted::In(_)))))
                    .collect();
                senders.into_iter().map(|sender| sender.join().unwrap()).sum()
            });
            assert_eq!((counted as u32, count(&set, tagged(1))), (limit, limit));
        }
    }
}

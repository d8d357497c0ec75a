//! Work on several threads. The helpers remain, so that memory that one has freed serves its next work.

use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// Number of items that a thread takes at a time.
const RUN: usize = 16;
/// Most threads that work on something.
const MAX_THREADS: usize = 16;

/// Number of threads that work on something: one for each processor, up to a limit.
pub fn threads() -> usize {
    static THREADS: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS));
    *THREADS
}

/// One thread for each processor but one, where the calling thread works; `None` if they cannot be created.
static HELPERS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let builder = ThreadPoolBuilder::new().num_threads(threads().saturating_sub(1).max(1));
    builder.thread_name(|_| "parallel".to_owned()).build().ok()
});

/// The result of `work` for each item, in order of the items. One thread for each of `states`, which must not be empty;
/// the calling thread is the first one, and does everything itself if there are few items.
pub fn map<S: Send, T: Sync, R: Send>(states: &mut [S], items: &[T], work: impl Fn(&mut S, &T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take_runs = |state: &mut S| {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(RUN, Ordering::Relaxed);
            let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else { return done };
            done.push((start, rest.iter().take(RUN).map(|item| work(state, item)).collect::<Vec<R>>()));
        }
    };
    let take_runs = &take_runs;
    let Some((own, others)) = states.split_first_mut() else { return Vec::new() };
    let helpers = items.len().div_ceil(RUN).saturating_sub(1).min(others.len());
    let pool = if helpers > 0 { HELPERS.as_ref() } else { None };
    let mut runs = match pool {
        None => take_runs(own),
        Some(pool) => {
            let mut theirs: Vec<_> = (0..helpers).map(|_| Vec::new()).collect();
            let mut runs = pool.in_place_scope(|scope| {
                for (state, runs) in others.iter_mut().zip(&mut theirs) {
                    scope.spawn(move |_| *runs = take_runs(state));
                }
                take_runs(own)
            });
            runs.extend(theirs.into_iter().flatten());
            runs
        }
    };
    runs.sort_unstable_by_key(|(start, _)| *start);
    runs.into_iter().flat_map(|(_, results)| results).collect()
}

/// Calls a function on every helper that there is.
pub fn on_helpers(act: impl Fn() + Sync) {
    if let Some(pool) = LazyLock::get(&HELPERS).and_then(Option::as_ref) {
        pool.broadcast(|_| act());
    }
}

/// As [`map`], without states, on one thread for each processor.
pub fn map_all<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map(&mut vec![(); threads()], items, |(), item| work(item))
}

/// The results of two functions, of which the second has a thread of its own.
pub fn both<A, B: Send>(one: impl FnOnce() -> A, other: impl Fn() -> B + Sync) -> (A, B) {
    thread::scope(|scope| {
        let helper = thread::Builder::new().name("parallel".to_owned()).spawn_scoped(scope, &other);
        let one = one();
        // If a thread cannot be created, this one does its work.
        let other = helper.map_or_else(|_| other(), |it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (one, other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_of_the_items_whatever_the_number_of_threads() {
        for count in [0, 1, RUN, RUN + 1, 40 * RUN + 3] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = items.iter().map(|item| item * 2).collect();
            for threads in [1, 2, 7] {
                let mut calls = vec![0; threads];
                let results = map(&mut calls, &items, |calls, item| {
                    *calls += 1;
                    item * 2
                });
                assert_eq!(results, expected, "{threads} threads");
                assert_eq!(calls.iter().sum::<usize>(), count, "{threads} threads");
            }
        }
    }

    #[test]
    fn both_results_come_back() {
        let there = thread::current().id();
        assert_eq!(both(|| thread::current().id() == there, || thread::current().id() != there), (true, true));
    }
}

//! Token buckets that several processors take from at once: exact without a lock.
//!
//! A bucket is one time: that at which it will be full again (GCRA, ITU-T I.371 annex A). Taking a token moves it by the
//! interval between two tokens. A compare-and-exchange does that, so no token is taken twice, and none is lost.

/// Most attempts to take a token. An attempt fails only if another processor took one meanwhile.
const ATTEMPTS: usize = 16;

/// A word of memory that several processors change.
pub trait Word {
    /// Reads it.
    fn load(&self) -> u64;
    /// Replaces it by `new` if it is `old`; returns what it was.
    fn exchange(&self, old: u64, new: u64) -> u64;
}

/// The time at which a bucket is full again after a token was taken from it; `None` if it has none. `full` is the time at
/// which it is full, at most `now` if it is full already; all times are in one unit.
#[inline(always)]
pub fn taken(full: u64, now: u64, interval: u64, burst: u64) -> Option<u64> {
    let full = if full > now { full } else { now };
    if full - now > (burst - 1) * interval { None } else { Some(full + interval) }
}

/// Takes a token from a bucket; `false` if it has none.
#[inline(always)]
pub fn take_token(bucket: &impl Word, now: u64, interval: u64, burst: u64) -> bool {
    let mut full = bucket.load();
    for _ in 0..ATTEMPTS {
        let Some(next) = taken(full, now, interval, burst) else { return false };
        let was = bucket.exchange(full, next);
        if was == full {
            return true;
        }
        full = was;
    }
    false
}

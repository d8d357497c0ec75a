//! The kernel's clocks, whose times are stored in the maps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time of a kernel clock.
pub fn clock(id: ClockId) -> Duration {
    let now = clock_gettime(id);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// The clock that the programs read (`CLOCK_MONOTONIC`), in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

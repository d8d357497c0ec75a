//! Random numbers, so that agents that lost something together do not come back together.

use std::ops::Range;

use rustix::rand::{GetRandomFlags, getrandom};

/// A random number in a range that is not empty. Before the kernel has entropy it is the first one.
pub fn within(range: Range<u32>) -> u32 {
    let mut bytes = [0; 4];
    let _ = getrandom(&mut bytes, GetRandomFlags::NONBLOCK);
    let length = range.end.saturating_sub(range.start).max(1);
    range.start + u32::from_ne_bytes(bytes) % length
}

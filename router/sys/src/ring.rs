//! Waiting for a ring buffer of the kernel programs.

use std::io;

use aya::maps::{MapData, RingBuf};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a ring with the runtime.
///
/// # Errors
/// The system call's.
pub fn readable(ring: RingBuf<MapData>) -> io::Result<AsyncFd<RingBuf<MapData>>> {
    // SAFETY: the ring owns its descriptor, returns the same one always and closes it only when dropped, which `AsyncFd`
    // does after deregistering it.
    Ok(unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE)? })
}

//! Asynchronous waiting for a ring buffer of the kernel programs.

use std::io;

use aya::maps::{MapData, RingBuf};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a ring for readability with the tokio runtime.
///
/// # Errors
/// The registration failed.
pub fn readable(ring: RingBuf<MapData>) -> io::Result<AsyncFd<RingBuf<MapData>>> {
    // SAFETY: the ring owns its descriptor, always returns the same one, and closes it only when it is dropped, which
    // `AsyncFd` does after deregistering it.
    Ok(unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE)? })
}

//! Sockets passed by the service manager (sd_listen_fds(3)).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes ownership of the descriptors in `LISTEN_FDS`, with their names in `LISTEN_FDNAMES`, if `LISTEN_PID` is this
/// process. Every call after the first returns none.
///
/// # Errors
/// The variables cannot be parsed, or a descriptor is not open.
pub fn take_descriptors() -> io::Result<Vec<(OwnedFd, String)>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    let own = |(descriptor, name)| {
        // SAFETY: the service manager passed the descriptor to this process alone (`LISTEN_PID`), which owns it
        // (sd_listen_fds(3)). `TAKEN` ensures that this happens once, so nothing else owns it.
        (unsafe { OwnedFd::from_raw_fd(descriptor) }, name)
    };
    Ok(sd_notify::listen_fds_with_names()?.map(own).collect())
}

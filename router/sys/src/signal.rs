//! Signals.

/// Restores the default action of SIGPIPE, which Rust ignores: a command whose reader has closed the pipe then ends
/// silently. Not for servers, which must survive closed connections.
pub fn end_on_broken_pipe() {
    // SAFETY: a signal's default action involves no handler, and nothing relies on SIGPIPE being ignored.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

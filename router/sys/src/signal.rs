//! Signals.

/// Restores the default action of SIGPIPE, which Rust ignores: a command whose reader has closed the pipe ends quietly. Not
/// for servers, which must outlive a peer that is gone.
pub fn end_on_broken_pipe() {
    // SAFETY: a signal's default action involves no handler, and nothing relies on SIGPIPE being ignored.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

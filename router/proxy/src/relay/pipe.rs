//! A pipe for `splice(2)`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::net::TcpStream;

use super::chunk::retry;

/// Default capacity of a pipe in bytes.
const SMALL: usize = 64 * 1024;
/// Enlarged capacity in bytes: with few connections, larger steps save wake-ups of both ends.
const LARGE: usize = 512 * 1024;
/// Most enlarged pipes at a time: a quarter of the 64 MiB of pipe buffers that an unprivileged user has, beyond which
/// new pipes get a single page (pipe(7)).
const MOST_LARGE: usize = 32;

static ENLARGED: AtomicUsize = AtomicUsize::new(0);

/// The pipe of a direction; closed when the direction ends.
#[derive(Debug)]
pub struct SplicePipe {
    read: OwnedFd,
    write: OwnedFd,
    /// Most bytes of one call.
    size: usize,
}

impl SplicePipe {
    /// Creates a pipe.
    ///
    /// # Errors
    /// When the process or the system has no file descriptors left.
    pub fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let mut pipe = SplicePipe { read, write, size: SMALL };
        if ENLARGED.fetch_add(1, Ordering::Relaxed) < MOST_LARGE && fcntl_setpipe_size(&pipe.write, LARGE).is_ok() {
            pipe.size = LARGE;
        } else {
            ENLARGED.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(pipe)
    }

    /// Moves the socket's data into the pipe; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when there is no data, else the socket's error.
    pub fn fill(&self, from: &TcpStream) -> io::Result<usize> {
        retry(|| splice(from, None, &self.write, None, self.size, SpliceFlags::MOVE | SpliceFlags::NONBLOCK))
    }

    /// Moves up to `held` bytes from the pipe into the socket.
    ///
    /// # Errors
    /// `WouldBlock` when the socket accepts nothing, else the socket's error.
    pub fn drain(&self, to: &TcpStream, held: usize) -> io::Result<usize> {
        retry(|| splice(&self.read, None, to, None, held, SpliceFlags::MOVE | SpliceFlags::NONBLOCK))
    }
}

impl Drop for SplicePipe {
    fn drop(&mut self) {
        if self.size > SMALL {
            ENLARGED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

//! The pipe that `splice(2)` moves pages through.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::net::TcpStream;

use super::chunk::retry;

/// What a pipe holds by default.
const SMALL: usize = 64 * 1024;
/// What one holds that is enlarged: with a few connections, more in one go spares wake-ups of both ends.
const LARGE: usize = 512 * 1024;
/// Most pipes that are enlarged at a time: a quarter of the 64 MiB of pipe buffers that an unprivileged user has in all,
/// beyond which every new pipe is a tiny one (pipe(7)).
const MOST_LARGE: usize = 32;

static ENLARGED: AtomicUsize = AtomicUsize::new(0);

/// A pipe of one direction; closed when the direction ends.
#[derive(Debug)]
pub struct SplicePipe {
    read: OwnedFd,
    write: OwnedFd,
    /// Most bytes asked for in one call.
    size: usize,
}

impl SplicePipe {
    /// A new, empty pipe.
    ///
    /// # Errors
    /// When the process or the system is out of descriptors.
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

    /// Moves what the socket has into the pipe; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing to move, else that of the socket.
    pub fn fill(&self, from: &TcpStream) -> io::Result<usize> {
        retry(|| splice(from, None, &self.write, None, self.size, SpliceFlags::MOVE | SpliceFlags::NONBLOCK))
    }

    /// Moves up to `held` bytes from the pipe into the socket.
    ///
    /// # Errors
    /// `WouldBlock` when the socket takes nothing, else that of the socket.
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

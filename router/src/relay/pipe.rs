//! The pipe that `splice(2)` moves pages through.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::net::TcpStream;

use super::chunk::retry;

/// Most bytes asked for in one call; the pipe holds 64 KiB by default, and more is not enlarged for, because an
/// unprivileged user has only 64 MiB of pipe buffers in all.
const MOST: usize = 64 * 1024;

/// A pipe of one direction; closed when the direction ends.
#[derive(Debug)]
pub struct SplicePipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl SplicePipe {
    /// A new, empty pipe.
    ///
    /// # Errors
    /// When the process or the system is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(SplicePipe { read, write })
    }

    /// Moves what the socket has into the pipe; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing to move, else that of the socket.
    pub fn fill(&self, from: &TcpStream) -> io::Result<usize> {
        retry(|| splice(from, None, &self.write, None, MOST, SpliceFlags::MOVE | SpliceFlags::NONBLOCK))
    }

    /// Moves up to `held` bytes from the pipe into the socket.
    ///
    /// # Errors
    /// `WouldBlock` when the socket takes nothing, else that of the socket.
    pub fn drain(&self, to: &TcpStream, held: usize) -> io::Result<usize> {
        retry(|| splice(&self.read, None, to, None, held, SpliceFlags::MOVE | SpliceFlags::NONBLOCK))
    }
}

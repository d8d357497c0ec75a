//! One direction of a relay: from the first byte to the forwarded FIN.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::activity::Activity;
use super::chunk::{self, Chunk};
use super::pipe::SplicePipe;

/// An end of the relay; as an error, the one whose connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who connected to the router.
    Client,
    /// Whom the router connected to.
    Upstream,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Client => Side::Upstream,
            Side::Upstream => Side::Client,
        }
    }
}

/// A sender, its receiver and what was moved between them.
pub struct Direction<'r> {
    /// Read from here …
    pub from: &'r TcpStream,
    /// … written to there.
    pub to: &'r TcpStream,
    /// Which side `from` is.
    pub source: Side,
    /// Bytes written to `to`.
    pub moved: &'r AtomicU64,
    /// The connection's idle clock.
    pub activity: &'r Activity,
    /// Bytes after which the kernel moves the rest.
    pub splice_after: u64,
}

impl Direction<'_> {
    /// Moves everything, then forwards the end of the stream.
    pub async fn run(self, initial: Vec<u8>) -> Result<(), Side> {
        self.write_all(initial).await?;
        if !self.copy().await? {
            match SplicePipe::new() {
                Ok(pipe) => self.splice(pipe).await?,
                // No descriptors left: the connection goes on as it began.
                Err(_) => self.copy_to_end().await?,
            }
        }
        match rustix::net::shutdown(self.to, Shutdown::Write) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.source.other()),
        }
    }

    /// Copies through user space; true at the end of the stream, false when it is time to splice.
    async fn copy(&self) -> Result<bool, Side> {
        while self.moved.load(Ordering::Relaxed) < self.splice_after {
            if self.copy_chunk().await? == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn copy_to_end(&self) -> Result<(), Side> {
        while self.copy_chunk().await? != 0 {}
        Ok(())
    }

    async fn copy_chunk(&self) -> Result<usize, Side> {
        let pass_on = || chunk::pass_on(self.from, self.to);
        let Chunk { read, left, broken } =
            self.from.async_io(Interest::READABLE, pass_on).await.map_err(|_| self.source)?;
        if broken {
            return Err(self.source.other());
        }
        self.count(read - left.len());
        self.write_all(left).await?;
        Ok(read)
    }

    async fn write_all(&self, bytes: Vec<u8>) -> Result<(), Side> {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let write = || self.to.try_write(rest);
            let written = self.to.async_io(Interest::WRITABLE, write).await.map_err(|_| self.source.other())?;
            self.count(written);
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    async fn splice(&self, pipe: SplicePipe) -> Result<(), Side> {
        loop {
            // The pipe is empty here, so "would block" can only mean that the socket has nothing.
            let fill = || pipe.fill(self.from);
            let mut held = self.from.async_io(Interest::READABLE, fill).await.map_err(|_| self.source)?;
            if held == 0 {
                return Ok(());
            }
            while held > 0 {
                let drain = || pipe.drain(self.to, held);
                let written = self.to.async_io(Interest::WRITABLE, drain).await.map_err(|_| self.source.other())?;
                if written == 0 {
                    return Err(self.source.other());
                }
                self.count(written);
                held = held.saturating_sub(written);
            }
        }
    }

    fn count(&self, bytes: usize) {
        if bytes > 0 {
            self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
            self.activity.touch();
        }
    }
}

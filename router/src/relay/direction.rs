//! One direction of a relay: from the first byte to the forwarded FIN.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::activity::Activity;
use super::chunk::{self, CHUNK, Chunk};
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
///
/// A state machine over the sockets' readiness, and no `async fn`: a connection is woken for every message, and looking
/// at one word for each socket is all that it then does beside the system calls.
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
    /// What is done next.
    pub step: Step,
}

/// What a direction does next.
#[derive(Debug)]
pub enum Step {
    /// Move a chunk through user space.
    Copy,
    /// Write what the receiver did not take of a chunk: these bytes from the position on.
    Write(Vec<u8>, usize),
    /// Move pages; so many bytes are in the pipe.
    Splice(SplicePipe, usize),
    /// Nothing: the end of the stream was forwarded.
    Ended,
}

impl Direction<'_> {
    /// Moves everything that can be moved now, and at last the end of the stream.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        loop {
            match self.step {
                Step::Copy => ready!(self.copy(cx))?,
                Step::Write(..) => ready!(self.write(cx))?,
                Step::Splice(_, 0) => ready!(self.fill(cx))?,
                Step::Splice(..) => ready!(self.drain(cx))?,
                Step::Ended => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Whether it is waiting for something to read: then it notices when its sender fails.
    pub fn reads(&self) -> bool {
        matches!(self.step, Step::Copy | Step::Splice(_, 0))
    }

    fn copy(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        if self.moved.load(Ordering::Relaxed) >= self.splice_after {
            // Without a descriptor for a pipe the connection goes on as it began.
            self.splice_after = u64::MAX;
            if let Ok(pipe) = SplicePipe::new() {
                self.step = Step::Splice(pipe, 0);
                return Poll::Ready(Ok(()));
            }
        }
        ready!(self.from.poll_read_ready(cx)).map_err(|_| self.source)?;
        let (from, to) = (self.from, self.to);
        let passed = chunk::read_now(from, || {
            let chunk = chunk::pass_on(from, to)?;
            let emptied = (1..CHUNK).contains(&chunk.read);
            Ok((chunk, emptied))
        });
        let Some(Chunk { read, left, broken }) = passed.map_err(|_| self.source)? else { return Poll::Ready(Ok(())) };
        if broken {
            return Poll::Ready(Err(self.source.other()));
        }
        self.count(read - left.len());
        if read == 0 {
            return Poll::Ready(self.end());
        }
        if !left.is_empty() {
            self.step = Step::Write(left, 0);
        }
        Poll::Ready(Ok(()))
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        let Step::Write(bytes, position) = &mut self.step else { return Poll::Ready(Ok(())) };
        let rest = bytes.get(*position..).unwrap_or_default();
        if rest.is_empty() {
            self.step = Step::Copy;
            return Poll::Ready(Ok(()));
        }
        ready!(self.to.poll_write_ready(cx)).map_err(|_| self.source.other())?;
        let Some(written) = now(self.to.try_write(rest)).map_err(|_| self.source.other())? else {
            return Poll::Ready(Ok(()));
        };
        *position += written;
        self.count(written);
        Poll::Ready(Ok(()))
    }

    /// From the socket into the pipe, which is empty: "would block" can only mean that the socket has nothing.
    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        let Step::Splice(pipe, held) = &mut self.step else { return Poll::Ready(Ok(())) };
        ready!(self.from.poll_read_ready(cx)).map_err(|_| self.source)?;
        let filled = self.from.try_io(Interest::READABLE, || pipe.fill(self.from));
        match now(filled).map_err(|_| self.source)? {
            Some(0) => return Poll::Ready(self.end()),
            Some(bytes) => *held = bytes,
            None => {}
        }
        Poll::Ready(Ok(()))
    }

    /// From the pipe into the socket.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        let Step::Splice(pipe, held) = &mut self.step else { return Poll::Ready(Ok(())) };
        ready!(self.to.poll_write_ready(cx)).map_err(|_| self.source.other())?;
        let drained = self.to.try_io(Interest::WRITABLE, || pipe.drain(self.to, *held));
        match now(drained).map_err(|_| self.source.other())? {
            Some(0) => return Poll::Ready(Err(self.source.other())),
            Some(bytes) => {
                *held = held.saturating_sub(bytes);
                self.count(bytes);
            }
            None => {}
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self) -> Result<(), Side> {
        self.step = Step::Ended;
        rustix::net::shutdown(self.to, Shutdown::Write).map_err(|_| self.source.other())
    }

    fn count(&self, bytes: usize) {
        if bytes > 0 {
            self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
            self.activity.touch();
        }
    }
}

/// The result of a call that may have nothing to do yet.
fn now<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

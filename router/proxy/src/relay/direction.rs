//! One direction of a relay, from the first byte to the forwarded FIN.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::task::coop;

use super::activity::Activity;
use super::chunk::{self, CHUNK, ChunkResult};
use super::pipe::SplicePipe;

/// Below this many bytes, a copy is cheaper than the system calls of a pipe.
const THIN: usize = 4 * 1024;

/// Bytes after which the thread's other connections get their turn.
const TURN: u64 = 4 * 1024 * 1024;

/// A side of the relay; as an error, the one whose connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelaySide {
    /// The client.
    Client,
    /// The endpoint.
    Upstream,
}

impl RelaySide {
    fn other(self) -> RelaySide {
        match self {
            RelaySide::Client => RelaySide::Upstream,
            RelaySide::Upstream => RelaySide::Client,
        }
    }
}

/// Sender, receiver and state of one direction.
///
/// A state machine over the sockets' readiness instead of an `async fn`: it is polled for each message, and then checks
/// one word per socket beside the system calls.
pub struct RelayDirection<'r> {
    from: &'r TcpStream,
    to: &'r TcpStream,
    /// Which side `from` is.
    source: RelaySide,
    /// Bytes written to `to`.
    pub moved: u64,
    /// Time of the connection's last activity.
    activity: &'r Activity,
    /// Bytes in consecutive full chunks after which `splice(2)` is used.
    splice_after: u64,
    /// Number of such bytes at present.
    in_full: u64,
    /// The next step.
    pub step: RelayStep,
    /// Whether the task's waker is registered for readability.
    pub waits: bool,
}

/// Next step of a direction.
#[derive(Debug)]
pub enum RelayStep {
    /// Copy a chunk through user space.
    Copy,
    /// Write the rest of a chunk: these bytes from the position on.
    Write(Vec<u8>, usize),
    /// Move pages.
    Splice(Spliced),
    /// Nothing: the end of the stream was forwarded.
    Ended,
}

/// A pipe and the state of its data.
#[derive(Debug)]
pub struct Spliced {
    pipe: SplicePipe,
    /// Bytes in the pipe.
    held: usize,
    /// The last read was too small for a pipe.
    thin: bool,
}

impl<'r> RelayDirection<'r> {
    /// From the connection `source` to the other. Switches to `splice(2)` after `splice_after` bytes in consecutive
    /// full chunks.
    pub fn new(
        from: &'r TcpStream,
        to: &'r TcpStream,
        source: RelaySide,
        activity: &'r Activity,
        splice_after: u64,
    ) -> Self {
        let step = RelayStep::Copy;
        RelayDirection { from, to, source, moved: 0, activity, splice_after, in_full: 0, step, waits: false }
    }

    /// Moves everything that can be moved now, and finally the end of the stream. `is_last`: the other direction has
    /// ended, so both connections are closed after this one, and the close forwards the end.
    pub fn poll(&mut self, is_last: bool, cx: &mut Context<'_>) -> Poll<Result<(), RelaySide>> {
        let before = self.moved;
        loop {
            if self.moved - before >= TURN {
                // Continues after the runtime has polled other tasks.
                return pin!(tokio::task::yield_now()).poll(cx).map(Ok);
            }
            match self.step {
                RelayStep::Copy => ready!(self.copy(is_last, cx))?,
                RelayStep::Write(..) => ready!(self.write(cx))?,
                RelayStep::Splice(Spliced { held: 0, thin: true, .. }) => self.step = RelayStep::Copy,
                RelayStep::Splice(Spliced { held: 0, .. }) => ready!(self.fill(is_last, cx))?,
                RelayStep::Splice(..) => ready!(self.drain(cx))?,
                RelayStep::Ended => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Whether the end of the stream was read.
    pub fn has_ended(&self) -> bool {
        matches!(self.step, RelayStep::Ended)
    }

    /// Whether it waits for data: then it detects a failure of its sender.
    pub fn reads(&self) -> bool {
        matches!(self.step, RelayStep::Copy | RelayStep::Splice(Spliced { held: 0, .. }))
    }

    fn copy(&mut self, is_last: bool, cx: &mut Context<'_>) -> Poll<Result<(), RelaySide>> {
        if self.in_full >= self.splice_after {
            self.in_full = 0;
            match SplicePipe::new() {
                Ok(pipe) => {
                    self.step = RelayStep::Splice(Spliced { pipe, held: 0, thin: false });
                    return Poll::Ready(Ok(()));
                }
                // Without a descriptor for a pipe, copying continues.
                Err(_) => self.splice_after = u64::MAX,
            }
        }
        ready!(self.poll_readable(cx))?;
        let (from, to) = (self.from, self.to);
        // Checked before the read, which then returns all data before the end.
        let closed = chunk::is_closed(from);
        let passed = chunk::read_now(from, || {
            let chunk = chunk::pass_on(from, to, closed)?;
            let emptied = (1..CHUNK).contains(&chunk.read);
            Ok((chunk, emptied))
        });
        let Some(chunk) = passed.map_err(|_| self.source)? else { return Poll::Ready(Ok(())) };
        let ends = chunk.read == 0 || (closed && chunk.is_complete());
        let ChunkResult { read, left, broken } = chunk;
        if broken {
            return Poll::Ready(Err(self.source.other()));
        }
        self.in_full = if read == CHUNK { self.in_full + read as u64 } else { 0 };
        self.count(read - left.len());
        if ends {
            return Poll::Ready(self.end(is_last));
        }
        if !left.is_empty() {
            self.step = RelayStep::Write(left, 0);
        }
        Poll::Ready(Ok(()))
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RelaySide>> {
        let RelayStep::Write(bytes, position) = &mut self.step else { return Poll::Ready(Ok(())) };
        let rest = bytes.get(*position..).unwrap_or_default();
        if rest.is_empty() {
            self.step = RelayStep::Copy;
            return Poll::Ready(Ok(()));
        }
        ready!(self.to.poll_write_ready(cx)).map_err(|_| self.source.other())?;
        let Some(written) = now(chunk::send(self.to, rest)).map_err(|_| self.source.other())? else {
            return Poll::Ready(Ok(()));
        };
        *position += written;
        self.count(written);
        Poll::Ready(Ok(()))
    }

    /// From the socket into the empty pipe: `WouldBlock` can only mean that the socket holds nothing.
    fn fill(&mut self, is_last: bool, cx: &mut Context<'_>) -> Poll<Result<(), RelaySide>> {
        ready!(self.poll_readable(cx))?;
        let RelayStep::Splice(Spliced { pipe, held, thin }) = &mut self.step else { return Poll::Ready(Ok(())) };
        let filled = self.from.try_io(Interest::READABLE, || pipe.fill(self.from));
        match now(filled).map_err(|_| self.source)? {
            Some(0) => return Poll::Ready(self.end(is_last)),
            Some(bytes) => (*held, *thin) = (bytes, bytes < THIN),
            None => {}
        }
        Poll::Ready(Ok(()))
    }

    /// From the pipe into the socket.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RelaySide>> {
        let RelayStep::Splice(Spliced { pipe, held, .. }) = &mut self.step else { return Poll::Ready(Ok(())) };
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

    /// Ready when there may be data. A waker that is registered is not registered again, because that takes a lock.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RelaySide>> {
        if self.waits && self.from.try_io(Interest::READABLE, || Ok(())).is_err() {
            return Poll::Pending;
        }
        let ready = self.from.poll_read_ready(cx);
        // tokio's budget is used up; the waker was not registered.
        self.waits = ready.is_pending() && coop::has_budget_remaining();
        ready.map_err(|_| self.source)
    }

    fn end(&mut self, is_last: bool) -> Result<(), RelaySide> {
        self.step = RelayStep::Ended;
        if is_last {
            return Ok(());
        }
        rustix::net::shutdown(self.to, Shutdown::Write).map_err(|_| self.source.other())
    }

    fn count(&mut self, bytes: usize) {
        if bytes > 0 {
            self.moved += bytes as u64;
            self.activity.touch();
        }
    }
}

/// Maps `WouldBlock` to `None`.
fn now<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;

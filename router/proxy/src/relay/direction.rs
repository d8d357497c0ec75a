//! One direction of a relay: from the first byte to the forwarded FIN.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::task::coop;

use super::activity::Activity;
use super::chunk::{self, CHUNK, Chunk};
use super::pipe::SplicePipe;

/// What fewer bytes than these cost to copy is less than what the calls of a pipe cost beside one read and one write.
const THIN: usize = 4 * 1024;

/// Bytes after which it is the turn of the thread's other connections.
const TURN: u64 = 4 * 1024 * 1024;

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
    from: &'r TcpStream,
    to: &'r TcpStream,
    /// Which side `from` is.
    source: Side,
    /// Bytes written to `to`.
    pub moved: u64,
    /// The connection's idle clock.
    activity: &'r Activity,
    /// Bytes in full chunks, one after the other, after which the kernel moves the next ones.
    splice_after: u64,
    /// How many such bytes there were last.
    in_full: u64,
    /// What is done next.
    pub step: Step,
    /// Whether the socket knows whom to wake when there is something to read.
    pub waits: bool,
}

/// What a direction does next.
#[derive(Debug)]
pub enum Step {
    /// Move a chunk through user space.
    Copy,
    /// Write what the receiver did not take of a chunk: these bytes from the position on.
    Write(Vec<u8>, usize),
    /// Move pages.
    Splice(Spliced),
    /// Nothing: the end of the stream was forwarded.
    Ended,
}

/// A pipe and what is known of what goes through it.
#[derive(Debug)]
pub struct Spliced {
    pipe: SplicePipe,
    /// Bytes in the pipe.
    held: usize,
    /// So little came last that it was not worth a pipe.
    thin: bool,
}

impl<'r> Direction<'r> {
    /// From one connection, `source`, to the other. After `splice_after` bytes in full chunks, one after the other, the
    /// kernel moves the next ones.
    pub fn new(
        from: &'r TcpStream,
        to: &'r TcpStream,
        source: Side,
        activity: &'r Activity,
        splice_after: u64,
    ) -> Self {
        let step = Step::Copy;
        Direction { from, to, source, moved: 0, activity, splice_after, in_full: 0, step, waits: false }
    }

    /// Moves everything that can be moved now, and at last the end of the stream. `is_last`: the other direction has ended,
    /// so that both connections are closed after this one, which is how the end of this stream is told then.
    pub fn poll(&mut self, is_last: bool, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        let before = self.moved;
        loop {
            if self.moved - before >= TURN {
                // Comes back when the runtime has looked at the others.
                return pin!(tokio::task::yield_now()).poll(cx).map(Ok);
            }
            match self.step {
                Step::Copy => ready!(self.copy(is_last, cx))?,
                Step::Write(..) => ready!(self.write(cx))?,
                Step::Splice(Spliced { held: 0, thin: true, .. }) => self.step = Step::Copy,
                Step::Splice(Spliced { held: 0, .. }) => ready!(self.fill(is_last, cx))?,
                Step::Splice(..) => ready!(self.drain(cx))?,
                Step::Ended => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Whether the end of the stream was read.
    pub fn has_ended(&self) -> bool {
        matches!(self.step, Step::Ended)
    }

    /// Whether it is waiting for something to read: then it notices when its sender fails.
    pub fn reads(&self) -> bool {
        matches!(self.step, Step::Copy | Step::Splice(Spliced { held: 0, .. }))
    }

    fn copy(&mut self, is_last: bool, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        if self.in_full >= self.splice_after {
            self.in_full = 0;
            match SplicePipe::new() {
                Ok(pipe) => {
                    self.step = Step::Splice(Spliced { pipe, held: 0, thin: false });
                    return Poll::Ready(Ok(()));
                }
                // Without a descriptor for a pipe the connection goes on as it began.
                Err(_) => self.splice_after = u64::MAX,
            }
        }
        ready!(self.poll_readable(cx))?;
        let (from, to) = (self.from, self.to);
        // Asked before the read, which then has all that came before the end.
        let closed = chunk::is_closed(from);
        let passed = chunk::read_now(from, || {
            let chunk = chunk::pass_on(from, to, closed)?;
            let emptied = (1..CHUNK).contains(&chunk.read);
            Ok((chunk, emptied))
        });
        let Some(chunk) = passed.map_err(|_| self.source)? else { return Poll::Ready(Ok(())) };
        let ends = chunk.read == 0 || (closed && chunk.is_rest());
        let Chunk { read, left, broken } = chunk;
        if broken {
            return Poll::Ready(Err(self.source.other()));
        }
        self.in_full = if read == CHUNK { self.in_full + read as u64 } else { 0 };
        self.count(read - left.len());
        if ends {
            return Poll::Ready(self.end(is_last));
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
        let Some(written) = now(chunk::send(self.to, rest)).map_err(|_| self.source.other())? else {
            return Poll::Ready(Ok(()));
        };
        *position += written;
        self.count(written);
        Poll::Ready(Ok(()))
    }

    /// From the socket into the pipe, which is empty: "would block" can only mean that the socket has nothing.
    fn fill(&mut self, is_last: bool, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        ready!(self.poll_readable(cx))?;
        let Step::Splice(Spliced { pipe, held, thin }) = &mut self.step else { return Poll::Ready(Ok(())) };
        let filled = self.from.try_io(Interest::READABLE, || pipe.fill(self.from));
        match now(filled).map_err(|_| self.source)? {
            Some(0) => return Poll::Ready(self.end(is_last)),
            Some(bytes) => (*held, *thin) = (bytes, bytes < THIN),
            None => {}
        }
        Poll::Ready(Ok(()))
    }

    /// From the pipe into the socket.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        let Step::Splice(Spliced { pipe, held, .. }) = &mut self.step else { return Poll::Ready(Ok(())) };
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

    /// Ready when there may be something to read. Who waits already does not say so again, which takes a lock.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Side>> {
        if self.waits && self.from.try_io(Interest::READABLE, || Ok(())).is_err() {
            return Poll::Pending;
        }
        let ready = self.from.poll_read_ready(cx);
        // A task that has used up its turn has not said anything.
        self.waits = ready.is_pending() && coop::has_budget_remaining();
        ready.map_err(|_| self.source)
    }

    fn end(&mut self, is_last: bool) -> Result<(), Side> {
        self.step = Step::Ended;
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

/// The result of a call that may have nothing to do yet.
fn now<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;

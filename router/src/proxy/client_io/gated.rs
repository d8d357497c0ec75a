//! HTTP/1 input, given to hyper message by message: heads whole and checked, nothing of the next message while one is
//! in flight. What comes behind an upgrade request is thus held until it is known to be a tunnel's or a request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use tokio::io::{AsyncRead, ReadBuf};

use crate::proxy::clock::ClientClock;
use crate::proxy::http::gate::{Gate, HeadStep};

/// Stands for a request that is refused: the service answers it in its turn, after those before it.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: refused.invalid\r\nconnection: close\r\n\r\n";

/// The input side of one connection.
#[derive(Debug, Default)]
pub struct Gated {
    gate: Gate,
    /// Read, but not yet let through. Of a head in progress the first `seen` bytes were looked at.
    input: Vec<u8>,
    seen: usize,
    /// Let through, but not yet taken by hyper from `taken` on.
    output: Vec<u8>,
    taken: usize,
    /// Messages whose heads were let through.
    messages: usize,
    /// Nothing more is let through.
    closed: bool,
}

impl Gated {
    /// Whether a head has begun and is not complete.
    pub fn mid_head(&self) -> bool {
        !self.closed && self.gate.at_head() && !self.input.is_empty()
    }

    /// Gives up on the current head: the service will answer with this status, and the connection ends.
    pub fn refuse(&mut self, clock: &ClientClock, status: StatusCode) {
        clock.refuse(status);
        self.input = Vec::new();
        self.let_through(STAND_IN.to_vec());
        self.closed = true;
    }

    /// As `AsyncRead::poll_read`, for hyper.
    pub fn poll_read<S: AsyncRead>(
        &mut self,
        mut inner: Pin<&mut S>,
        clock: &ClientClock,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.taken < self.output.len() {
                self.give(buf);
                return Poll::Ready(Ok(()));
            }
            if self.closed {
                return Poll::Ready(Ok(()));
            }
            if clock.is_tunnel() {
                if self.input.is_empty() {
                    return inner.poll_read(cx, buf);
                }
                let held = std::mem::take(&mut self.input);
                self.let_through(held);
                continue;
            }
            if !self.gate.at_head() {
                if self.input.is_empty() {
                    return self.poll_body(inner, cx, buf);
                }
                let belongs = self.gate.body(&self.input).map_err(malformed)?;
                self.let_through_first(belongs);
                continue;
            }
            if self.holds(clock) {
                // Read on for a reset or an end, but let nothing through.
                if self.input.is_empty()
                    && let Poll::Ready(read) = self.poll_more(inner.as_mut(), cx)
                    && read? == 0
                {
                    return Poll::Ready(Ok(()));
                }
                clock.wake_when_free(cx.waker());
                if self.holds(clock) && !clock.is_tunnel() {
                    return Poll::Pending;
                }
                continue;
            }
            if self.seen == self.input.len() && ready!(self.poll_more(inner.as_mut(), cx))? == 0 {
                // hyper knows what an end within a head means.
                let part = std::mem::take(&mut self.input);
                self.let_through(part);
                self.closed = true;
                continue;
            }
            let step = self.gate.head(&self.input, self.seen);
            self.seen = self.input.len();
            match step {
                HeadStep::Incomplete => {}
                HeadStep::Complete(length) => {
                    self.messages += 1;
                    self.let_through_first(length);
                }
                HeadStep::Refused(Some(status)) => self.refuse(clock, status),
                HeadStep::Refused(None) => self.closed = true,
            }
        }
    }

    /// Whether a message that was let through has not ended, or was not even taken up yet.
    fn holds(&self, clock: &ClientClock) -> bool {
        clock.busy() || clock.begun() != self.messages
    }

    /// Reads body bytes straight into hyper's buffer.
    fn poll_body<S: AsyncRead>(
        &mut self,
        inner: Pin<&mut S>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(inner.poll_read(cx, buf))?;
        let read = buf.filled().get(before..).unwrap_or_default();
        let belongs = self.gate.body(read).map_err(malformed)?;
        // What was read too much is the next message.
        self.input = read.get(belongs..).unwrap_or_default().to_vec();
        buf.set_filled(before + belongs);
        Poll::Ready(Ok(()))
    }

    /// Reads more into `input`; the bytes read, 0 at the end.
    fn poll_more<S: AsyncRead>(&mut self, inner: Pin<&mut S>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut scratch = [0; 8192];
        let mut part = ReadBuf::new(&mut scratch);
        ready!(inner.poll_read(cx, &mut part))?;
        self.input.extend_from_slice(part.filled());
        Poll::Ready(Ok(part.filled().len()))
    }

    fn let_through_first(&mut self, length: usize) {
        let rest = self.input.split_off(length.min(self.input.len()));
        let passed = std::mem::replace(&mut self.input, rest);
        self.seen = 0;
        self.let_through(passed);
    }

    fn let_through(&mut self, bytes: Vec<u8>) {
        self.output = bytes;
        self.taken = 0;
    }

    fn give(&mut self, buf: &mut ReadBuf<'_>) {
        let rest = self.output.get(self.taken..).unwrap_or_default();
        let count = rest.len().min(buf.remaining());
        buf.put_slice(rest.get(..count).unwrap_or_default());
        self.taken += count;
        if self.taken == self.output.len() {
            (self.output, self.taken) = (Vec::new(), 0);
        }
    }
}

fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

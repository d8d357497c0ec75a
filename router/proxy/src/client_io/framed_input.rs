//! HTTP/1 input for hyper, message by message: heads are complete and validated, and nothing of the next message is
//! passed on while one is in progress. Data after an upgrade request is held until it is known whether it belongs to a
//! tunnel.
//!
//! A request that arrives alone and complete, as nearly all do, is read directly into hyper's buffer and parsed there.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use router_common::http::ContentError;
use tokio::io::{AsyncRead, ReadBuf};

use crate::connection_state::ConnectionState;
use crate::http::message_framing::{HeadStep, MessageFraming};

/// A stand-in for a rejected request: the service answers it after the preceding requests.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: refused.invalid\r\nconnection: close\r\n\r\n";

/// Whether the length of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// Content-Length.
    Known,
    /// Chunked: the duration is not limited.
    Unknown,
}

/// The input side of one connection.
#[derive(Debug)]
pub struct FramedInput {
    gate: MessageFraming,
    /// Bytes that were read; hyper has taken those before `taken`.
    input: Vec<u8>,
    taken: usize,
    /// End of the bytes in `input` that may be passed on.
    through: usize,
    /// Number of bytes after `through` that were parsed as an incomplete head.
    seen: usize,
    /// Number of messages whose heads were passed on.
    messages: usize,
    /// The body in progress is malformed from here on.
    broken: Option<ContentError>,
    /// The client has closed its side while a message is in progress.
    ended: bool,
    /// Nothing more is passed on.
    closed: bool,
    /// The last read found nothing, so the reader's waker is registered.
    waker_registered: bool,
    /// Whether a connection without a request is answered.
    answer_empty: bool,
}

impl FramedInput {
    /// `limit`: longest head in bytes. `answer_empty`: whether a connection without a request is answered.
    pub fn new(limit: u32, answer_empty: bool) -> Self {
        FramedInput {
            gate: MessageFraming::new(limit),
            input: Vec::new(),
            taken: 0,
            through: 0,
            seen: 0,
            messages: 0,
            broken: None,
            ended: false,
            closed: false,
            waker_registered: false,
            answer_empty,
        }
    }

    /// Whether a head is incomplete.
    pub fn mid_head(&self) -> bool {
        !self.closed && self.gate.at_head() && !self.held().is_empty()
    }

    /// Whether a body is incomplete, and if so whether its length is known.
    pub fn in_body(&self) -> Option<BodyLength> {
        let known = if self.gate.in_sized_body() { BodyLength::Known } else { BodyLength::Unknown };
        (!self.closed && !self.gate.at_head()).then_some(known)
    }

    /// Whether the client has closed its side while a message is in progress.
    pub fn has_ended(&self) -> bool {
        self.ended && !self.closed
    }

    /// Whether the reader's waker is registered.
    pub fn has_waker(&self) -> bool {
        self.waker_registered
            && self.gate.at_head()
            && self.held().is_empty()
            && self.broken.is_none()
            && !self.ended
            && !self.closed
    }

    /// Whether a client that times out is answered: after an incomplete head, or without any request.
    pub fn has_answer_for_silence(&self) -> bool {
        self.mid_head() || (!self.closed && self.is_empty())
    }

    /// Whether nothing was received, and such a connection is answered.
    fn is_empty(&self) -> bool {
        self.answer_empty && self.messages == 0 && self.held().is_empty()
    }

    /// Abandons the current head: the service answers with this status, and the connection ends.
    pub fn refuse(&mut self, clock: &ConnectionState, status: StatusCode) {
        self.stand_in(clock, status, self.messages == 0 && self.held().is_empty());
    }

    /// Passes on a stand-in that the service answers with this status. `empty`: nothing was received on the connection.
    fn stand_in(&mut self, clock: &ConnectionState, status: StatusCode, empty: bool) {
        clock.refuse(status, empty);
        self.input.truncate(self.through);
        self.input.extend_from_slice(STAND_IN);
        self.through = self.input.len();
        self.messages += 1;
        self.closed = true;
    }

    /// As `AsyncRead::poll_read`, for hyper.
    pub fn poll_read<S: AsyncRead>(
        &mut self,
        mut inner: Pin<&mut S>,
        clock: &ConnectionState,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        clock.is_read();
        loop {
            if self.taken < self.through {
                self.give(buf);
                return Poll::Ready(Ok(()));
            }
            if self.closed {
                // hyper would abort the response at an end of file.
                clock.wake_when_free(cx.waker());
                return if self.holds(clock) && !clock.is_tunnel() { Poll::Pending } else { Poll::Ready(Ok(())) };
            }
            if clock.is_tunnel() {
                if self.held().is_empty() {
                    return inner.poll_read(cx, buf);
                }
                self.through = self.input.len();
                continue;
            }
            if let Some(error) = self.broken {
                return Poll::Ready(Err(malformed(error)));
            }
            if !self.gate.at_head() {
                if self.held().is_empty() {
                    return self.poll_body(inner, cx, buf);
                }
                let belongs = self.gate.body(self.input.get(self.through..).unwrap_or_default()).map_err(malformed)?;
                self.through += belongs;
                continue;
            }
            if self.holds(clock) {
                // Continues to read to detect a reset or the end of the stream, without passing anything on. The client
                // may only have finished sending, so the end is reported later, or when the response cannot be sent
                // either.
                if self.held().is_empty()
                    && !self.ended
                    && let Poll::Ready(read) = self.poll_more(inner.as_mut(), cx)
                {
                    self.ended = read? == 0;
                }
                clock.wake_when_free(cx.waker());
                if self.holds(clock) && !clock.is_tunnel() {
                    return Poll::Pending;
                }
                continue;
            }
            if self.held().is_empty() {
                if ready!(self.poll_message(inner.as_mut(), clock, cx, buf))? {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            if self.seen == self.held().len() && ready!(self.poll_more(inner.as_mut(), cx))? == 0 {
                // hyper handles an end within a head.
                self.through = self.input.len();
                self.closed = true;
                continue;
            }
            let held = self.input.get(self.through..).unwrap_or_default();
            let step = self.gate.head(held, self.seen);
            self.seen = held.len();
            match step {
                HeadStep::Incomplete => {}
                HeadStep::Complete(length) => {
                    self.messages += 1;
                    let head = self.through..self.through + length;
                    self.through = head.end;
                    if let Some(rewritten) = self.gate.take_rewritten() {
                        self.through = head.start + rewritten.len();
                        self.input.splice(head, rewritten);
                    }
                    self.seen = 0;
                }
                HeadStep::Refused(status) => self.end(clock, status),
            }
        }
    }

    /// Reads a new message directly into hyper's buffer. Returns whether there is something for hyper, or the end.
    fn poll_message<S: AsyncRead>(
        &mut self,
        inner: Pin<&mut S>,
        clock: &ConnectionState,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        let before = buf.filled().len();
        ready!(self.poll_inner(inner, cx, buf))?;
        let read = buf.filled().get(before..).unwrap_or_default();
        if read.is_empty() {
            if self.is_empty() {
                self.refuse(clock, StatusCode::BAD_REQUEST);
                return Poll::Ready(Ok(false));
            }
            self.closed = true;
            return Poll::Ready(Ok(true));
        }
        let passed = match self.gate.head(read, 0) {
            HeadStep::Complete(length) => {
                self.messages += 1;
                let rest = read.get(length..).unwrap_or_default();
                if let Some(rewritten) = self.gate.take_rewritten() {
                    // The rewritten head is usually longer, and may not fit into hyper's buffer.
                    self.input.extend_from_slice(&rewritten);
                    self.through = self.input.len();
                    self.input.extend_from_slice(rest);
                    buf.set_filled(before);
                    return Poll::Ready(Ok(false));
                }
                let body = if self.gate.at_head() || rest.is_empty() { Ok(0) } else { self.gate.body(rest) };
                // The head is passed on, because the error is reported to its request.
                self.broken = body.err();
                length + body.unwrap_or(0)
            }
            HeadStep::Incomplete => {
                self.seen = read.len();
                0
            }
            HeadStep::Refused(status) => {
                buf.set_filled(before);
                self.end(clock, status);
                return Poll::Ready(Ok(false));
            }
        };
        self.hold(read.get(passed..).unwrap_or_default());
        buf.set_filled(before + passed);
        Poll::Ready(Ok(passed > 0))
    }

    /// Whether a message that was passed on has not ended, or was not taken up by hyper yet.
    pub fn holds(&self, clock: &ConnectionState) -> bool {
        clock.busy() || clock.begun() != self.messages
    }

    /// Reads body bytes directly into hyper's buffer.
    fn poll_body<S: AsyncRead>(
        &mut self,
        inner: Pin<&mut S>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(self.poll_inner(inner, cx, buf))?;
        let read = buf.filled().get(before..).unwrap_or_default();
        let belongs = self.gate.body(read).map_err(malformed)?;
        // Excess bytes belong to the next message.
        self.hold(read.get(belongs..).unwrap_or_default());
        buf.set_filled(before + belongs);
        Poll::Ready(Ok(()))
    }

    /// Reads more into `input`; returns the number of bytes, 0 at the end.
    fn poll_more<S: AsyncRead>(&mut self, inner: Pin<&mut S>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // Usually there is nothing to read, so the buffer is not cleared in advance.
        let mut scratch = [MaybeUninit::uninit(); 8192];
        let mut part = ReadBuf::uninit(&mut scratch);
        ready!(self.poll_inner(inner, cx, &mut part))?;
        self.hold(part.filled());
        Poll::Ready(Ok(part.filled().len()))
    }

    fn poll_inner<S: AsyncRead>(
        &mut self,
        inner: Pin<&mut S>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = inner.poll_read(cx, buf);
        self.waker_registered = polled.is_pending();
        polled
    }

    /// Handles an invalid head: a response if possible, and the end of the connection.
    fn end(&mut self, clock: &ConnectionState, status: Option<StatusCode>) {
        match status {
            Some(status) => self.stand_in(clock, status, false),
            None => self.closed = true,
        }
    }

    /// Bytes that were read and not passed on.
    fn held(&self) -> &[u8] {
        self.input.get(self.through..).unwrap_or_default()
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    fn give(&mut self, buf: &mut ReadBuf<'_>) {
        let rest = self.input.get(self.taken..self.through).unwrap_or_default();
        let count = rest.len().min(buf.remaining());
        buf.put_slice(rest.get(..count).unwrap_or_default());
        self.taken += count;
        if self.taken < self.through {
            return;
        }
        if self.through == self.input.len() {
            // An idle connection keeps no buffer.
            self.input = Vec::new();
        } else {
            self.input.drain(..self.through);
        }
        (self.taken, self.through) = (0, 0);
    }
}

fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

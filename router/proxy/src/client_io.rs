//! The client's byte stream as hyper reads it: each wait has a timeout, and HTTP/1 input is passed on message by
//! message.
//!
//! hyper's own header timer also runs while a kept-alive connection is idle, and hyper has no timeout for a client that
//! does not read. So the waits are timed here: for the first byte of a request, for the rest of its head, and for
//! writability.

mod body_progress;
mod cut_off;
mod framed_input;
mod frames;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use router_table::policy::RouterPolicy;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client_io::framed_input::{BodyLength, FramedInput};
use crate::connection_state::ConnectionState;
use crate::rt::timer::Timer;
use body_progress::BodyProgress;
use frames::FrameMeter;

/// Most bytes that are read from a client after the router has ended the connection: closing with unread bytes would
/// reset it, and the client could lose the last response.
const LINGER_BYTES: usize = 256 * 1024;

/// Timeouts, and the longest head.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// For the first request; the rest of `head`.
    first: Duration,
    /// For the rest of a head, in all (OpenShift: 10 s).
    head: Duration,
    /// Between requests (`httpKeepAliveTimeout`, 300 s).
    idle: Duration,
    /// For writability, and for the next part of a body (`clientTimeout`, 30 s).
    client: Duration,
    /// For the client to close after the router has, and for data to be sent to a client that has closed its side
    /// (`clientFinTimeout`, 1 s).
    fin: Duration,
    /// Longest HTTP/1 head in bytes.
    head_bytes: u32,
    /// Whether a connection without a request is answered (`httpEmptyRequestsPolicy: Respond`).
    answer_empty: bool,
    /// Whether a half-close by the client aborts its request (`closedClientConnectionPolicy: Abort`).
    abort_closed: bool,
}

impl ClientLimits {
    /// Limits of a router.
    pub fn of(policy: &RouterPolicy) -> Self {
        let timeouts = &policy.timeouts;
        ClientLimits {
            first: timeouts.head,
            head: timeouts.head,
            idle: timeouts.keep_alive,
            client: timeouts.client,
            fin: timeouts.client_fin,
            head_bytes: policy.limits.head,
            answer_empty: !policy.ignore_empty_requests,
            abort_closed: policy.abort_closed_clients,
        }
    }

    /// Limits of a connection that has already waited for its first request.
    pub fn after(self, waited: Duration) -> Self {
        ClientLimits { first: self.first.saturating_sub(waited), ..self }
    }
}

/// The stream.
#[derive(Debug)]
pub struct ClientIo<S> {
    inner: S,
    clock: Arc<ConnectionState>,
    limits: ClientLimits,
    /// HTTP/1 input; HTTP/2 has its own framing.
    gated: Option<Box<FramedInput>>,
    /// Counts HTTP/2 frames.
    meter: Option<Box<FrameMeter>>,
    /// The rest of the GOAWAY for a client that has sent too many frames.
    goaway: Option<Bytes>,
    wait: Option<(Wait, usize, Option<Duration>)>,
    read_timer: Timer,
    pace: BodyProgress,
    write_timer: Timer,
    fin_timer: Timer,
    shut_down: bool,
    linger: Timer,
    lingered: usize,
    /// The rest of interim responses whose first bytes were written.
    interim: Bytes,
}

/// What a read waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The first request of the connection.
    First,
    /// Another request.
    Next,
    /// More of a head.
    Head,
    /// More of a body.
    Body,
    /// Nothing: the service is working. Its waits have their own timeouts, and so has each HTTP/2 stream (`streams`).
    Busy,
}

impl<S> ClientIo<S> {
    /// For a stream with HTTP/1.1 (`http1`) or HTTP/2.
    pub fn new(inner: S, http1: bool, clock: Arc<ConnectionState>, limits: ClientLimits) -> Self {
        ClientIo {
            inner,
            clock,
            limits,
            meter: (!http1).then(Box::default),
            goaway: None,
            gated: http1.then(|| Box::new(FramedInput::new(limits.head_bytes, limits.answer_empty))),
            wait: None,
            read_timer: Timer::default(),
            pace: BodyProgress::default(),
            write_timer: Timer::default(),
            fin_timer: Timer::default(),
            shut_down: false,
            linger: Timer::default(),
            lingered: 0,
            interim: Bytes::new(),
        }
    }

    /// Ready when the current wait has timed out.
    fn poll_read_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let begun = self.clock.begun();
        let body = self.gated.as_ref().and_then(|gated| gated.in_body());
        let wait = if body.is_some() && !self.clock.is_tunnel() {
            Wait::Body
        } else if self.gated.as_ref().map_or(self.clock.busy(), |gated| gated.holds(&self.clock)) {
            Wait::Busy
        } else if self.gated.as_ref().is_some_and(|gated| gated.mid_head()) {
            Wait::Head
        } else if begun == 0 {
            Wait::First
        } else {
            Wait::Next
        };
        // A request sets its own timeout after its head was read.
        let waits = Some((wait, begun, self.clock.patience()));
        if self.wait != waits {
            self.wait = waits;
            self.read_timer.stop();
            self.pace = BodyProgress::default();
        }
        let limit = match wait {
            Wait::Busy => return Poll::Pending,
            Wait::Body => {
                self.pace.begin_wait();
                let patience = self.client_patience();
                if body == Some(BodyLength::Known) { patience.min(self.pace.allowance(patience)) } else { patience }
            }
            Wait::First => self.limits.first,
            Wait::Head => self.limits.head,
            Wait::Next => self.limits.idle,
        };
        self.read_timer.poll(cx, limit)
    }

    fn client_patience(&self) -> Duration {
        self.clock.patience().unwrap_or(self.limits.client)
    }

    /// After the last byte of a response the wait for the next request begins. No further read is needed if the
    /// stream's waker is registered.
    fn wait_for_next(&mut self, cx: &mut Context<'_>) {
        if self.clock.is_freed()
            && self.gated.as_ref().is_some_and(|gated| gated.has_waker())
            && self.poll_read_limit(cx).is_pending()
        {
            self.clock.is_read();
        }
    }

    fn poll_write_limit(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.clock.is_tunnel() {
            return Poll::Pending;
        }
        let patience = self.client_patience();
        ready!(self.write_timer.poll(cx, patience));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))
    }

    fn has_written(&mut self, written: &Poll<io::Result<usize>>, of: &[io::IoSlice<'_>]) {
        self.fin_timer.stop();
        if let (Some(meter), Poll::Ready(Ok(written))) = (&mut self.meter, written) {
            let mut left = *written;
            for slice in of {
                let sent = slice.get(..left).unwrap_or(slice);
                meter.send(sent);
                left -= sent.len();
            }
        }
    }

    fn timed_write<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_timer.stop();
            return written;
        }
        self.poll_write_limit(cx).map(Err)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ClientIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let read = match &mut this.gated {
            Some(gated) => gated.poll_read(Pin::new(&mut this.inner), &this.clock, cx, buf),
            None if this.goaway.is_some() => return this.poll_cut_off(cx).map(Err),
            None => {
                let read = Pin::new(&mut this.inner).poll_read(cx, buf);
                let bytes = buf.filled().get(before..).unwrap_or_default();
                if this.meter.as_mut().is_some_and(|meter| meter.receive(bytes, this.clock.take_parts()).is_err()) {
                    buf.set_filled(before);
                    this.cut_off();
                    return this.poll_cut_off(cx).map(Err);
                }
                read
            }
        };
        if read.is_ready() {
            if matches!(this.wait, Some((Wait::Body, ..))) {
                this.pace.end_wait(buf.filled().len() - before);
                this.read_timer.stop();
            }
            return read;
        }
        if this.gated.as_ref().is_some_and(|gated| gated.has_ended()) && !this.clock.is_tunnel() {
            return match this.clock.interim.is_open() {
                true if this.limits.abort_closed => Poll::Ready(Ok(())),
                // The endpoint's timeouts apply.
                true => Poll::Pending,
                // No data was sent for longer than the timeout of a half-closed connection: the client counts as gone.
                false => this.fin_timer.poll(cx, this.limits.fin).map(Ok),
            };
        }
        ready!(this.poll_read_limit(cx));
        match &mut this.gated {
            Some(gated) if gated.has_answer_for_silence() => {
                gated.refuse(&this.clock, StatusCode::REQUEST_TIMEOUT);
                gated.poll_read(Pin::new(&mut this.inner), &this.clock, cx, buf)
            }
            Some(gated) if gated.in_body().is_some() => {
                this.clock.body_stalls();
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the body does not go on")))
            }
            _ => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request in time"))),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientIo<S> {
    /// Reads and drops what the client still sends, within limits.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 4096];
        while self.lingered < LINGER_BYTES {
            let mut buf = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.inner).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => self.lingered += buf.filled().len(),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.linger.poll(cx, self.limits.fin),
            }
        }
        Poll::Ready(())
    }

    /// Writes the rest of interim responses that were begun: their bytes must be contiguous.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.interim.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while !self.interim.is_empty() {
            let written = Pin::new(&mut self.inner).poll_write(cx, &self.interim);
            self.has_written(&written, &[]);
            let bytes = ready!(self.timed_write(cx, written))?;
            if bytes == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.interim.advance(bytes);
        }
        self.clock.interim.written();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(cx))?;
        let buf = match self.room(buf.len()) {
            0 if self.goaway.is_some() => return self.poll_cut_off(cx).map(Err),
            room => buf.get(..room).unwrap_or(buf),
        };
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.has_written(&written, &[io::IoSlice::new(buf)]);
        self.timed_write(cx, written)
    }

    /// hyper has nothing left to write: it is between two messages, unless the service has passed it a response.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.interim.is_empty() && self.clock.interim.is_unwritten() {
            self.interim = self.clock.interim.take();
        }
        ready!(self.poll_interim(cx))?;
        if self.goaway.is_some() {
            return self.poll_cut_off(cx).map(Err);
        }
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        if flushed.is_ready() {
            self.wait_for_next(cx);
        }
        self.timed_write(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.shut_down {
            let shut = Pin::new(&mut this.inner).poll_shutdown(cx);
            ready!(this.timed_write(cx, shut))?;
            this.shut_down = true;
        }
        // The other half of a tunnel is still in use.
        if !this.clock.is_tunnel() {
            ready!(this.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.goaway.is_some() {
            let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
            return self.poll_write(cx, first);
        }
        ready!(self.poll_interim(cx))?;
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.has_written(&written, bufs);
        self.timed_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;

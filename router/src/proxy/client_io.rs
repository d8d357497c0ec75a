//! The client's byte stream as hyper sees it: what was read ahead comes first, and every wait has an end.
//!
//! hyper's own header timer also runs while a kept-alive connection is idle, and knows no limit for a client that
//! does not read. So the three waits are timed here: for the first byte of a request, for the rest of its head, and
//! for room to write.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

const REQUEST_TIMEOUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A stream with bytes in front that were already read from it.
#[derive(Debug)]
pub struct Prefixed<S> {
    prefix: Vec<u8>,
    taken: usize,
    inner: S,
}

impl<S> Prefixed<S> {
    /// `prefix`, then what `inner` gives.
    pub fn new(prefix: Vec<u8>, inner: S) -> Self {
        Prefixed { prefix, taken: 0, inner }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let rest = self.prefix.get(self.taken..).unwrap_or_default();
        if rest.is_empty() {
            self.prefix = Vec::new();
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        let count = rest.len().min(buf.remaining());
        buf.put_slice(rest.get(..count).unwrap_or_default());
        self.taken += count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

/// What the connection is busy with, told by the service to the stream beneath it.
#[derive(Debug, Default)]
pub struct ClientClock {
    begun: AtomicUsize,
    in_flight: AtomicUsize,
    tunnel: AtomicBool,
}

impl ClientClock {
    /// A request has begun; it has ended when the guard is dropped.
    pub fn request(self: &Arc<Self>) -> InFlight {
        self.begun.fetch_add(1, Ordering::AcqRel);
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }

    fn busy(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) > 0
    }
}

/// A request that has not ended.
#[derive(Debug)]
pub struct InFlight(Arc<ClientClock>);

impl InFlight {
    /// The connection has become a tunnel, which has its own timeout.
    pub fn is_tunnel(&self) {
        self.0.tunnel.store(true, Ordering::Release);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The limits of the three waits.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// For the rest of a request head, in all (OpenShift: 10 s).
    pub head: Duration,
    /// Between requests (`httpKeepAliveTimeout`, 300 s).
    pub idle: Duration,
    /// For room to write (`clientTimeout`, 30 s).
    pub write: Duration,
}

/// The timed stream.
#[derive(Debug)]
pub struct ClientIo<S> {
    inner: S,
    clock: Arc<ClientClock>,
    limits: ClientLimits,
    http1: bool,
    wait: Wait,
    requests_seen: usize,
    read_timer: Option<Pin<Box<Sleep>>>,
    write_timer: Option<Pin<Box<Sleep>>>,
    write_waits: bool,
}

/// What the next read waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The first request of the connection.
    First,
    /// Another request.
    Next,
    /// More of a head.
    Head,
    /// A body, or nothing: the service is at work.
    Busy,
}

impl<S> ClientIo<S> {
    /// Times a stream that will speak HTTP/1.1 or HTTP/2.
    pub fn new(inner: S, http1: bool, clock: Arc<ClientClock>, limits: ClientLimits) -> Self {
        let (read_timer, write_timer) = (None, None);
        let wait = Wait::First;
        ClientIo { inner, clock, limits, http1, wait, requests_seen: 0, read_timer, write_timer, write_waits: false }
    }

    /// Follows what the service is doing; a change starts a new wait. A request may begin and end between two reads.
    fn update_wait(&mut self) {
        let begun = self.clock.begun.load(Ordering::Acquire);
        let next = if self.clock.busy() {
            Wait::Busy
        } else if begun != self.requests_seen || self.wait == Wait::Busy {
            Wait::Next
        } else {
            return;
        };
        if begun != self.requests_seen || next != self.wait {
            self.begin(next);
        }
        self.requests_seen = begun;
    }

    fn begin(&mut self, wait: Wait) {
        self.wait = wait;
        self.read_timer = None;
    }

    /// Ready when the current wait has lasted too long.
    fn poll_read_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = match self.wait {
            Wait::Busy => return Poll::Pending,
            Wait::First | Wait::Head => self.limits.head,
            Wait::Next => self.limits.idle,
        };
        let timer = self.read_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        timer.as_mut().poll(cx)
    }

    fn poll_write_limit(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.clock.tunnel.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let limit = self.limits.write;
        let timer = self.write_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if !self.write_waits {
            self.write_waits = true;
            timer.as_mut().reset(Instant::now() + limit);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))
    }

    fn timed_write<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_waits = false;
            return written;
        }
        self.poll_write_limit(cx).map(Err)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ClientIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.update_wait();
        let before = buf.filled().len();
        if let Poll::Ready(result) = Pin::new(&mut this.inner).poll_read(cx, buf) {
            let got = buf.filled().len() > before;
            match this.wait {
                Wait::First | Wait::Next if got && this.http1 => this.begin(Wait::Head),
                // HTTP/2 has frames without a request; any of them ends the wait and begins the next.
                Wait::First | Wait::Next if got => this.begin(Wait::Next),
                _ => {}
            }
            return Poll::Ready(result);
        }
        ready!(this.poll_read_limit(cx));
        if this.wait == Wait::Head {
            // Nothing else was written since the last response, so the answer goes out whole or not at all.
            let _ = Pin::new(&mut this.inner).poll_write(cx, REQUEST_TIMEOUT);
            let _ = Pin::new(&mut this.inner).poll_flush(cx);
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request in time")))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.timed_write(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.timed_write(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.timed_write(cx, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.timed_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

//! The client's byte stream as hyper sees it: every wait has an end, and HTTP/1 comes message by message.
//!
//! hyper's own header timer also runs while a kept-alive connection is idle, and it knows no limit for a client that
//! does not read. So the waits are timed here: for the first byte of a request, for the rest of its head, and for
//! room to write.

mod gated;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::clock::ClientClock;
use gated::Gated;

/// How long, and how many bytes, a client may still send after the connection was ended here: closing on unread
/// bytes would reset it, and lose the last answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;

/// The limits of the waits.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// For the first request, and for the rest of any head, in all (OpenShift: 10 s).
    pub head: Duration,
    /// Between requests (`httpKeepAliveTimeout`, 300 s).
    pub idle: Duration,
    /// For room to write (`clientTimeout`, 30 s).
    pub write: Duration,
}

/// The stream.
#[derive(Debug)]
pub struct ClientIo<S> {
    inner: S,
    clock: Arc<ClientClock>,
    limits: ClientLimits,
    /// HTTP/1 input; HTTP/2 has its own framing, and is not looked into.
    gated: Option<Box<Gated>>,
    wait: (Wait, usize),
    read_timer: Option<Pin<Box<Sleep>>>,
    write_timer: Option<Pin<Box<Sleep>>>,
    write_waits: bool,
    shut_down: bool,
    linger: Option<Pin<Box<Sleep>>>,
    lingered: usize,
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
    /// A body, or nothing: the service is at work.
    Busy,
}

impl<S> ClientIo<S> {
    /// A stream that speaks HTTP/1.1 (`http1`) or HTTP/2.
    pub fn new(inner: S, http1: bool, clock: Arc<ClientClock>, limits: ClientLimits) -> Self {
        ClientIo {
            inner,
            clock,
            limits,
            gated: http1.then(Box::default),
            wait: (Wait::First, 0),
            read_timer: None,
            write_timer: None,
            write_waits: false,
            shut_down: false,
            linger: None,
            lingered: 0,
        }
    }

    /// Ready when the current wait has lasted too long.
    fn poll_read_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let begun = self.clock.begun();
        let wait = if self.clock.busy() {
            Wait::Busy
        } else if self.gated.as_ref().is_some_and(|gated| gated.mid_head()) {
            Wait::Head
        } else if begun == 0 {
            Wait::First
        } else {
            Wait::Next
        };
        if self.wait != (wait, begun) {
            self.wait = (wait, begun);
            self.read_timer = None;
        }
        let limit = match wait {
            Wait::Busy => return Poll::Pending,
            Wait::First | Wait::Head => self.limits.head,
            Wait::Next => self.limits.idle,
        };
        self.read_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit))).as_mut().poll(cx)
    }

    fn poll_write_limit(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.clock.is_tunnel() {
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
        let read = match &mut this.gated {
            Some(gated) => gated.poll_read(Pin::new(&mut this.inner), &this.clock, cx, buf),
            None => Pin::new(&mut this.inner).poll_read(cx, buf),
        };
        if read.is_ready() {
            // HTTP/2 has frames without a request: any byte begins the wait anew.
            if this.gated.is_none() {
                this.read_timer = None;
            }
            return read;
        }
        ready!(this.poll_read_limit(cx));
        match &mut this.gated {
            Some(gated) if gated.mid_head() => {
                gated.refuse(&this.clock, StatusCode::REQUEST_TIMEOUT);
                gated.poll_read(Pin::new(&mut this.inner), &this.clock, cx, buf)
            }
            _ => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request in time"))),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientIo<S> {
    /// Reads and drops what the client still sends, within bounds.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 4096];
        while self.lingered < LINGER_BYTES {
            let mut buf = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.inner).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => self.lingered += buf.filled().len(),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    return self.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER))).as_mut().poll(cx);
                }
            }
        }
        Poll::Ready(())
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
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.timed_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

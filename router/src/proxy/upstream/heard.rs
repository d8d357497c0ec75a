//! A connection to an endpoint that knows whether the endpoint has said anything since it was last asked: a request
//! whose connection ends may be sent again only if it has not.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Whether bytes have come since [`Heard::forget`].
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Ear>);

#[derive(Debug, Default)]
struct Ear {
    anything: AtomicBool,
    next: AtomicWaker,
}

impl Heard {
    /// From now on nothing was heard.
    pub fn forget(&self) {
        self.0.anything.store(false, Ordering::Release);
    }

    /// Whether anything was.
    pub fn anything(&self) -> bool {
        self.0.anything.load(Ordering::Acquire)
    }

    /// Wakes this task at the next bytes.
    pub fn wake_at_next(&self, task: &Waker) {
        self.0.next.register(task);
    }
}

/// The connection.
#[derive(Debug)]
pub struct Listening<S> {
    inner: S,
    heard: Heard,
}

impl<S> Listening<S> {
    /// Tells `heard` of what `inner` reads.
    pub fn new(inner: S, heard: Heard) -> Self {
        Listening { inner, heard }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Listening<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.heard.0.anything.store(true, Ordering::Release);
            self.heard.0.next.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Listening<S> {
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

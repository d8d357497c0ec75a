//! A client's stream with bytes that were read in advance; writes are coalesced.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::coalesced_write;

/// The stream.
#[derive(Debug)]
pub struct PeekedStream<S> {
    prefix: Vec<u8>,
    taken: usize,
    inner: S,
}

impl<S> PeekedStream<S> {
    /// Yields `prefix`, then the data of `inner`.
    pub fn new(prefix: Vec<u8>, inner: S) -> Self {
        PeekedStream { prefix, taken: 0, inner }
    }

    /// The underlying stream.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The underlying stream; drops the rest of the prefix.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PeekedStream<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for PeekedStream<S> {
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
        coalesced_write::poll_write(Pin::new(&mut self.inner), cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

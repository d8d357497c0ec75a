//! An upstream HTTP/2 connection whose frames are inspected.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_view::{ConnectionView, MAX_SMALL};
use super::frames::{FLAGS, FrameHeader, HEADER, KIND, UNKNOWN, Walker};

/// Length of the client connection preface in bytes (RFC 9113 §3.4).
const PREFACE: usize = 24;

/// A connection whose frames are inspected.
#[derive(Debug)]
pub struct InspectedConnection<S> {
    connection: S,
    seen: Arc<ConnectionView>,
    inbound: Walker,
    outbound: Walker,
}

impl<S> InspectedConnection<S> {
    /// A new connection without any bytes yet.
    pub fn new(connection: S, seen: Arc<ConnectionView>) -> Self {
        let outbound = Walker::behind(PREFACE);
        InspectedConnection { connection, seen, inbound: Walker::default(), outbound }
    }

    /// Hides empty frames from h2, which ends a connection after 100 of them, with all its requests. A frame is not
    /// hidden if a read ends between its type and its flags, because its type was passed on already.
    fn received(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while let Some((frame, payload)) = self.inbound.next(bytes, &mut at) {
            if frame.is_nothing() {
                hide(bytes, at);
            } else {
                self.seen.received(frame, &payload);
            }
        }
        if self.inbound.read > FLAGS && FrameHeader::of(self.inbound.header).is_nothing() {
            let end = bytes.len() + HEADER - self.inbound.read;
            hide(bytes, end);
        }
    }

    fn sent<'b>(
        &mut self,
        polled: Poll<io::Result<usize>>,
        bytes: impl Iterator<Item = &'b [u8]>,
    ) -> Poll<io::Result<usize>> {
        self.seen.set_blocked(polled.is_pending());
        let mut length = ready!(polled)?;
        let all = length;
        for part in bytes {
            let part = part.get(..length).unwrap_or(part);
            length -= part.len();
            let mut at = 0;
            while let Some((frame, _)) = self.outbound.next(part, &mut at) {
                self.seen.sent(frame);
            }
        }
        Poll::Ready(Ok(all))
    }
}

/// Changes the type of the frame whose header ends at `end` to one that h2 ignores.
fn hide(bytes: &mut [u8], end: usize) {
    if let Some(kind) = (end + KIND).checked_sub(HEADER).and_then(|kind| bytes.get_mut(kind)) {
        *kind = UNKNOWN;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InspectedConnection<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.seen.small() > MAX_SMALL {
            // Small frames must be gathered first.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.connection).poll_read(cx, buf))?;
        self.received(buf.filled_mut().get_mut(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InspectedConnection<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.connection).poll_write(cx, bytes);
        self.sent(polled, [bytes].into_iter())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.connection).poll_write_vectored(cx, bytes);
        self.sent(polled, bytes.iter().map(|part| &**part))
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;

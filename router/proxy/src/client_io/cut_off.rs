//! Ends an HTTP/2 connection whose client floods it with frames: sends a GOAWAY (RFC 9113 §6.8, §7), which hyper does
//! not do when its stream fails.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite};

use super::ClientIo;
use super::frames::TooManyFrames;

/// Frame type.
const GOAWAY: u8 = 7;
/// Debug data of the GOAWAY.
const WHY: &[u8] = b"too_many_frames";

/// `GOAWAY` with the last stream that may have been processed.
pub fn goaway(last_stream: u32) -> Bytes {
    let payload = [&last_stream.to_be_bytes()[..], &u32::from(Reason::ENHANCE_YOUR_CALM).to_be_bytes(), WHY].concat();
    let head = [0, 0, payload.len() as u8, GOAWAY, 0, 0, 0, 0, 0];
    [&head[..], &payload].concat().into()
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientIo<S> {
    /// Stops reading from the client.
    pub(super) fn cut_off(&mut self) {
        let last_stream = self.meter.as_ref().map_or(0, |meter| meter.last_stream());
        self.goaway = Some(goaway(last_stream));
        self.clock.cut_off();
    }

    /// How many of `bytes` may be written: all, or, after a cut-off, the rest of the current frame.
    pub(super) fn room(&self, bytes: usize) -> usize {
        match (&self.goaway, &self.meter) {
            (Some(_), Some(meter)) => meter.of_begun_frame(bytes),
            _ => bytes,
        }
    }

    /// Writes the GOAWAY after the current frame, closes the stream, and lets the client read it.
    pub(super) fn poll_cut_off(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.room(usize::MAX) > 0 {
            // A pending write registers the waker.
            return Poll::Pending;
        }
        Poll::Ready(match ready!(self.poll_goaway(cx)) {
            Ok(()) => io::Error::other(TooManyFrames),
            Err(error) => error,
        })
    }

    fn poll_goaway(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(goaway) = self.goaway.as_ref().filter(|goaway| !goaway.is_empty()) {
            let written = Pin::new(&mut self.inner).poll_write(cx, goaway);
            match ready!(self.timed_write(cx, written))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                bytes => self.goaway.as_mut().map_or((), |goaway| goaway.advance(bytes)),
            }
        }
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        ready!(self.timed_write(cx, flushed))?;
        Pin::new(self).poll_shutdown(cx)
    }
}

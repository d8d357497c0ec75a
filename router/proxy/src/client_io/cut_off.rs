//! The end of an HTTP/2 connection whose client sends frames without end: it is told so by a GOAWAY (RFC 9113 §6.8, §7),
//! which hyper does not send for a stream that fails.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite};

use super::ClientIo;
use super::frames::TooManyFrames;

/// Of a frame.
const GOAWAY: u8 = 7;
/// For whoever debugs the client.
const WHY: &[u8] = b"too_many_frames";

/// `GOAWAY` behind this stream, the last one that may have been served.
pub fn goaway(last_stream: u32) -> Bytes {
    let payload = [&last_stream.to_be_bytes()[..], &u32::from(Reason::ENHANCE_YOUR_CALM).to_be_bytes(), WHY].concat();
    let head = [0, 0, payload.len() as u8, GOAWAY, 0, 0, 0, 0, 0];
    [&head[..], &payload].concat().into()
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientIo<S> {
    /// Nothing more is read of the client.
    pub(super) fn cut_off(&mut self) {
        let last_stream = self.meter.as_ref().map_or(0, |meter| meter.last_stream());
        self.goaway = Some(goaway(last_stream));
        self.clock.cut_off();
    }

    /// How many of so many bytes go to the client: all, or of one that is cut off the rest of the frame that has begun.
    pub(super) fn room(&self, bytes: usize) -> usize {
        match (&self.goaway, &self.meter) {
            (Some(_), Some(meter)) => meter.of_begun_frame(bytes),
            _ => bytes,
        }
    }

    /// Says why, ends the stream, and lets the client take it. Behind a frame that has begun.
    pub(super) fn poll_cut_off(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.room(usize::MAX) > 0 {
            // Whoever writes it is woken when it can go on.
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

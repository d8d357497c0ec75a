//! Timeouts for the streams of a client's HTTP/2 connection.
//!
//! hyper takes a part of a response body and then waits for capacity in the client's window (RFC 9113 §5.2). Meanwhile
//! it does not poll the body, so no timeout of the body runs, and it does not write, so none of
//! [`ClientIo`](super::client_io::ClientIo) does. So each stream's task is timed here while it holds such a part.
//! hyper's own PINGs would take a lock for each frame, and only show that the client is alive.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::rt::timer::Timer;

/// Longest part of a response passed to hyper, in bytes. Each part has to be accepted within `clientTimeout`, so this
/// defines the lowest rate: with 30 s, 546 bytes per second.
const PART: usize = 16 * 1024;

thread_local! {
    /// Whether hyper got a part of a body when it last polled, in the current task.
    static GIVEN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Spawns the tasks of HTTP/2 streams.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    /// How long a client may accept nothing of a response (`clientTimeout`).
    pub patience: Duration,
}

/// hyper's task of a stream. Boxed, because a task's future is moved eight times on its way into the runtime, and these
/// have 1.5 KB.
struct StreamTask<F> {
    task: Pin<Box<F>>,
    /// Whether it holds a part that exceeds the client's window.
    holds: bool,
    timer: Timer,
    patience: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, task: F) {
        let Streams { patience } = *self;
        tokio::spawn(StreamTask { task: Box::pin(task), holds: false, timer: Timer::default(), patience });
    }
}

impl<F: Future<Output = ()>> Future for StreamTask<F> {
    type Output = ();

    /// Ends with hyper's task, or at the timeout; then h2 resets the stream.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        GIVEN.set(None);
        if this.task.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if let Some(given) = GIVEN.take() {
            this.holds = given;
            this.timer.stop();
        }
        if !this.holds {
            return Poll::Pending;
        }
        ready!(this.timer.poll(cx, this.patience));
        tracing::debug!("an HTTP/2 client does not read its response; resetting the stream");
        Poll::Ready(())
    }
}

/// A response body for hyper's task of a stream.
#[derive(Debug)]
pub struct InParts<B> {
    body: B,
    /// The rest of a frame.
    rest: Bytes,
}

impl<B> InParts<B> {
    /// Wraps a body.
    pub fn of(body: B) -> Self {
        InParts { body, rest: Bytes::new() }
    }
}

impl<B: Body<Data = Bytes> + Unpin> InParts<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) if data.len() > PART => self.rest = data,
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let part = self.rest.split_to(self.rest.len().min(PART));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for InParts<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = self.poll(cx);
        GIVEN.set(Some(polled.is_ready()));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests;

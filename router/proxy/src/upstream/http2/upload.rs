//! Sends a request's content to an endpoint over HTTP/2.

use std::error::Error;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use h2::{Reason, SendStream};
use hyper::body::{Body, Frame};
use tokio::task::JoinHandle;

use super::connection_view::{ConnectionView, PIECE, SMALL};
use crate::http::upload::RequestBody;
use crate::http::upload_error::UploadError;

/// A frame of content, an error, or the end.
type UploadFrame = Option<Result<Frame<Bytes>, UploadError>>;

/// Sends a request's content as flow control permits. Ends when all is sent or the endpoint wants no more.
#[derive(Debug)]
pub struct Sending {
    stream: SendStream<Bytes>,
    body: RequestBody,
    seen: Arc<ConnectionView>,
    /// Data that was read and not sent.
    rest: Bytes,
    /// What was read after `rest`.
    next: Option<UploadFrame>,
}

impl Sending {
    /// For an open stream.
    pub fn new(stream: SendStream<Bytes>, body: RequestBody, seen: Arc<ConnectionView>) -> Self {
        Sending { stream, body, seen, rest: Bytes::new(), next: None }
    }

    /// Sends the rest in a task of its own until the handle is dropped.
    pub fn spawn(self: Box<Self>) -> UploadTask {
        UploadTask(tokio::spawn(self))
    }

    /// Sends `rest`; ready when nothing is left. Returns whether more may follow.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        while !self.rest.is_empty() {
            // If the endpoint accepts bytes, they are sent without a delay.
            if self.rest.len() < SMALL && !self.is_at_end() && self.seen.is_blocked(cx) {
                let rest = mem::take(&mut self.rest);
                self.rest = self.gather(rest, cx);
                if self.rest.len() < SMALL && self.next.is_none() && !self.is_at_end() {
                    self.body.waits_for_endpoint();
                    return self.stream.poll_reset(cx).map(|_| false);
                }
            }
            self.stream.reserve_capacity(self.rest.len());
            let mut room = self.stream.capacity();
            if room == 0 {
                match self.stream.poll_capacity(cx) {
                    Poll::Ready(Some(Ok(more))) => room = more,
                    Poll::Ready(_) => return Poll::Ready(false),
                    Poll::Pending => {
                        self.body.waits_for_endpoint();
                        return self.stream.poll_reset(cx).map(|_| false);
                    }
                }
            }
            let part = self.rest.split_to(self.rest.len().min(room));
            let is_last = self.rest.is_empty() && self.is_at_end();
            if self.stream.send_data(part, is_last).is_err() || is_last {
                return Poll::Ready(false);
            }
        }
        Poll::Ready(true)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<UploadFrame> {
        self.next.take().map_or_else(|| Pin::new(&mut self.body).poll_frame(cx), Poll::Ready)
    }

    fn is_at_end(&self) -> bool {
        self.next.is_none() && self.body.is_end_stream()
    }

    /// Merges small parts that are available. Endpoints end a connection, with all its requests, when many small frames
    /// wait, and h2 needs more memory per frame than such a part.
    fn gather(&mut self, first: Bytes, cx: &mut Context<'_>) -> Bytes {
        let mut gathered = BytesMut::new();
        while first.len().max(gathered.len()) < PIECE && self.next.is_none() && !self.is_at_end() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) if frame.data_ref().is_some_and(|data| data.len() < SMALL) => {
                    if gathered.is_empty() {
                        gathered.reserve(SMALL);
                        gathered.extend_from_slice(&first);
                    }
                    gathered.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
                }
                Poll::Ready(other) => {
                    self.next = Some(other);
                    break;
                }
                Poll::Pending => break,
            }
        }
        if gathered.is_empty() { first } else { gathered.freeze() }
    }
}

impl Future for Sending {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        while ready!(this.poll_rest(cx)) {
            let frame = match this.poll_read(cx) {
                Poll::Ready(frame) => frame,
                // The endpoint may reset the stream while the client sends nothing.
                Poll::Pending => return this.stream.poll_reset(cx).map(|_| ()),
            };
            let sent = match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) if data.is_empty() && this.is_at_end() => this.stream.send_data(data, true),
                Some(Ok(Ok(data))) => {
                    this.rest = if data.len() < SMALL { this.gather(data, cx) } else { data };
                    continue;
                }
                Some(Ok(Err(other))) => this.stream.send_trailers(other.into_trailers().unwrap_or_default()),
                Some(Err(error)) => {
                    this.stream.send_reset(reason(&error));
                    Ok(())
                }
                None => this.stream.send_data(Bytes::new(), true),
            };
            // An error means that the stream has ended meanwhile.
            let _ = sent;
            break;
        }
        Poll::Ready(())
    }
}

/// RST_STREAM code for incomplete content: the client's code, else INTERNAL_ERROR.
fn reason(error: &UploadError) -> Reason {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(reason) = error.downcast_ref::<h2::Error>().and_then(h2::Error::reason) {
            return reason;
        }
        cause = error.source();
    }
    Reason::INTERNAL_ERROR
}

/// An upload that continues after its response has begun; dropping it aborts it.
#[derive(Debug)]
pub struct UploadTask(JoinHandle<()>);

impl UploadTask {
    /// Waits for its end.
    pub async fn end(&mut self) {
        // The task does not panic, and is aborted only when this is dropped.
        let _ = (&mut self.0).await;
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for UploadTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

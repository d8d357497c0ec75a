//! Response content from an endpoint over HTTP/2.
//!
//! Frames wait in h2 until they are read. h2 ends the connection, with all its requests, when too many small frames
//! wait. Before that, they are moved to a buffer here. The buffer is bounded by the stream's flow-control window, which
//! is replenished only when data is read.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response};
use hyper::body::{Body, Frame, SizeHint};

use super::connection_view::{ConnectionView, PIECE, SMALL};
use super::upload::UploadTask;

/// Content of a response.
#[derive(Debug)]
pub struct Http2Body {
    waiting: Arc<Mutex<ReceivedContent>>,
    seen: Arc<ConnectionView>,
    /// Remaining length in bytes, if the head states it.
    left: Option<u64>,
    /// The request's content, if it is still being sent.
    upload: Option<UploadTask>,
}

/// Received content of a response.
#[derive(Debug)]
pub struct ReceivedContent {
    stream: RecvStream,
    gathered: VecDeque<BytesMut>,
    /// What followed the last data: the end of the stream, or an error.
    end: Option<Result<(), h2::Error>>,
    /// Waker of the reader. h2 stores a single waker, and replaces it when another task polls.
    reader: Option<Waker>,
}

impl ReceivedContent {
    /// Moves received frames from h2 into the buffer.
    pub fn gather(&mut self) {
        let reader = self.reader.take();
        let mut cx = Context::from_waker(reader.as_ref().unwrap_or(Waker::noop()));
        while self.end.is_none() {
            match self.stream.poll_data(&mut cx) {
                Poll::Ready(Some(Ok(data))) => self.put(data),
                Poll::Ready(Some(Err(error))) => self.end = Some(Err(error)),
                Poll::Ready(None) => self.end = Some(Ok(())),
                Poll::Pending => break,
            }
        }
        self.reader = reader;
    }

    /// Number of buffered frames.
    #[cfg(test)]
    pub fn pieces(&self) -> usize {
        self.gathered.len()
    }

    fn put(&mut self, data: Bytes) {
        if let Some(last) = self.gathered.back_mut().filter(|last| last.capacity() - last.len() >= data.len()) {
            last.extend_from_slice(&data);
        } else {
            let mut piece = BytesMut::with_capacity(if data.len() < SMALL { PIECE } else { data.len() });
            piece.extend_from_slice(&data);
            self.gathered.push_back(piece);
        }
    }

    /// Returns capacity to the flow-control window.
    fn release(&mut self, length: usize) {
        // At most as much as was received. A stream that has ended rejects it, which is harmless.
        let _ = self.stream.flow_control().release_capacity(length);
    }

    fn poll(&mut self, cx: &mut Context<'_>, seen: &ConnectionView) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if let Some(piece) = self.gathered.pop_front() {
            self.release(piece.len());
            return Poll::Ready(Some(Ok(Frame::data(piece.freeze()))));
        }
        if self.end.is_none() {
            match self.stream.poll_data(cx) {
                Poll::Ready(Some(Ok(data))) => {
                    seen.took(data.len());
                    self.release(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Ready(Some(Err(error))) => self.end = Some(Err(error)),
                Poll::Ready(None) => self.end = Some(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
        match self.end.replace(Ok(())) {
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            _ => self.stream.poll_trailers(cx).map(|trailers| trailers.transpose().map(|t| t.map(Frame::trailers))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.gathered.is_empty() && !matches!(self.end, Some(Err(_))) && self.stream.is_end_stream()
    }
}

impl Http2Body {
    /// A response with its content. `upload`: the rest of the request's content.
    pub fn of(
        response: Response<RecvStream>,
        seen: &Arc<ConnectionView>,
        upload: Option<UploadTask>,
    ) -> Response<Self> {
        let left = length(response.headers());
        response.map(|stream| {
            let left = left.or_else(|| stream.is_end_stream().then_some(0));
            let waiting = ReceivedContent { stream, gathered: VecDeque::new(), end: None, reader: None };
            Http2Body { waiting: Arc::new(Mutex::new(waiting)), seen: Arc::clone(seen), left, upload }
        })
    }

    /// The buffer, for gathering.
    pub fn waiting(&self) -> Weak<Mutex<ReceivedContent>> {
        Arc::downgrade(&self.waiting)
    }

    /// The request's content, if it is still being sent.
    pub fn take_upload(&mut self) -> Option<UploadTask> {
        self.upload.take().filter(|upload| !upload.has_ended())
    }
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = &mut *self;
        let mut waiting = lock(&this.waiting);
        let polled = waiting.poll(cx, &this.seen);
        waiting.reader = polled.is_pending().then(|| cx.waker().clone());
        if let (Poll::Ready(Some(Ok(frame))), Some(left)) = (&polled, &mut this.left) {
            *left = left.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.waiting).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// h2 has verified that there is a single, valid length.
fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Wakers of other tasks call this, too.
pub fn lock(waiting: &Mutex<ReceivedContent>) -> MutexGuard<'_, ReceivedContent> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

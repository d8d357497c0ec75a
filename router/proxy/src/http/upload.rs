//! A request's body that is sent to an endpoint: counted and timed, never buffered.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http::Method;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep};

use super::headers::prepare_request_trailers;
use super::tee::{self, CopyBody, Tee};
use super::upload_error::UploadError;

/// How long a body is held back for the endpoint's `100 Continue`. Many endpoints never send one, and clients need not
/// wait for it (RFC 9110 §10.1.1); curl waits for a second.
const CONTINUE_WITHIN: Duration = Duration::from_secs(1);

/// State of an upload, for the task that awaits its response.
#[derive(Debug)]
pub struct UploadState {
    start: Instant,
    last_ms: AtomicU64,
    waits_for_client: AtomicBool,
    failed: AtomicBool,
    held: AtomicBool,
    given_up: AtomicBool,
    closed: AtomicBool,
    unexpected: bool,
    body: AtomicWaker,
}

impl UploadState {
    fn new(held: bool, unexpected: bool) -> Self {
        UploadState {
            start: Instant::now(),
            last_ms: AtomicU64::new(0),
            waits_for_client: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            held: AtomicBool::new(held),
            given_up: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            unexpected,
            body: AtomicWaker::new(),
        }
    }

    /// When body data was last passed on, or the request began.
    pub fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    /// Whether the endpoint accepts more data than the client sends.
    pub fn waits_for_client(&self) -> bool {
        self.waits_for_client.load(Ordering::Relaxed)
    }

    /// Whether the body is incomplete or malformed.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Stops holding the body back, because the endpoint requests it.
    pub fn release(&self) {
        self.held.store(false, Ordering::Release);
        self.body.wake();
    }

    /// Records that the endpoint has answered. A body that is still held back is then not read from the client. It is
    /// unknown whether the client would send it, so the client's connection ends after this response.
    pub fn answered(&self) {
        if self.held.load(Ordering::Acquire) {
            self.given_up.store(true, Ordering::Release);
            self.body.wake();
        }
    }

    /// Whether the connections of client and endpoint must carry no further request: the endpoint may parse the body as
    /// the next request ([`is_unexpected`]), or will never receive its end.
    pub fn is_last(&self) -> bool {
        self.unexpected || self.given_up()
    }

    /// Whether the endpoint will never receive the end of the body.
    pub fn given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Records that the response has ended: an abandoned body closes its connection to the endpoint.
    pub fn close(&self) {
        if self.given_up() {
            self.closed.store(true, Ordering::Release);
            self.body.wake();
        }
    }
}

/// Whether a request has content without defined semantics for its method (RFC 9110 §9.3.1, §9.3.2). Some endpoints do
/// not read it and parse it as the next request.
pub fn is_unexpected(method: &Method, content: &Incoming) -> bool {
    !content.is_end_stream() && (method == Method::GET || method == Method::HEAD)
}

/// A request body for an endpoint; empty by default.
#[derive(Debug, Default)]
pub struct RequestBody {
    /// `None` for an empty body, or one that is not read any more.
    inner: Option<UploadSource>,
    watch: Option<UploadWatch>,
    /// Copies of the body.
    tee: Option<Box<Tee>>,
}

#[derive(Debug)]
enum UploadSource {
    Client(Incoming),
    Copy(CopyBody),
}

impl UploadSource {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match self {
            UploadSource::Client(body) => {
                let mut polled = Pin::new(body).poll_frame(cx).map_err(UploadError::Client);
                if let Poll::Ready(Some(Ok(frame))) = &mut polled {
                    prepare_request_trailers(frame);
                }
                polled
            }
            UploadSource::Copy(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            UploadSource::Client(body) => body.is_end_stream(),
            UploadSource::Copy(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            UploadSource::Client(body) => body.size_hint(),
            UploadSource::Copy(_) => SizeHint::default(),
        }
    }
}

#[derive(Debug)]
struct UploadWatch {
    upload: Arc<UploadState>,
    counter: Arc<AtomicU64>,
    hold: Option<Pin<Box<Sleep>>>,
}

impl RequestBody {
    /// The body, counted in `counter`, and its state; `None` for a request without a body. With `hold` it is not read
    /// before [`UploadState::release`], or before a second has passed. `unexpected`: see [`is_unexpected`].
    pub fn new(
        inner: Incoming,
        counter: &mut Option<Arc<AtomicU64>>,
        hold: bool,
        unexpected: bool,
    ) -> (Self, Option<Arc<UploadState>>) {
        if inner.is_end_stream() {
            return (RequestBody { inner: Some(UploadSource::Client(inner)), watch: None, tee: None }, None);
        }
        let (body, upload) = Self::watched(
            UploadSource::Client(inner),
            Arc::clone(counter.get_or_insert_default()),
            UploadState::new(hold, unexpected),
        );
        (body, Some(upload))
    }

    fn watched(inner: UploadSource, counter: Arc<AtomicU64>, upload: UploadState) -> (Self, Arc<UploadState>) {
        let upload = Arc::new(upload);
        let watch = UploadWatch { upload: Arc::clone(&upload), counter, hold: None };
        (RequestBody { inner: Some(inner), watch: Some(watch), tee: None }, upload)
    }

    /// A body that is a copy.
    #[cfg(test)]
    pub fn of_copy(copy: CopyBody) -> Self {
        Self::watched(UploadSource::Copy(copy), Arc::default(), UploadState::new(false, false)).0
    }

    /// Stops timing the client while data waits for the endpoint.
    pub fn waits_for_endpoint(&self) {
        if let Some(watch) = &self.watch {
            watch.upload.waits_for_client.store(false, Ordering::Relaxed);
        }
    }

    /// Creates a copy of a body that was not read yet, and the copy's state.
    pub fn copy(&mut self) -> (Self, Option<Arc<UploadState>>) {
        let Some(watch) = &self.watch else { return (RequestBody::default(), None) };
        let upload = UploadState::new(false, watch.upload.unexpected);
        let (writer, body) = tee::copy();
        self.tee.get_or_insert_default().add(writer);
        let (body, upload) = Self::watched(UploadSource::Copy(body), Arc::default(), upload);
        (body, Some(upload))
    }
}

impl UploadWatch {
    /// Ready when the body may be read; an error if it never will be. `inner` is then dropped at once, which tells the
    /// client's connection; the endpoint's connection continues until the response has ended.
    fn poll_hold(&mut self, inner: &mut Option<UploadSource>, cx: &mut Context<'_>) -> Poll<Result<(), UploadError>> {
        let upload = &*self.upload;
        if !upload.held.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        upload.body.register(cx.waker());
        if upload.given_up() {
            *inner = None;
            let closed = upload.closed.load(Ordering::Acquire);
            return if closed { Poll::Ready(Err(UploadError::NotWanted)) } else { Poll::Pending };
        }
        if !upload.held.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let timer = self.hold.get_or_insert_with(|| Box::pin(tokio::time::sleep(CONTINUE_WITHIN)));
        ready!(timer.as_mut().poll(cx));
        upload.held.store(false, Ordering::Release);
        Poll::Ready(Ok(()))
    }

    fn note(&self, polled: &Poll<Option<Result<Frame<Bytes>, UploadError>>>) {
        self.upload.waits_for_client.store(polled.is_pending(), Ordering::Relaxed);
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.counter.fetch_add(bytes as u64, Ordering::Relaxed);
                let elapsed = self.upload.start.elapsed().as_millis();
                self.upload.last_ms.store(u64::try_from(elapsed).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            Poll::Ready(Some(Err(_))) => self.upload.failed.store(true, Ordering::Relaxed),
            Poll::Ready(None) | Poll::Pending => {}
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = &mut *self;
        if let Some(watch) = &mut this.watch {
            ready!(watch.poll_hold(&mut this.inner, cx))?;
        }
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        let polled = inner.poll_frame(cx);
        if let Some(watch) = &this.watch {
            watch.note(&polled);
        }
        if let Some(tee) = &mut this.tee {
            tee.pass(&polled, inner.is_end_stream());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().map_or(self.watch.is_none(), UploadSource::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None if self.watch.is_none() => SizeHint::with_exact(0),
            None => SizeHint::default(),
        }
    }
}

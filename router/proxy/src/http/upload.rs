//! A request's body on its way to an endpoint: counted, timed, never gathered.

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

/// How long a body is held back for the endpoint's `100 Continue`. Many endpoints never send one, and a client need
/// not wait for it either (RFC 9110 §10.1.1); a second is what curl waits.
const CONTINUE_WITHIN: Duration = Duration::from_secs(1);

/// How the upload of one request stands, seen by whoever waits for its response.
#[derive(Debug)]
pub struct Upload {
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

impl Upload {
    fn new(held: bool, unexpected: bool) -> Self {
        Upload {
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

    /// When a byte of the body last moved, or the request began.
    pub fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    /// Whether the upstream would take more than the client gives.
    pub fn waits_for_client(&self) -> bool {
        self.waits_for_client.load(Ordering::Relaxed)
    }

    /// Whether the body broke off or was malformed.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The endpoint wants the body: it is held back no longer.
    pub fn release(&self) {
        self.held.store(false, Ordering::Release);
        self.body.wake();
    }

    /// The endpoint has answered. A body that is still held back is not wanted any more, and not read from the client:
    /// whether it would still send one nobody knows, so its connection ends after this response.
    pub fn answered(&self) {
        if self.held.load(Ordering::Acquire) {
            self.given_up.store(true, Ordering::Release);
            self.body.wake();
        }
    }

    /// Whether no other request may follow on the connections that it came and goes over: an endpoint may take the body
    /// for the next one ([`is_unexpected`]), or will never see its end.
    pub fn is_last(&self) -> bool {
        self.unexpected || self.given_up()
    }

    /// Whether the endpoint will never see the end of the body.
    pub fn given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// The response is over: a body that was given up ends its connection to the endpoint now.
    pub fn close(&self) {
        if self.given_up() {
            self.closed.store(true, Ordering::Release);
            self.body.wake();
        }
    }
}

/// Whether a request has content that its method gives no meaning to (RFC 9110 §9.3.1, §9.3.2). There are endpoints that
/// do not read such content, and take it for the next request.
pub fn is_unexpected(method: &Method, content: &Incoming) -> bool {
    !content.is_end_stream() && (method == Method::GET || method == Method::HEAD)
}

/// A request body on its way to an endpoint; by default there is none.
#[derive(Debug, Default)]
pub struct RequestBody {
    /// `None` for no body, and for one that is not to be read any more.
    inner: Option<Source>,
    watch: Option<Watch>,
    /// Who gets copies.
    tee: Option<Box<Tee>>,
}

#[derive(Debug)]
enum Source {
    Client(Incoming),
    Copy(CopyBody),
}

impl Source {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match self {
            Source::Client(body) => {
                let mut polled = Pin::new(body).poll_frame(cx).map_err(UploadError::Client);
                if let Poll::Ready(Some(Ok(frame))) = &mut polled {
                    prepare_request_trailers(frame);
                }
                polled
            }
            Source::Copy(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Source::Client(body) => body.is_end_stream(),
            Source::Copy(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Source::Client(body) => body.size_hint(),
            Source::Copy(_) => SizeHint::default(),
        }
    }
}

#[derive(Debug)]
struct Watch {
    upload: Arc<Upload>,
    counter: Arc<AtomicU64>,
    hold: Option<Pin<Box<Sleep>>>,
}

impl RequestBody {
    /// The body, counted into `counter`, which is made for it, and how it stands; `None` for a request without one. One that is held back
    /// (`hold`) is not read before [`Upload::release`], or before a second has gone. `unexpected`: see [`is_unexpected`].
    pub fn new(
        inner: Incoming,
        counter: &mut Option<Arc<AtomicU64>>,
        hold: bool,
        unexpected: bool,
    ) -> (Self, Option<Arc<Upload>>) {
        if inner.is_end_stream() {
            return (RequestBody { inner: Some(Source::Client(inner)), watch: None, tee: None }, None);
        }
        let (body, upload) = Self::watched(
            Source::Client(inner),
            Arc::clone(counter.get_or_insert_default()),
            Upload::new(hold, unexpected),
        );
        (body, Some(upload))
    }

    fn watched(inner: Source, counter: Arc<AtomicU64>, upload: Upload) -> (Self, Arc<Upload>) {
        let upload = Arc::new(upload);
        let watch = Watch { upload: Arc::clone(&upload), counter, hold: None };
        (RequestBody { inner: Some(inner), watch: Some(watch), tee: None }, upload)
    }

    /// One that is a copy alone.
    #[cfg(test)]
    pub fn of_copy(copy: CopyBody) -> Self {
        Self::watched(Source::Copy(copy), Arc::default(), Upload::new(false, false)).0
    }

    /// What was read waits for the endpoint to take it, whatever the client has sent since.
    pub fn waits_for_endpoint(&self) {
        if let Some(watch) = &self.watch {
            watch.upload.waits_for_client.store(false, Ordering::Relaxed);
        }
    }

    /// A copy of it, made as it is read, which has not begun; and how that one stands.
    pub fn copy(&mut self) -> (Self, Option<Arc<Upload>>) {
        let Some(watch) = &self.watch else { return (RequestBody::default(), None) };
        let upload = Upload::new(false, watch.upload.unexpected);
        let (writer, body) = tee::copy();
        self.tee.get_or_insert_default().add(writer);
        let (body, upload) = Self::watched(Source::Copy(body), Arc::default(), upload);
        (body, Some(upload))
    }
}

impl Watch {
    /// Ready when the body may be read; an error when it never will be. `inner` is dropped as soon as that is known, so
    /// that the client's connection knows it too; the endpoint's goes on until its response has ended.
    fn poll_hold(&mut self, inner: &mut Option<Source>, cx: &mut Context<'_>) -> Poll<Result<(), UploadError>> {
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
        self.inner.as_ref().map_or(self.watch.is_none(), Source::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None if self.watch.is_none() => SizeHint::with_exact(0),
            None => SizeHint::default(),
        }
    }
}

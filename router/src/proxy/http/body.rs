//! Bodies on their way through: counted, timed, never gathered.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, Sleep};

use crate::proxy::access::{AccessRecord, Flag, Traffic};
use crate::proxy::clock::InFlight;
use crate::proxy::pool::{Pool, PoolKey};

/// How the upload of one request stands, seen by whoever waits for its response.
#[derive(Debug)]
pub struct Upload {
    start: Instant,
    last_ms: AtomicU64,
    waits_for_client: AtomicBool,
    failed: AtomicBool,
}

impl Default for Upload {
    fn default() -> Self {
        Upload {
            start: Instant::now(),
            last_ms: AtomicU64::new(0),
            waits_for_client: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        }
    }
}

impl Upload {
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
}

/// A request body on its way to the upstream.
#[derive(Debug)]
pub struct RequestBody {
    inner: Incoming,
    upload: Arc<Upload>,
    traffic: Arc<Traffic>,
}

impl RequestBody {
    /// Counts into `traffic` and reports to `upload`.
    pub fn new(inner: Incoming, upload: Arc<Upload>, traffic: Arc<Traffic>) -> Self {
        RequestBody { inner, upload, traffic }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        self.upload.waits_for_client.store(polled.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Some(Err(_))) = &polled {
            self.upload.failed.store(true, Ordering::Relaxed);
        }
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.traffic.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
            let elapsed = self.upload.start.elapsed().as_millis();
            self.upload.last_ms.store(u64::try_from(elapsed).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Why a response body broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The endpoint's connection failed.
    #[error("the endpoint broke off: {0}")]
    Upstream(hyper::Error),
    /// Neither the endpoint nor the client sent anything for the server timeout.
    #[error("the endpoint sent nothing for too long")]
    Stalled,
}

/// A response body, with the access record that is written when it ends.
#[derive(Debug)]
pub struct ResponseBody {
    content: Content,
    ended: bool,
    request: Option<(AccessRecord, InFlight)>,
}

#[derive(Debug)]
enum Content {
    /// Made here.
    Own(Option<Bytes>),
    /// Streamed from an endpoint.
    Upstream(Box<UpstreamBody>),
}

/// A response body from an endpoint.
#[derive(Debug)]
pub struct UpstreamBody {
    /// The body.
    pub body: Incoming,
    /// The connection that it comes over, for the pool when the body has ended.
    pub connection: Option<(Arc<Pool>, PoolKey, SendRequest<RequestBody>)>,
    /// The upload that may still be going on.
    pub upload: Arc<Upload>,
    /// Longest silence (`serverTimeout`).
    pub limit: Duration,
    /// The running wait for a frame; it begins when hyper asks for one, not while the client is slow to read.
    pub wait: Option<Pin<Box<Sleep>>>,
    /// When it began.
    pub since: Option<Instant>,
}

impl UpstreamBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.since = None;
                if frame.is_trailers() || self.body.is_end_stream() {
                    self.give_back();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(BodyError::Upstream(error)))),
            Poll::Ready(None) => {
                self.give_back();
                Poll::Ready(None)
            }
            Poll::Pending => self.poll_limit(cx).map(|()| Some(Err(BodyError::Stalled))),
        }
    }

    fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let deadline = since.max(self.upload.last()) + self.limit;
        let timer = self.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            // It was set for an earlier frame.
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    fn give_back(&mut self) {
        if let Some((pool, key, sender)) = self.connection.take() {
            pool.give_back(key, sender);
        }
    }
}

impl ResponseBody {
    /// No body, and no end of the request either: it goes on as a tunnel.
    pub fn switching() -> Self {
        ResponseBody { content: Content::Own(None), ended: true, request: None }
    }

    /// A body that the router makes itself.
    pub fn own(content: Bytes, record: AccessRecord, in_flight: InFlight) -> Self {
        ResponseBody { content: Content::Own(Some(content)), ended: false, request: Some((record, in_flight)) }
    }

    /// A body that an endpoint sends. `record` has the flag for a body that comes to its end.
    pub fn upstream(mut body: UpstreamBody, record: AccessRecord, in_flight: InFlight) -> Self {
        if body.body.is_end_stream() {
            body.give_back();
        }
        ResponseBody { content: Content::Upstream(Box::new(body)), ended: false, request: Some((record, in_flight)) }
    }
}

impl ResponseBody {
    fn note(&mut self, polled: &Poll<Option<Result<Frame<Bytes>, BodyError>>>) {
        let Some((record, _)) = &mut self.request else { return };
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                record.traffic.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
                self.ended = frame.is_trailers();
            }
            Poll::Ready(Some(Err(BodyError::Upstream(_)))) => record.flag = Flag::UpstreamClosed,
            Poll::Ready(Some(Err(BodyError::Stalled))) => record.flag = Flag::UpstreamTimeout,
            Poll::Ready(None) => self.ended = true,
            Poll::Pending => {}
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let polled = match &mut this.content {
            Content::Own(content) => Poll::Ready(
                content.take().filter(|content| !content.is_empty()).map(|content| Ok(Frame::data(content))),
            ),
            Content::Upstream(body) => body.poll(cx),
        };
        this.note(&polled);
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Own(content) => content.as_ref().is_none_or(Bytes::is_empty),
            Content::Upstream(body) => body.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Own(content) => SizeHint::with_exact(content.as_ref().map_or(0, |c| c.len() as u64)),
            Content::Upstream(body) => body.body.size_hint(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let complete = self.ended || self.is_end_stream();
        match &mut self.request {
            // hyper drops a body early when nobody is left to send it to.
            Some((record, _)) if !complete && record.flag == Flag::Fine => record.flag = Flag::ClientGone,
            _ => {}
        }
    }
}

//! A response body that is sent to the client: counted and timed, never buffered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use router_access_log::Flag;
use tokio::time::{Instant, Sleep};

use super::headers::prepare_trailers;
use super::upload::UploadState;
use crate::access_record::AccessRecord;
use crate::connection_state::InFlight;
use crate::upstream::bucket::Lease;
use crate::upstream::failure::AnswerError;
use crate::upstream::request_sender::IncomingBody;
use crate::upstream::{cause, wake_suppression};

/// Why a response body is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The endpoint's connection failed.
    #[error("the endpoint's response is incomplete: {0}")]
    Upstream(#[source] AnswerError),
    /// Neither endpoint nor client were active for the server timeout.
    #[error("the endpoint timed out")]
    Stalled,
    /// The rule's request timeout expired.
    #[error("the rule's request timeout expired")]
    Late,
}

/// A response body, with the access record that is written at its end.
#[derive(Debug)]
pub struct ResponseBody {
    content: BodySource,
    ended: bool,
    request: Option<(Box<AccessRecord>, InFlight)>,
}

#[derive(Debug)]
enum BodySource {
    /// The router's own content.
    Own(Option<Bytes>),
    /// Content from an endpoint.
    Upstream(Box<UpstreamBody>),
}

/// A response body from an endpoint.
#[derive(Debug)]
pub struct UpstreamBody {
    /// The body.
    pub body: IncomingBody,
    /// The connection, which returns to the pool at the body's end.
    pub lease: Option<Lease>,
    /// The upload, if it is still in progress.
    pub upload: Option<Arc<UploadState>>,
    /// Inactivity timeout (`serverTimeout`).
    pub limit: Duration,
    /// Deadline (`timeouts` of a rule).
    pub until: Option<Instant>,
    /// Timer of the current wait for a frame. It runs while hyper polls for one, not while the client is slow to read.
    pub wait: Option<Pin<Box<Sleep>>>,
    /// Start of the wait.
    pub since: Option<Instant>,
}

impl UpstreamBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.is_late() {
            return Poll::Ready(Some(Err(BodyError::Late)));
        }
        let (polled, kept) = wake_suppression::during(|| Pin::new(&mut self.body).poll_frame(cx));
        if matches!(polled, Poll::Ready(Some(Ok(_)))) && self.body.is_end_stream() {
            // The body is complete.
            kept.forget();
        } else {
            kept.wake();
        }
        match polled {
            Poll::Ready(Some(Ok(mut frame))) => {
                self.since = None;
                prepare_trailers(&mut frame);
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
            Poll::Pending => self.poll_limit(cx).map(|error| Some(Err(error))),
        }
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let moved = self.upload.as_ref().map_or(since, |upload| since.max(upload.last()));
        let silent = moved + self.limit;
        let deadline = self.until.map_or(silent, |until| silent.min(until));
        let timer = self.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(if self.is_late() { BodyError::Late } else { BodyError::Stalled });
            }
            // The timer was set for an earlier frame.
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    fn give_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            let is_last = self.upload.as_ref().is_some_and(|upload| upload.is_last());
            lease.give_back(is_last, self.body.take_upload());
        }
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        if let Some(upload) = &self.upload {
            upload.close();
        }
    }
}

impl ResponseBody {
    /// An empty body of a response that switches protocols: the request continues as a tunnel.
    pub fn switching() -> Self {
        ResponseBody { content: BodySource::Own(None), ended: true, request: None }
    }

    /// The router's own body.
    pub fn own(content: Bytes, record: Box<AccessRecord>, in_flight: InFlight) -> Self {
        ResponseBody { content: BodySource::Own(Some(content)), ended: false, request: Some((record, in_flight)) }
    }

    /// A body from an endpoint. `record` has the flag of a complete body.
    pub fn upstream(mut body: UpstreamBody, record: Box<AccessRecord>, in_flight: InFlight) -> Self {
        if body.body.is_end_stream() {
            body.give_back();
        }
        ResponseBody { content: BodySource::Upstream(Box::new(body)), ended: false, request: Some((record, in_flight)) }
    }
}

impl ResponseBody {
    /// The record, unless a tunnel has taken it.
    pub fn record(&mut self) -> Option<&mut AccessRecord> {
        self.request.as_mut().map(|(record, _)| &mut **record)
    }

    fn note(&mut self, polled: &Poll<Option<Result<Frame<Bytes>, BodyError>>>) {
        let Some((record, in_flight)) = &mut self.request else { return };
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                in_flight.sends_part();
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                record.bytes_out += bytes as u64;
                self.ended = frame.is_trailers();
            }
            Poll::Ready(Some(Err(BodyError::Upstream(error)))) => record.flag = cause::of_content(error),
            Poll::Ready(Some(Err(BodyError::Stalled))) => record.flag = Flag::UpstreamStalled,
            Poll::Ready(Some(Err(BodyError::Late))) => record.flag = Flag::RuleTimeoutInContent,
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
            BodySource::Own(content) => Poll::Ready(
                content.take().filter(|content| !content.is_empty()).map(|content| Ok(Frame::data(content))),
            ),
            BodySource::Upstream(body) => body.poll(cx),
        };
        this.note(&polled);
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            BodySource::Own(content) => content.as_ref().is_none_or(Bytes::is_empty),
            BodySource::Upstream(body) => body.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            BodySource::Own(content) => SizeHint::with_exact(content.as_ref().map_or(0, |c| c.len() as u64)),
            BodySource::Upstream(body) => body.body.size_hint(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let complete = self.ended || self.is_end_stream();
        match &mut self.request {
            // hyper drops a body early if the client is gone.
            Some((record, in_flight)) if !complete && record.flag == Flag::Fine => {
                record.flag = if in_flight.is_cut_off() { Flag::ClientFloods } else { Flag::ClientGone };
            }
            Some((_, in_flight)) => in_flight.end(),
            None => {}
        }
    }
}

//! One attempt to send a request to an endpoint: which connection carries it, and whether it may be sent again.
//!
//! A request is sent again if nothing of it was sent, or if the endpoint states that it did not process it. If a reused
//! connection ends before the first byte of a response, the endpoint may have processed the request. It is then sent
//! once more only if its method is idempotent (RFC 9110 §9.2.2) and it has no body. A request that must not be sent
//! twice takes no connection that was idle for long, because the endpoint may be about to close it. A request that
//! timed out is never sent again.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version, uri};
use http_body_util::BodyExt;
use hyper::body::Body;
use router_access_log::Flag;
use tokio::time::{Instant, timeout};

use super::connect::ConnectRequest;
use super::failure::{Processing, Unanswered};
use super::http2;
use super::replay::SavedRequest;
use super::request_sender::{IncomingBody, RequestSender};
use crate::http::upload::{RequestBody, UploadState};
use crate::rt::timer::{PooledTimer, TaskTimer};
use crate::upstream::bucket::{FRESH, Lease};

/// Most pooled connections that may turn out to be closed before a new one is opened.
const MAX_STALE: u32 = 3;

/// Why an attempt failed, and whether the next endpoint may be tried.
#[derive(Clone, Copy, Debug)]
pub struct AttemptError {
    /// Status of the response to the client.
    pub status: StatusCode,
    /// Cause, for the access log.
    pub flag: Flag,
    /// The endpoint has not received the request, and the request can still be sent.
    pub unseen: bool,
    /// Time until the connection attempt failed.
    pub connecting: Duration,
}

impl AttemptError {
    /// An error of a request that must not go to another endpoint.
    pub(crate) fn seen(status: StatusCode, flag: Flag) -> Self {
        AttemptError { status, flag, unseen: false, connecting: Duration::ZERO }
    }
}

/// Inactivity timeouts of an attempt, by the side that has to act.
#[derive(Clone, Copy, Debug)]
pub struct InactivityTimeouts {
    /// The endpoint sends no response or does not accept the body.
    pub server: Duration,
    /// The client does not send the body.
    pub client: Duration,
    /// Deadline of the attempt, whatever the activity.
    pub until: Option<Instant>,
}

impl InactivityTimeouts {
    fn are_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Whether a request may be sent again after an endpoint may have processed it: its method is idempotent, and it has no
/// body.
pub fn is_repeatable(request: &Request<RequestBody>) -> bool {
    request.method().is_idempotent() && request.body().is_end_stream()
}

/// Sends the request to one endpoint and waits for the response's head for as long as there is activity. Takes the
/// request, unless no endpoint has received it or it is to be kept.
///
/// # Errors
/// The status for the client, and whether the next endpoint may be tried.
pub async fn attempt(
    way: &ConnectRequest<'_>,
    request: &mut Request<RequestBody>,
    upload: Option<&UploadState>,
    waits: InactivityTimeouts,
) -> Result<(Lease, Response<IncomingBody>), AttemptError> {
    let repeatable = is_repeatable(request);
    let mut bucket = way.bucket(request.headers());
    let kept_for = bucket.key.keep;
    let mut idle = if repeatable { kept_for } else { FRESH.min(kept_for) };
    let mut stale = 0;
    let mut sent_before = false;
    loop {
        let leased = way.lease(&bucket, idle).await;
        let mut lease = leased.map_err(|((status, flag), connecting)| {
            let unseen = !sent_before && way.may_leave(&bucket, flag);
            AttemptError { status, flag, unseen, connecting }
        })?;
        let is_http2 = matches!(lease.sender, RequestSender::Http2(_));
        if is_http2 {
            for_http2(request, bucket.key.wire.scheme(), upload)?;
            if !takes_fields(&lease, request) {
                lease.give_back(false, None);
                return Err(AttemptError::seen(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Flag::BadRequest));
            }
        } else {
            for_http1(request)?;
        }
        let once_more = repeatable && !sent_before && (lease.reused || is_http2);
        let keep = once_more || way.keep;
        let kept = keep.then(|| SavedRequest::of(request));
        let answered = {
            let mut answer = pin!(lease.sender.send(std::mem::take(request), way.interim));
            let timer = way.timer.map_or_else(|| way.shared.timers.lend(), TaskTimer::lend);
            wait(timer, answer.as_mut(), upload, waits).await
        };
        // A response's status may cause a retry, too.
        let is_wanted = way.keep || !matches!(answered, Some(Ok(_)));
        if let Some(kept) = kept.filter(|_| is_wanted) {
            *request = kept.request();
        }
        let Some(answered) = answered else { return Err(too_late(&lease, upload, waits)) };
        let Unanswered { unsent, processing, flag } = match answered {
            Ok(response) if is_framed(&response) => {
                way.answered(&mut lease, &response);
                return Ok((lease, response));
            }
            Ok(_) => return Err(AttemptError::seen(StatusCode::BAD_GATEWAY, Flag::UpstreamCoding)),
            Err(unanswered) => unanswered,
        };
        let was_unsent = unsent.is_some();
        if processing == Processing::NotOverHttp2 && bucket.key.wire.peer().is_some() {
            bucket.require_http1();
        }
        if let Some(unsent) = unsent {
            *request = *unsent;
        }
        if was_unsent && lease.reused {
            stale += 1;
            if stale >= MAX_STALE {
                idle = Duration::ZERO;
            }
        } else if once_more && bucket.requires_http1() {
            sent_before = true;
            bucket = way.http1_bucket();
        } else if once_more && (processing == Processing::Refused || (processing == Processing::Lost && lease.reused)) {
            sent_before = true;
            idle = Duration::ZERO;
        } else {
            let failed = upload.is_some_and(UploadState::failed);
            let (status, flag) =
                if failed { (StatusCode::BAD_REQUEST, Flag::BadRequest) } else { (StatusCode::BAD_GATEWAY, flag) };
            let unseen = was_unsent && !sent_before;
            return Err(AttemptError { status, flag, unseen, connecting: Duration::ZERO });
        }
    }
}

/// Whether hyper determines the response's end and content correctly: its only transfer coding is `chunked`, or it has
/// none. hyper would decode a final `chunked` alone, and pass on everything else undecoded up to the connection's end
/// (RFC 9112 §6.1, §6.3).
fn is_framed(response: &Response<IncomingBody>) -> bool {
    let mut codings = response.headers().get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    codings.next().is_none_or(is_chunked) && codings.next().is_none()
}

/// Waits for a response while either side is active; `None` after an inactivity timeout. The caller owns the future,
/// because in here it would take its size twice.
async fn wait<A: Future>(
    mut timer: PooledTimer<'_>,
    mut answer: Pin<&mut A>,
    upload: Option<&UploadState>,
    waits: InactivityTimeouts,
) -> Option<A::Output> {
    let begun = Instant::now();
    let within = |deadline: Instant| waits.until.map_or(deadline, |until| deadline.min(until));
    // No timeout can expire before this.
    let mut deadline = within(begun + waits.server.min(waits.client));
    poll_fn(|cx| {
        if let Poll::Ready(answered) = answer.as_mut().poll(cx) {
            return Poll::Ready(Some(answered));
        }
        while timer.poll_until(cx, deadline).is_ready() {
            deadline = within(match upload {
                None => begun + waits.server,
                Some(upload) if upload.waits_for_client() => begun.max(upload.last()) + waits.client,
                Some(upload) => begun.max(upload.last()) + waits.server,
            });
            if Instant::now() >= deadline {
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    })
    .await
}

fn too_late(lease: &Lease, upload: Option<&UploadState>, waits: InactivityTimeouts) -> AttemptError {
    if !waits.are_over() && upload.is_some_and(UploadState::waits_for_client) {
        return AttemptError::seen(StatusCode::REQUEST_TIMEOUT, Flag::ClientTimeout);
    }
    if let RequestSender::Http2(stream) = &lease.sender {
        stream.was_silent();
    }
    let flag = if waits.are_over() { Flag::RuleTimeout } else { Flag::UpstreamTimeout };
    AttemptError::seen(StatusCode::GATEWAY_TIMEOUT, flag)
}

/// Whether the size of the request's fields is within the endpoint's limit. Some endpoints end the connection when a
/// request exceeds it, with all other requests on it.
fn takes_fields(lease: &Lease, request: &Request<RequestBody>) -> bool {
    match &lease.sender {
        RequestSender::Http1(_) => true,
        RequestSender::Http2(stream) => {
            stream.max_fields().is_none_or(|most| http2::request::size(request) <= most as usize)
        }
    }
}

/// Reads a response to its end, so that its connection can carry the next request, unless `is_last`.
pub async fn read_off(lease: Lease, response: Response<IncomingBody>, within: Duration, is_last: bool) {
    let mut body = response.into_body();
    let end = async {
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return false;
            }
        }
        true
    };
    if timeout(within, end).await == Ok(true) {
        lease.give_back(is_last, body.take_upload());
    }
}

/// Converts a request to HTTP/1.1: target in origin form, host in `Host`, cookies in one field (RFC 9113 §8.2.3). For
/// methods that rarely have content, hyper sends content of unknown length only if `Transfer-Encoding` is set.
pub(super) fn for_http1(request: &mut Request<RequestBody>) -> Result<(), Unrepresentable> {
    *request.version_mut() = Version::HTTP_11;
    if !request.body().is_end_stream()
        && (request.method() == Method::GET || request.method() == Method::HEAD)
        && !request.headers().contains_key(CONTENT_LENGTH)
    {
        request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    if request.uri().authority().is_some() {
        let uri = std::mem::take(request.uri_mut()).into_parts();
        if let Some(authority) = uri.authority.filter(|_| !request.headers().contains_key(HOST)) {
            let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Unrepresentable)?;
            request.headers_mut().insert(HOST, host);
        }
        *request.uri_mut() = Uri::from(uri.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/")));
    }
    let mut cookies = request.headers().get_all(COOKIE).iter();
    if cookies.next().is_some() && cookies.next().is_some() {
        let crumbs: Vec<&[u8]> = request.headers().get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
        let cookie = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])).map_err(|_| Unrepresentable)?;
        request.headers_mut().insert(COOKIE, cookie);
    }
    Ok(())
}

/// Converts a request to HTTP/2: scheme, authority and path in the target, no `Host`. hyper does not pass on interim
/// responses over HTTP/2, so `Expect` is removed.
pub(super) fn for_http2(
    request: &mut Request<RequestBody>,
    scheme: Scheme,
    upload: Option<&UploadState>,
) -> Result<(), Unrepresentable> {
    *request.version_mut() = Version::HTTP_2;
    if !request.body().is_end_stream() {
        // An earlier attempt may have set it.
        request.headers_mut().remove(TRANSFER_ENCODING);
    }
    if request.headers_mut().remove(EXPECT).is_some()
        && let Some(upload) = upload
    {
        upload.release();
    }
    if let Some(host) = request.headers_mut().remove(HOST) {
        let mut parts = uri::Parts::default();
        parts.scheme = Some(scheme);
        parts.authority = Some(Authority::try_from(host.as_bytes()).map_err(|_| Unrepresentable)?);
        let path = std::mem::take(request.uri_mut()).into_parts().path_and_query;
        parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Unrepresentable)?;
    }
    Ok(())
}

/// Host, target or cookies cannot be expressed in this version of HTTP. The router validated them earlier, so the
/// remaining cases are client errors.
#[derive(Debug)]
pub(super) struct Unrepresentable;

impl From<Unrepresentable> for AttemptError {
    fn from(Unrepresentable: Unrepresentable) -> Self {
        AttemptError::seen(StatusCode::BAD_REQUEST, Flag::BadRequest)
    }
}

#[cfg(test)]
mod tests;

//! One request and one endpoint: over which connection it goes, and whether it may be sent a second time.
//!
//! A request is sent again when nothing of it was sent, or when the endpoint says that it has not looked at it. When a
//! connection that was used before ends without a byte of an answer, nobody knows; then it is sent once more if that
//! can do no harm: its method is idempotent (RFC 9110 §9.2.2) and it has no body. What may not be sent twice takes no
//! connection that was idle for long, because such a one may be about to be closed. A request that waited too long is
//! never sent again.

use std::time::Duration;

use http::header::{COOKIE, EXPECT, HOST};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version, uri};
use hyper::body::{Body, Incoming};
use tokio::time::Instant;

use super::connect::Way;
use super::pool::{FRESH, Lease, MAX_AGE};
use super::wire::{Fate, Sender, Unanswered};
use crate::proxy::access::Flag;
use crate::proxy::http::upload::{RequestBody, Upload};

/// Pooled connections that may turn out to be closed before a new one is opened.
const MAX_STALE: u32 = 3;

/// What went wrong with one endpoint, and whether the next one may be tried.
#[derive(Debug)]
pub struct Trouble {
    /// What the client is to be told.
    pub status: StatusCode,
    /// Why.
    pub flag: Flag,
    /// The request, when the endpoint has not seen it.
    pub unsent: Option<Request<RequestBody>>,
}

/// Sends the request to one endpoint and waits for the response's head, `limit` at most while nothing moves.
///
/// # Errors
/// What to answer, or to try next.
pub async fn attempt(
    way: &Way<'_>,
    mut request: Request<RequestBody>,
    upload: Option<&Upload>,
    limit: Duration,
) -> Result<(Lease, Response<Incoming>), Trouble> {
    let repeatable = request.method().is_idempotent() && request.body().is_end_stream();
    let key = way.key();
    let bucket = way.shared.pool.bucket(key.clone());
    let mut idle = if repeatable { MAX_AGE } else { FRESH };
    let mut stale = 0;
    let mut sent_before = false;
    loop {
        let mut lease = match way.lease(&key, &bucket, idle).await {
            Ok(lease) => lease,
            Err((status, flag)) => return Err(Trouble { status, flag, unsent: Some(request) }),
        };
        request = match &lease.sender {
            Sender::Http1(_) => for_http1(request),
            Sender::Http2(_) => for_http2(request, key.wire.scheme(), upload),
        }?;
        let copy = (repeatable && !sent_before && (lease.reused || matches!(lease.sender, Sender::Http2(_))))
            .then(|| copy(&request));
        let Unanswered { unsent, fate } = match send(&mut lease, request, upload, limit).await? {
            Ok(response) => return Ok((lease, response)),
            Err(unanswered) => unanswered,
        };
        let was_reused = lease.reused;
        drop(lease);
        let closed = |unsent| {
            let failed = upload.is_some_and(Upload::failed);
            let (status, flag) = if failed {
                (StatusCode::BAD_REQUEST, Flag::BadRequest)
            } else {
                (StatusCode::BAD_GATEWAY, Flag::UpstreamClosed)
            };
            Trouble { status, flag, unsent }
        };
        match (unsent, copy) {
            (Some(unsent), _) if was_reused => {
                stale += 1;
                if stale >= MAX_STALE {
                    idle = Duration::ZERO;
                }
                request = unsent;
            }
            (Some(unsent), _) => return Err(closed(Some(unsent))),
            (None, Some(copy)) if fate == Fate::Refused || (fate == Fate::Lost && was_reused) => {
                sent_before = true;
                idle = Duration::ZERO;
                request = copy;
            }
            (None, _) => return Err(closed(None)),
        }
    }
}

/// Sends on one connection and waits, as long as somebody is still sending.
async fn send(
    lease: &mut Lease,
    request: Request<RequestBody>,
    upload: Option<&Upload>,
    limit: Duration,
) -> Result<Result<Response<Incoming>, Unanswered>, Trouble> {
    let begun = Instant::now();
    let stalled = async {
        loop {
            let deadline = upload.map_or(begun, |upload| begun.max(upload.last())) + limit;
            if Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    };
    tokio::select! {
        biased;
        answered = lease.sender.send(request) => return Ok(answered),
        () = stalled => {}
    }
    if upload.is_some_and(Upload::waits_for_client) {
        return Err(Trouble { status: StatusCode::REQUEST_TIMEOUT, flag: Flag::ClientTimeout, unsent: None });
    }
    if let Sender::Http2(stream) = &lease.sender {
        stream.was_silent();
    }
    Err(Trouble { status: StatusCode::GATEWAY_TIMEOUT, flag: Flag::UpstreamTimeout, unsent: None })
}

/// The same request, for when the first is lost. It has no body.
fn copy(request: &Request<RequestBody>) -> Request<RequestBody> {
    let mut copy = Request::new(RequestBody::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// As HTTP/1.1 wants it: the target in origin form and its host in `Host`, cookies in one field (RFC 9113 §8.2.3).
fn for_http1(mut request: Request<RequestBody>) -> Result<Request<RequestBody>, Unspeakable> {
    *request.version_mut() = Version::HTTP_11;
    let uri = std::mem::take(request.uri_mut()).into_parts();
    if let Some(authority) = uri.authority.filter(|_| !request.headers().contains_key(HOST)) {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Unspeakable)?;
        request.headers_mut().insert(HOST, host);
    }
    *request.uri_mut() = Uri::from(uri.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/")));
    let mut cookies = request.headers().get_all(COOKIE).iter();
    if cookies.next().is_some() && cookies.next().is_some() {
        let crumbs: Vec<&[u8]> = request.headers().get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
        let cookie = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])).map_err(|_| Unspeakable)?;
        request.headers_mut().insert(COOKIE, cookie);
    }
    Ok(request)
}

/// As HTTP/2 wants it: scheme, authority and path in the target, and no `Host`. hyper does not tell of interim responses
/// over HTTP/2, so nothing is asked to be continued.
fn for_http2(
    mut request: Request<RequestBody>,
    scheme: Scheme,
    upload: Option<&Upload>,
) -> Result<Request<RequestBody>, Unspeakable> {
    *request.version_mut() = Version::HTTP_2;
    if request.headers_mut().remove(EXPECT).is_some()
        && let Some(upload) = upload
    {
        upload.release();
    }
    if let Some(host) = request.headers_mut().remove(HOST) {
        let mut parts = uri::Parts::default();
        parts.scheme = Some(scheme);
        parts.authority = Some(Authority::try_from(host.as_bytes()).map_err(|_| Unspeakable)?);
        let path = std::mem::take(request.uri_mut()).into_parts().path_and_query;
        parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Unspeakable)?;
    }
    Ok(request)
}

/// Host, target or cookies that this version of HTTP has no words for. They were looked at when the request came; what
/// is left is the client's fault.
#[derive(Debug)]
struct Unspeakable;

impl From<Unspeakable> for Trouble {
    fn from(Unspeakable: Unspeakable) -> Self {
        Trouble { status: StatusCode::BAD_REQUEST, flag: Flag::BadRequest, unsent: None }
    }
}

#[cfg(test)]
mod tests;

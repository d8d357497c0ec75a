//! `httpCompression`: gzip for responses (RFC 9110 §8.4, §12.5.3) of the router's media types. Responses that are
//! already encoded, small, or marked `no-transform` are not changed.

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, request, response};
use hyper::body::{Body, Frame, SizeHint};

use super::headers::has_token;

/// Shortest body that is compressed, in bytes.
const MIN_LENGTH: u64 = 256;
/// Compressed bytes that are gathered before they are sent, unless the endpoint pauses.
const CHUNK: usize = 16 * 1024;
/// Most concurrently compressed responses of the process, about 300 KB each. Others are sent uncompressed.
const MAX_AT_ONCE: usize = 512;

static AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// Whether the client accepts gzip, and may be sent it.
pub fn accepts_gzip(request: &request::Parts) -> bool {
    let mut of_any = false;
    for item in request
        .headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
    {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let is_wanted = weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0));
        if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
            return is_wanted && request.method != Method::HEAD;
        }
        of_any |= coding == "*" && is_wanted;
    }
    of_any && request.method != Method::HEAD
}

/// Whether to compress a response, by the router's media types. `length`: length of its body, if known.
pub fn is_compressible(types: &[Arc<str>], response: &response::Parts, length: Option<u64>) -> bool {
    let headers = &response.headers;
    let has_content = response.status != StatusCode::PARTIAL_CONTENT
        && response.status != StatusCode::NO_CONTENT
        && response.status != StatusCode::NOT_MODIFIED
        && !response.status.is_informational();
    let is_as_it_is = headers.contains_key(CONTENT_ENCODING) || headers.contains_key(CONTENT_RANGE);
    let must_stay = headers.get_all(CACHE_CONTROL).iter().any(|control| has_token(control, "no-transform"));
    has_content
        && !is_as_it_is
        && !must_stay
        && length.is_none_or(|length| length >= MIN_LENGTH)
        && headers.get(CONTENT_TYPE).is_some_and(|written| types.iter().any(|wanted| is_type(written, wanted)))
}

/// Whether a `Content-Type` is this media type, ignoring parameters.
fn is_type(written: &HeaderValue, wanted: &str) -> bool {
    let (written, wanted) = (written.as_bytes(), wanted.as_bytes());
    let Some((begin, rest)) = written.split_at_checked(wanted.len()) else { return false };
    begin.eq_ignore_ascii_case(wanted) && rest.first().is_none_or(|byte| matches!(byte, b';' | b' ' | b'\t'))
}

/// Adjusts a response's fields for compression: its entity tag becomes weak, because the bytes differ.
fn set_fields(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    add_vary(headers);
    let weak = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    let weak = weak.and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(ETAG, weak);
    }
}

/// Adds `Vary: Accept-Encoding`, also to responses that are not compressed.
pub fn add_vary(headers: &mut HeaderMap) {
    let varies = headers.get_all(VARY).iter().any(|vary| has_token(vary, "accept-encoding") || has_token(vary, "*"));
    if !varies {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

/// A body, compressed or not.
#[derive(Debug)]
pub enum MaybeGzip<B> {
    /// Not compressed.
    Plain(B),
    /// Compressed.
    Gzip(Box<Gzip<B>>),
}

impl<B> MaybeGzip<B> {
    /// Compresses a body and adjusts the response's fields, if the limit of concurrent responses permits.
    pub fn compress(headers: &mut HeaderMap, body: B) -> Self {
        let Some(place) = GzipPermit::take() else { return MaybeGzip::Plain(body) };
        set_fields(headers);
        let encoder = Some(GzEncoder::new(Vec::with_capacity(CHUNK), Compression::fast()));
        MaybeGzip::Gzip(Box::new(Gzip { body, encoder, has_unsent: false, trailers: None, _place: place }))
    }
}

/// A body that is compressed while it is read.
#[derive(Debug)]
pub struct Gzip<B> {
    body: B,
    /// `None` when the body has ended.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Whether the encoder holds data that could be flushed.
    has_unsent: bool,
    trailers: Option<Frame<Bytes>>,
    _place: GzipPermit,
}

impl<B: Body<Data = Bytes> + Unpin> Gzip<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        loop {
            let Some(encoder) = &mut self.encoder else { return Poll::Ready(self.trailers.take().map(Ok)) };
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        // Writing to a Vec does not fail.
                        let _ = encoder.write_all(&data);
                        self.has_unsent = true;
                        if encoder.get_ref().len() >= CHUNK {
                            return Poll::Ready(Some(Ok(Frame::data(taken(encoder)))));
                        }
                    }
                    Err(trailers) => {
                        self.trailers = Some(trailers);
                        return Poll::Ready(self.end());
                    }
                },
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(self.end()),
                // The endpoint pauses: the client may need what has been compressed so far.
                Poll::Pending if self.has_unsent => {
                    let _ = encoder.flush();
                    self.has_unsent = false;
                    return Poll::Ready(Some(Ok(Frame::data(taken(encoder)))));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn end(&mut self) -> Option<Result<Frame<Bytes>, B::Error>> {
        let rest = self.encoder.take()?.finish().unwrap_or_default();
        Some(Ok(Frame::data(rest.into())))
    }
}

fn taken(encoder: &mut GzEncoder<Vec<u8>>) -> Bytes {
    std::mem::replace(encoder.get_mut(), Vec::with_capacity(CHUNK)).into()
}

impl<B: Body<Data = Bytes> + Unpin> Body for MaybeGzip<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut *self {
            MaybeGzip::Plain(body) => Pin::new(body).poll_frame(cx),
            MaybeGzip::Gzip(gzip) => gzip.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            MaybeGzip::Plain(body) => body.is_end_stream(),
            MaybeGzip::Gzip(gzip) => gzip.encoder.is_none() && gzip.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            MaybeGzip::Plain(body) => body.size_hint(),
            MaybeGzip::Gzip(_) => SizeHint::default(),
        }
    }
}

/// A permit of [`MAX_AT_ONCE`].
#[derive(Debug)]
struct GzipPermit;

impl GzipPermit {
    fn take() -> Option<GzipPermit> {
        let taken = AT_ONCE.fetch_add(1, Ordering::Relaxed);
        // Released by the drop even if the limit was exceeded.
        Some(GzipPermit).filter(|_| taken < MAX_AT_ONCE)
    }
}

impl Drop for GzipPermit {
    fn drop(&mut self) {
        AT_ONCE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

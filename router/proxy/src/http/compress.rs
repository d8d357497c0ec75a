//! `httpCompression`: gzip on the way to the client (RFC 9110 §8.4, §12.5.3), for the media types that the router
//! names. What is compressed already, is small, or must not be transformed goes as it is.

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

/// Bodies that are known to be shorter than this, in bytes, gain nothing.
const MIN_LENGTH: u64 = 256;
/// What is gathered before it goes on, in bytes, unless the endpoint pauses.
const CHUNK: usize = 16 * 1024;
/// Most responses of this process that are compressed at the same time: each takes some 300 KB. Others go as they are.
const MAX_AT_ONCE: usize = 512;

static AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// Whether a client takes gzip, and may be sent it.
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

/// Whether a response is one to compress, by the router's list of media types. `length` is its body's, if it is known.
pub fn is_worth_it(types: &[Arc<str>], response: &response::Parts, length: Option<u64>) -> bool {
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

/// Whether a `Content-Type` is this media type, whatever its parameters.
fn is_type(written: &HeaderValue, wanted: &str) -> bool {
    let (written, wanted) = (written.as_bytes(), wanted.as_bytes());
    let Some((begin, rest)) = written.split_at_checked(wanted.len()) else { return false };
    begin.eq_ignore_ascii_case(wanted) && rest.first().is_none_or(|byte| matches!(byte, b';' | b' ' | b'\t'))
}

/// Says in a response's fields that it is compressed: what is stored by its tag is not the same bytes any more.
fn tell(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    tell_vary(headers);
    let weak = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    let weak = weak.and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(ETAG, weak);
    }
}

/// Says that the response depends on `Accept-Encoding`, also when this one is not compressed.
pub fn tell_vary(headers: &mut HeaderMap) {
    let told = headers.get_all(VARY).iter().any(|vary| has_token(vary, "accept-encoding") || has_token(vary, "*"));
    if !told {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

/// A body, as it is or compressed.
#[derive(Debug)]
pub enum MaybeGzip<B> {
    /// As it is.
    Plain(B),
    /// Compressed.
    Gzip(Box<Gzip<B>>),
}

impl<B> MaybeGzip<B> {
    /// Compresses a body, and says so in the response's fields, if there is room for one more.
    pub fn compress(headers: &mut HeaderMap, body: B) -> Self {
        let Some(place) = Place::take() else { return MaybeGzip::Plain(body) };
        tell(headers);
        let encoder = Some(GzEncoder::new(Vec::with_capacity(CHUNK), Compression::fast()));
        MaybeGzip::Gzip(Box::new(Gzip { body, encoder, has_unsent: false, trailers: None, _place: place }))
    }
}

/// A body that is compressed while it goes through.
#[derive(Debug)]
pub struct Gzip<B> {
    body: B,
    /// `None` when the body has ended.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Whether the encoder keeps something that could be sent.
    has_unsent: bool,
    trailers: Option<Frame<Bytes>>,
    _place: Place,
}

impl<B: Body<Data = Bytes> + Unpin> Gzip<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        loop {
            let Some(encoder) = &mut self.encoder else { return Poll::Ready(self.trailers.take().map(Ok)) };
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        // Writing to memory does not fail.
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
                // The endpoint pauses: what there is may be waited for.
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

/// One of [`MAX_AT_ONCE`].
#[derive(Debug)]
struct Place;

impl Place {
    fn take() -> Option<Place> {
        let taken = AT_ONCE.fetch_add(1, Ordering::Relaxed);
        // Given back by the drop, also when it was one too many.
        Some(Place).filter(|_| taken < MAX_AT_ONCE)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        AT_ONCE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

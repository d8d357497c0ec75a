//! Converts requests to HTTP/2.

use http::header::{CONNECTION, CONTENT_LENGTH, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, HeaderValue, Method, Request, request};
use hyper::body::Body;

use crate::http::upload::RequestBody;

/// Connection-specific fields of HTTP/1, which a rule may have added (RFC 9113 §8.2.2).
static OF_CONNECTIONS: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];
/// Overhead of a field in bytes (RFC 9113 §6.5.2).
const FIELD: usize = 32;

/// The size of a request's fields as SETTINGS_MAX_HEADER_LIST_SIZE counts them, in bytes (RFC 9113 §6.5.2).
pub fn size<B>(request: &Request<B>) -> usize {
    let uri = request.uri();
    let target = [
        (":method".len(), request.method().as_str().len()),
        (":scheme".len(), uri.scheme_str().map_or(0, str::len)),
        (":authority".len(), uri.authority().map_or(0, |authority| authority.as_str().len())),
        (":path".len(), uri.path_and_query().map_or(0, |path| path.as_str().len())),
    ];
    let fields = request.headers().iter().map(|(name, value)| (name.as_str().len(), value.len()));
    target.into_iter().chain(fields).map(|(name, value)| name + value + FIELD).sum()
}

/// Removes connection-specific fields, and sets the content length.
pub fn prepare(head: &mut request::Parts, body: &RequestBody) {
    for name in &OF_CONNECTIONS {
        head.headers.remove(name);
    }
    if head.headers.get(TE).is_some_and(|te| te != "trailers") {
        head.headers.remove(TE);
    }
    let has_use = !matches!(head.method, Method::GET | Method::HEAD | Method::DELETE | Method::CONNECT);
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0 || has_use) {
        head.headers.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
}

//! Errors of connections, requests and responses.

use http::{Request, StatusCode};
use router_access_log::Flag;

use crate::http::upload::RequestBody;

/// Why no connection could be opened: status for the client, and cause.
pub type UpstreamError = (StatusCode, Flag);

/// A request that got no response.
#[derive(Debug)]
pub struct Unanswered {
    /// The request, if nothing of it was sent. Boxed to keep the error small.
    pub unsent: Option<Box<Request<RequestBody>>>,
    /// Whether the endpoint may have processed it.
    pub processing: Processing,
    /// Cause.
    pub flag: Flag,
}

/// Whether an endpoint may have processed a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processing {
    /// Not processed: the endpoint refused the stream (RFC 9113 §8.7).
    Refused,
    /// Not processed: the endpoint requires HTTP/1.1 (RFC 9113 §7).
    NotOverHttp2,
    /// Unknown: the connection ended before the first byte of a response.
    Lost,
    /// Processed: a response had begun, or it is not valid HTTP.
    Begun,
}

/// Why a response or its content is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Over HTTP/1.1.
    #[error("{0}")]
    Http1(#[source] hyper::Error),
    /// Over HTTP/2.
    #[error("{0}")]
    Http2(#[source] h2::Error),
}

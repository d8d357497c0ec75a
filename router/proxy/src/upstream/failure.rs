//! What is known of connections, requests and responses that failed.

use http::{Request, StatusCode};
use router_access_log::Flag;

use crate::http::upload::RequestBody;

/// Why no connection could be opened: the status that the client gets, and the flag.
pub type OpenError = (StatusCode, Flag);

/// What is known about a request that got no answer.
#[derive(Debug)]
pub struct Unanswered {
    /// The request, when nothing of it was sent. Boxed, as every answer has the room for what there is without one.
    pub unsent: Option<Box<Request<RequestBody>>>,
    /// What the endpoint may have done with it.
    pub fate: Fate,
    /// Why.
    pub flag: Flag,
}

/// What an endpoint may have done with a request that it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing: it says so (RFC 9113 §8.7).
    Refused,
    /// Nothing: it wants it over HTTP/1.1 (RFC 9113 §7).
    NotOverHttp2,
    /// Nobody knows: the connection ended, and not a byte of an answer had come.
    Lost,
    /// It was at work on it, or its answer is no HTTP.
    Begun,
}

/// Why a response, or its content, did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Over HTTP/1.1.
    #[error("{0}")]
    Http1(#[source] hyper::Error),
    /// Over HTTP/2.
    #[error("{0}")]
    Http2(#[source] h2::Error),
}

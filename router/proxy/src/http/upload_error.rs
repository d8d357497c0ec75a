//! Why a request's content did not reach its endpoint.

/// Why a request body is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The client's connection failed, or the body is malformed.
    #[error("the client broke off: {0}")]
    Client(#[source] hyper::Error),
    /// The endpoint answered without reading the body.
    #[error("the body was not wanted")]
    NotWanted,
    /// A copy is incomplete, because the body is, or because the mirror read it too slowly.
    #[error("a copy was given up")]
    GivenUp,
}

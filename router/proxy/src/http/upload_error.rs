//! Why a request's content did not reach its endpoint.

/// Why a request body is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The client's connection failed, or the body is malformed.
    #[error("the client's body is incomplete: {0}")]
    Client(#[source] hyper::Error),
    /// The endpoint answered without reading the body.
    #[error("the endpoint answered without reading the body")]
    NotWanted,
    /// A copy is incomplete, because the body is, or because the mirror read it too slowly.
    #[error("the copy is incomplete")]
    GivenUp,
}

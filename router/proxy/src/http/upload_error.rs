//! Why the content of a request did not get to its endpoint.

/// Why a request body broke off.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The client's connection failed, or what it sent is malformed.
    #[error("the client broke off: {0}")]
    Client(#[source] hyper::Error),
    /// The endpoint has answered without it.
    #[error("the body was not wanted")]
    NotWanted,
    /// It is a copy, and there is no more of it: the body broke off, or came faster than the mirror took it.
    #[error("a copy was given up")]
    GivenUp,
}

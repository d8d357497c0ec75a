//! What a backend receives of a client's connection.

/// What a backend receives of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendPayload {
    /// The bytes as the client sent them, TLS included (passthrough).
    AsItCame,
    /// The content of terminated TLS, or HTTP requests.
    Content,
}

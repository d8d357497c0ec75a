//! Payload of the connections to backends: the client's own TLS, or decrypted content.

/// Payload of a connection to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendPayload {
    /// The client's bytes, TLS included.
    Passthrough,
    /// The content of terminated TLS, or HTTP requests.
    Content,
}

//! What backends get of their clients' connections.

/// What of a client's connection goes on to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// All of it, with the TLS that it may have.
    AsItCame,
    /// What is inside of its TLS, or requests.
    Content,
}

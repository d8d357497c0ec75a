//! Why endpoints cannot be verified.

use rustls::client::VerifierBuilderError;

/// Why no connection to the endpoint can be made that would be verified.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The route names no CA, and no service CA is known.
    #[error("the route has no destination CA certificate, and there is no service CA to fall back to")]
    NoCa,
    /// A policy asks for the system's roots, and there are none.
    #[error("the system has no CA certificates to verify the backend with")]
    NoSystemRoots,
    /// The CA store cannot be used.
    #[error("the CA certificates cannot be used: {0}")]
    Roots(#[from] VerifierBuilderError),
    /// rustls refuses the configuration.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
    /// `<service>.<namespace>.svc` is no name.
    #[error("{0:?} cannot be a server name")]
    Name(String),
}

//! Errors of the TLS configuration for endpoints.

use rustls::client::VerifierBuilderError;

/// Why an endpoint's certificate cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The route has no CA, and no service CA is configured.
    #[error("the route has no destination CA certificate, and there is no service CA to fall back to")]
    NoCa,
    /// A policy requests the system's CA certificates, and there are none.
    #[error("the system has no CA certificates to verify the backend with")]
    NoSystemRoots,
    /// The CA store is not usable.
    #[error("the CA certificates cannot be used: {0}")]
    Roots(#[from] VerifierBuilderError),
    /// rustls rejects the configuration.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
    /// `<service>.<namespace>.svc` is not a valid name.
    #[error("{0:?} cannot be a server name")]
    Name(String),
}

//! TLS handshake with an endpoint over an open connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use router_access_log::Flag;
use router_table::rule::BackendPolicy;
use rustls::AlertDescription;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::cause;
use super::failure::UpstreamError;
use super::health::{ConnectStage, Health};
use super::target::EndpointTarget;
use crate::context::ProcessContext;
use crate::upstream_tls::{TrustError, UpstreamTrust};

/// TLS configuration for an endpoint, and its server name.
pub type Trusted = (TlsConnector, ServerName<'static>);

/// A connection to an endpoint for opaque bytes.
pub type ByteStream = Either<TcpStream, TlsStream<TcpStream>>;

/// Why the handshake failed.
pub enum SecureError {
    /// The endpoint's ALPN does not include HTTP/1.1.
    NoHttp1,
    /// Any other failure.
    Otherwise(UpstreamError),
}

impl From<UpstreamError> for SecureError {
    fn from(error: UpstreamError) -> Self {
        SecureError::Otherwise(error)
    }
}

impl From<SecureError> for UpstreamError {
    fn from(failed: SecureError) -> Self {
        match failed {
            SecureError::NoHttp1 => (StatusCode::BAD_GATEWAY, Flag::UpstreamTls),
            SecureError::Otherwise(error) => error,
        }
    }
}

/// Performs a TLS handshake, and reports the result to `health`.
///
/// # Errors
/// See [`SecureError`].
pub async fn secure<S>(
    health: &Health,
    step: &ConnectStage,
    (connector, name): Trusted,
    stream: S,
    deadline: Instant,
) -> Result<TlsStream<S>, SecureError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match timeout_at(deadline, connector.connect(name, stream)).await {
        Ok(Ok(stream)) => {
            health.succeeded(step);
            Ok(stream)
        }
        Ok(Err(error)) => {
            tracing::debug!(endpoint = %step.address(), %error, "TLS with the endpoint failed");
            // An alert or a rejected certificate concerns this pair of peers alone; only a closed connection counts
            // against the endpoint.
            if error.kind() != io::ErrorKind::InvalidData {
                health.failed(step, Instant::now().into_std());
            }
            Err(if is_about_protocols(&error) {
                SecureError::NoHttp1
            } else {
                (StatusCode::BAD_GATEWAY, cause::of_handshake(&error)).into()
            })
        }
        Err(_) => {
            health.failed(step, Instant::now().into_std());
            Err((StatusCode::GATEWAY_TIMEOUT, Flag::UpstreamTlsTimeout).into())
        }
    }
}

/// Returns a connection for opaque bytes, with TLS if the backend's policy requires it.
///
/// # Errors
/// Why the handshake failed.
pub async fn secured(
    common: &ProcessContext,
    target: EndpointTarget<'_>,
    stream: TcpStream,
    within: Duration,
) -> Result<ByteStream, UpstreamError> {
    let Some((policy, peer)) = target.policy.zip(target.peer()) else { return Ok(Either::Left(stream)) };
    let (trust, name) = trust_policy(common, policy).map_err(|error| {
        tracing::warn!(service = %target.service, %error, "a backend cannot be connected to");
        (StatusCode::SERVICE_UNAVAILABLE, Flag::NoDestinationCa)
    })?;
    let trusted = (TlsConnector::from(trust.config_bytes), name);
    let step = ConnectStage::Tls(target.endpoint.address, peer);
    let stream = secure(&common.balancer.health, &step, trusted, stream, Instant::now() + within).await?;
    Ok(Either::Right(stream))
}

/// Whether the endpoint rejected all offered ALPN protocols (RFC 7301 §3.2).
fn is_about_protocols(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)))
}

/// TLS configuration for a backend with a TLS policy, and its server name.
///
/// # Errors
/// When the policy has no usable trust anchors.
pub fn trust_policy(
    common: &ProcessContext,
    policy: &Arc<BackendPolicy>,
) -> Result<(UpstreamTrust, ServerName<'static>), TrustError> {
    let tls = policy.tls.as_ref().ok_or(TrustError::NoCa)?;
    let name = ServerName::DnsName(tls.server_name().clone());
    Ok((common.upstream_tls.trust_policy(policy, tls)?, name))
}

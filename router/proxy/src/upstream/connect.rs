//! Obtains a connection for a request: from the pool, or a new one.

mod eligible;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use router_access_log::Flag;
use router_table::rule::BackendPolicy;
use router_table::table::{Endpoint, ResolvedRoute};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::failure::UpstreamError;
use super::health::ConnectStage;
use super::private::Private;
use super::read_activity::ReadActivity;
use super::request_sender::Http1Connection;
use super::target::{EndpointTarget, TlsPeer};
use super::tls_connect::{SecureError, Trusted, secure, trust_policy};
use super::{http2, wake_suppression};
use crate::coalesced_write::CoalescedWrite;
use crate::context::ProcessContext;
use crate::dial::{self, DialError};
use crate::interim::InterimTurn;
use crate::rt::timer::TaskTimer;
use crate::upstream::bucket::{Acquired, Bucket, Lease, Opener, PoolKey, Wire};
use crate::upstream_tls::{TrustError, service_name};

/// Longest head of a response from an endpoint, in bytes.
const MAX_RESPONSE_HEAD: usize = 64 * 1024;
/// The endpoint to connect to, and the constraints of the request.
#[derive(Clone, Copy, Debug)]
pub struct ConnectRequest<'r> {
    /// State of the proxy.
    pub shared: &'r crate::context::WorkerContext,
    /// Route of the request.
    pub route: &'r ResolvedRoute,
    /// Endpoint.
    pub target: EndpointTarget<'r>,
    /// Whether HTTP/1.1 is required, because the request upgrades the connection.
    pub http1_only: bool,
    /// Timeout of the connection set-up, including TLS.
    pub within: Duration,
    /// Deadline of the request.
    pub until: Option<Instant>,
    /// Whether the request is to be kept for a retry; only one that [`is_repeatable`](super::attempt::is_repeatable).
    pub keep: bool,
    /// Receiver of interim responses.
    pub interim: Option<InterimTurn<'r>>,
    /// Timer for the waits; `None`: a timer of the pool.
    pub timer: Option<&'r TaskTimer>,
    /// Connections reserved for the client's connection; `None` for a request that no client connection owns.
    pub private: Option<&'r Private>,
    /// Longest wait for a turn on a connection that carries one request at a time.
    pub turn: Duration,
    /// Whether to separate the client's requests from those of others, because it resets many streams and the endpoint
    /// may end the connection.
    pub apart: bool,
    /// Whether the request has content.
    pub with_content: bool,
}

/// An open connection.
pub enum Connected {
    /// HTTP/1.1: one request at a time.
    Http1(Http1Connection),
    /// HTTP/2: many requests.
    Http2(http2::Http2Connection),
}

impl ConnectRequest<'_> {
    /// Returns a connection that was idle for at most `idle`, a stream of a connection with capacity, or a new
    /// connection.
    ///
    /// # Errors
    /// Why no connection could be opened, and how long the attempt took.
    pub async fn lease(&self, bucket: &Arc<Bucket>, idle: Duration) -> Result<Lease, (UpstreamError, Duration)> {
        if let Some(turns) = bucket.turns() {
            return Box::pin(self.lease_in_turn(bucket, Arc::clone(turns))).await;
        }
        match bucket.take(idle, self.with_content) {
            Acquired::Ready(lease) => Ok(lease),
            // Boxed: this case is rare, and each request's future would have its size.
            none => Box::pin(self.wait_or_open(bucket, idle, none)).await,
        }
    }

    /// Waits for the only connection of a tied bucket, however long it has been idle.
    async fn lease_in_turn(
        &self,
        bucket: &Arc<Bucket>,
        turns: Arc<Semaphore>,
    ) -> Result<Lease, (UpstreamError, Duration)> {
        let deadline = Instant::now() + self.turn;
        let deadline = self.until.map_or(deadline, |until| until.min(deadline));
        let Ok(Ok(turn)) = timeout_at(deadline, turns.acquire_owned()).await else {
            return Err(((StatusCode::SERVICE_UNAVAILABLE, Flag::Busy), Duration::ZERO));
        };
        let taken = bucket.take(Duration::MAX, self.with_content);
        Ok(self.wait_or_open(bucket, Duration::MAX, taken).await?.with(turn))
    }

    /// If the request's deadline expired first, reports that as the cause.
    fn in_time(&self, (status, flag): UpstreamError) -> UpstreamError {
        let waited = matches!(flag, Flag::UpstreamConnectTimeout | Flag::UpstreamTlsTimeout);
        let is_over = waited && self.until.is_some_and(|until| Instant::now() >= until);
        (status, if is_over { Flag::RuleTimeout } else { flag })
    }

    async fn wait_or_open(
        &self,
        bucket: &Arc<Bucket>,
        idle: Duration,
        taken: Acquired,
    ) -> Result<Lease, (UpstreamError, Duration)> {
        let begun = Instant::now();
        let opened = self.wait_or_open_until(bucket, idle, taken, begun + self.within).await;
        opened.map_err(|error| (self.in_time(error), begun.elapsed()))
    }

    async fn wait_or_open_until(
        &self,
        bucket: &Arc<Bucket>,
        idle: Duration,
        mut taken: Acquired,
        deadline: Instant,
    ) -> Result<Lease, UpstreamError> {
        let deadline = self.until.map_or(deadline, |until| until.min(deadline));
        loop {
            match taken {
                Acquired::Ready(lease) => return Ok(lease),
                Acquired::Wait(opening) => match timeout_at(deadline, opening.done()).await {
                    Ok(done) => done?,
                    Err(_) => return Err((StatusCode::GATEWAY_TIMEOUT, Flag::UpstreamConnectTimeout)),
                },
                Acquired::Open(opener) => match self.open(&bucket.key, opener, deadline).await {
                    // Another request may return its connection or release a descriptor.
                    Err((_, Flag::NoDescriptor)) if Instant::now() < deadline => {
                        self.shared.wait_for_descriptor().await
                    }
                    opened => return opened,
                },
            }
            taken = bucket.take(idle, self.with_content);
        }
    }

    async fn open(&self, key: &PoolKey, opener: Opener, deadline: Instant) -> Result<Lease, UpstreamError> {
        let closed = (StatusCode::BAD_GATEWAY, Flag::UpstreamHungUp);
        match self.connect(key, deadline).await {
            Ok(Connected::Http1(own)) => Ok(opener.http1(own)),
            Ok(Connected::Http2(shared)) => opener.http2(shared).ok_or(closed),
            Err(error) => {
                // Waiting requests may have later deadlines. Without an error they open a connection themselves.
                if !matches!(error.1, Flag::UpstreamConnectTimeout | Flag::UpstreamTlsTimeout | Flag::NoDescriptor) {
                    opener.failed(error);
                }
                Err(error)
            }
        }
    }

    async fn connect(&self, key: &PoolKey, deadline: Instant) -> Result<Connected, UpstreamError> {
        match (self.connect_as(&key.wire, deadline).await, &key.wire) {
            // Tied connections use HTTP/1.1 where possible.
            (Err(SecureError::NoHttp1), Wire::TlsHttp1(peer)) if !self.http1_only => {
                Ok(self.connect_as(&Wire::Tls(peer.clone()), deadline).await?)
            }
            (connected, _) => Ok(connected?),
        }
    }

    async fn connect_as(&self, wire: &Wire, deadline: Instant) -> Result<Connected, SecureError> {
        let tls = self.trust(wire)?;
        let within = deadline.saturating_duration_since(Instant::now());
        connect(self.shared, self.target.endpoint, wire, tls, within).await
    }

    /// TLS configuration for the endpoint, and its server name.
    fn trust(&self, wire: &Wire) -> Result<Option<Trusted>, UpstreamError> {
        let (peer, http1_only) = match wire {
            Wire::Http1 | Wire::Http2 => return Ok(None),
            Wire::Tls(peer) => (peer, false),
            Wire::TlsHttp1(peer) => (peer, true),
        };
        let made = || -> Result<_, TrustError> {
            let (trust, name) = match peer {
                TlsPeer::Service { service, namespace, .. } => {
                    let reencrypt = self.route.reencrypt().ok_or(TrustError::NoCa)?;
                    (self.shared.upstream_tls.trust(reencrypt)?, service_name(service, namespace)?)
                }
                TlsPeer::Policy(policy) => trust_policy(self.shared, policy)?,
            };
            let config = if http1_only { trust.config_http1 } else { trust.config };
            Ok(Some((TlsConnector::from(config), name)))
        };
        made().map_err(|error| {
            tracing::warn!(route = %self.route.id, %error, "the route cannot be served");
            (StatusCode::SERVICE_UNAVAILABLE, Flag::NoDestinationCa)
        })
    }
}

/// Connects to an endpoint for a request of the router's own (a health check), with the protocol and TLS of client
/// requests (`request_sender`).
///
/// # Errors
/// Why the endpoint cannot be reached.
pub async fn connect_to(
    common: &ProcessContext,
    endpoint: &Endpoint,
    wire: &Wire,
    policy: &Arc<BackendPolicy>,
    within: Duration,
) -> Result<Connected, UpstreamError> {
    let tls = match &policy.tls {
        Some(_) => {
            let (trust, name) =
                trust_policy(common, policy).map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, Flag::NoDestinationCa))?;
            Some((TlsConnector::from(trust.config), name))
        }
        None => None,
    };
    Ok(connect(common, endpoint, wire, tls, within).await?)
}

/// Connects and performs the TLS handshake, if any, within `within` in all.
async fn connect(
    common: &ProcessContext,
    endpoint: &Endpoint,
    wire: &Wire,
    tls: Option<Trusted>,
    within: Duration,
) -> Result<Connected, SecureError> {
    let (health, deadline) = (&common.balancer.health, Instant::now() + within);
    let stream = dial::connect(health, endpoint, within).await.map_err(|error| match error {
        DialError::Timeout => (StatusCode::GATEWAY_TIMEOUT, Flag::UpstreamConnectTimeout),
        DialError::Refused(_) => (StatusCode::SERVICE_UNAVAILABLE, Flag::UpstreamConnectFailure),
        DialError::Own => (StatusCode::SERVICE_UNAVAILABLE, Flag::OwnListener),
        DialError::NoDescriptor(_) => (StatusCode::SERVICE_UNAVAILABLE, Flag::NoDescriptor),
    })?;
    let (Some((connector, name)), Wire::Tls(peer) | Wire::TlsHttp1(peer)) = (tls, wire) else {
        let stream = CoalescedWrite(stream);
        return Ok(if *wire == Wire::Http2 { http2(stream).await } else { http1(stream).await }?);
    };
    let step = ConnectStage::Tls(endpoint.address, peer.clone());
    let stream = secure(health, &step, (connector, name), CoalescedWrite(stream), deadline).await?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok(if is_http2 { http2(stream).await } else { http1(stream).await }?)
}

async fn http1<S>(stream: S) -> Result<Connected, UpstreamError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let heard = ReadActivity::default();
    let io = TokioIo::new(heard.wrap(stream));
    let made = http1::Builder::new().max_buf_size(MAX_RESPONSE_HEAD).handshake(io).await;
    let (sender, driver) = made.map_err(|_| (StatusCode::BAD_GATEWAY, Flag::UpstreamHungUp))?;
    // The connection's errors are reported to its requests.
    tokio::spawn(wake_suppression::sleeper(async move { driver.with_upgrades().await.ok() }));
    Ok(Connected::Http1(Http1Connection::new(sender, heard)))
}

async fn http2<S>(stream: S) -> Result<Connected, UpstreamError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let made = http2::open(stream, MAX_RESPONSE_HEAD as u32).await;
    Ok(Connected::Http2(made.map_err(|_| (StatusCode::BAD_GATEWAY, Flag::UpstreamHungUp))?))
}

//! A connection for a request: one from the pool, or a new one.

mod which;

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

use super::failure::OpenError;
use super::health::Step;
use super::private::Private;
use super::read_activity::Heard;
use super::secure::{Failed, Trusted, secure, trust_policy};
use super::target::{Peer, Target};
use super::wire::Own;
use super::{http2, wake_suppression};
use crate::coalesced_write::CoalescedWrite;
use crate::context::Common;
use crate::dial::{self, DialError};
use crate::interim::Turn;
use crate::rt::timer::TaskTimer;
use crate::upstream::bucket::{Bucket, Lease, Opener, PoolKey, Taken, Wire};
use crate::upstream_tls::{TrustError, service_name};

/// Longest head of an endpoint's response, in bytes.
const MAX_RESPONSE_HEAD: usize = 64 * 1024;
/// Which endpoint a connection leads to, and how it is made.
#[derive(Clone, Copy, Debug)]
pub struct ConnectRequest<'r> {
    /// The proxy.
    pub shared: &'r crate::context::Shared,
    /// The route.
    pub route: &'r ResolvedRoute,
    /// Its endpoint.
    pub target: Target<'r>,
    /// Whether only HTTP/1.1 will do: it is to be left for another protocol.
    pub http1_only: bool,
    /// How long connecting may take, with TLS.
    pub within: Duration,
    /// When the request has no more time.
    pub until: Option<Instant>,
    /// Whether the request may be wanted after it was sent; only one that [`is_repeatable`](super::attempt::is_repeatable).
    pub keep: bool,
    /// Who is told of interim responses.
    pub interim: Option<Turn<'r>>,
    /// The timer for its waits; `None`: any.
    pub timer: Option<&'r TaskTimer>,
    /// What the client's connection has of its own; `None`: the request is nobody's.
    pub private: Option<&'r Private>,
    /// How long it may wait for its turn on a connection that carries one request at a time.
    pub turn: Duration,
    /// Whether the client does what might end a connection that others share: it takes back many requests.
    pub apart: bool,
    /// Whether the request has content.
    pub with_content: bool,
}

/// A connection that is there.
pub enum Connected {
    /// For one request at a time.
    Http1(Own),
    /// For many.
    Http2(http2::Shared),
}

impl ConnectRequest<'_> {
    /// A connection that has been idle for at most `idle`, a stream of one that has room, or a new one.
    ///
    /// # Errors
    /// Why none could be opened, and how long that took.
    pub async fn lease(&self, bucket: &Arc<Bucket>, idle: Duration) -> Result<Lease, (OpenError, Duration)> {
        if let Some(turns) = bucket.turns() {
            return Box::pin(self.lease_in_turn(bucket, Arc::clone(turns))).await;
        }
        match bucket.take(idle, self.with_content) {
            Taken::Ready(lease) => Ok(lease),
            // Boxed: it is rare, and every request would carry the room for it.
            none => Box::pin(self.wait_or_open(bucket, idle, none)).await,
        }
    }

    /// The only connection of a bucket, however long it has been idle: it is not as good as any other.
    async fn lease_in_turn(&self, bucket: &Arc<Bucket>, turns: Arc<Semaphore>) -> Result<Lease, (OpenError, Duration)> {
        let deadline = Instant::now() + self.turn;
        let deadline = self.until.map_or(deadline, |until| until.min(deadline));
        let Ok(Ok(turn)) = timeout_at(deadline, turns.acquire_owned()).await else {
            return Err(((StatusCode::SERVICE_UNAVAILABLE, Flag::Busy), Duration::ZERO));
        };
        let taken = bucket.take(Duration::MAX, self.with_content);
        Ok(self.wait_or_open(bucket, Duration::MAX, taken).await?.with(turn))
    }

    /// Where the request's own time was the shorter one, it is that which is over.
    fn in_time(&self, (status, flag): OpenError) -> OpenError {
        let waited = matches!(flag, Flag::UpstreamConnectTimeout | Flag::UpstreamTlsTimeout);
        let is_over = waited && self.until.is_some_and(|until| Instant::now() >= until);
        (status, if is_over { Flag::RuleTimeout } else { flag })
    }

    async fn wait_or_open(
        &self,
        bucket: &Arc<Bucket>,
        idle: Duration,
        taken: Taken,
    ) -> Result<Lease, (OpenError, Duration)> {
        let begun = Instant::now();
        let opened = self.wait_or_open_until(bucket, idle, taken, begun + self.within).await;
        opened.map_err(|error| (self.in_time(error), begun.elapsed()))
    }

    async fn wait_or_open_until(
        &self,
        bucket: &Arc<Bucket>,
        idle: Duration,
        mut taken: Taken,
        deadline: Instant,
    ) -> Result<Lease, OpenError> {
        let deadline = self.until.map_or(deadline, |until| until.min(deadline));
        loop {
            match taken {
                Taken::Ready(lease) => return Ok(lease),
                Taken::Wait(opening) => match timeout_at(deadline, opening.done()).await {
                    Ok(done) => done?,
                    Err(_) => return Err((StatusCode::GATEWAY_TIMEOUT, Flag::UpstreamConnectTimeout)),
                },
                Taken::Open(opener) => match self.open(&bucket.key, opener, deadline).await {
                    // Another request may give its connection back, or a descriptor.
                    Err((_, Flag::NoDescriptor)) if Instant::now() < deadline => {
                        self.shared.wait_for_descriptor().await
                    }
                    opened => return opened,
                },
            }
            taken = bucket.take(idle, self.with_content);
        }
    }

    async fn open(&self, key: &PoolKey, opener: Opener, deadline: Instant) -> Result<Lease, OpenError> {
        let closed = (StatusCode::BAD_GATEWAY, Flag::UpstreamHungUp);
        match self.connect(key, deadline).await {
            Ok(Connected::Http1(own)) => Ok(opener.http1(own)),
            Ok(Connected::Http2(shared)) => opener.http2(shared).ok_or(closed),
            Err(error) => {
                // Those who wait may have more time than this request: without a word they go on by themselves.
                if !matches!(error.1, Flag::UpstreamConnectTimeout | Flag::UpstreamTlsTimeout | Flag::NoDescriptor) {
                    opener.failed(error);
                }
                Err(error)
            }
        }
    }

    async fn connect(&self, key: &PoolKey, deadline: Instant) -> Result<Connected, OpenError> {
        match (self.connect_as(&key.wire, deadline).await, &key.wire) {
            // What is tied speaks HTTP/1.1 where there is a choice.
            (Err(Failed::NoHttp1), Wire::TlsHttp1(peer)) if !self.http1_only => {
                Ok(self.connect_as(&Wire::Tls(peer.clone()), deadline).await?)
            }
            (connected, _) => Ok(connected?),
        }
    }

    async fn connect_as(&self, wire: &Wire, deadline: Instant) -> Result<Connected, Failed> {
        let tls = self.trust(wire)?;
        let within = deadline.saturating_duration_since(Instant::now());
        connect(self.shared, self.target.endpoint, wire, tls, within).await
    }

    /// How TLS is made with the endpoint, and its name.
    fn trust(&self, wire: &Wire) -> Result<Option<Trusted>, OpenError> {
        let (peer, http1_only) = match wire {
            Wire::Http1 | Wire::Http2 => return Ok(None),
            Wire::Tls(peer) => (peer, false),
            Wire::TlsHttp1(peer) => (peer, true),
        };
        let made = || -> Result<_, TrustError> {
            let (trust, name) = match peer {
                Peer::Service { service, namespace, .. } => {
                    let reencrypt = self.route.reencrypt().ok_or(TrustError::NoCa)?;
                    (self.shared.upstream_tls.trust(reencrypt)?, service_name(service, namespace)?)
                }
                Peer::Policy(policy) => trust_policy(self.shared, policy)?,
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

/// Connects to an endpoint for a request of the router's own, as for its clients' requests: what is spoken is the
/// endpoint's and its backend's (`wire`).
///
/// # Errors
/// Why it cannot be reached.
pub async fn connect_to(
    common: &Common,
    endpoint: &Endpoint,
    wire: &Wire,
    policy: &Arc<BackendPolicy>,
    within: Duration,
) -> Result<Connected, OpenError> {
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

/// Connects, and makes TLS if there is to be, all of it `within` this long.
async fn connect(
    common: &Common,
    endpoint: &Endpoint,
    wire: &Wire,
    tls: Option<Trusted>,
    within: Duration,
) -> Result<Connected, Failed> {
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
    let step = Step::Tls(endpoint.address, peer.clone());
    let stream = secure(health, &step, (connector, name), CoalescedWrite(stream), deadline).await?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok(if is_http2 { http2(stream).await } else { http1(stream).await }?)
}

async fn http1<S>(stream: S) -> Result<Connected, OpenError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let heard = Heard::default();
    let io = TokioIo::new(heard.hear(stream));
    let made = http1::Builder::new().max_buf_size(MAX_RESPONSE_HEAD).handshake(io).await;
    let (sender, driver) = made.map_err(|_| (StatusCode::BAD_GATEWAY, Flag::UpstreamHungUp))?;
    // Its errors reach whoever sends on it.
    tokio::spawn(wake_suppression::sleeper(async move { driver.with_upgrades().await.ok() }));
    Ok(Connected::Http1(Own::new(sender, heard)))
}

async fn http2<S>(stream: S) -> Result<Connected, OpenError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let made = http2::open(stream, MAX_RESPONSE_HEAD as u32).await;
    Ok(Connected::Http2(made.map_err(|_| (StatusCode::BAD_GATEWAY, Flag::UpstreamHungUp))?))
}

//! Connections to endpoints, kept for the next request: idle ones that speak HTTP/1.1, and those that speak HTTP/2,
//! which many requests share.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use http::StatusCode;
use http::uri::Scheme;
use router_core::rule::{BackendPolicy, BackendTls};
use rustls::RootCertStore;
use tokio::sync::watch;

use super::wire::{Own, Sender, Shared};
use crate::proxy::access::Flag;

/// Most idle HTTP/1.1 connections that are kept per key.
const MAX_IDLE: usize = 1024;
/// How long a connection is kept that no request uses.
pub const MAX_AGE: Duration = Duration::from_secs(30);
/// How long a connection may have been idle for a request that must not be sent twice: endpoints close idle connections
/// when they like, most after 2 s or more, and a request that meets the close may be lost.
pub const FRESH: Duration = Duration::from_secs(1);
/// How long a connection may take to be ready again after its response has ended; a request body that is still
/// being sent holds it.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// What connections are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// Endpoint.
    pub address: SocketAddr,
    /// What is spoken with it.
    pub wire: Wire,
}

/// What is spoken with an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// HTTP/1.1 in clear text.
    Http1,
    /// HTTP/2 in clear text, without asking (RFC 9113 §3.3).
    Http2,
    /// Whichever of the two the endpoint chooses in a TLS handshake.
    Tls(Peer),
    /// HTTP/1.1 over TLS, for requests that only it can carry.
    TlsHttp1(Peer),
}

impl Wire {
    /// Scheme of the requests that it carries.
    pub fn scheme(&self) -> Scheme {
        match self {
            Wire::Http1 | Wire::Http2 => Scheme::HTTP,
            Wire::Tls(_) | Wire::TlsHttp1(_) => Scheme::HTTPS,
        }
    }
}

/// Whom a TLS connection was verified to be with.
#[derive(Clone, Debug)]
pub enum Peer {
    /// An endpoint of a re-encrypt route.
    Service {
        /// `destinationCACertificate`; `None`: the service CA.
        ca: Option<Arc<RootCertStore>>,
        /// Service, which names the peer.
        service: Arc<str>,
        /// Its namespace.
        namespace: Arc<str>,
    },
    /// One that a policy for its backend describes, which has TLS.
    Policy(Arc<BackendPolicy>),
}

impl Peer {
    /// Whether both ask for the same. Stores of routes are the same when they are one: the key keeps its store, so its
    /// address is not given to another. What a policy says is compared, as policies are often made anew.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Peer::Service { ca, service, namespace }, Peer::Service { ca: ca2, service: s2, namespace: n2 }) => {
                ca.as_ref().map(Arc::as_ptr) == ca2.as_ref().map(Arc::as_ptr) && service == s2 && namespace == n2
            }
            (Peer::Policy(policy), Peer::Policy(other)) => {
                Arc::ptr_eq(policy, other)
                    || matches!((&policy.tls, &other.tls), (Some(tls), Some(other)) if is_same_tls(tls, other))
            }
            _ => false,
        }
    }
}

fn is_same_tls(tls: &BackendTls, other: &BackendTls) -> bool {
    let same_roots = match (&tls.roots, &other.roots) {
        (Some(roots), Some(other)) => Arc::ptr_eq(roots, other) || roots.roots == other.roots,
        (None, None) => true,
        _ => false,
    };
    same_roots && tls.server_name == other.server_name && tls.names == other.names
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Peer::Service { ca, service, namespace } => {
                (ca.as_ref().map(|ca| Arc::as_ptr(ca).addr()), service, namespace).hash(state);
            }
            Peer::Policy(policy) => policy.tls.as_ref().map(|tls| (&tls.server_name, &tls.names)).hash(state),
        }
    }
}

/// Why no connection could be opened: the status that the client gets, and the flag.
pub type OpenError = (StatusCode, Flag);

/// The pool.
#[derive(Debug, Default)]
pub struct Pool {
    /// By keys that no client chooses: every request asks.
    buckets: Mutex<HashMap<PoolKey, Arc<Bucket>, RandomState>>,
}

impl Pool {
    /// The connections of this key. A request may know an older table than the newest, and an endpoint that was retired:
    /// `is_there` tells, and where it does not hold, nothing is kept. A table must be known to it before what the table
    /// lacks is retired; then either it says so, or [`Pool::retire`] finds the bucket.
    pub fn bucket(&self, key: PoolKey, is_there: impl FnOnce() -> bool) -> Arc<Bucket> {
        let mut buckets = lock(&self.buckets);
        if let Some(known) = buckets.get(&key) {
            return Arc::clone(known);
        }
        let bucket = Arc::new(Bucket::new(key.clone()));
        if is_there() {
            buckets.insert(key, Arc::clone(&bucket));
        } else {
            bucket.retire();
        }
        bucket
    }

    /// Closes connections that are too old or were closed by their endpoint; called every few seconds.
    pub fn sweep(&self) {
        lock(&self.buckets).retain(|_, bucket| {
            let empty = bucket.sweep();
            // Whoever has it may be about to put a connection in.
            !empty || Arc::strong_count(bucket) > 1
        });
    }

    /// These endpoints are in no table any more, or no longer what they were: their idle connections are closed, and
    /// those in use when their requests have ended.
    pub fn retire(&self, addresses: &HashSet<SocketAddr>) {
        lock(&self.buckets).retain(|key, bucket| {
            let stays = !addresses.contains(&key.address);
            if !stays {
                bucket.retire();
            }
            stays
        });
    }
}

/// Connections of one key.
#[derive(Debug)]
pub struct Bucket {
    /// What they have in common.
    pub key: PoolKey,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    idle: Vec<Idle>,
    shared: Vec<(Shared, Instant)>,
    /// Whether connections speak HTTP/2; `None`: nobody knows yet.
    multiplexed: Option<bool>,
    opening: Option<watch::Receiver<Option<OpenError>>>,
    retired: bool,
}

#[derive(Debug)]
struct Idle {
    connection: Own,
    since: Instant,
}

/// What there is for a request.
#[derive(Debug)]
pub enum Taken {
    /// A connection.
    Ready(Lease),
    /// None, but one is being opened that many can share.
    Wait(Opening),
    /// None: open one.
    Open(Opener),
}

impl Bucket {
    fn new(key: PoolKey) -> Self {
        let multiplexed = match &key.wire {
            Wire::Http1 | Wire::TlsHttp1(_) => Some(false),
            Wire::Http2 => Some(true),
            Wire::Tls(_) => None,
        };
        let inner = Inner { idle: Vec::new(), shared: Vec::new(), multiplexed, opening: None, retired: false };
        Bucket { key, inner: Mutex::new(inner) }
    }

    /// A stream of the first HTTP/2 connection that has room, else the connection that became idle last, if that was
    /// at most `idle` ago.
    pub fn take(self: &Arc<Self>, idle: Duration) -> Taken {
        let mut inner = lock(&self.inner);
        if let Some(stream) = inner.shared.iter().find_map(|(shared, _)| shared.stream()) {
            return Taken::Ready(self.lease(Sender::Http2(stream), true));
        }
        while let Some(last) = inner.idle.pop() {
            if last.since.elapsed() > idle {
                // The others have been idle for longer still.
                inner.idle.push(last);
                break;
            }
            if last.connection.sender.is_ready() {
                return Taken::Ready(self.lease(Sender::Http1(last.connection), true));
            }
        }
        if inner.multiplexed == Some(false) {
            return Taken::Open(Opener { bucket: Arc::clone(self), told: None });
        }
        match &inner.opening {
            Some(opening) if opening.has_changed().is_ok() => Taken::Wait(Opening(opening.clone())),
            _ => {
                let (told, opening) = watch::channel(None);
                inner.opening = Some(opening);
                Taken::Open(Opener { bucket: Arc::clone(self), told: Some(told) })
            }
        }
    }

    fn lease(self: &Arc<Self>, sender: Sender, reused: bool) -> Lease {
        Lease { bucket: Arc::clone(self), sender, reused }
    }

    fn put(&self, connection: Own) {
        let mut inner = lock(&self.inner);
        if !inner.retired && inner.idle.len() < MAX_IDLE {
            inner.idle.push(Idle { connection, since: Instant::now() });
        }
    }

    /// True when nothing is left.
    fn sweep(&self) -> bool {
        let mut inner = lock(&self.inner);
        inner.idle.retain(|idle| idle.since.elapsed() < MAX_AGE && !idle.connection.sender.is_closed());
        let now = Instant::now();
        inner.shared.retain_mut(|(shared, last_used)| {
            if !shared.is_idle() {
                *last_used = now;
            }
            shared.is_usable() && now.duration_since(*last_used) < MAX_AGE
        });
        inner.idle.is_empty() && inner.shared.is_empty()
    }

    fn retire(&self) {
        let mut inner = lock(&self.inner);
        inner.retired = true;
        inner.idle.clear();
        inner.shared.clear();
    }
}

/// Waits for a connection that somebody else opens.
#[derive(Debug)]
pub struct Opening(watch::Receiver<Option<OpenError>>);

impl Opening {
    /// Returns when there is a connection and it is known how many can share it, or whoever was at it has left.
    ///
    /// # Errors
    /// The same that the one who opens it gets.
    pub async fn done(mut self) -> Result<(), OpenError> {
        // An error says that the sender is gone, which is how success and giving up are told.
        let failed = self.0.wait_for(Option::is_some).await;
        failed.map_or(Ok(()), |error| error.map_or(Ok(()), Err))
    }
}

/// The right to open a connection. While it is held, others wait for connections that they could share.
#[derive(Debug)]
pub struct Opener {
    bucket: Arc<Bucket>,
    told: Option<watch::Sender<Option<OpenError>>>,
}

impl Opener {
    /// The connection speaks HTTP/1.1.
    pub fn http1(self, connection: Own) -> Lease {
        let mut inner = lock(&self.bucket.inner);
        inner.multiplexed = Some(false);
        inner.opening = None;
        drop(inner);
        self.bucket.lease(Sender::Http1(connection), false)
    }

    /// The connection speaks HTTP/2. `None` when the endpoint has ended it already.
    pub fn http2(self, shared: Shared) -> Option<Lease> {
        let stream = shared.stream()?;
        if let Some(told) = self.told {
            shared.until_known(told);
        }
        let mut inner = lock(&self.bucket.inner);
        inner.multiplexed = Some(true);
        if !inner.retired {
            inner.shared.retain(|(known, _)| known.is_usable());
            inner.shared.push((shared, Instant::now()));
        }
        drop(inner);
        Some(self.bucket.lease(Sender::Http2(stream), false))
    }

    /// No connection came about.
    pub fn failed(self, error: OpenError) {
        if let Some(told) = &self.told {
            told.send_replace(Some(error));
        }
    }
}

/// A connection, or a stream of one, for one request. Dropped, a stream is reset and a connection of HTTP/1.1 ends.
#[derive(Debug)]
pub struct Lease {
    bucket: Arc<Bucket>,
    /// What the request is sent on.
    pub sender: Sender,
    /// Whether it had requests before.
    pub reused: bool,
}

impl Lease {
    /// The response has ended: the connection may have the next request.
    pub fn give_back(self) {
        let Sender::Http1(mut connection) = self.sender else { return };
        if connection.sender.is_ready() {
            return self.bucket.put(connection);
        }
        if connection.sender.is_closed() {
            return;
        }
        let bucket = self.bucket;
        tokio::spawn(async move {
            if let Ok(Ok(())) = tokio::time::timeout(READY_WITHIN, connection.sender.ready()).await {
                bucket.put(connection);
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

//! Connections to endpoints that are kept for later requests: idle HTTP/1.1 connections, and HTTP/2 connections, which
//! many requests share.

mod key;
mod sweep;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::failure::UpstreamError;
use super::http2::Http2Connection;
use super::http2::upload::UploadTask;
use super::request_sender::{Http1Connection, RequestSender};

pub use key::{MAX_AGE, PoolKey, Wire};

/// Most idle HTTP/1.1 connections per key.
const MAX_IDLE: usize = 1024;
/// Longest idle time of a connection for a request that must not be sent twice. Endpoints close idle connections at any
/// time, most after 2 s or more, and a request that meets the close may be lost.
pub const FRESH: Duration = Duration::from_secs(1);
/// How long a connection may take to become ready after a response has ended; an upload in progress delays it.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// Connections with the same key.
#[derive(Debug)]
pub struct Bucket {
    /// What the connections have in common.
    pub key: PoolKey,
    /// Whether the connections may be authenticated. Such connections belong to one client connection and are kept
    /// until it ends.
    tied: bool,
    /// Present for tied HTTP/1.1 connections: there is one connection, and its requests are serialized.
    turns: Option<Arc<Semaphore>>,
    /// See [`Bucket::requires_http1`].
    requires_http1: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    idle: Vec<IdleConnection>,
    shared: Vec<(Http2Connection, Instant)>,
    /// Whether connections use HTTP/2; `None` if unknown.
    multiplexed: Option<bool>,
    opening: Option<watch::Receiver<Option<UpstreamError>>>,
    retired: bool,
    /// Whether a task removes expired connections.
    is_swept: bool,
}

#[derive(Debug)]
struct IdleConnection {
    connection: Http1Connection,
    since: Instant,
}

/// Result of looking for a connection.
#[derive(Debug)]
pub enum Acquired {
    /// A connection.
    Ready(Lease),
    /// No connection, but one is being opened that may be shared.
    Wait(PendingConnection),
    /// No connection: the caller opens one.
    Open(Opener),
}

impl Bucket {
    /// An empty bucket.
    pub fn new(key: PoolKey) -> Self {
        let multiplexed = match &key.wire {
            Wire::Http1 | Wire::TlsHttp1(_) => Some(false),
            Wire::Http2 => Some(true),
            Wire::Tls(_) => None,
        };
        let inner =
            Inner { idle: Vec::new(), shared: Vec::new(), multiplexed, opening: None, retired: false, is_swept: false };
        let (requires_http1, inner) = (AtomicBool::new(false), Mutex::new(inner));
        Bucket { key, tied: false, turns: None, requires_http1, inner }
    }

    /// A bucket for connections of one client connection that may be authenticated.
    pub fn tied(key: PoolKey) -> Self {
        let turns = key.wire.is_http1().then(|| Arc::new(Semaphore::new(1)));
        Bucket { tied: true, turns, ..Bucket::new(key) }
    }

    /// A bucket that keeps no connection after its request.
    pub fn keeping_none(key: PoolKey) -> Self {
        let bucket = Bucket::new(key);
        bucket.retire();
        bucket
    }

    /// Whether its connections carry, or may carry, concurrent requests.
    pub fn may_be_shared(&self) -> bool {
        lock(&self.inner).multiplexed != Some(false)
    }

    /// Whether the connections may be authenticated.
    pub fn is_tied(&self) -> bool {
        self.tied
    }

    /// Semaphore of the only connection of a tied bucket.
    pub fn turns(&self) -> Option<&Arc<Semaphore>> {
        self.turns.as_ref()
    }

    /// Whether a connection exists, idle or in use.
    pub fn is_alive(&self) -> bool {
        let is_in_use = self.turns.as_ref().is_some_and(|turns| turns.available_permits() == 0);
        let inner = lock(&self.inner);
        is_in_use
            || inner.idle.iter().any(|idle| !idle.connection.sender.is_closed())
            || inner.shared.iter().any(|(shared, _)| shared.is_usable())
    }

    /// Whether the endpoint has answered a request over HTTP/2 with HTTP_1_1_REQUIRED.
    pub fn requires_http1(&self) -> bool {
        self.requires_http1.load(Ordering::Relaxed)
    }

    /// Records that the endpoint requires HTTP/1.1.
    pub fn require_http1(&self) {
        self.requires_http1.store(true, Ordering::Relaxed);
    }

    /// Returns a stream of the first HTTP/2 connection with capacity, else the connection that became idle last, if
    /// that was at most `idle` ago. `with_content`: see [`Http2Connection::stream`].
    pub fn take(self: &Arc<Self>, idle: Duration, with_content: bool) -> Acquired {
        let mut inner = lock(&self.inner);
        let is_short = self.is_short();
        let stream = inner.shared.iter_mut().find_map(|(shared, last_used)| {
            if is_short && shared.is_idle() && last_used.elapsed() > self.key.keep {
                return None;
            }
            let stream = shared.stream(with_content)?;
            if is_short {
                *last_used = Instant::now();
            }
            Some(stream)
        });
        if let Some(stream) = stream {
            return Acquired::Ready(self.lease(RequestSender::Http2(stream), true));
        }
        while let Some(last) = inner.idle.pop() {
            if last.since.elapsed() > idle {
                // The others have been idle for longer.
                inner.idle.push(last);
                break;
            }
            if last.connection.sender.is_ready() {
                return Acquired::Ready(self.lease(RequestSender::Http1(last.connection), true));
            }
        }
        if inner.multiplexed == Some(false) {
            return Acquired::Open(Opener { bucket: Arc::clone(self), result: None });
        }
        match &inner.opening {
            Some(opening) if opening.has_changed().is_ok() => Acquired::Wait(PendingConnection(opening.clone())),
            _ => {
                let (result, opening) = watch::channel(None);
                inner.opening = Some(opening);
                Acquired::Open(Opener { bucket: Arc::clone(self), result: Some(result) })
            }
        }
    }

    fn lease(self: &Arc<Self>, sender: RequestSender, reused: bool) -> Lease {
        Lease { bucket: Arc::clone(self), sender, reused, turn: None }
    }

    fn put(self: &Arc<Self>, connection: Http1Connection) {
        let mut inner = lock(&self.inner);
        if !inner.retired && inner.idle.len() < MAX_IDLE {
            inner.idle.push(IdleConnection { connection, since: Instant::now() });
            self.sweep_in_time(&mut inner);
        }
    }

    /// Closes idle connections, and keeps none from now on.
    pub fn retire(&self) {
        let mut inner = lock(&self.inner);
        inner.retired = true;
        inner.idle.clear();
        inner.shared.clear();
    }
}

/// Waits for a connection that another request opens.
#[derive(Debug)]
pub struct PendingConnection(watch::Receiver<Option<UpstreamError>>);

impl PendingConnection {
    /// Returns when a connection exists and its capacity is known, or when the opener has given up.
    ///
    /// # Errors
    /// The opener's error.
    pub async fn done(mut self) -> Result<(), UpstreamError> {
        // An error means that the sender was dropped: on success, or when the opener gave up.
        let failed = self.0.wait_for(Option::is_some).await;
        failed.map_or(Ok(()), |error| error.map_or(Ok(()), Err))
    }
}

/// The right to open a connection. While it is held, other requests wait for the connection, as they may share it.
#[derive(Debug)]
pub struct Opener {
    bucket: Arc<Bucket>,
    result: Option<watch::Sender<Option<UpstreamError>>>,
}

impl Opener {
    /// Registers an HTTP/1.1 connection.
    pub fn http1(self, connection: Http1Connection) -> Lease {
        let mut inner = lock(&self.bucket.inner);
        inner.multiplexed = Some(false);
        inner.opening = None;
        drop(inner);
        self.bucket.lease(RequestSender::Http1(connection), false)
    }

    /// Registers an HTTP/2 connection. `None` if the endpoint has ended it already.
    pub fn http2(self, shared: Http2Connection) -> Option<Lease> {
        let stream = shared.stream(false)?;
        if let Some(result) = self.result {
            shared.until_known(result);
        }
        let mut inner = lock(&self.bucket.inner);
        inner.multiplexed = Some(true);
        if !inner.retired {
            inner.shared.retain(|(known, _)| known.is_usable());
            inner.shared.push((shared, Instant::now()));
            self.bucket.sweep_in_time(&mut inner);
        }
        drop(inner);
        Some(self.bucket.lease(RequestSender::Http2(stream), false))
    }

    /// Reports that no connection could be opened.
    pub fn failed(self, error: UpstreamError) {
        if let Some(result) = &self.result {
            result.send_replace(Some(error));
        }
    }
}

/// A connection, or a stream of one, for one request. Dropping it resets the stream or closes the HTTP/1.1 connection.
#[derive(Debug)]
pub struct Lease {
    bucket: Arc<Bucket>,
    /// Sends the request.
    pub sender: RequestSender,
    /// Whether the connection carried requests before.
    pub reused: bool,
    /// Permit of [`Bucket::turns`].
    turn: Option<OwnedSemaphorePermit>,
}

impl Lease {
    /// Returns the connection after the response has ended. An HTTP/1.1 connection can carry the next request unless
    /// `is_last`. `upload`: the rest of the request's content, if it is still being sent over HTTP/2.
    pub fn give_back(self, is_last: bool, upload: Option<UploadTask>) {
        // The permit is released after the connection is back in its bucket.
        let Lease { bucket, sender, turn, .. } = self;
        let mut connection = match sender {
            RequestSender::Http1(_) if is_last => return,
            RequestSender::Http1(connection) => connection,
            RequestSender::Http2(stream) => return stream.end(upload),
        };
        if connection.sender.is_ready() {
            return bucket.put(connection);
        }
        if connection.sender.is_closed() {
            return;
        }
        tokio::spawn(async move {
            if let Ok(Ok(())) = tokio::time::timeout(READY_WITHIN, connection.sender.ready()).await {
                bucket.put(connection);
            }
            drop(turn);
        });
    }

    /// Adds the permit of the bucket's connection.
    pub fn with(self, turn: OwnedSemaphorePermit) -> Self {
        Lease { turn: Some(turn), ..self }
    }

    /// Marks the connection, unless it is shared, as possibly authenticated. It becomes the connection of this bucket,
    /// unless the bucket has one; then it is closed after its request.
    pub fn tie_to(&mut self, bucket: Option<Arc<Bucket>>) {
        if self.bucket.tied || matches!(self.sender, RequestSender::Http2(_)) {
            return;
        }
        let turn = bucket.as_ref().filter(|bucket| !bucket.is_alive()).and_then(|bucket| bucket.turns.clone());
        self.turn = turn.and_then(|turn| turn.try_acquire_owned().ok());
        self.bucket = match bucket {
            Some(bucket) if self.turn.is_some() => bucket,
            _ => Arc::new(Bucket::keeping_none(self.bucket.key.clone())),
        };
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

//! Connections to endpoints, kept for the next request: idle ones that speak HTTP/1.1, and those that speak HTTP/2,
//! which many requests share.

mod key;
mod sweep;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::failure::OpenError;
use super::http2::Shared;
use super::http2::upload::Upload;
use super::wire::{Own, Sender};

pub use key::{MAX_AGE, PoolKey, Wire};

/// Most idle HTTP/1.1 connections that are kept per key.
const MAX_IDLE: usize = 1024;
/// How long a connection may have been idle for a request that must not be sent twice: endpoints close idle connections
/// when they like, most after 2 s or more, and a request that meets the close may be lost.
pub const FRESH: Duration = Duration::from_secs(1);
/// How long a connection may take to be ready again after its response has ended; a request body that is still
/// being sent holds it.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// Connections of one key.
#[derive(Debug)]
pub struct Bucket {
    /// What they have in common.
    pub key: PoolKey,
    /// Whether the connections may be authenticated, and are kept for the client's connection that has them until it
    /// ends.
    tied: bool,
    /// There if they are tied, and carry one request at a time: there is one, and its requests come one after the other.
    turns: Option<Arc<Semaphore>>,
    /// See [`Bucket::wants_http1`].
    wants_http1: AtomicBool,
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
    /// Whether a task closes what is too old.
    is_swept: bool,
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
    /// One without connections.
    pub fn new(key: PoolKey) -> Self {
        let multiplexed = match &key.wire {
            Wire::Http1 | Wire::TlsHttp1(_) => Some(false),
            Wire::Http2 => Some(true),
            Wire::Tls(_) => None,
        };
        let inner =
            Inner { idle: Vec::new(), shared: Vec::new(), multiplexed, opening: None, retired: false, is_swept: false };
        let (wants_http1, inner) = (AtomicBool::new(false), Mutex::new(inner));
        Bucket { key, tied: false, turns: None, wants_http1, inner }
    }

    /// One whose connections are one client connection's own, and may be authenticated.
    pub fn tied(key: PoolKey) -> Self {
        let turns = key.wire.is_http1().then(|| Arc::new(Semaphore::new(1)));
        Bucket { tied: true, turns, ..Bucket::new(key) }
    }

    /// One that keeps no connection: each is one request's.
    pub fn keeping_none(key: PoolKey) -> Self {
        let bucket = Bucket::new(key);
        bucket.retire();
        bucket
    }

    /// Whether its connections carry, or may carry, many requests at the same time.
    pub fn may_be_shared(&self) -> bool {
        lock(&self.inner).multiplexed != Some(false)
    }

    /// Whether the connections may be authenticated.
    pub fn is_tied(&self) -> bool {
        self.tied
    }

    /// Who waits for the only connection does so here.
    pub fn turns(&self) -> Option<&Arc<Semaphore>> {
        self.turns.as_ref()
    }

    /// Whether there is a connection, or a request has it.
    pub fn is_alive(&self) -> bool {
        let is_in_use = self.turns.as_ref().is_some_and(|turns| turns.available_permits() == 0);
        let inner = lock(&self.inner);
        is_in_use
            || inner.idle.iter().any(|idle| !idle.connection.sender.is_closed())
            || inner.shared.iter().any(|(shared, _)| shared.is_usable())
    }

    /// Whether the endpoint has said of a request over HTTP/2 that it wants it over HTTP/1.1.
    pub fn wants_http1(&self) -> bool {
        self.wants_http1.load(Ordering::Relaxed)
    }

    /// The endpoint has said so.
    pub fn want_http1(&self) {
        self.wants_http1.store(true, Ordering::Relaxed);
    }

    /// A stream of the first HTTP/2 connection that has room, else the connection that became idle last, if that was
    /// at most `idle` ago. `with_content`: see [`Shared::stream`].
    pub fn take(self: &Arc<Self>, idle: Duration, with_content: bool) -> Taken {
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
        Lease { bucket: Arc::clone(self), sender, reused, turn: None }
    }

    fn put(self: &Arc<Self>, connection: Own) {
        let mut inner = lock(&self.inner);
        if !inner.retired && inner.idle.len() < MAX_IDLE {
            inner.idle.push(Idle { connection, since: Instant::now() });
            self.sweep_in_time(&mut inner);
        }
    }

    /// Keeps nothing any more.
    pub fn retire(&self) {
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
        let stream = shared.stream(false)?;
        if let Some(told) = self.told {
            shared.until_known(told);
        }
        let mut inner = lock(&self.bucket.inner);
        inner.multiplexed = Some(true);
        if !inner.retired {
            inner.shared.retain(|(known, _)| known.is_usable());
            inner.shared.push((shared, Instant::now()));
            self.bucket.sweep_in_time(&mut inner);
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
    /// Of a bucket with [`Bucket::turns`].
    turn: Option<OwnedSemaphorePermit>,
}

impl Lease {
    /// The response has ended: the connection may have the next request, if it carries one at a time unless this `is_last`.
    /// `upload`: what of the request's content is still being sent over HTTP/2.
    pub fn give_back(self, is_last: bool, upload: Option<Upload>) {
        // Whose turn is next finds the connection in its place.
        let Lease { bucket, sender, turn, .. } = self;
        let mut connection = match sender {
            Sender::Http1(_) if is_last => return,
            Sender::Http1(connection) => connection,
            Sender::Http2(stream) => return stream.end(upload),
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

    /// It has the turn of its bucket.
    pub fn with(self, turn: OwnedSemaphorePermit) -> Self {
        Lease { turn: Some(turn), ..self }
    }

    /// The connection, if it is not shared, may be authenticated from now on. It becomes the one of this bucket, unless
    /// that has another; then it ends with its request.
    pub fn tie_to(&mut self, bucket: Option<Arc<Bucket>>) {
        if self.bucket.tied || matches!(self.sender, Sender::Http2(_)) {
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

//! Idle HTTP/1.1 connections to endpoints, kept for the next request.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::SendRequest;
use rustls_pki_types::ServerName;

use super::http::body::RequestBody;

/// Most idle connections that are kept per key.
const MAX_IDLE: usize = 64;
/// How long one is kept.
const MAX_AGE: Duration = Duration::from_secs(30);
/// How long a connection may take to be ready again after its response has ended; a request body that is still
/// being sent holds it.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// What connections are interchangeable: same address, and for TLS same trust and same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// Endpoint.
    pub address: SocketAddr,
    /// `UpstreamTrust::id` and the name that was verified and sent; `None` for clear text.
    pub tls: Option<(u64, ServerName<'static>)>,
}

/// The pool.
#[derive(Debug, Default)]
pub struct Pool {
    idle: Mutex<HashMap<PoolKey, Vec<Idle>>>,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<RequestBody>,
    since: Instant,
}

impl Pool {
    /// The connection that became idle last and still seems alive.
    pub fn take(&self, key: &PoolKey) -> Option<SendRequest<RequestBody>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.get_mut(key)?;
        while let Some(Idle { sender, since }) = connections.pop() {
            if since.elapsed() < MAX_AGE && sender.is_ready() {
                return Some(sender);
            }
        }
        idle.remove(key);
        None
    }

    /// Takes a connection back whose response has ended.
    pub fn give_back(self: &Arc<Self>, key: PoolKey, mut sender: SendRequest<RequestBody>) {
        if sender.is_ready() {
            return self.put(key, sender);
        }
        if sender.is_closed() {
            return;
        }
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(Ok(())) = tokio::time::timeout(READY_WITHIN, sender.ready()).await {
                pool.put(key, sender);
            }
        });
    }

    /// Closes connections that are too old or were closed by their endpoint; called every few seconds.
    pub fn sweep(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|_, connections| {
            connections.retain(|c| c.since.elapsed() < MAX_AGE && !c.sender.is_closed());
            !connections.is_empty()
        });
    }

    fn put(&self, key: PoolKey, sender: SendRequest<RequestBody>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.entry(key).or_default();
        if connections.len() < MAX_IDLE {
            connections.push(Idle { sender, since: Instant::now() });
        }
    }
}

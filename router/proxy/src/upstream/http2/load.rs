//! Load of an HTTP/2 connection, and whether it may carry more requests.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::upstream::failure::UpstreamError;

/// Most concurrent requests of a connection, whatever the endpoint allows.
pub const MAX_STREAMS: u32 = 128;
/// Most concurrent requests before the endpoint's SETTINGS. Excess streams may be refused, and not every request can be
/// sent again.
pub const UNTOLD: usize = 1;
/// After so many incomplete requests, mostly reset by clients, a connection carries no new ones. h2 remembers a limited
/// number of reset streams, and endpoints end connections with many resets (CVE-2023-44487; nghttp2 at 1,000, Envoy at
/// 500).
pub const MAX_BROKEN_OFF: usize = 100;
/// Load of a connection.
#[derive(Debug)]
pub struct ConnectionLoad {
    streams: AtomicUsize,
    allowed: AtomicUsize,
    known: AtomicBool,
    opening: Mutex<Option<watch::Sender<Option<UpstreamError>>>>,
    answered: AtomicU64,
    silent: AtomicBool,
    broken_off: AtomicUsize,
    ended: AtomicBool,
}

impl Default for ConnectionLoad {
    fn default() -> Self {
        ConnectionLoad {
            streams: AtomicUsize::new(0),
            allowed: AtomicUsize::new(UNTOLD),
            known: AtomicBool::new(false),
            opening: Mutex::default(),
            answered: AtomicU64::new(0),
            silent: AtomicBool::new(false),
            broken_off: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }
}

impl ConnectionLoad {
    /// Sets the endpoint's limit (`SETTINGS_MAX_CONCURRENT_STREAMS`), or [`UNTOLD`] when it is unknown. One stream is
    /// tried even if the endpoint allows none: h2 waits.
    pub fn allow(&self, streams: usize) {
        self.allowed.store(streams.clamp(1, MAX_STREAMS as usize), Ordering::Relaxed);
        if streams != UNTOLD && !self.is_known() {
            self.know();
        }
    }

    /// Records that a response has begun.
    pub fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        if !self.is_known() {
            // SETTINGS precede responses, so the limit is known.
            self.know();
        }
    }

    /// Marks the connection as closed for new requests.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.know();
    }

    /// Drops `waiting` when the endpoint's limit is known.
    pub fn until_known(&self, waiting: watch::Sender<Option<UpstreamError>>) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_known() {
            *opening = Some(waiting);
        }
    }

    /// Whether it may carry more requests later.
    pub fn is_usable(&self) -> bool {
        let is_worn_out = self.broken_off.load(Ordering::Relaxed) >= MAX_BROKEN_OFF;
        !is_worn_out && !self.ended.load(Ordering::Relaxed) && !self.silent.load(Ordering::Relaxed)
    }

    /// Whether it carries no request.
    pub fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Relaxed) == 0
    }

    /// Counts another stream, unless the limit is reached. Returns the number of responses that have begun.
    pub fn take(&self) -> Option<u64> {
        if self.streams.load(Ordering::Relaxed) >= self.allowed.load(Ordering::Relaxed) {
            return None;
        }
        self.streams.fetch_add(1, Ordering::Relaxed);
        Some(self.answered.load(Ordering::Relaxed))
    }

    /// Counts a stream less; `has_ended`: it was complete.
    pub fn give_back(&self, has_ended: bool) {
        if !has_ended {
            self.broken_off.fetch_add(1, Ordering::Relaxed);
        }
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records a timed-out stream. `answered`: number of responses when it began.
    pub fn was_silent(&self, answered: u64) {
        if self.answered.load(Ordering::Relaxed) == answered {
            self.silent.store(true, Ordering::Relaxed);
        }
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// The limit is final: wakes those that wait for it.
    fn know(&self) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        self.known.store(true, Ordering::Release);
        *opening = None;
    }
}

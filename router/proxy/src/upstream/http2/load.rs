//! How busy an HTTP/2 connection is, and whether it is to have more to do.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::upstream::failure::OpenError;

/// Most requests that one connection carries at the same time, whatever the endpoint allows.
pub const MAX_STREAMS: u32 = 128;
/// How many it carries before the endpoint has said what it allows. More may be refused, which not every request
/// survives.
pub const UNTOLD: usize = 1;
/// After so many requests that did not come to their end, most of them as their client took them back, a connection
/// carries no new ones: h2 remembers so many streams whose end crosses with frames of the endpoint, and endpoints end
/// connections with many of them (CVE-2023-44487; nghttp2 at 1,000, Envoy at 500).
pub const MAX_BROKEN_OFF: usize = 100;
/// What a connection has to do.
#[derive(Debug)]
pub struct Load {
    streams: AtomicUsize,
    allowed: AtomicUsize,
    known: AtomicBool,
    opening: Mutex<Option<watch::Sender<Option<OpenError>>>>,
    answered: AtomicU64,
    silent: AtomicBool,
    broken_off: AtomicUsize,
    ended: AtomicBool,
}

impl Default for Load {
    fn default() -> Self {
        Load {
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

impl Load {
    /// What the endpoint allows (`SETTINGS_MAX_CONCURRENT_STREAMS`), or [`UNTOLD`] when it has not said. One stream is
    /// tried even when it allows none: h2 waits.
    pub fn allow(&self, streams: usize) {
        self.allowed.store(streams.clamp(1, MAX_STREAMS as usize), Ordering::Relaxed);
        if streams != UNTOLD && !self.is_known() {
            self.know();
        }
    }

    /// A response has begun.
    pub fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        if !self.is_known() {
            // Settings come before answers, so one is what it allows.
            self.know();
        }
    }

    /// The connection takes no more.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.know();
    }

    /// Drops this when it is known what the endpoint allows.
    pub fn until_known(&self, waiting: watch::Sender<Option<OpenError>>) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_known() {
            *opening = Some(waiting);
        }
    }

    /// Whether it may have more to do some time.
    pub fn is_usable(&self) -> bool {
        let is_worn_out = self.broken_off.load(Ordering::Relaxed) >= MAX_BROKEN_OFF;
        !is_worn_out && !self.ended.load(Ordering::Relaxed) && !self.silent.load(Ordering::Relaxed)
    }

    /// Whether it has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Relaxed) == 0
    }

    /// One stream more, unless there are as many as there may be; how many responses have begun.
    pub fn take(&self) -> Option<u64> {
        if self.streams.load(Ordering::Relaxed) >= self.allowed.load(Ordering::Relaxed) {
            return None;
        }
        self.streams.fetch_add(1, Ordering::Relaxed);
        Some(self.answered.load(Ordering::Relaxed))
    }

    /// One stream less, which has come to its end or broken off.
    pub fn give_back(&self, has_ended: bool) {
        if !has_ended {
            self.broken_off.fetch_add(1, Ordering::Relaxed);
        }
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// A stream had no answer for too long that began when so many responses had.
    pub fn was_silent(&self, answered: u64) {
        if self.answered.load(Ordering::Relaxed) == answered {
            self.silent.store(true, Ordering::Relaxed);
        }
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// More will not be known: whoever waits for it goes on.
    fn know(&self) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        self.known.store(true, Ordering::Release);
        *opening = None;
    }
}

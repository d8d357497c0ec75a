//! State of an upstream HTTP/2 connection that is derived from its bytes, because h2 does not expose it: the endpoint's
//! settings and windows, small frames that wait to be read, and whether the endpoint accepts bytes.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use super::frames::{ACK, DATA, FrameHeader, GOAWAY, PADDED, SETTINGS, WINDOW_UPDATE};

const SETTINGS_MAX_HEADER_LIST_SIZE: u16 = 6;
/// Size of a setting in bytes (RFC 9113 §6.5.1).
const SETTING: usize = 6;
/// Initial connection window in bytes (RFC 9113 §6.9.2).
pub const FIRST_WINDOW: i64 = 65_535;
/// Number of unread small frames from which on they are gathered: 1 MiB of h2's memory.
pub const MAX_SMALL: usize = 4096;
/// A frame with fewer bytes takes more memory for its entry in h2's queue than for its content.
pub const SMALL: usize = 256;
/// Size of the buffers that small frames are gathered in, in bytes.
pub const PIECE: usize = 4096;
/// How long a connection may have no send window before it counts as starved. An endpoint that reads usually
/// replenishes its window within a round trip.
pub const STARVED: Duration = Duration::from_millis(50);

/// State of a connection that is derived from its frames.
#[derive(Debug)]
pub struct ConnectionView {
    /// See [`ConnectionView::is_starved`].
    pub window: AtomicI64,
    shut: Mutex<Option<Instant>>,
    max_fields: AtomicU32,
    leaves: AtomicBool,
    small: AtomicUsize,
    blocked: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Default for ConnectionView {
    fn default() -> Self {
        ConnectionView {
            window: AtomicI64::new(FIRST_WINDOW),
            shut: Mutex::default(),
            max_fields: AtomicU32::new(u32::MAX),
            leaves: AtomicBool::new(false),
            small: AtomicUsize::new(0),
            blocked: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }
}

impl ConnectionView {
    /// Whether the connection has had no send window for [`STARVED`]: the endpoint does not read what it has received.
    pub fn is_starved(&self) -> bool {
        self.window.load(Ordering::Relaxed) <= 0 && lock(&self.shut).is_some_and(|since| since.elapsed() >= STARVED)
    }

    /// The endpoint's limit for request fields, in bytes as RFC 9113 §6.5.2 counts them, if it has announced one.
    pub fn max_fields(&self) -> Option<u32> {
        Some(self.max_fields.load(Ordering::Relaxed)).filter(|most| *most != u32::MAX)
    }

    /// Whether the endpoint has announced that it accepts no new streams (GOAWAY).
    pub fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Relaxed)
    }

    /// Whether the endpoint does not accept bytes at the moment. If so, wakes this task when it does.
    pub fn is_blocked(&self, cx: &Context<'_>) -> bool {
        if !self.blocked.load(Ordering::Relaxed) {
            return false;
        }
        let mut waiting = lock(&self.waiting);
        if !waiting.iter().any(|waiting| waiting.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        // The state may have changed since, and the writer has woken only the wakers registered then.
        self.blocked.load(Ordering::Acquire)
    }

    /// Sets whether the endpoint accepts bytes.
    pub fn set_blocked(&self, blocked: bool) {
        if self.blocked.load(Ordering::Relaxed) != blocked {
            self.blocked.store(blocked, Ordering::Release);
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Number of small frames that were received and not read.
    pub fn small(&self) -> usize {
        self.small.load(Ordering::Relaxed)
    }

    /// Records that a frame with content of this length was read.
    pub fn took(&self, length: usize) {
        if length < SMALL {
            let one_less = |small: usize| small.checked_sub(1);
            let _ = self.small.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        }
    }

    /// Records that all received frames were read.
    pub fn took_all(&self) {
        self.small.store(0, Ordering::Relaxed);
    }

    fn add_window(&self, bytes: i64) {
        let before = self.window.fetch_add(bytes, Ordering::Relaxed);
        if (before > 0) != (before + bytes > 0) {
            *lock(&self.shut) = (before > 0).then(Instant::now);
        }
    }

    /// Processes a frame from the endpoint.
    pub fn received(&self, frame: FrameHeader, payload: &[u8]) {
        match frame.kind {
            // A padded frame has at most this much content.
            DATA if frame.length < SMALL || frame.flags & PADDED != 0 => {
                self.small.fetch_add(1, Ordering::Relaxed);
            }
            SETTINGS if frame.flags & ACK == 0 => {
                for setting in payload.chunks_exact(SETTING) {
                    if let [high, low, value @ ..] = setting
                        && u16::from_be_bytes([*high, *low]) == SETTINGS_MAX_HEADER_LIST_SIZE
                        && let Ok(value) = value.try_into()
                    {
                        self.max_fields.store(u32::from_be_bytes(value), Ordering::Relaxed);
                    }
                }
            }
            WINDOW_UPDATE if frame.stream == 0 => {
                if let Ok(increment) = payload.try_into() {
                    self.add_window(i64::from(u32::from_be_bytes(increment) & (u32::MAX >> 1)));
                }
            }
            GOAWAY => self.leaves.store(true, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Processes a frame to the endpoint.
    pub fn sent(&self, frame: FrameHeader) {
        if frame.kind == DATA {
            self.add_window(-(frame.length as i64));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! What is known of a connection to an endpoint from its bytes: h2 does not tell what the endpoint's settings and windows
//! are, how many small frames wait in it, nor whether the endpoint takes what is sent.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use super::frames::{ACK, DATA, Frame, GOAWAY, PADDED, SETTINGS, WINDOW_UPDATE};

const SETTINGS_MAX_HEADER_LIST_SIZE: u16 = 6;
/// Bytes of one setting (RFC 9113 §6.5.1).
const SETTING: usize = 6;
/// The send window that a connection begins with, in bytes (RFC 9113 §6.9.2).
pub const FIRST_WINDOW: i64 = 65_535;
/// From so many small frames that nobody has taken on they are gathered: 1 MiB of h2's memory.
pub const MAX_SMALL: usize = 4096;
/// Content of fewer bytes takes more memory for its place in h2's queue than for itself.
pub const SMALL: usize = 256;
/// Bytes that it is gathered in.
pub const PIECE: usize = 4096;
/// For how long a connection may have no send window before it counts as one that the endpoint does not empty: a window
/// that is used up is mostly renewed within a round trip.
pub const STARVED: Duration = Duration::from_millis(50);

/// What is known of a connection from its frames.
#[derive(Debug)]
pub struct Seen {
    /// See [`Seen::is_starved`].
    pub window: AtomicI64,
    shut: Mutex<Option<Instant>>,
    max_fields: AtomicU32,
    leaves: AtomicBool,
    small: AtomicUsize,
    blocked: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Default for Seen {
    fn default() -> Self {
        Seen {
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

impl Seen {
    /// Whether the connection has had no send window for a while: the endpoint does not take the content that it has.
    pub fn is_starved(&self) -> bool {
        self.window.load(Ordering::Relaxed) <= 0 && lock(&self.shut).is_some_and(|since| since.elapsed() >= STARVED)
    }

    /// What the endpoint takes of a request's fields, in bytes as RFC 9113 §6.5.2 counts them, if it has said so.
    pub fn max_fields(&self) -> Option<u32> {
        Some(self.max_fields.load(Ordering::Relaxed)).filter(|most| *most != u32::MAX)
    }

    /// Whether the endpoint has said that it takes no new streams (GOAWAY).
    pub fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Relaxed)
    }

    /// Whether the endpoint takes no bytes at the moment. Then this task is woken when it takes some.
    pub fn is_blocked(&self, cx: &Context<'_>) -> bool {
        if !self.blocked.load(Ordering::Relaxed) {
            return false;
        }
        let mut waiting = lock(&self.waiting);
        if !waiting.iter().any(|waiting| waiting.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        // It may have changed meanwhile, and whoever did that has woken those alone that were there.
        self.blocked.load(Ordering::Acquire)
    }

    /// The endpoint takes no bytes, or has taken some.
    pub fn set_blocked(&self, blocked: bool) {
        if self.blocked.load(Ordering::Relaxed) != blocked {
            self.blocked.store(blocked, Ordering::Release);
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// How many small frames of content have come that nobody has taken.
    pub fn small(&self) -> usize {
        self.small.load(Ordering::Relaxed)
    }

    /// A frame with content of this length has been taken.
    pub fn took(&self, length: usize) {
        if length < SMALL {
            let one_less = |small: usize| small.checked_sub(1);
            let _ = self.small.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        }
    }

    /// All that had come has been taken.
    pub fn took_all(&self) {
        self.small.store(0, Ordering::Relaxed);
    }

    fn add_window(&self, bytes: i64) {
        let before = self.window.fetch_add(bytes, Ordering::Relaxed);
        if (before > 0) != (before + bytes > 0) {
            *lock(&self.shut) = (before > 0).then(Instant::now);
        }
    }

    /// A frame has come from the endpoint.
    pub fn received(&self, frame: Frame, payload: &[u8]) {
        match frame.kind {
            // What is padded may have no more content than that.
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

    /// A frame goes to the endpoint.
    pub fn sent(&self, frame: Frame) {
        if frame.kind == DATA {
            self.add_window(-(frame.length as i64));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

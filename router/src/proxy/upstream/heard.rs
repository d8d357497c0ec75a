//! A connection to an endpoint that knows whether the endpoint has said anything since it was last asked: a request
//! whose connection ends may be sent again only if it has not. Over HTTP/1 it also knows who is to be told of interim
//! responses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tokio::io::AsyncRead;
use tokio_util::io::InspectReader;

use super::tap::Tap;
use crate::proxy::interim::Listener;

/// Whether bytes have come since [`Heard::forget`].
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Ear>);

#[derive(Debug, Default)]
struct Ear {
    anything: AtomicBool,
    /// Whether somebody has waited for the next bytes.
    is_awaited: AtomicBool,
    next: AtomicWaker,
    listener: Mutex<Option<Listener>>,
}

impl Heard {
    /// From now on nothing was heard, and this one is told of interim responses. Whether anything was until now.
    pub fn forget(&self, listener: Option<Listener>) -> bool {
        *self.0.listener.lock().unwrap_or_else(PoisonError::into_inner) = listener;
        self.0.anything.swap(false, Ordering::AcqRel)
    }

    /// Whether anything was.
    pub fn anything(&self) -> bool {
        self.0.anything.load(Ordering::Acquire)
    }

    /// The connection that this is to hear.
    pub fn hear<S: AsyncRead>(&self, connection: S) -> InspectReader<S, impl FnMut(&[u8]) + use<S>> {
        let Heard(ear) = self.clone();
        let mut tap = Tap::default();
        InspectReader::new(connection, move |bytes: &[u8]| {
            if !bytes.is_empty() {
                let is_first = !ear.anything.load(Ordering::Acquire);
                ear.anything.store(true, Ordering::Release);
                if ear.is_awaited.load(Ordering::Relaxed) {
                    ear.next.wake();
                }
                tap.hear(bytes, is_first, |response| {
                    let listener = ear.listener.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(listener) = &*listener {
                        listener.hear(response);
                    }
                });
            }
        })
    }

    /// Wakes this task at the next bytes. It is the one that reads them.
    pub fn wake_at_next(&self, task: &Waker) {
        self.0.is_awaited.store(true, Ordering::Relaxed);
        self.0.next.register(task);
    }
}

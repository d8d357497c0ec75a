//! A connection of HTTP/1 to an endpoint that knows whether the endpoint has said anything since it was last asked: a
//! request whose connection ends may be sent again only if it has not. It also knows who is to be told of interim
//! responses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncRead;
use tokio_util::io::InspectReader;

use super::informational::Tap;
use crate::interim::Listener;

/// Whether bytes have come since [`Heard::forget`].
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Ear>);

#[derive(Debug, Default)]
struct Ear {
    anything: AtomicBool,
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
                tap.hear(bytes, is_first, |response| {
                    let listener = ear.listener.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(listener) = &*listener {
                        listener.hear(response);
                    }
                });
            }
        })
    }
}

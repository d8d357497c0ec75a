//! A connection to an endpoint that knows whether the endpoint has said anything since it was last asked: a request
//! whose connection ends may be sent again only if it has not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tokio::io::AsyncRead;
use tokio_util::io::InspectReader;

/// Whether bytes have come since [`Heard::forget`].
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Ear>);

#[derive(Debug, Default)]
struct Ear {
    anything: AtomicBool,
    next: AtomicWaker,
}

impl Heard {
    /// From now on nothing was heard.
    pub fn forget(&self) {
        self.0.anything.store(false, Ordering::Release);
    }

    /// Whether anything was.
    pub fn anything(&self) -> bool {
        self.0.anything.load(Ordering::Acquire)
    }

    /// The connection that this is to hear.
    pub fn hear<S: AsyncRead>(&self, connection: S) -> InspectReader<S, impl FnMut(&[u8]) + use<S>> {
        let Heard(ear) = self.clone();
        InspectReader::new(connection, move |bytes: &[u8]| {
            if !bytes.is_empty() {
                ear.anything.store(true, Ordering::Release);
                ear.next.wake();
            }
        })
    }

    /// Wakes this task at the next bytes.
    pub fn wake_at_next(&self, task: &Waker) {
        self.0.next.register(task);
    }
}

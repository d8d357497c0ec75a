//! Records whether an HTTP/1 endpoint has sent anything since the last reset of the record: a request whose connection
//! ends may be sent again only if the endpoint has sent nothing. Also passes interim responses to the request's
//! listener.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncRead;
use tokio_util::io::InspectReader;

use super::informational::InterimParser;
use crate::interim::InterimSink;

/// Whether bytes were received since [`ReadActivity::forget`].
#[derive(Clone, Debug, Default)]
pub struct ReadActivity(Arc<ReadState>);

#[derive(Debug, Default)]
struct ReadState {
    anything: AtomicBool,
    listener: Mutex<Option<InterimSink>>,
}

impl ReadActivity {
    /// Resets the record and sets the listener for interim responses. Returns whether bytes were received before.
    pub fn forget(&self, listener: Option<InterimSink>) -> bool {
        *self.0.listener.lock().unwrap_or_else(PoisonError::into_inner) = listener;
        self.0.anything.swap(false, Ordering::AcqRel)
    }

    /// Whether bytes were received since the last reset.
    pub fn anything(&self) -> bool {
        self.0.anything.load(Ordering::Acquire)
    }

    /// Wraps a connection so that its reads are recorded.
    pub fn wrap<S: AsyncRead>(&self, connection: S) -> InspectReader<S, impl FnMut(&[u8]) + use<S>> {
        let ReadActivity(ear) = self.clone();
        let mut tap = InterimParser::default();
        InspectReader::new(connection, move |bytes: &[u8]| {
            if !bytes.is_empty() {
                let is_first = !ear.anything.load(Ordering::Acquire);
                ear.anything.store(true, Ordering::Release);
                tap.parse(bytes, is_first, |response| {
                    let listener = ear.listener.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(listener) = &*listener {
                        listener.send(response);
                    }
                });
            }
        })
    }
}

//! What the requests of a connection tell the stream beneath them, and it them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use http::StatusCode;

use super::capacity::Seats;
use super::interim::Interim;

/// Shared by the service and the stream of one connection.
#[derive(Debug, Default)]
pub struct ClientClock {
    begun: AtomicUsize,
    in_flight: AtomicUsize,
    tunnel: AtomicBool,
    refused: AtomicU16,
    empty: AtomicBool,
    stalled: AtomicBool,
    reader: AtomicWaker,
    /// Interim responses on their way from the service to the stream.
    pub interim: Arc<Interim>,
    _seats: Option<Seats>,
}

impl ClientClock {
    /// Of a connection that has these seats until everything that came of it has ended, tunnels too.
    pub fn new(seats: Seats) -> Self {
        ClientClock { _seats: Some(seats), ..ClientClock::default() }
    }

    /// A request has begun; it has ended when the guard is dropped.
    pub fn request(self: &Arc<Self>) -> InFlight {
        self.begun.fetch_add(1, Ordering::AcqRel);
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }

    /// How many requests have begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Acquire)
    }

    /// Whether a request has not ended.
    pub fn busy(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) > 0
    }

    /// Whether the connection is no HTTP any more.
    pub fn is_tunnel(&self) -> bool {
        self.tunnel.load(Ordering::Acquire)
    }

    /// The body of the request at hand was given up on: its client does not go on.
    pub fn body_stalls(&self) {
        self.stalled.store(true, Ordering::Release);
    }

    /// Whether [`ClientClock::body_stalls`]: what looks like a body that broke off is the client's slowness.
    pub fn body_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// Wakes this reader when a request ends.
    pub fn wake_when_free(&self, reader: &Waker) {
        self.reader.register(reader);
    }

    /// The next request that the service gets stands for one that is to be answered with this status. `empty`: the
    /// client has sent nothing at all.
    pub fn refuse(&self, status: StatusCode, empty: bool) {
        self.empty.store(empty, Ordering::Relaxed);
        self.refused.store(status.as_u16(), Ordering::Release);
    }

    /// The status that this request is to be answered with, whatever it says, and whether there is nothing that it
    /// stands for.
    pub fn refused(&self) -> Option<(StatusCode, bool)> {
        let status = StatusCode::from_u16(self.refused.load(Ordering::Acquire)).ok()?;
        Some((status, self.empty.load(Ordering::Relaxed)))
    }
}

/// A request that has not ended.
#[derive(Debug)]
pub struct InFlight(Arc<ClientClock>);

impl InFlight {
    /// The connection has become a tunnel, which has its own timeout.
    pub fn becomes_tunnel(&self) {
        self.0.tunnel.store(true, Ordering::Release);
        self.0.reader.wake();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.0.reader.wake();
    }
}

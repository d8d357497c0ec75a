//! State shared between a connection's requests and its byte stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::StatusCode;

use super::capacity::Permits;
use super::interim::Interim;
use crate::rt::task_waker::TaskWaker;

/// Number of reset requests, not offset by completed ones, from which on a client counts as resetting often.
const OFTEN: u8 = 4;
/// Largest number that completed requests have to offset.
const MOST_TAKEN_BACK: u8 = 16;

/// Shared by the service and the byte stream of a connection.
#[derive(Debug, Default)]
pub struct ConnectionState {
    begun: AtomicUsize,
    in_flight: AtomicUsize,
    tunnel: AtomicBool,
    refused: AtomicU16,
    empty: AtomicBool,
    stalled: AtomicBool,
    /// Requests that the client reset, less those that completed.
    taken_back: AtomicU8,
    /// In milliseconds; 0: none.
    patience: AtomicU64,
    reader: TaskWaker,
    /// The thread that is polling the connection, see [`this_thread`]; else 0.
    polled_by: AtomicUsize,
    /// A request ended during the current poll, and the stream was not read since.
    freed: AtomicBool,
    /// Parts of responses passed to hyper since the last [`ConnectionState::take_parts`].
    parts: AtomicU64,
    cut_off: AtomicBool,
    /// Interim responses, passed from the service to the stream.
    pub interim: Arc<Interim>,
    _seats: Option<Permits>,
}

impl ConnectionState {
    /// For a connection that holds these permits until all its requests and tunnels have ended.
    pub fn new(seats: Permits) -> Self {
        ConnectionState { _seats: Some(seats), ..ConnectionState::default() }
    }

    /// Registers a request, which ends when the guard is dropped.
    pub fn request(self: &Arc<Self>) -> InFlight {
        self.begun.fetch_add(1, Ordering::AcqRel);
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight { clock: Arc::clone(self), has_ended: false }
    }

    /// Whether the client resets many requests.
    pub fn takes_back_often(&self) -> bool {
        self.taken_back.load(Ordering::Relaxed) >= OFTEN
    }

    /// Counts a completed or reset request. No other thread counts at the same time: a connection's requests run on one
    /// thread, except tunnels.
    fn count(&self, has_ended: bool) {
        let before = self.taken_back.load(Ordering::Relaxed);
        let now = if has_ended { before.saturating_sub(1) } else { (before + 1).min(MOST_TAKEN_BACK) };
        if now != before {
            self.taken_back.store(now, Ordering::Relaxed);
        }
    }

    /// Number of requests that have begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Acquire)
    }

    /// Whether a request is in progress.
    pub fn busy(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) > 0
    }

    /// Whether the connection has become a tunnel.
    pub fn is_tunnel(&self) -> bool {
        self.tunnel.load(Ordering::SeqCst)
    }

    /// Records that the client stopped sending the current request's body.
    pub fn body_stalls(&self) {
        self.stalled.store(true, Ordering::Release);
    }

    /// Whether [`ConnectionState::body_stalls`] was called: the body is incomplete because of the client.
    pub fn body_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// Number of parts of responses since the last call.
    pub fn take_parts(&self) -> u64 {
        self.parts.swap(0, Ordering::Relaxed)
    }

    /// Records that the router ends the connection and has told the client why.
    pub fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Release);
    }

    /// Whether [`ConnectionState::cut_off`] was called: the end is not the client's.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Acquire)
    }

    /// Sets the client inactivity timeout of the current request, in place of the router's (`idle_timeout` of a rule).
    /// For HTTP/1 only, which has one request at a time.
    pub fn be_patient(&self, patience: Option<Duration>) {
        let milliseconds =
            patience.map_or(0, |patience| u64::try_from(patience.as_millis()).unwrap_or(u64::MAX).max(1));
        // Usually unchanged; not writing keeps the reader's cache line valid.
        if self.patience.load(Ordering::Relaxed) != milliseconds {
            self.patience.store(milliseconds, Ordering::Relaxed);
        }
    }

    /// See [`ConnectionState::be_patient`].
    pub fn patience(&self) -> Option<Duration> {
        let milliseconds = self.patience.load(Ordering::Relaxed);
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// Registers the reader to be woken when a request ends.
    pub fn wake_when_free(&self, reader: &Waker) {
        self.reader.register(reader);
    }

    /// Records that the stream is being read, and so observes ended requests.
    pub fn is_read(&self) {
        self.freed.store(false, Ordering::Relaxed);
    }

    /// Whether a request ended since the stream was last read, during the current poll.
    pub fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed)
    }

    /// Polls the connection. Requests mostly end in this poll, and then the connection continues to read without a
    /// wake-up; if it does not, it is polled again.
    pub fn during<T>(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.polled_by.store(this_thread(), Ordering::Relaxed);
        let polled = poll(cx);
        self.polled_by.store(0, Ordering::Relaxed);
        if self.freed.load(Ordering::Relaxed) {
            self.freed.store(false, Ordering::Relaxed);
            cx.waker().wake_by_ref();
        }
        polled
    }

    /// Announces that the next request is a stand-in, to be answered with this status. `empty`: the client has sent
    /// nothing.
    pub fn refuse(&self, status: StatusCode, empty: bool) {
        self.empty.store(empty, Ordering::Relaxed);
        self.refused.store(status.as_u16(), Ordering::Release);
    }

    /// The status for a stand-in request, and whether the client has sent nothing.
    pub fn refused(&self) -> Option<(StatusCode, bool)> {
        let status = StatusCode::from_u16(self.refused.load(Ordering::Acquire)).ok()?;
        Some((status, self.empty.load(Ordering::Relaxed)))
    }
}

/// A request in progress.
#[derive(Debug)]
pub struct InFlight {
    clock: Arc<ConnectionState>,
    has_ended: bool,
}

impl InFlight {
    /// Records that the request completed, or failed without the client's doing.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Records that a part of the response is passed on as received from the endpoint.
    pub fn sends_part(&self) {
        self.clock.parts.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the router has ended the client's connection.
    pub fn is_cut_off(&self) -> bool {
        self.clock.is_cut_off()
    }

    /// Records that the connection has become a tunnel, which has its own timeout.
    pub fn becomes_tunnel(&self) {
        self.clock.tunnel.store(true, Ordering::SeqCst);
        self.clock.reader.wake();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let clock = &*self.clock;
        clock.count(self.has_ended);
        clock.in_flight.fetch_sub(1, Ordering::SeqCst);
        if clock.polled_by.load(Ordering::Relaxed) == this_thread() {
            clock.freed.store(true, Ordering::Relaxed);
        } else {
            clock.reader.wake();
        }
    }
}

/// A number that is unique to the thread and not 0.
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::task_waker::Count;

    #[test]
    fn who_takes_back_much_is_known_until_as_much_has_ended() {
        let clock = Arc::<ConnectionState>::default();
        let ask = |ends: bool| {
            let mut request = clock.request();
            if ends {
                request.end();
            }
        };
        (0..100).for_each(|_| ask(true));
        (1..OFTEN).for_each(|_| ask(false));
        assert!(!clock.takes_back_often());
        ask(false);
        assert!(clock.takes_back_often());
        ask(true);
        assert!(!clock.takes_back_often());
        (0..1000).for_each(|_| ask(false));
        (OFTEN..MOST_TAKEN_BACK).for_each(|_| ask(true));
        assert!(clock.takes_back_often());
        ask(true);
        assert!(!clock.takes_back_often());
    }

    #[test]
    fn the_end_of_a_request_has_the_stream_read_once() {
        let (clock, count) = (Arc::<ConnectionState>::default(), Arc::<Count>::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let woken = || count.take();
        let polled = |cx: &mut Context<'_>, poll: &dyn Fn()| {
            let pending = |_: &mut Context<'_>| {
                poll();
                Poll::<()>::Pending
            };
            assert!(clock.during(cx, pending).is_pending());
        };
        let first = clock.request();
        clock.wake_when_free(&waker);
        polled(&mut cx, &|| assert!(clock.busy()));
        assert_eq!(woken(), 0);
        // If the connection is not being polled, the reading task is woken.
        drop(first);
        assert_eq!((woken(), clock.busy()), (1, false));
        // If it is being polled, it is polled again,
        polled(&mut cx, &|| drop(clock.request()));
        assert_eq!(woken(), 1);
        polled(&mut cx, &|| ());
        assert_eq!(woken(), 0);
        // unless it has read since.
        polled(&mut cx, &|| {
            drop(clock.request());
            assert!(clock.is_freed());
            clock.is_read();
        });
        assert_eq!(woken(), 0);
        // An end on another thread looks like one outside of a poll.
        polled(&mut cx, &|| {
            let request = clock.request();
            std::thread::scope(|scope| drop(scope.spawn(|| drop(request)).join()));
        });
        assert_eq!((woken(), clock.busy()), (1, false));
    }
}

//! What the requests of a connection tell the stream beneath them, and it them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::StatusCode;

use super::capacity::Permits;
use super::interim::Interim;
use crate::rt::task_waker::TaskWaker;

/// From so many requests on that a client took back, and did not make up for by others, it is one that does so often.
const OFTEN: u8 = 4;
/// Most that it has to make up for.
const MOST_TAKEN_BACK: u8 = 16;

/// Shared by the service and the stream of one connection.
#[derive(Debug, Default)]
pub struct ConnectionState {
    begun: AtomicUsize,
    in_flight: AtomicUsize,
    tunnel: AtomicBool,
    refused: AtomicU16,
    empty: AtomicBool,
    stalled: AtomicBool,
    /// Requests that the client took back, less those that came to their end.
    taken_back: AtomicU8,
    /// In milliseconds; 0: none.
    patience: AtomicU64,
    reader: TaskWaker,
    /// The thread that polls the connection at the moment, as [`this_thread`] names it; else 0.
    polled_by: AtomicUsize,
    /// A request has ended while the connection was polled, and the stream has not been read since.
    freed: AtomicBool,
    /// Parts of responses that were handed over for the client since this was asked last.
    parts: AtomicU64,
    cut_off: AtomicBool,
    /// Interim responses on their way from the service to the stream.
    pub interim: Arc<Interim>,
    _seats: Option<Permits>,
}

impl ConnectionState {
    /// Of a connection that has these seats until everything that came of it has ended, tunnels too.
    pub fn new(seats: Permits) -> Self {
        ConnectionState { _seats: Some(seats), ..ConnectionState::default() }
    }

    /// A request has begun; it has ended when the guard is dropped.
    pub fn request(self: &Arc<Self>) -> InFlight {
        self.begun.fetch_add(1, Ordering::AcqRel);
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight { clock: Arc::clone(self), has_ended: false }
    }

    /// Whether the client takes back more of its requests than others do.
    pub fn takes_back_often(&self) -> bool {
        self.taken_back.load(Ordering::Relaxed) >= OFTEN
    }

    /// One more has come to its end, or was taken back. Nobody else counts at the same time: the requests of a connection
    /// are of one thread, but for tunnels.
    fn count(&self, has_ended: bool) {
        let before = self.taken_back.load(Ordering::Relaxed);
        let now = if has_ended { before.saturating_sub(1) } else { (before + 1).min(MOST_TAKEN_BACK) };
        if now != before {
            self.taken_back.store(now, Ordering::Relaxed);
        }
    }

    /// How many requests have begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Acquire)
    }

    /// Whether a request has not ended.
    pub fn busy(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) > 0
    }

    /// Whether the connection is no HTTP any more.
    pub fn is_tunnel(&self) -> bool {
        self.tunnel.load(Ordering::SeqCst)
    }

    /// The body of the request at hand was given up on: its client does not go on.
    pub fn body_stalls(&self) {
        self.stalled.store(true, Ordering::Release);
    }

    /// Whether [`ConnectionState::body_stalls`]: what looks like a body that broke off is the client's slowness.
    pub fn body_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// How many parts of responses the client was sent since this was asked last.
    pub fn take_parts(&self) -> u64 {
        self.parts.swap(0, Ordering::Relaxed)
    }

    /// The router ends the connection, and has told the client so.
    pub fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Release);
    }

    /// Whether [`ConnectionState::cut_off`]: what looks like a client that has gone is not.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Acquire)
    }

    /// The client of the request at hand may be silent for so long, whatever its router says (`idle_timeout` of a rule).
    /// Of HTTP/1 only, where there is one request at a time.
    pub fn be_patient(&self, patience: Option<Duration>) {
        let milliseconds =
            patience.map_or(0, |patience| u64::try_from(patience.as_millis()).unwrap_or(u64::MAX).max(1));
        // Most requests find what they leave, and write nothing that the reader has in its cache.
        if self.patience.load(Ordering::Relaxed) != milliseconds {
            self.patience.store(milliseconds, Ordering::Relaxed);
        }
    }

    /// See [`ConnectionState::be_patient`].
    pub fn patience(&self) -> Option<Duration> {
        let milliseconds = self.patience.load(Ordering::Relaxed);
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// Wakes this reader when a request ends.
    pub fn wake_when_free(&self, reader: &Waker) {
        self.reader.register(reader);
    }

    /// Whoever reads does so now, and sees what has ended.
    pub fn is_read(&self) {
        self.freed.store(false, Ordering::Relaxed);
    }

    /// Whether a request has ended since whoever reads has read, while the connection was polled.
    pub fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed)
    }

    /// Polls the connection. Requests mostly end in here, and then it reads on without being woken; if it does not, it is
    /// polled again.
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
pub struct InFlight {
    clock: Arc<ConnectionState>,
    has_ended: bool,
}

impl InFlight {
    /// It has come to its end, or did not for no fault of its client's.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// The client is sent a part of the response, as the endpoint has sent it.
    pub fn sends_part(&self) {
        self.clock.parts.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the router has ended the client's connection.
    pub fn is_cut_off(&self) -> bool {
        self.clock.is_cut_off()
    }

    /// The connection has become a tunnel, which has its own timeout.
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

/// A number that no other thread has, and that is not 0.
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
        // While the connection is not polled, whoever reads is woken.
        drop(first);
        assert_eq!((woken(), clock.busy()), (1, false));
        // While it is, it is polled again,
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
        // The end on another thread is one while nobody polls, as far as this one knows.
        polled(&mut cx, &|| {
            let request = clock.request();
            std::thread::scope(|scope| drop(scope.spawn(|| drop(request)).join()));
        });
        assert_eq!((woken(), clock.busy()), (1, false));
    }
}

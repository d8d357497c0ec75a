//! Passes an endpoint's interim responses (RFC 9110 §15.2) to an HTTP/1.1 client.
//!
//! hyper's server cannot write them. But hyper flushes the underlying stream only when it has nothing left to write
//! (`proto::h1::io::Buffered::poll_flush`), and until it gets the final response's head that is between two messages.
//! So interim responses are queued here and written when the stream is flushed; after that, the service returns the
//! final response.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::ext::ReasonPhrase;

use crate::rt::task_waker::TaskWaker;

/// Most interim responses passed on per request.
pub const MOST: usize = 8;
/// Most bytes of their fields and reason phrases per request.
pub const MOST_BYTES: usize = 16 * 1024;

/// The queue between the endpoint's connection, the service and the client's stream. A connection has one request at a
/// time.
#[derive(Debug, Default)]
pub struct Interim {
    /// Incremented when a request begins to accept them and when it ends, so that late ones are dropped. Odd in
    /// between.
    turn: AtomicUsize,
    waiting: Mutex<WaitingInterim>,
    /// Whether any arrived for the current request.
    any: AtomicBool,
    /// Whether some were not prepared yet.
    news: AtomicBool,
    /// Whether some were not written yet.
    unwritten: AtomicBool,
    service: TaskWaker,
}

#[derive(Debug, Default)]
struct WaitingInterim {
    turn: usize,
    arrived: Vec<Response<()>>,
    prepared: Vec<u8>,
    count: usize,
    bytes: usize,
    dropped: u64,
}

/// The request that accepts interim responses.
#[derive(Clone, Copy, Debug)]
pub struct InterimTurn<'i> {
    interim: &'i Arc<Interim>,
    turn: usize,
}

impl InterimTurn<'_> {
    /// The receiver for the connection to its endpoint.
    pub fn listener(&self) -> InterimSink {
        InterimSink { interim: Arc::clone(self.interim), turn: self.turn }
    }
}

/// The request that accepts interim responses, as seen by the connection to its endpoint.
#[derive(Clone, Debug)]
pub struct InterimSink {
    interim: Arc<Interim>,
    turn: usize,
}

impl InterimSink {
    /// Queues an interim response. Beyond [`MOST`] or [`MOST_BYTES`] it is counted and dropped. `100 Continue` is
    /// dropped, because hyper sends its own to clients that expect it.
    pub fn send(&self, response: Response<()>) {
        if response.status() != StatusCode::CONTINUE {
            self.interim.arrive(self.turn, response);
        }
    }
}

impl Interim {
    /// Accepts interim responses for a request from now on.
    pub fn begin(self: &Arc<Self>) -> InterimTurn<'_> {
        // There is no other writer.
        let turn = self.turn.load(Ordering::Relaxed) + 1;
        self.turn.store(turn, Ordering::Release);
        InterimTurn { interim: self, turn }
    }

    /// Accepts none any more, because the final response is passed to hyper. Returns the number of those dropped.
    pub fn end(&self) -> u64 {
        self.turn.store(self.turn.load(Ordering::Relaxed) + 1, Ordering::Release);
        if !self.any.load(Ordering::Acquire) {
            return 0;
        }
        let dropped = std::mem::take(&mut *self.lock()).dropped;
        for flag in [&self.any, &self.news, &self.unwritten] {
            flag.store(false, Ordering::Release);
        }
        dropped
    }

    /// Whether a request accepts interim responses.
    pub fn is_open(&self) -> bool {
        self.turn.load(Ordering::Acquire) % 2 == 1
    }

    fn arrive(&self, turn: usize, response: Response<()>) {
        let mut waiting = self.lock();
        if self.turn.load(Ordering::Acquire) != turn {
            return;
        }
        if waiting.turn != turn {
            *waiting = WaitingInterim { turn, ..WaitingInterim::default() };
            self.any.store(true, Ordering::Release);
        }
        let phrase = response.extensions().get::<ReasonPhrase>().map_or(0, |phrase| phrase.as_bytes().len());
        let fields = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
        let bytes = fields.sum::<usize>() + phrase;
        if waiting.count == MOST || waiting.bytes + bytes > MOST_BYTES {
            waiting.dropped += 1;
            return;
        }
        waiting.count += 1;
        waiting.bytes += bytes;
        waiting.arrived.push(response);
        self.news.store(true, Ordering::SeqCst);
        drop(waiting);
        self.service.wake();
    }

    /// Polls `poll`; prepares interim responses that arrived, and has them written.
    pub fn poll_with<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
        prepare: impl FnMut(Response<()>) -> Vec<u8>,
    ) -> Poll<T> {
        self.service.register(cx.waker());
        let polled = poll(cx);
        if self.news.load(Ordering::SeqCst) && self.news.swap(false, Ordering::SeqCst) {
            let mut waiting = self.lock();
            let prepared: Vec<u8> = waiting.arrived.drain(..).flat_map(prepare).collect();
            waiting.prepared.extend(prepared);
            self.unwritten.store(true, Ordering::Release);
        }
        polled
    }

    /// Ready when all were written.
    pub fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.service.register(cx.waker());
        if self.is_unwritten() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Whether some are to be written.
    pub fn is_unwritten(&self) -> bool {
        self.unwritten.load(Ordering::SeqCst)
    }

    /// Takes the bytes to write; [`Interim::written`] follows.
    pub fn take(&self) -> Bytes {
        std::mem::take(&mut self.lock().prepared).into()
    }

    /// Records that the taken bytes were written.
    pub fn written(&self) {
        let waiting = self.lock();
        if waiting.prepared.is_empty() {
            self.unwritten.store(false, Ordering::SeqCst);
            drop(waiting);
            self.service.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingInterim> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker_ref;

    /// Early hints whose only field has a value of this length.
    fn hints(length: usize) -> Response<()> {
        Response::builder().status(StatusCode::EARLY_HINTS).header("link", "x".repeat(length)).body(()).unwrap()
    }

    /// The pending responses: `|` and the length of the field for each.
    fn written(interim: &Interim) -> String {
        let mut cx = Context::from_waker(noop_waker_ref());
        let prepare = |hints: Response<()>| format!("|{}", hints.headers()["link"].len()).into_bytes();
        assert!(interim.poll_with(&mut cx, |_| Poll::<()>::Pending, prepare).is_pending());
        let taken = interim.take();
        assert_eq!(interim.poll_written(&mut cx).is_pending(), !taken.is_empty());
        interim.written();
        assert!(interim.poll_written(&mut cx).is_ready());
        String::from_utf8(taken.to_vec()).unwrap()
    }

    #[test]
    fn they_are_bounded_in_number_and_in_bytes() {
        let interim = Arc::<Interim>::default();
        let turn = interim.begin().listener();
        assert_eq!(written(&interim), "");
        for length in 0..20 {
            turn.send(hints(length));
        }
        turn.send(Response::builder().status(StatusCode::CONTINUE).body(()).unwrap());
        assert_eq!(written(&interim), "|0|1|2|3|4|5|6|7");
        assert_eq!(interim.end(), 12);

        let turn = interim.begin().listener();
        // Including the four bytes of their names: 104 and 5; the second one is too long.
        let rest = MOST_BYTES - 104 - 5 - 4;
        for length in [100, MOST_BYTES - 104, 1, rest, 0] {
            turn.send(hints(length));
        }
        assert_eq!(written(&interim), format!("|100|1|{rest}"));
        assert_eq!(interim.end(), 2);
        assert_eq!(interim.end(), 0);
    }

    #[test]
    fn a_phrase_counts_as_their_bytes_do() {
        let interim = Arc::<Interim>::default();
        let turn = interim.begin().listener();
        for length in [MOST_BYTES, MOST_BYTES - 5] {
            let mut response = hints(1);
            response.extensions_mut().insert(ReasonPhrase::try_from("x".repeat(length)).unwrap());
            turn.send(response);
        }
        assert_eq!(written(&interim), "|1");
        assert_eq!(interim.end(), 1);
    }

    #[test]
    fn those_of_an_earlier_request_are_nobodys() {
        let interim = Arc::<Interim>::default();
        let first = interim.begin().listener();
        first.send(hints(1));
        assert_eq!(interim.end(), 0);
        first.send(hints(2));
        let second = interim.begin().listener();
        first.send(hints(3));
        second.send(hints(4));
        assert_eq!(written(&interim), "|4");
    }

    #[test]
    fn what_comes_while_others_are_written_is_waited_for() {
        let interim = Arc::<Interim>::default();
        let turn = interim.begin().listener();
        let mut cx = Context::from_waker(noop_waker_ref());
        let mut arrive = |length| {
            turn.send(hints(length));
            assert_eq!(interim.poll_with(&mut cx, |_| Poll::Ready(5), |_| vec![b'x']), Poll::Ready(5));
        };
        arrive(1);
        assert_eq!(interim.take(), "x");
        arrive(2);
        interim.written();
        assert!(interim.is_unwritten());
        assert_eq!(interim.take(), "x");
        interim.written();
        assert!(!interim.is_unwritten());
    }
}

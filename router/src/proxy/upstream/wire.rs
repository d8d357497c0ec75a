//! One connection to an endpoint, as whoever sends a request sees it: HTTP/1.1, which takes one at a time, or HTTP/2,
//! which many share.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::TryFutureExt;
use futures_util::future::Either;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use tokio::sync::watch;

use super::cause;
use super::heard::Heard;
use super::pool::OpenError;
use crate::proxy::access::Flag;
use crate::proxy::http::upload::RequestBody;
use crate::proxy::interim::Turn;

/// Most requests that one HTTP/2 connection carries at the same time, whatever the endpoint allows.
pub const MAX_STREAMS: u32 = 128;
/// How many it carries before the endpoint has said what it allows. More may be refused, which not every request
/// survives.
pub const UNTOLD: usize = 1;
/// After so many requests that did not come to their end, most of them as their client took them back, an HTTP/2
/// connection carries no new ones: h2 remembers so many streams whose end crosses with frames of the endpoint, and
/// endpoints end connections with many of them (CVE-2023-44487; nghttp2 at 1,000, Envoy at 500).
pub const MAX_BROKEN_OFF: usize = 100;

/// What requests are sent on.
#[derive(Debug)]
pub enum Sender {
    /// A connection that is this request's alone.
    Http1(Own),
    /// A stream of a connection that is shared.
    Http2(Stream),
}

/// A connection that speaks HTTP/1.1.
#[derive(Debug)]
pub struct Own {
    /// Takes one request after the other.
    pub sender: http1::SendRequest<RequestBody>,
    heard: Heard,
}

/// What is known about a request that got no answer.
#[derive(Debug)]
pub struct Unanswered {
    /// The request, when nothing of it was sent. Boxed, as every answer has the room for what there is without one.
    pub unsent: Option<Box<Request<RequestBody>>>,
    /// What the endpoint may have done with it.
    pub fate: Fate,
    /// Why.
    pub flag: Flag,
}

/// What an endpoint may have done with a request that it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing: it says so (RFC 9113 §8.7).
    Refused,
    /// Nothing: it wants it over HTTP/1.1 (RFC 9113 §7).
    NotOverHttp2,
    /// Nobody knows: the connection ended, and not a byte of an answer had come.
    Lost,
    /// It was at work on it, or its answer is no HTTP.
    Begun,
}

impl Own {
    /// A connection whose stream tells `heard`.
    pub fn new(sender: http1::SendRequest<RequestBody>, heard: Heard) -> Self {
        Own { sender, heard }
    }
}

impl Sender {
    /// Sends a request and waits for the response's head; over HTTP/1 the client is told of those before it (`interim`).
    /// Sending begins at once, so that the future does not hold the request a second time.
    ///
    /// # Errors
    /// What is known of the request when the connection, or the stream, ends before.
    pub fn send(
        &mut self,
        request: Request<RequestBody>,
        interim: Option<Turn<'_>>,
    ) -> impl Future<Output = Result<Response<Incoming>, Unanswered>> + use<'_> {
        match self {
            Sender::Http1(Own { sender, heard }) => {
                // Before its first request nobody has a word but the client of HTTP.
                let is_banner = heard.forget(interim.map(|turn| turn.listener()));
                let fate = |_: &hyper::Error| if heard.anything() { Fate::Begun } else { Fate::Lost };
                let sent = sender.try_send_request(request);
                Either::Left(sent.map_err(move |error| match unanswered(error, fate) {
                    unsent if is_banner && unsent.unsent.is_some() => {
                        Unanswered { flag: Flag::UpstreamInvalid, ..unsent }
                    }
                    unanswered => unanswered,
                }))
            }
            Sender::Http2(Stream { sender, load, .. }) => {
                let answer = sender.try_send_request(request).inspect_ok(|_| load.answered());
                Either::Right(answer.map_err(|error| unanswered(error, fate)))
            }
        }
    }
}

fn unanswered(mut error: TrySendError<Request<RequestBody>>, fate: impl FnOnce(&hyper::Error) -> Fate) -> Unanswered {
    let unsent = error.take_message().map(Box::new);
    let error = error.into_error();
    tracing::debug!(%error, "a request got no answer");
    Unanswered { unsent, fate: fate(&error), flag: cause::of_head(&error) }
}

/// What the end of a stream says of its request. A GOAWAY ends those streams alone that the endpoint has not looked at
/// and will not (RFC 9113 §6.8).
fn fate(error: &hyper::Error) -> Fate {
    match error.source().and_then(|source| source.downcast_ref::<h2::Error>()) {
        Some(error) if error.is_remote() && error.is_go_away() => Fate::Refused,
        Some(error) if error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM) => Fate::Refused,
        Some(error) if error.is_remote() && error.reason() == Some(h2::Reason::HTTP_1_1_REQUIRED) => Fate::NotOverHttp2,
        Some(error) if error.is_io() => Fate::Lost,
        _ => Fate::Begun,
    }
}

/// How busy an HTTP/2 connection is.
#[derive(Debug)]
pub struct Load {
    streams: AtomicUsize,
    allowed: AtomicUsize,
    known: AtomicBool,
    opening: Mutex<Option<watch::Sender<Option<OpenError>>>>,
    answered: AtomicU64,
    silent: AtomicBool,
    broken_off: AtomicUsize,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            streams: AtomicUsize::new(0),
            allowed: AtomicUsize::new(UNTOLD),
            known: AtomicBool::new(false),
            opening: Mutex::default(),
            answered: AtomicU64::new(0),
            silent: AtomicBool::new(false),
            broken_off: AtomicUsize::new(0),
        }
    }
}

impl Load {
    /// What the endpoint allows (`SETTINGS_MAX_CONCURRENT_STREAMS`), or [`UNTOLD`] when it has not said. One stream is
    /// tried even when it allows none: hyper waits.
    pub fn allow(&self, streams: usize) {
        self.allowed.store(streams.clamp(1, MAX_STREAMS as usize), Ordering::Relaxed);
        if streams != UNTOLD && !self.is_known() {
            self.know();
        }
    }

    fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        if !self.is_known() {
            // Settings come before answers, so one is what it allows.
            self.know();
        }
    }

    /// Whether the endpoint has said what it allows.
    pub fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// More will not be known: whoever waits for it goes on.
    pub fn know(&self) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        self.known.store(true, Ordering::Release);
        *opening = None;
    }

    /// Drops this when it is known what the endpoint allows.
    fn until_known(&self, waiting: watch::Sender<Option<OpenError>>) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_known() {
            *opening = Some(waiting);
        }
    }
}

/// A connection that speaks HTTP/2.
#[derive(Clone, Debug)]
pub struct Shared {
    sender: http2::SendRequest<RequestBody>,
    load: Arc<Load>,
}

impl Shared {
    /// A connection whose driver tells `load` what the endpoint allows.
    pub fn new(sender: http2::SendRequest<RequestBody>, load: Arc<Load>) -> Self {
        Shared { sender, load }
    }

    /// Has those who wait for the connection wait until it is known how many can share it.
    pub fn until_known(&self, waiting: watch::Sender<Option<OpenError>>) {
        self.load.until_known(waiting);
    }

    /// Whether it may have more streams some time.
    pub fn is_usable(&self) -> bool {
        let is_worn_out = self.load.broken_off.load(Ordering::Relaxed) >= MAX_BROKEN_OFF;
        !is_worn_out && !self.sender.is_closed() && !self.load.silent.load(Ordering::Relaxed)
    }

    /// Whether it has no stream.
    pub fn is_idle(&self) -> bool {
        self.load.streams.load(Ordering::Relaxed) == 0
    }

    /// A stream, unless the connection is full or at its end.
    pub fn stream(&self) -> Option<Stream> {
        let full = self.load.streams.load(Ordering::Relaxed) >= self.load.allowed.load(Ordering::Relaxed);
        if full || !self.is_usable() {
            return None;
        }
        self.load.streams.fetch_add(1, Ordering::Relaxed);
        let answered = self.load.answered.load(Ordering::Relaxed);
        Some(Stream { sender: self.sender.clone(), load: Arc::clone(&self.load), answered, has_ended: false })
    }
}

/// One stream's share of an HTTP/2 connection, until it is dropped.
#[derive(Debug)]
pub struct Stream {
    sender: http2::SendRequest<RequestBody>,
    load: Arc<Load>,
    answered: u64,
    has_ended: bool,
}

impl Stream {
    /// The endpoint was silent for too long. When no stream of the connection has had an answer since this one began,
    /// it is given no new ones: it may be dead without anybody having said so.
    pub fn was_silent(&self) {
        if self.load.answered.load(Ordering::Relaxed) == self.answered {
            self.load.silent.store(true, Ordering::Relaxed);
        }
    }
}

impl Stream {
    /// The response has come to its end.
    pub fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.has_ended {
            self.load.broken_off.fetch_add(1, Ordering::Relaxed);
        }
        self.load.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

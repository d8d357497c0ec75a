//! A connection to an endpoint that speaks HTTP/2, which the requests of many clients share.
//!
//! It is h2's, without hyper between: what one client does is to end or stop no request of another, and for that it has to
//! be known what waits in h2, for whom, and what the endpoint has said that it takes ([`seen`]).
//!
//! What it holds is bounded. Of responses by the windows, which open by what is taken alone: 128 KiB for each stream, and
//! so 16 MiB for the [`MAX_STREAMS`]; what is gathered takes at most twice its bytes and a piece of 4 KiB, and of small
//! frames at most [`MAX_SMALL`] and what one read brings are not gathered. Of requests by h2's buffer, 128 KiB for each
//! stream as well, in parts of which any two together have [`seen::SMALL`] bytes while the endpoint takes none, and a piece
//! that waits for the window.

pub mod answer;
mod frames;
mod load;
pub mod request;
mod seen;
pub mod upload;
mod watched;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use http::{Request, Response};
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;

use super::cause;
use super::failure::{AnswerError, Fate, OpenError, Unanswered};
use crate::http::upload::RequestBody;
use answer::{Answer, Waiting, lock};
pub use load::MAX_BROKEN_OFF;
use load::{Load, MAX_STREAMS, UNTOLD};
use seen::{MAX_SMALL, Seen};
use upload::{Sending, Upload};
use watched::Watched;

/// How much of a response may wait for a client that is slow to read, in bytes per stream: so much is on the way at most
/// in each round trip, which in a cluster takes a millisecond or less.
const STREAM_WINDOW: u32 = 128 * 1024;
/// The same for all streams of a connection, 16 MiB: with less, clients that stand still would stop the others.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;
/// How long a request's content is sent on behind the end of its response.
const UPLOAD_BEHIND: Duration = Duration::from_secs(5);

/// A connection.
#[derive(Debug)]
pub struct Shared {
    sender: SendRequest<Bytes>,
    load: Arc<Load>,
    all: Arc<Answers>,
}

/// What is known of a connection's frames, and the responses that come over it.
#[derive(Debug, Default)]
struct Answers {
    seen: Arc<Seen>,
    waiting: Mutex<Vec<Weak<Mutex<Waiting>>>>,
}

impl Answers {
    fn add(&self, answer: &Answer) {
        let mut waiting = self.lock();
        if waiting.len() >= 2 * MAX_STREAMS as usize {
            waiting.retain(|waiting| waiting.strong_count() > 0);
        }
        waiting.push(answer.waiting());
    }

    /// Takes what waits out of h2.
    fn gather(&self) {
        let mut all = self.lock();
        all.retain(|waiting| waiting.upgrade().inspect(|waiting| lock(waiting).gather()).is_some());
        self.seen.took_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Mutex<Waiting>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to speak HTTP/2; `max_head` is the longest head of a response, in bytes.
///
/// # Errors
/// When the connection has ended already.
pub async fn open<S>(stream: S, max_head: u32) -> Result<Shared, h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (all, load) = (Arc::<Answers>::default(), Arc::<Load>::default());
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .max_header_list_size(max_head)
        .initial_max_send_streams(UNTOLD)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(STREAM_WINDOW as usize)
        // What comes for a stream that it has forgotten is an error to h2, and of many it ends the connection.
        .max_concurrent_reset_streams(MAX_BROKEN_OFF + MAX_STREAMS as usize)
        .reset_stream_duration(Duration::MAX)
        // They are gathered.
        .data_frame_budget(usize::MAX);
    let watched = Watched::new(stream, Arc::clone(&all.seen));
    let (sender, connection) = builder.handshake::<_, Bytes>(watched).await?;
    tokio::spawn(drive(connection, Arc::clone(&load), Arc::clone(&all)));
    Ok(Shared { sender, load, all })
}

/// Its errors reach whoever sends on it.
async fn drive<S>(mut connection: Connection<Watched<S>, Bytes>, load: Arc<Load>, all: Arc<Answers>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| {
        let ended = Pin::new(&mut connection).poll(cx);
        load.allow(connection.max_concurrent_send_streams());
        if all.seen.small() > MAX_SMALL {
            all.gather();
        }
        ended.map(|_| ())
    })
    .await;
    load.end();
}

impl Shared {
    /// Has those who wait for the connection wait until it is known how many can share it.
    pub fn until_known(&self, waiting: watch::Sender<Option<OpenError>>) {
        self.load.until_known(waiting);
    }

    /// Whether it may have more streams some time.
    pub fn is_usable(&self) -> bool {
        self.load.is_usable() && !self.all.seen.leaves()
    }

    /// Whether it has no stream.
    pub fn is_idle(&self) -> bool {
        self.load.is_idle()
    }

    /// A stream, unless the connection is full or at its end. One that is to carry content (`with_content`) has to wait
    /// where the endpoint takes none of others'.
    pub fn stream(&self, with_content: bool) -> Option<Stream> {
        if !self.is_usable() || (with_content && self.all.seen.is_starved()) {
            return None;
        }
        let answered = self.load.take()?;
        let (sender, load, all) = (self.sender.clone(), Arc::clone(&self.load), Arc::clone(&self.all));
        Some(Stream { sender, load, all, answered, is_open: false })
    }
}

/// One stream's share of a connection, until it is dropped.
#[derive(Debug)]
pub struct Stream {
    sender: SendRequest<Bytes>,
    load: Arc<Load>,
    all: Arc<Answers>,
    answered: u64,
    /// Whether a request was sent whose response has not come to its end.
    is_open: bool,
}

impl Stream {
    /// What the endpoint takes of a request's fields, in bytes ([`request::size`]), if it has said so.
    pub fn max_fields(&self) -> Option<u32> {
        self.all.seen.max_fields()
    }

    /// Sends a request, whose target is as HTTP/2 wants it, and waits for the response's head. Sending begins at once.
    ///
    /// # Errors
    /// What is known of the request when the connection, or the stream, ends before.
    pub fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Answer>, Unanswered>> + use<'_> {
        let begun = self.begin(request);
        async move {
            let Begun { mut response, mut sending } = begun?;
            let answered = poll_fn(|cx| {
                if let Some(upload) = &mut sending
                    && Pin::new(&mut **upload).poll(cx).is_ready()
                {
                    sending = None;
                }
                Pin::new(&mut response).poll(cx)
            });
            let response = answered.await.map_err(|error| unanswered(error, None))?;
            self.load.answered();
            let response = Answer::of(response, &self.all.seen, sending.map(Sending::spawn));
            self.all.add(response.body());
            Ok(response)
        }
    }

    fn begin(&mut self, request: Request<RequestBody>) -> Result<Begun, Unanswered> {
        // It says at once whether the connection takes no more: this stream is the first of the sender.
        if let Poll::Ready(Err(error)) = self.sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            // It may have something to say yet; whoever asks next would get the same.
            self.load.end();
            return Err(unanswered(error, Some(request)));
        }
        let (mut head, body) = request.into_parts();
        request::prepare(&mut head, &body);
        let is_end = body.is_end_stream();
        let sent = self.sender.send_request(Request::from_parts(head, ()), is_end);
        let (response, stream) = sent.map_err(|error| unanswered(error, None))?;
        self.is_open = true;
        let sending = (!is_end).then(|| Box::new(Sending::new(stream, body, Arc::clone(&self.all.seen))));
        Ok(Begun { response, sending })
    }

    /// The endpoint was silent for too long. When no stream of the connection has had an answer since this one began,
    /// it is given no new ones: it may be dead without anybody having said so.
    pub fn was_silent(&self) {
        self.load.was_silent(self.answered);
    }

    /// The response has come to its end. What of the request's content is still being sent has a little time: the stream
    /// is not free before.
    pub fn end(mut self, upload: Option<Upload>) {
        match upload {
            Some(upload) => drop(tokio::spawn(self.end_behind(upload))),
            None => self.is_open = false,
        }
    }

    async fn end_behind(mut self, mut upload: Upload) {
        self.is_open = timeout(UPLOAD_BEHIND, upload.end()).await.is_err();
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.load.give_back(!self.is_open);
    }
}

/// A request that is being sent.
struct Begun {
    response: ResponseFuture,
    /// Boxed, as most requests have no content.
    sending: Option<Box<Sending>>,
}

fn unanswered(error: h2::Error, unsent: Option<Request<RequestBody>>) -> Unanswered {
    tracing::debug!(%error, "a request got no answer");
    let fate = fate(&error);
    Unanswered { unsent: unsent.map(Box::new), fate, flag: cause::of_head(&AnswerError::Http2(error)) }
}

/// What the end of a stream says of its request. A GOAWAY ends those streams alone that the endpoint has not looked at
/// and will not (RFC 9113 §6.8).
fn fate(error: &h2::Error) -> Fate {
    match error.reason() {
        _ if error.is_remote() && error.is_go_away() => Fate::Refused,
        Some(h2::Reason::REFUSED_STREAM) if error.is_remote() => Fate::Refused,
        Some(h2::Reason::HTTP_1_1_REQUIRED) if error.is_remote() => Fate::NotOverHttp2,
        _ if error.is_io() => Fate::Lost,
        _ => Fate::Begun,
    }
}

#[cfg(test)]
mod tests;

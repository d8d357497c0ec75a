//! An HTTP/2 connection to an endpoint, shared by the requests of many clients.
//!
//! Uses h2 directly, without hyper: one client must not be able to end or stall the requests of another, which requires
//! knowledge of the data that waits in h2 and of the limits that the endpoint has announced ([`connection_view`]).
//!
//! Memory is bounded. Responses: by flow-control windows, which are replenished only when data is read: 128 KiB per
//! stream, so 16 MiB for [`MAX_STREAMS`]. Gathered data takes at most twice its size and a buffer of 4 KiB; at most
//! [`MAX_SMALL`] small frames, and those of one read, are not gathered. Requests: by h2's buffer, 128 KiB per stream,
//! too. Any two consecutive parts in it have at least [`connection_view::SMALL`] bytes while the endpoint accepts none;
//! one part may wait for the window.

pub mod body;
mod connection_view;
mod frame_inspection;
mod frames;
mod load;
pub mod request;
pub mod upload;

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
use super::failure::{AnswerError, Processing, Unanswered, UpstreamError};
use crate::http::upload::RequestBody;
use body::{Http2Body, ReceivedContent, lock};
use connection_view::{ConnectionView, MAX_SMALL};
use frame_inspection::InspectedConnection;
pub use load::MAX_BROKEN_OFF;
use load::{ConnectionLoad, MAX_STREAMS, UNTOLD};
use upload::{Sending, UploadTask};

/// Stream window in bytes: how much of a response may wait for a slow client. Limits a stream to one window per round
/// trip, which takes at most a millisecond within a cluster.
const STREAM_WINDOW: u32 = 128 * 1024;
/// Connection window, the sum of all stream windows (16 MiB): with less, stalled clients would block the others.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;
/// How long a request's content is sent after its response has ended.
const UPLOAD_BEHIND: Duration = Duration::from_secs(5);

/// A connection.
#[derive(Debug)]
pub struct Http2Connection {
    sender: SendRequest<Bytes>,
    load: Arc<ConnectionLoad>,
    all: Arc<Answers>,
}

/// State derived from a connection's frames, and the responses in progress.
#[derive(Debug, Default)]
struct Answers {
    seen: Arc<ConnectionView>,
    waiting: Mutex<Vec<Weak<Mutex<ReceivedContent>>>>,
}

impl Answers {
    fn add(&self, answer: &Http2Body) {
        let mut waiting = self.lock();
        if waiting.len() >= 2 * MAX_STREAMS as usize {
            waiting.retain(|waiting| waiting.strong_count() > 0);
        }
        waiting.push(answer.waiting());
    }

    /// Moves waiting data from h2 to the responses' buffers.
    fn gather(&self) {
        let mut all = self.lock();
        all.retain(|waiting| waiting.upgrade().inspect(|waiting| lock(waiting).gather()).is_some());
        self.seen.took_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Mutex<ReceivedContent>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Performs the HTTP/2 connection set-up; `max_head` is the longest head of a response, in bytes.
///
/// # Errors
/// When the connection has ended already.
pub async fn open<S>(stream: S, max_head: u32) -> Result<Http2Connection, h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (all, load) = (Arc::<Answers>::default(), Arc::<ConnectionLoad>::default());
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .max_header_list_size(max_head)
        .initial_max_send_streams(UNTOLD)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(STREAM_WINDOW as usize)
        // Frames for reset streams that h2 has forgotten are errors, and many of them end the connection.
        .max_concurrent_reset_streams(MAX_BROKEN_OFF + MAX_STREAMS as usize)
        .reset_stream_duration(Duration::MAX)
        // The frames are gathered.
        .data_frame_budget(usize::MAX);
    let watched = InspectedConnection::new(stream, Arc::clone(&all.seen));
    let (sender, connection) = builder.handshake::<_, Bytes>(watched).await?;
    tokio::spawn(drive(connection, Arc::clone(&load), Arc::clone(&all)));
    Ok(Http2Connection { sender, load, all })
}

/// The connection's errors are reported to its requests.
async fn drive<S>(
    mut connection: Connection<InspectedConnection<S>, Bytes>,
    load: Arc<ConnectionLoad>,
    all: Arc<Answers>,
) where
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

impl Http2Connection {
    /// Drops `waiting` when the endpoint's limit of streams is known.
    pub fn until_known(&self, waiting: watch::Sender<Option<UpstreamError>>) {
        self.load.until_known(waiting);
    }

    /// Whether it may have more streams later.
    pub fn is_usable(&self) -> bool {
        self.load.is_usable() && !self.all.seen.leaves()
    }

    /// Whether it has no stream.
    pub fn is_idle(&self) -> bool {
        self.load.is_idle()
    }

    /// A stream, unless the connection is full or closing. With content (`with_content`) the connection must not be
    /// starved, because the content could not be sent.
    pub fn stream(&self, with_content: bool) -> Option<Http2Stream> {
        if !self.is_usable() || (with_content && self.all.seen.is_starved()) {
            return None;
        }
        let answered = self.load.take()?;
        let (sender, load, all) = (self.sender.clone(), Arc::clone(&self.load), Arc::clone(&self.all));
        Some(Http2Stream { sender, load, all, answered, is_open: false })
    }
}

/// A stream's share of a connection, until it is dropped.
#[derive(Debug)]
pub struct Http2Stream {
    sender: SendRequest<Bytes>,
    load: Arc<ConnectionLoad>,
    all: Arc<Answers>,
    answered: u64,
    /// Whether a request was sent and its response has not ended.
    is_open: bool,
}

impl Http2Stream {
    /// The endpoint's limit for request fields in bytes ([`request::size`]), if it has announced one.
    pub fn max_fields(&self) -> Option<u32> {
        self.all.seen.max_fields()
    }

    /// Sends a request in HTTP/2 form and waits for the response's head. Sending begins at once.
    ///
    /// # Errors
    /// Whether the endpoint may have processed the request, when the connection or the stream ends first.
    pub fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Http2Body>, Unanswered>> + use<'_> {
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
            let response = Http2Body::of(response, &self.all.seen, sending.map(Sending::spawn));
            self.all.add(response.body());
            Ok(response)
        }
    }

    fn begin(&mut self, request: Request<RequestBody>) -> Result<Begun, Unanswered> {
        // Ready at once, because this is the sender's first stream; an error if the connection is closing.
        if let Poll::Ready(Err(error)) = self.sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            // The error may concern this request alone; a later poll would return the same.
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

    /// Records a response timeout. If no stream of the connection had a response since this one began, the connection
    /// gets no new streams: it may be dead.
    pub fn was_silent(&self) {
        self.load.was_silent(self.answered);
    }

    /// Records that the response has ended. The rest of the request's content gets a little time; until then the stream
    /// is not free.
    pub fn end(mut self, upload: Option<UploadTask>) {
        match upload {
            Some(upload) => drop(tokio::spawn(self.end_behind(upload))),
            None => self.is_open = false,
        }
    }

    async fn end_behind(mut self, mut upload: UploadTask) {
        self.is_open = timeout(UPLOAD_BEHIND, upload.end()).await.is_err();
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.load.give_back(!self.is_open);
    }
}

/// A request that is being sent.
struct Begun {
    response: ResponseFuture,
    /// Boxed, because most requests have no content.
    sending: Option<Box<Sending>>,
}

fn unanswered(error: h2::Error, unsent: Option<Request<RequestBody>>) -> Unanswered {
    tracing::debug!(%error, "a request got no response");
    let processing = processing(&error);
    Unanswered { unsent: unsent.map(Box::new), processing, flag: cause::of_head(&AnswerError::Http2(error)) }
}

/// Whether the endpoint may have processed the request of a stream that ended. A GOAWAY ends only streams that the
/// endpoint has not processed and will not (RFC 9113 §6.8).
fn processing(error: &h2::Error) -> Processing {
    match error.reason() {
        _ if error.is_remote() && error.is_go_away() => Processing::Refused,
        Some(h2::Reason::REFUSED_STREAM) if error.is_remote() => Processing::Refused,
        Some(h2::Reason::HTTP_1_1_REQUIRED) if error.is_remote() => Processing::NotOverHttp2,
        _ if error.is_io() => Processing::Lost,
        _ => Processing::Begun,
    }
}

#[cfg(test)]
mod tests;

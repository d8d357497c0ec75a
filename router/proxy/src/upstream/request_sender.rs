//! A connection to an endpoint as the sender of a request sees it: HTTP/1.1 with one request at a time, or a shared
//! HTTP/2 connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::TryFutureExt;
use futures_util::future::Either;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{TrySendError, http1};
use router_access_log::Flag;

use super::cause;
use super::failure::{AnswerError, Processing, Unanswered};
use super::http2;
use super::read_activity::ReadActivity;
use crate::http::upload::RequestBody;
use crate::interim::InterimTurn;

/// Sends requests.
#[derive(Debug)]
pub enum RequestSender {
    /// An HTTP/1.1 connection that this request owns.
    Http1(Http1Connection),
    /// A stream of a shared HTTP/2 connection.
    Http2(http2::Http2Stream),
}

/// An HTTP/1.1 connection.
#[derive(Debug)]
pub struct Http1Connection {
    /// Sends one request at a time.
    pub sender: http1::SendRequest<RequestBody>,
    heard: ReadActivity,
}

impl Http1Connection {
    /// A connection whose stream records reads in `heard`.
    pub fn new(sender: http1::SendRequest<RequestBody>, heard: ReadActivity) -> Self {
        Http1Connection { sender, heard }
    }
}

impl RequestSender {
    /// Sends a request and waits for the response's head. Over HTTP/1.1 interim responses go to `interim`. Sending
    /// begins at once, so the future does not hold a second copy of the request.
    ///
    /// # Errors
    /// The request if nothing was sent, and whether the endpoint may have processed it.
    pub fn send(
        &mut self,
        request: Request<RequestBody>,
        interim: Option<InterimTurn<'_>>,
    ) -> impl Future<Output = Result<Response<IncomingBody>, Unanswered>> + use<'_> {
        match self {
            RequestSender::Http1(Http1Connection { sender, heard }) => {
                // Bytes before the first request come from an endpoint that does not speak HTTP.
                let is_banner = heard.forget(interim.map(|turn| turn.listener()));
                let processing = || if heard.anything() { Processing::Begun } else { Processing::Lost };
                let sent = sender.try_send_request(request).map_err(move |error| match unanswered(error, processing) {
                    unsent if is_banner && unsent.unsent.is_some() => {
                        Unanswered { flag: Flag::UpstreamInvalid, ..unsent }
                    }
                    unanswered => unanswered,
                });
                Either::Left(sent.map_ok(|response| response.map(IncomingBody::Http1)))
            }
            RequestSender::Http2(stream) => {
                Either::Right(stream.send(request).map_ok(|response| response.map(IncomingBody::Http2)))
            }
        }
    }
}

fn unanswered(mut error: TrySendError<Request<RequestBody>>, processing: impl FnOnce() -> Processing) -> Unanswered {
    let unsent = error.take_message().map(Box::new);
    let error = error.into_error();
    tracing::debug!(%error, "a request got no response");
    Unanswered { unsent, processing: processing(), flag: cause::of_head(&AnswerError::Http1(error)) }
}

/// Content of a response.
#[derive(Debug)]
pub enum IncomingBody {
    /// Over HTTP/1.1.
    Http1(Incoming),
    /// Over HTTP/2.
    Http2(http2::body::Http2Body),
}

impl IncomingBody {
    /// The rest of the request's content, if it is still being sent over HTTP/2.
    pub fn take_upload(&mut self) -> Option<http2::upload::UploadTask> {
        match self {
            IncomingBody::Http1(_) => None,
            IncomingBody::Http2(answer) => answer.take_upload(),
        }
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = AnswerError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, AnswerError>>> {
        match &mut *self {
            IncomingBody::Http1(body) => Pin::new(body).poll_frame(cx).map_err(AnswerError::Http1),
            IncomingBody::Http2(body) => Pin::new(body).poll_frame(cx).map_err(AnswerError::Http2),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            IncomingBody::Http1(body) => body.is_end_stream(),
            IncomingBody::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            IncomingBody::Http1(body) => body.size_hint(),
            IncomingBody::Http2(body) => body.size_hint(),
        }
    }
}

//! Serves a client's HTTP connection to its end.

use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::TryFutureExt;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use router_access_log::{Flag, ServedBy};
use router_common::http::MAX_HEAD;
use router_model::names::RouterName;
use router_table::policy::RouterPolicy;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::Connection;
use super::{ConnectionContext, handle};
use crate::access_record::AccessRecord;
use crate::client_io::{ClientIo, ClientLimits};
use crate::connection_state::ConnectionState;
use crate::context::{Phase, WorkerContext};
use crate::streams::{InParts, Streams};

/// Most concurrent requests of one HTTP/2 connection.
const MAX_STREAMS: u32 = 128;
/// HTTP/2 stream window in bytes: how much request content may wait for a slow endpoint. Limits the upload rate to one
/// window per round trip.
const STREAM_WINDOW: u32 = 256 * 1024;
/// HTTP/2 connection window, the sum of all stream windows (32 MiB): with less, stalled uploads would block the others.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;
/// Most requests of an HTTP/2 connection that were reset before they were processed ("rapid reset", CVE-2023-44487);
/// h2's default.
const MAX_PENDING_RESETS: usize = 20;
/// Most streams of an HTTP/2 connection that end because the client violated the protocol ("MadeYouReset",
/// CVE-2025-8671).
const MAX_OWN_RESETS: usize = 100;
/// hyper's buffer: larger than a whole head, so that the shared parser's limit applies.
const HTTP1_BUFFER: usize = 2 * MAX_HEAD as usize;

/// Serves HTTP/1 on a stream to its end. `waited`: how long the connection has already waited for its first request.
pub async fn serve_http1<S>(shared: Arc<WorkerContext>, connection: Connection, stream: S, waited: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let clock: Arc<ConnectionState> = Arc::clone(&connection.clock);
    let policy = policy_of(&shared, &connection.router);
    let io = TokioIo::new(ClientIo::new(stream, true, Arc::clone(&clock), ClientLimits::of(&policy).after(waited)));
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // `ClientIo` enforces the timeouts.
        .header_read_timeout(None)
        .max_buf_size(HTTP1_BUFFER);
    let served = Arc::new(ConnectionContext { shared: Arc::clone(&shared), connection });
    let service = service_fn(move |request| handle(Arc::clone(&served), request));
    let serving = builder.serve_connection(io, service).with_upgrades();
    tokio::pin!(serving);
    let defers_idle = policy.defer_idle_termination;
    if let Err(error) = drive(&shared, &clock, defers_idle, serving, |serving| serving.graceful_shutdown()).await {
        // Nearly always caused by the client; its requests have their own log lines.
        tracing::debug!(%error, "an HTTP connection ended with an error");
    }
}

/// Serves HTTP/2 on a stream to its end.
pub async fn serve_http2<S>(shared: Arc<WorkerContext>, connection: Connection, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let clock = Arc::clone(&connection.clock);
    let policy = policy_of(&shared, &connection.router);
    let io = TokioIo::new(ClientIo::new(stream, false, Arc::clone(&clock), ClientLimits::of(&policy)));
    let streams = Streams { patience: policy.timeouts.client };
    let mut builder = hyper::server::conn::http2::Builder::new(streams);
    builder
        .timer(TokioTimer::new())
        .enable_connect_protocol()
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(policy.limits.head.min(MAX_HEAD))
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_OWN_RESETS);
    let served = Arc::new(ConnectionContext { shared: Arc::clone(&shared), connection });
    let began = Instant::now();
    let serve = |request| handle(Arc::clone(&served), request).map_ok(|response| response.map(InParts::of));
    let serving = builder.serve_connection(io, service_fn(serve));
    tokio::pin!(serving);
    let defers_idle = policy.defer_idle_termination;
    if let Err(error) = drive(&shared, &clock, defers_idle, serving, |serving| serving.graceful_shutdown()).await {
        // As in `serve_http1`.
        tracing::debug!(%error, "an HTTP/2 connection ended with an error");
        if clock.is_cut_off() || is_of_flood(&error) {
            let Connection { router, client, listener, tls, .. } = &served.connection;
            let mut record = AccessRecord::new(router.clone(), *client, *listener, ServedBy::Proxy, &shared.log);
            record.started = began;
            record.tls = tls.is_some();
            record.host = tls.as_ref().and_then(|tls| tls.sni.as_ref()).map(|name| name.as_str().to_owned());
            record.flag = Flag::ClientFloods;
        }
    }
}

/// Whether h2 ended the connection because of a flood. [`ClientIo`] counts what h2 does not.
fn is_of_flood(error: &hyper::Error) -> bool {
    let error = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    error.is_some_and(|error| error.is_library() && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM))
}

/// The current policy of a connection's router. A connection keeps its limits to its end.
pub fn policy_of(shared: &WorkerContext, router: &RouterName) -> Arc<RouterPolicy> {
    shared.snapshot.load().routers.get(router).map(|served| Arc::clone(&served.table.policy)).unwrap_or_default()
}

/// Runs a connection. When the router drains, the connection ends after its current requests. A new connection is not
/// idle: its first request is awaited with the usual timeout, and served. The same holds for the next request of an
/// idle connection if the router's policy says so (`defers_idle`).
async fn drive<C, E>(
    shared: &WorkerContext,
    clock: &ConnectionState,
    defers_idle: bool,
    mut serving: Pin<&mut C>,
    shut_down: impl FnOnce(Pin<&mut C>),
) -> Result<(), E>
where
    C: Future<Output = Result<(), E>>,
{
    let mut draining = pin!(shared.reached(Phase::Draining));
    let mut phases = shared.phase.subscribe();
    phases.mark_changed();
    // Checking for a new phase is cheap. Awaiting one costs more than most of a poll, so the task registers for it
    // once, at its first poll; it is the same task at each poll.
    let served = poll_fn(|cx| {
        if let Poll::Ready(result) = clock.during(cx, |cx| serving.as_mut().poll(cx)) {
            return Poll::Ready(Some(result));
        }
        if phases.has_changed().unwrap_or(true) {
            phases.mark_unchanged();
            return draining.as_mut().poll(cx).map(|()| None);
        }
        Poll::Pending
    });
    match served.await {
        Some(result) => result,
        None => {
            let begun = clock.begun();
            let is_waited_for = begun == 0 || (defers_idle && !clock.busy());
            let ended = poll_fn(|cx| match clock.begun() {
                now if is_waited_for && now == begun => match serving.as_mut().poll(cx) {
                    Poll::Ready(result) => Poll::Ready(Some(result)),
                    Poll::Pending if clock.begun() > begun => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                },
                _ => Poll::Ready(None),
            });
            match ended.await {
                Some(result) => result,
                None => {
                    shut_down(serving.as_mut());
                    serving.await
                }
            }
        }
    }
}

//! Serves an accepted connection: clear text, or a ClientHello that decides between passthrough and TLS termination.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use router_access_log::{Flag, ServedBy};
use router_listener::Protocol;
use router_model::names::RouterName;
use router_table::lookup::SniMatch;
use tokio::net::TcpStream;

use super::capacity::Permits;
use super::hello::{ClientHelloBytes, HelloFailure, read_hello, turn_away};
use super::http::connection::Connection;
use super::http::serve::{policy_of, serve_http1, serve_http2};
use super::peeked_stream::PeekedStream;
use super::preface::{self, FirstBytes};
use super::proxy_protocol::Proxied;
use super::serving_table::ServedRouter;
use super::tls::terminate::terminate;
use super::{passthrough, proxy_protocol};
use crate::access_record::AccessRecord;
use crate::context::WorkerContext;

/// A connection as accepted by its listener.
#[derive(Debug)]
pub struct Accepted {
    /// Router of the listener.
    pub router: RouterName,
    /// Protocol of the listener.
    pub protocol: Protocol,
    /// Client address.
    pub client: SocketAddr,
    /// Local address.
    pub listener: SocketAddr,
    /// The connection.
    pub stream: TcpStream,
    /// Permits of the connection.
    pub seats: Permits,
}

/// Serves a connection to its end. HTTP is boxed, so that a connection that waits for its ClientHello, or is relayed,
/// does not have the size of HTTP's future.
pub async fn serve(shared: Arc<WorkerContext>, mut accepted: Accepted) {
    // Decided by the table that is current now: it may change while the first bytes arrive.
    let served = shared.snapshot.load().routers.get(&accepted.router).cloned();
    let policy = served.as_ref().map(|served| &*served.table.policy);
    let mut first = Vec::new();
    if policy.is_some_and(|policy| policy.accept_proxy) {
        let limit = policy.map(|policy| policy.timeouts).unwrap_or_default().hello;
        match Box::pin(proxy_protocol::read(&accepted.stream, limit)).await {
            Ok(Proxied { ends, rest }) => {
                (accepted.client, accepted.listener) = ends.unwrap_or((accepted.client, accepted.listener));
                first = rest;
            }
            Err(error) => {
                tracing::debug!(client = %accepted.client, %error, "no PROXY protocol header, closed");
                let Accepted { router, client, listener, .. } = accepted;
                AccessRecord::new(router, client, listener, ServedBy::Proxy, &shared.log).flag = error.flag();
                return;
            }
        }
    }
    match accepted.protocol {
        Protocol::Http => {
            let speaks_http2 = served.is_some_and(|served| served.table.hosts.has_other_kinds());
            let Accepted { router, client, listener, stream, seats, .. } = accepted;
            let connection = Connection::new(router, client, listener, None, seats);
            if speaks_http2 {
                Box::pin(serve_either(shared, connection, first, stream)).await;
            } else {
                Box::pin(serve_http1(shared, connection, PeekedStream::new(first, stream), Duration::ZERO)).await;
            }
        }
        Protocol::Https => serve_tls(shared, served, accepted, first).await,
    }
}

/// Serves clear text of a router with rules, where clients may use HTTP/2 with prior knowledge.
async fn serve_either(shared: Arc<WorkerContext>, connection: Connection, first: Vec<u8>, stream: TcpStream) {
    let limit = policy_of(&shared, &connection.router).timeouts.head;
    match preface::read(&stream, first, limit).await {
        Ok(FirstBytes { http2: true, bytes, .. }) => {
            serve_http2(shared, connection, PeekedStream::new(bytes, stream)).await
        }
        Ok(FirstBytes { bytes, waited, .. }) => {
            serve_http1(shared, connection, PeekedStream::new(bytes, stream), waited).await;
        }
        Err(error) => tracing::debug!(%error, "an HTTP connection failed before its first request"),
    }
}

async fn serve_tls(shared: Arc<WorkerContext>, served: Option<Arc<ServedRouter>>, accepted: Accepted, first: Vec<u8>) {
    let Accepted { router, client, listener, stream, seats, .. } = accepted;
    let mut record = AccessRecord::new(router, client, listener, ServedBy::Relay, &shared.log);
    let limit = served.as_ref().map(|served| served.table.policy.timeouts).unwrap_or_default().hello;
    let mut timer = shared.timers.lend();
    let flight = read_hello(&stream, first, limit, &mut timer).await;
    let ClientHelloBytes { name, bytes } = match flight {
        Ok(flight) => flight,
        // If the kernel took the connection over, it writes the log line; otherwise there was no request.
        Err(HelloFailure::Reset) if shared.config.steered => return record.discard(),
        Err(failure) => {
            record.flag = match failure {
                HelloFailure::Closed | HelloFailure::Reset => Flag::ClientGone,
                HelloFailure::Timeout => Flag::ClientTimeout,
                HelloFailure::Invalid(_) | HelloFailure::TooLarge => Flag::BadHello,
            };
            drop((record, timer));
            return turn_away(stream, failure.alert()).await;
        }
    };
    record.host = name.as_ref().map(|name| name.as_str().to_owned());
    let Some(served) = served else {
        record.flag = Flag::NoRouter;
        return;
    };
    if let SniMatch::Passthrough(route) = served.table.match_sni(name.as_ref()) {
        let route = Arc::clone(route);
        return Box::pin(passthrough::forward(&shared, stream, route, bytes, timer, record)).await;
    }
    drop(timer);
    record.data_path = ServedBy::Proxy;
    Box::pin(terminate(shared, served, stream, ClientHelloBytes { name, bytes }, record, seats)).await;
}

#[cfg(test)]
mod tests;

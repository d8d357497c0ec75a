//! Performs the TLS handshake with a client, and passes the stream on to HTTP or to an endpoint.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use router_access_log::Flag;
use router_table::lookup::SniMatch;
use rustls::{HandshakeKind, ProtocolVersion, ServerConnection};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::client_auth;
use super::client_certificate::ClientCertificate;
use crate::access_record::AccessRecord;
use crate::capacity::Permits;
use crate::context::WorkerContext;
use crate::hello::{ClientHelloBytes, turn_away};
use crate::http::connection::{Connection, ConnectionTls};
use crate::http::serve::{serve_http1, serve_http2};
use crate::passthrough;
use crate::peeked_stream::PeekedStream;
use crate::serving_table::{ServedRouter, ServedTls};

/// RFC 8446 §6.2: an error of the router, not of the client.
const ALERT_INTERNAL_ERROR: u8 = 80;

/// Terminates TLS. The record is written only if the handshake fails; afterwards each request has its own.
pub async fn terminate(
    shared: Arc<WorkerContext>,
    served: Arc<ServedRouter>,
    stream: TcpStream,
    flight: ClientHelloBytes,
    mut record: AccessRecord,
    seats: Permits,
) {
    let Some(tls) = &served.tls else {
        record.flag = Flag::ClientHandshake;
        drop(record);
        return turn_away(stream, Some(ALERT_INTERNAL_ERROR)).await;
    };
    let host_rules = match served.table.match_sni(flight.name.as_ref()) {
        SniMatch::Terminate(host) => host.rules.as_ref().and_then(|host_rules| host_rules.tls.as_ref()),
        SniMatch::Passthrough(_) | SniMatch::Default => None,
    };
    let tcp = host_rules.and_then(|host_rules| host_rules.tcp.clone());
    let acceptor = TlsAcceptor::from(Arc::clone(tls.configs.of(host_rules)));
    let handshake = acceptor.accept(PeekedStream::new(flight.bytes, stream)).into_fallible();
    let limit = served.table.policy.timeouts.handshake;
    let stream = match tokio::time::timeout(limit, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err((error, stream))) => {
            tls.handshakes.fail();
            tracing::debug!(client = %record.client, host = record.host.as_deref().unwrap_or("-"), %error, "TLS handshake failed");
            record.flag = Flag::ClientHandshake;
            drop(record);
            // rustls has sent the alert.
            return turn_away(stream.into_inner(), None).await;
        }
        Err(_) => {
            tls.handshakes.fail();
            record.flag = Flag::ClientTimeout;
            return;
        }
    };
    let session = stream.get_ref().1;
    let Some(client) = client_of(session) else {
        tls.handshakes.fail();
        tracing::debug!(client = %record.client, "a client's certificate is not acceptable, or has expired");
        record.flag = Flag::ClientHandshake;
        return;
    };
    tls.handshakes.complete(session.handshake_kind() == Some(HandshakeKind::Resumed));
    if let Some(route) = tcp {
        record.tls = true;
        let admitted = connection_tls(None, tls, client, false).admitted;
        return Box::pin(passthrough::forward_terminated(&shared, stream, admitted, route, record)).await;
    }
    let http2 = session.alpn_protocol() == Some(b"h2");
    let (router, peer, listener) = (record.router.clone(), record.client, record.listener);
    record.discard();
    let is_newest = session.protocol_version() == Some(ProtocolVersion::TLSv1_3);
    let tls = Some(connection_tls(flight.name, tls, client, is_newest));
    // The handshake's table is dropped: requests use the newest one.
    drop(served);
    let connection = Connection::new(router, peer, listener, tls, seats);
    if http2 {
        serve_http2(shared, connection, stream).await;
    } else {
        serve_http1(shared, connection, stream, Duration::ZERO).await;
    }
}

fn connection_tls(
    sni: Option<router_model::names::Hostname>,
    tls: &ServedTls,
    client: Option<ClientCertificate>,
    is_newest: bool,
) -> ConnectionTls {
    let client_auth = tls.client_auth.clone();
    let admitted = client_auth.as_ref().is_none_or(|auth| client_auth::admits(auth, client.as_ref()));
    ConnectionTls { sni, client_auth, client: client.map(Arc::new), admitted, is_newest }
}

/// The client's certificate, if any; `None` if it is not acceptable, because parsers differ about it, or because a
/// session was resumed after its expiry.
fn client_of(session: &ServerConnection) -> Option<Option<ClientCertificate>> {
    let Some(leaf) = session.peer_certificates().and_then(<[_]>::first) else { return Some(None) };
    let certificate = ClientCertificate::read(leaf)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    (i64::try_from(now).unwrap_or(i64::MAX) <= certificate.not_after()).then_some(Some(certificate))
}

//! Forwards connections without parsing them: TLS passthrough to an endpoint of the route that the SNI selects, and
//! terminated TLS whose content is opaque.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use router_access_log::Flag;
use router_common::maps::{FlowKey, mapped};
use router_common::proxy_v2;
use router_table::policy::Timeouts;
use router_table::table::ResolvedRoute;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::dial::{self, DialError, SendTiming};
use super::limits::TooMany;
use super::peeked_stream::PeekedStream;
use super::upstream::choose::NoEndpoint;
use super::upstream::hashing::HashKey;
use super::upstream::plan::BalancingPlan;
use super::upstream::tls_connect::{ByteStream, secured};
use crate::access_record::AccessRecord;
use crate::context::WorkerContext;
use crate::relay::{self, RelayEnd, RelayOptions, TunnelEnd};
use crate::rt::timer::{PooledTimer, Timer};

/// Forwards a connection whose first bytes were read. A client that cannot be served gets a reset, because the protocol
/// is unknown.
pub async fn forward(
    shared: &WorkerContext,
    client: TcpStream,
    route: Arc<ResolvedRoute>,
    hello: Vec<u8>,
    mut timer: PooledTimer<'_>,
    mut record: AccessRecord,
) {
    record.route = Some(Arc::clone(&route));
    let timeouts = shared.timeouts(&record.router);
    let Some(Either::Left(upstream)) = reach(shared, &route, timeouts, &mut timer, Inside::Tls, &mut record).await
    else {
        relay::reset_on_close(&client);
        return;
    };
    let idle = route.tunnel_timeout().unwrap_or(timeouts.tunnel);
    let options = RelayOptions { idle, ..RelayOptions::default() };
    let mut first = if route.proxy_protocol { proxy_header(record.client, record.listener) } else { Vec::new() };
    let not_the_clients = first.len() as u64;
    first.extend(hello);
    let outcome = relay::relay(client, upstream, first, options, &mut timer).await;
    record.bytes_in = outcome.to_upstream.saturating_sub(not_the_clients);
    record.bytes_out = outcome.to_client;
    record.flag = match outcome.end {
        RelayEnd::Finished => Flag::Fine,
        RelayEnd::ClientReset => Flag::ClientGone,
        RelayEnd::UpstreamReset => Flag::UpstreamClosed,
        RelayEnd::Idle => Flag::Idle,
    };
}

/// Forwards the content of a client's TLS connection. A client that cannot be served gets a reset.
pub async fn forward_terminated(
    shared: &WorkerContext,
    mut client: TlsStream<PeekedStream<TcpStream>>,
    admitted: bool,
    route: Arc<ResolvedRoute>,
    mut record: AccessRecord,
) {
    record.route = Some(Arc::clone(&route));
    let timeouts = shared.timeouts(&record.router);
    let upstream = if admitted {
        reach(shared, &route, timeouts, &mut shared.timers.lend(), Inside::Bytes, &mut record).await
    } else {
        record.flag = Flag::ClientCertificate;
        None
    };
    let Some(mut upstream) = upstream else { return relay::reset_on_close(client.get_ref().0.get_ref()) };
    let idle = route.tunnel_timeout().unwrap_or(timeouts.tunnel);
    let outcome = relay::tunnel(&mut client, &mut upstream, idle, || ()).await;
    record.bytes_in = outcome.to_upstream;
    record.bytes_out = outcome.to_client;
    record.flag = match outcome.end {
        TunnelEnd::Finished => return record.flag = Flag::Fine,
        TunnelEnd::Failed => Flag::ClientGone,
        TunnelEnd::Idle => Flag::Idle,
    };
    // Neither side must take the stream for complete.
    relay::reset_on_close(client.get_ref().0.get_ref());
    match &upstream {
        Either::Left(stream) => relay::reset_on_close(stream),
        Either::Right(stream) => relay::reset_on_close(stream.get_ref().0),
    }
}

/// Content of a client's connection, for the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    /// The client's TLS, including the bytes already read; forwarded unchanged.
    Tls,
    /// Terminated TLS; forwarded according to the backend's policy.
    Bytes,
}

/// Connects to an endpoint of the route, if the client is within the route's limits. `None`: the record has the cause.
async fn reach(
    shared: &WorkerContext,
    route: &ResolvedRoute,
    timeouts: Timeouts,
    timer: &mut Timer,
    inside: Inside,
    record: &mut AccessRecord,
) -> Option<ByteStream> {
    if !route.admits_source(record.client.ip()) {
        record.flag = Flag::SourceNotAllowed;
        return None;
    }
    let plan = shared.balancer.plan(route);
    match plan.admit(record.client.ip()) {
        Ok(visit) => record.visit = visit,
        Err(TooMany) => {
            record.flag = Flag::RateLimited;
            return None;
        }
    }
    connect(shared, (route, &plan), timeouts.connect, timer, inside, record).await
}

/// Connects to an endpoint of the route. `None`: no endpoint could be connected to, or the selected backend has none or
/// is invalid; the record has the cause, and the client gets a reset.
async fn connect(
    shared: &WorkerContext,
    (route, plan): (&ResolvedRoute, &BalancingPlan),
    timeout: Duration,
    timer: &mut Timer,
    inside: Inside,
    record: &mut AccessRecord,
) -> Option<ByteStream> {
    let opening = if inside == Inside::Tls { SendTiming::AtOnce } else { SendTiming::AnyTime };
    let key = Some(HashKey::of_client(record.client.ip()));
    let mut choice = plan.choose(route, &route.cluster, key, None);
    record.flag = Flag::NoEndpoints;
    let mut left = timeout;
    loop {
        let pick = match choice.next(&shared.balancer, timeout).await {
            Ok(pick) => pick,
            Err(NoEndpoint::NoEndpoints | NoEndpoint::Tried) => return None,
            Err(NoEndpoint::Failing(_)) => {
                record.flag = Flag::InvalidBackend;
                return None;
            }
            Err(NoEndpoint::Busy) => {
                record.flag = Flag::Busy;
                return None;
            }
        };
        let (begun, within) = (Instant::now(), choice.patience(left));
        let connected = loop {
            let endpoint = pick.target.endpoint;
            match dial::connect_with(timer, &shared.balancer.health, endpoint, within, opening).await {
                Err(DialError::NoDescriptor(_)) if begun.elapsed() < within => shared.wait_for_descriptor().await,
                connected => break connected,
            }
        };
        let connected = match connected {
            Ok(stream) if inside == Inside::Bytes => {
                let left = within.saturating_sub(begun.elapsed());
                secured(shared, pick.target, stream, left).await.map_err(|(_, flag)| flag)
            }
            Ok(stream) => Ok(Either::Left(stream)),
            Err(DialError::Refused(_)) => Err(Flag::UpstreamConnectFailure),
            Err(DialError::Own) => Err(Flag::OwnListener),
            Err(DialError::Timeout) => Err(Flag::UpstreamConnectTimeout),
            Err(DialError::NoDescriptor(_)) => Err(Flag::NoDescriptor),
        };
        match connected {
            Ok(stream) => {
                record.endpoint = Some(pick.target.endpoint.address);
                record.place = pick.place;
                // The flag of a connection in progress.
                record.flag = Flag::ClientGone;
                return Some(stream);
            }
            // The cause was known at once, so no timeout can have expired.
            Err(Flag::UpstreamConnectTimeout | Flag::UpstreamTlsTimeout) if choice.is_last_resort() => {
                record.flag = Flag::BackendsDown;
            }
            Err(flag) => record.flag = flag,
        }
        left = left.saturating_sub(begun.elapsed());
    }
}

/// The PROXY v2 header of a connection: client and local address.
fn proxy_header(client: SocketAddr, listener: SocketAddr) -> Vec<u8> {
    let sixteen = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => mapped(ip.octets()),
        IpAddr::V6(ip) => ip.octets(),
    };
    let flow = FlowKey {
        source: sixteen(client),
        destination: sixteen(listener),
        source_port: client.port(),
        destination_port: listener.port(),
    };
    let (bytes, length) = proxy_v2::header(&flow);
    bytes.into_iter().take(length as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_header_has_the_family_of_the_connection() {
        let header = |client: &str, listener: &str| proxy_header(client.parse().unwrap(), listener.parse().unwrap());
        let four = header("192.0.2.7:4660", "198.51.100.1:443");
        assert_eq!(four[12..], [0x21, 0x11, 0, 12, 192, 0, 2, 7, 198, 51, 100, 1, 0x12, 0x34, 0x01, 0xbb]);
        // The form in which a dual-stack socket reports IPv4 addresses.
        assert_eq!(header("[::ffff:192.0.2.7]:4660", "[::ffff:198.51.100.1]:443"), four);
        let six = header("[2001:db8::7]:4660", "[2001:db8::1]:443");
        assert_eq!((six.len(), &six[12..20]), (52, &[0x21, 0x21, 0, 36, 0x20, 0x01, 0x0d, 0xb8][..]));
        assert_eq!(six[31..34], [7, 0x20, 0x01]);
        assert_eq!(six[47..], [1, 0x12, 0x34, 0x01, 0xbb]);
    }
}

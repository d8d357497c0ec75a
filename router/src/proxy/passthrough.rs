//! Passthrough: a TLS connection that is forwarded as it is, to an endpoint of the route that its SNI names.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use router_common::maps::{FlowKey, mapped};
use router_common::proxy_v2;
use router_core::table::ResolvedRoute;
use tokio::net::TcpStream;

use super::Shared;
use super::access::{AccessRecord, Flag};
use super::dial::{self, DialError};
use super::limits::TooMany;
use super::upstream::choose::Exhausted;
use crate::relay::{self, RelayEnd, RelayOptions};

/// Forwards a connection whose first bytes were already read. A client that cannot be served gets a reset: in a
/// protocol that is not ours there is nothing to say.
pub async fn forward(
    shared: &Shared,
    client: TcpStream,
    route: Arc<ResolvedRoute>,
    hello: Vec<u8>,
    mut record: AccessRecord,
) {
    record.route = Some(Arc::clone(&route));
    if !route.admits_source(record.client.ip()) {
        record.flag = Flag::SourceNotAllowed;
        relay::reset_on_close(&client);
        return;
    }
    let timeouts = shared.timeouts(&record.router);
    match shared.balancer.plan(&route).admit(record.client.ip()) {
        Ok(visit) => record.visit = visit,
        Err(TooMany) => {
            record.flag = Flag::RateLimited;
            relay::reset_on_close(&client);
            return;
        }
    }
    let Some(upstream) = connect(shared, &route, timeouts.connect, &mut record).await else {
        relay::reset_on_close(&client);
        return;
    };
    let idle = route.tunnel_timeout.unwrap_or(timeouts.tunnel);
    let options = RelayOptions { idle, ..RelayOptions::default() };
    let mut first = if route.proxy_protocol { proxy_header(record.client, record.listener) } else { Vec::new() };
    let not_the_clients = first.len() as u64;
    first.extend(hello);
    let outcome = relay::relay(client, upstream, first, options).await;
    record.traffic.bytes_in.store(outcome.to_upstream.saturating_sub(not_the_clients), Ordering::Relaxed);
    record.traffic.bytes_out.store(outcome.to_client, Ordering::Relaxed);
    record.flag = match outcome.end {
        RelayEnd::Finished => Flag::Fine,
        RelayEnd::ClientReset => Flag::ClientGone,
        RelayEnd::UpstreamReset => Flag::UpstreamClosed,
        RelayEnd::Idle => Flag::Idle,
    };
}

/// Connects to an endpoint of the route. `None`: none could be connected to, or it is the share of a backend that has
/// none or cannot be used; the record says why, and the client is to get a reset.
pub(super) async fn connect(
    shared: &Shared,
    route: &ResolvedRoute,
    timeout: Duration,
    record: &mut AccessRecord,
) -> Option<TcpStream> {
    let mut choice = shared.balancer.plan(route).choose(&route.cluster, record.client.ip(), None);
    record.flag = Flag::NoEndpoints;
    loop {
        let pick = match choice.next(&shared.balancer, timeout).await {
            Ok(pick) => pick,
            Err(Exhausted::NoEndpoints | Exhausted::Tried) => return None,
            Err(Exhausted::Failing(_)) => {
                record.flag = Flag::InvalidBackend;
                return None;
            }
            Err(Exhausted::Busy) => {
                record.flag = Flag::Busy;
                return None;
            }
        };
        match dial::connect(&shared.balancer.health, pick.target.endpoint, timeout).await {
            Ok(stream) => {
                record.endpoint = Some(pick.target.endpoint.clone());
                record.place = pick.place;
                // Until it has ended otherwise, as for everything that is under way.
                record.flag = Flag::ClientGone;
                return Some(stream);
            }
            Err(DialError::Refused(_)) => record.flag = Flag::UpstreamConnectFailure,
            Err(DialError::Timeout) => record.flag = Flag::UpstreamTimeout,
        }
    }
}

/// The PROXY v2 header of a connection: who made it, and to which address of ours.
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
        // As a socket for both families tells it.
        assert_eq!(header("[::ffff:192.0.2.7]:4660", "[::ffff:198.51.100.1]:443"), four);
        let six = header("[2001:db8::7]:4660", "[2001:db8::1]:443");
        assert_eq!((six.len(), &six[12..20]), (52, &[0x21, 0x21, 0, 36, 0x20, 0x01, 0x0d, 0xb8][..]));
        assert_eq!(six[31..34], [7, 0x20, 0x01]);
        assert_eq!(six[47..], [1, 0x12, 0x34, 0x01, 0xbb]);
    }
}

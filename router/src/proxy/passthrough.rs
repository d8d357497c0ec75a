//! Passthrough: a TLS connection that is forwarded as it is, to an endpoint of the route that its SNI names.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use router_core::table::ResolvedRoute;
use tokio::net::TcpStream;

use super::Shared;
use super::access::{AccessRecord, Flag};
use super::dial::{self, DialError};
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
    let timeouts = &shared.config.timeouts;
    let order = dial::order(&route.cluster, dial::random_below);
    let (upstream, endpoint) = match dial::connect_any(order, timeouts.connect).await {
        Ok(connected) => connected,
        Err(error) => {
            record.flag = match error {
                DialError::NoEndpoints => Flag::NoEndpoints,
                DialError::Refused(_) => Flag::UpstreamConnectFailure,
                DialError::Timeout => Flag::UpstreamTimeout,
            };
            relay::reset_on_close(&client);
            return;
        }
    };
    record.endpoint = Some(endpoint);
    let options = RelayOptions { idle: timeouts.tunnel, ..RelayOptions::default() };
    let outcome = relay::relay(client, upstream, hello, options).await;
    record.traffic.bytes_in.store(outcome.to_upstream, Ordering::Relaxed);
    record.traffic.bytes_out.store(outcome.to_client, Ordering::Relaxed);
    record.flag = match outcome.end {
        RelayEnd::Finished => Flag::Fine,
        RelayEnd::ClientReset => Flag::ClientGone,
        RelayEnd::UpstreamReset => Flag::UpstreamClosed,
        RelayEnd::Idle => Flag::Idle,
    };
}

//! Upgrades, WebSocket above all: after 101 the two connections are one tunnel, which is not looked into.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::body::ResponseBody;
use super::{headers, pages};
use crate::proxy::Shared;
use crate::proxy::access::{AccessRecord, Flag};
use crate::proxy::clock::InFlight;
use crate::relay::{self, TunnelEnd};

/// Passes a 101 on and starts the tunnel. An endpoint that switches protocols unasked gets a 502.
pub fn switch(
    shared: &Arc<Shared>,
    mut response: Response<Incoming>,
    client: Option<OnUpgrade>,
    mut record: AccessRecord,
    in_flight: InFlight,
) -> Response<ResponseBody> {
    let Some(client) = client else {
        let (status, flag) = (StatusCode::BAD_GATEWAY, Flag::UpstreamClosed);
        record.status = Some(status);
        record.flag = flag;
        let page = pages::error(status, flag, &HeaderMap::new(), shared.config.show_cause);
        return page.map(|content| ResponseBody::own(content, record, in_flight));
    };
    record.status = Some(StatusCode::SWITCHING_PROTOCOLS);
    in_flight.becomes_tunnel();
    let upstream = hyper::upgrade::on(&mut response);
    let of_route = record.route.as_ref().and_then(|route| route.tunnel_timeout);
    let idle = of_route.unwrap_or(shared.config.timeouts.tunnel);
    shared.spawn(async move { join(client, upstream, idle, record, in_flight).await });

    let (mut head, _) = response.into_parts();
    let protocol = head.headers.get(UPGRADE).cloned();
    headers::prepare_response(&mut head.headers);
    head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    if let Some(protocol) = protocol {
        head.headers.insert(UPGRADE, protocol);
    }
    head.extensions.clear();
    Response::from_parts(head, ResponseBody::switching())
}

async fn join(
    client: OnUpgrade,
    upstream: OnUpgrade,
    idle: std::time::Duration,
    mut record: AccessRecord,
    _in_flight: InFlight,
) {
    // Either fails when its connection ends before the switch is complete.
    let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else { return };
    let outcome = relay::tunnel(TokioIo::new(client), TokioIo::new(upstream), idle).await;
    record.traffic.bytes_in.fetch_add(outcome.to_upstream, Ordering::Relaxed);
    record.traffic.bytes_out.fetch_add(outcome.to_client, Ordering::Relaxed);
    record.flag = match outcome.end {
        TunnelEnd::Finished => Flag::Fine,
        TunnelEnd::Failed => Flag::ClientGone,
        TunnelEnd::Idle => Flag::Idle,
    };
}

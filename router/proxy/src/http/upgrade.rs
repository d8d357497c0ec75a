//! Upgrades, mostly WebSocket: after the switch both connections form an opaque tunnel. An HTTP/2 client uses an
//! extended CONNECT (RFC 8441), which is converted to an HTTP/1.1 upgrade.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request};
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use router_access_log::Flag;
use tokio::io::AsyncWriteExt;

use super::body::ResponseBody;
use super::{headers, reason};
use crate::access_record::AccessRecord;
use crate::connection_state::InFlight;
use crate::context::WorkerContext;
use crate::relay::{self, TunnelEnd};
use crate::upstream::request_sender::IncomingBody;

/// The only protocol supported for extended CONNECT.
const WEBSOCKET: &str = "websocket";

/// GUID of the WebSocket handshake (RFC 6455 §1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A request to switch protocols.
#[derive(Debug)]
pub struct RequestedUpgrade {
    client: OnUpgrade,
    /// The expected `Sec-WebSocket-Accept`, if the client used CONNECT and the router performs the handshake.
    accept: Option<HeaderValue>,
}

impl RequestedUpgrade {
    /// The endpoint did not switch.
    pub fn declined(self, shared: &Arc<WorkerContext>) {
        if self.accept.is_none() {
            declined(self.client, shared);
        }
    }

    /// Whether the response completes the requested switch. An HTTP/1 client verifies that itself.
    fn is_met_by(&self, response: &HeaderMap) -> bool {
        let is_websocket = |protocol: &HeaderValue| protocol.as_bytes().eq_ignore_ascii_case(WEBSOCKET.as_bytes());
        self.accept.as_ref().is_none_or(|accept| {
            response.get(UPGRADE).is_some_and(is_websocket) && response.get(SEC_WEBSOCKET_ACCEPT) == Some(accept)
        })
    }
}

/// Whether a response switches protocols only if requested, and to the requested one. For an extended CONNECT any 2xx
/// would open the tunnel.
pub fn is_fitting<B>(response: &Response<B>, requested: Option<&RequestedUpgrade>) -> bool {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return requested.is_some_and(|requested| requested.is_met_by(response.headers()));
    }
    !(response.status().is_success() && requested.is_some_and(|requested| requested.accept.is_some()))
}

/// The client's HTTP/1 connection did not switch. hyper still passes it to the upgrade's holder at its end, which must
/// close it properly, because TLS needs a close_notify.
pub fn declined(client: OnUpgrade, shared: &Arc<WorkerContext>) {
    shared.spawn(async move {
        if let Ok(client) = client.await {
            // An error means that the client closed its connection.
            let _ = TokioIo::new(client).shutdown().await;
        }
    });
}

/// Whether this is an extended CONNECT for a WebSocket.
pub fn is_websocket_connect(head: &request::Parts) -> bool {
    let protocol = head.extensions.get::<Protocol>();
    head.method == Method::CONNECT && protocol.is_some_and(|protocol| protocol.as_str() == WEBSOCKET)
}

/// The requested switch. `wanted`: the value of `Upgrade`; an extended CONNECT is converted to an upgrade.
pub fn requested(head: &mut request::Parts, wanted: Option<HeaderValue>) -> Option<RequestedUpgrade> {
    let client = head.extensions.remove::<OnUpgrade>();
    let accept = if is_websocket_connect(head) {
        let (key, accept) = websocket_key()?;
        head.method = Method::GET;
        head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
        head.headers.insert(SEC_WEBSOCKET_KEY, key);
        Some(accept)
    } else {
        wanted.as_ref()?;
        None
    };
    Some(RequestedUpgrade { client: client?, accept })
}

/// A WebSocket key (RFC 6455 §4.1), which an HTTP/2 client does not send, and its accept value.
fn websocket_key() -> Option<(HeaderValue, HeaderValue)> {
    let mut nonce = [0; 16];
    rustix::rand::getrandom(&mut nonce[..], rustix::rand::GetRandomFlags::empty()).ok()?;
    let key = STANDARD.encode(nonce);
    let accept = accept_for(key.as_bytes());
    Some((HeaderValue::try_from(key).ok()?, HeaderValue::try_from(accept).ok()?))
}

fn accept_for(key: &[u8]) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, WEBSOCKET_GUID].concat()))
}

/// Passes on a 101 that [is fitting](is_fitting), and starts the tunnel with the inactivity timeout `idle`.
pub fn switch(
    shared: &Arc<WorkerContext>,
    mut response: Response<IncomingBody>,
    RequestedUpgrade { client, accept }: RequestedUpgrade,
    idle: Duration,
    mut record: Box<AccessRecord>,
    mut in_flight: InFlight,
) -> Response<ResponseBody> {
    let connect = accept.is_some();
    // The equivalent of 101 in HTTP/2 is 200 (RFC 8441 §5).
    let status = if connect { StatusCode::OK } else { StatusCode::SWITCHING_PROTOCOLS };
    record.status = Some(status);
    in_flight.end();
    if !connect {
        // Other requests of an HTTP/2 connection continue.
        in_flight.becomes_tunnel();
    }
    let upstream = hyper::upgrade::on(&mut response);
    shared.spawn(async move { join(client, upstream, idle, record, in_flight).await });

    let (mut head, _) = response.into_parts();
    let protocol = head.headers.get(UPGRADE).cloned();
    headers::prepare_response(&mut head.headers);
    head.status = status;
    if connect {
        head.headers.remove(SEC_WEBSOCKET_ACCEPT);
    } else {
        head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        if let Some(protocol) = protocol {
            head.headers.insert(UPGRADE, protocol);
        }
    }
    reason::keep(status, &mut head.extensions);
    Response::from_parts(head, ResponseBody::switching())
}

async fn join(
    client: OnUpgrade,
    upstream: OnUpgrade,
    idle: Duration,
    mut record: Box<AccessRecord>,
    in_flight: InFlight,
) {
    // Either fails if its connection ends before the switch is complete.
    let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else { return };
    let outcome = relay::tunnel(TokioIo::new(client), TokioIo::new(upstream), idle, || in_flight.sends_part()).await;
    record.bytes_in += outcome.to_upstream;
    record.bytes_out += outcome.to_client;
    record.flag = match outcome.end {
        TunnelEnd::Finished => Flag::Fine,
        TunnelEnd::Failed if in_flight.is_cut_off() => Flag::ClientFloods,
        TunnelEnd::Failed => Flag::ClientGone,
        TunnelEnd::Idle => Flag::Idle,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_answer_that_the_rfc_gives_it() {
        assert_eq!(accept_for(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}

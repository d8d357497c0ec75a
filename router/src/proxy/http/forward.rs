//! A request on its way to an endpoint, and the response on its way back.

use std::sync::Arc;

use http::{Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use router_core::table::{HttpTls, Reencrypt, ResolvedRoute, RouteKind};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::Connection;
use super::body::{RequestBody, ResponseBody, Upload, UpstreamBody};
use super::headers::{ClientView, prepare_request, prepare_response};
use super::upgrade;
use crate::proxy::Shared;
use crate::proxy::access::{AccessRecord, Flag};
use crate::proxy::clock::InFlight;
use crate::proxy::dial::{self, DialError, Target};
use crate::proxy::pool::PoolKey;
use crate::proxy::upstream_tls::{TrustError, UpstreamTrust, service_name};

/// Longest head of an endpoint's response, in bytes.
const MAX_RESPONSE_HEAD: usize = 64 * 1024;

/// Where a request goes, and as what.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'r> {
    /// The route.
    pub route: &'r ResolvedRoute,
    /// Host and port as the client wrote them.
    pub authority: &'r str,
    /// See [`ClientView::as_sent`].
    pub as_sent: bool,
}

/// Why there is no response from an endpoint, with what the router's own response needs.
#[derive(Debug)]
pub struct Failure {
    /// The response's status.
    pub status: StatusCode,
    /// Why.
    pub flag: Flag,
    /// The request's record.
    pub record: Box<AccessRecord>,
    /// The request's guard.
    pub in_flight: InFlight,
}

/// What went wrong with one endpoint: whose fault it is, and whether the next endpoint may be tried.
#[derive(Debug)]
struct Trouble {
    status: StatusCode,
    flag: Flag,
    /// The request, when nothing of it was sent.
    unsent: Option<Request<RequestBody>>,
}

/// A connection to an endpoint that takes requests.
struct Upstream {
    key: PoolKey,
    sender: SendRequest<RequestBody>,
}

/// Sends a request to an endpoint of the route; the next one is tried as long as nothing was sent.
///
/// # Errors
/// What to answer when no endpoint did.
pub async fn forward(
    shared: &Arc<Shared>,
    connection: &Connection,
    destination: &Destination<'_>,
    request: Request<Incoming>,
    mut record: AccessRecord,
    in_flight: InFlight,
) -> Result<Response<ResponseBody>, Failure> {
    let Destination { route, authority, as_sent } = *destination;
    let (mut head, content) = request.into_parts();
    let view = ClientView {
        client: connection.client.ip(),
        listener: connection.listener,
        tls: connection.tls.is_some(),
        version: head.version,
        authority,
        policy: route.forwarded,
        as_sent,
    };
    let wants_upgrade = prepare_request(&mut head.headers, &view);
    let client_upgrade = wants_upgrade.map(|_| head.extensions.remove::<hyper::upgrade::OnUpgrade>());
    head.version = Version::HTTP_11;
    head.uri = origin_form(&head.uri);
    head.extensions.clear();
    let upload = Arc::new(Upload::default());
    let body = RequestBody::new(content, Arc::clone(&upload), Arc::clone(&record.traffic));
    let mut request = Request::from_parts(head, body);

    let order = dial::order(&route.cluster, dial::random_below);
    let mut last = (StatusCode::SERVICE_UNAVAILABLE, Flag::NoEndpoints);
    for target in order {
        record.endpoint = Some(target.endpoint.clone());
        match attempt(shared, route, &target, request, &upload).await {
            Ok((upstream, response)) => {
                return Ok(answer(shared, upstream, response, upload, client_upgrade.flatten(), record, in_flight));
            }
            Err(Trouble { status, flag, unsent }) => {
                last = (status, flag);
                match unsent {
                    Some(again) => request = again,
                    None => break,
                }
            }
        }
    }
    let (status, flag) = last;
    Err(Failure { status, flag, record: Box::new(record), in_flight })
}

/// Sends the request to one endpoint: over a pooled connection, and if that turns out to have gone stale before
/// anything was sent, over another.
async fn attempt(
    shared: &Arc<Shared>,
    route: &ResolvedRoute,
    target: &Target,
    mut request: Request<RequestBody>,
    upload: &Upload,
) -> Result<(Upstream, Response<Incoming>), Trouble> {
    let trust = match trust(shared, route, target) {
        Ok(trust) => trust,
        Err(error) => {
            tracing::warn!(route = %route.id, %error, "the route cannot be served");
            let flag = Flag::NoDestinationCa;
            return Err(Trouble { status: StatusCode::SERVICE_UNAVAILABLE, flag, unsent: None });
        }
    };
    let tls = trust.as_ref().map(|(trust, name)| (trust.id, name.clone()));
    let key = PoolKey { address: target.endpoint.address, tls };
    while let Some(sender) = shared.pool.take(&key) {
        let upstream = Upstream { key: key.clone(), sender };
        match send(shared, upstream, request, upload).await {
            Err(Trouble { unsent: Some(again), .. }) => request = again,
            result => return result,
        }
    }
    match open(shared, target, trust).await {
        Ok(sender) => send(shared, Upstream { key, sender }, request, upload).await,
        Err((status, flag)) => Err(Trouble { status, flag, unsent: Some(request) }),
    }
}

type Trust = (UpstreamTrust, rustls_pki_types::ServerName<'static>);

fn trust(shared: &Shared, route: &ResolvedRoute, target: &Target) -> Result<Option<Trust>, TrustError> {
    let RouteKind::Http { tls: Some(HttpTls { reencrypt: Some(reencrypt), .. }), .. } = &route.kind else {
        return Ok(None);
    };
    let reencrypt: &Reencrypt = reencrypt;
    let name = service_name(&target.service, &route.id.namespace)?;
    Ok(Some((shared.upstream_tls.trust(reencrypt)?, name)))
}

/// Opens a fresh connection.
async fn open(
    shared: &Arc<Shared>,
    target: &Target,
    trust: Option<Trust>,
) -> Result<SendRequest<RequestBody>, (StatusCode, Flag)> {
    let timeouts = &shared.config.timeouts;
    let stream = dial::connect(&target.endpoint, timeouts.connect).await.map_err(|error| match error {
        DialError::Timeout => (StatusCode::GATEWAY_TIMEOUT, Flag::UpstreamTimeout),
        DialError::NoEndpoints | DialError::Refused(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, Flag::UpstreamConnectFailure)
        }
    })?;
    let Some((trust, name)) = trust else { return handshake(stream).await };
    let connecting = tokio_rustls::TlsConnector::from(trust.config).connect(name, stream);
    match tokio::time::timeout(timeouts.connect, connecting).await {
        Ok(Ok(stream)) => handshake(stream).await,
        Ok(Err(error)) => {
            tracing::debug!(endpoint = %target.endpoint.address, %error, "TLS with the endpoint failed");
            Err((StatusCode::BAD_GATEWAY, Flag::UpstreamCertificate))
        }
        Err(_) => Err((StatusCode::GATEWAY_TIMEOUT, Flag::UpstreamTimeout)),
    }
}

async fn handshake<S>(stream: S) -> Result<SendRequest<RequestBody>, (StatusCode, Flag)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_headers(256).max_buf_size(MAX_RESPONSE_HEAD);
    let (sender, driver) =
        builder.handshake(TokioIo::new(stream)).await.map_err(|_| (StatusCode::BAD_GATEWAY, Flag::UpstreamClosed))?;
    // Its errors reach whoever sends on it.
    tokio::spawn(async move { driver.with_upgrades().await.ok() });
    Ok(sender)
}

/// Sends on one connection and waits for the response's head, as long as somebody is still sending.
async fn send(
    shared: &Shared,
    mut upstream: Upstream,
    request: Request<RequestBody>,
    upload: &Upload,
) -> Result<(Upstream, Response<Incoming>), Trouble> {
    let limit = shared.config.timeouts.server;
    let begun = Instant::now();
    let stalled = async {
        loop {
            let deadline = begun.max(upload.last()) + limit;
            if Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    };
    tokio::select! {
        answered = upstream.sender.try_send_request(request) => match answered {
            Ok(response) => Ok((upstream, response)),
            Err(mut error) => {
                let unsent = error.take_message();
                let (status, flag) = if upload.failed() {
                    (StatusCode::BAD_REQUEST, Flag::BadRequest)
                } else {
                    (StatusCode::BAD_GATEWAY, Flag::UpstreamClosed)
                };
                Err(Trouble { status, flag, unsent })
            }
        },
        () = stalled => {
            let (status, flag) = if upload.waits_for_client() {
                (StatusCode::REQUEST_TIMEOUT, Flag::ClientTimeout)
            } else {
                (StatusCode::GATEWAY_TIMEOUT, Flag::UpstreamTimeout)
            };
            Err(Trouble { status, flag, unsent: None })
        }
    }
}

fn answer(
    shared: &Arc<Shared>,
    upstream: Upstream,
    response: Response<Incoming>,
    upload: Arc<Upload>,
    client_upgrade: Option<hyper::upgrade::OnUpgrade>,
    mut record: AccessRecord,
    in_flight: InFlight,
) -> Response<ResponseBody> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return upgrade::switch(shared, response, client_upgrade, record, in_flight);
    }
    record.status = Some(response.status());
    record.flag = Flag::Fine;
    let (mut head, body) = response.into_parts();
    prepare_response(&mut head.headers);
    head.version = Version::HTTP_11;
    head.extensions.clear();
    let body = UpstreamBody {
        body,
        connection: Some((Arc::clone(&shared.pool), upstream.key, upstream.sender)),
        upload,
        limit: shared.config.timeouts.server,
        wait: None,
        since: None,
    };
    Response::from_parts(head, ResponseBody::upstream(body, record, in_flight))
}

/// Path and query alone, as an origin server expects it.
fn origin_form(uri: &Uri) -> Uri {
    match uri.path_and_query() {
        Some(path) => Uri::from(path.clone()),
        None => Uri::from_static("/"),
    }
}

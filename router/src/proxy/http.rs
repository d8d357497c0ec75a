//! One request: what it is for, which route serves it, and the response.

pub mod body;
pub mod chunks;
pub mod forward;
pub mod gate;
pub mod grpc;
pub mod headers;
pub mod pages;
pub mod target;
pub mod upgrade;
pub mod upload;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Version, request};
use hyper::body::Incoming;
use router_common::hostname::normalise_authority;
use router_core::lookup::{RequestMatch, SniMatch};
use router_core::model::{Hostname, RouterName};
use router_core::policy::ClientAuth;
use router_core::table::ResolvedRoute;

use super::Shared;
use super::access::{AccessRecord, DataPath, Flag};
use super::certificates::same_certificate;
use super::clock::{ClientClock, InFlight};
use super::snapshot::ServedRouter;
use super::tls::client_certificate::ClientCertificate;
use body::ResponseBody;
use forward::{Destination, Failure};
use target::{Target, read_target};

/// What all requests of a connection have in common.
#[derive(Debug)]
pub struct Connection {
    /// Router that took it.
    pub router: RouterName,
    /// Who connected.
    pub client: SocketAddr,
    /// The address that was connected to.
    pub listener: SocketAddr,
    /// How TLS was terminated; `None` for clear text.
    pub tls: Option<ConnectionTls>,
    /// Tells the stream beneath what the service is doing.
    pub clock: Arc<ClientClock>,
}

/// TLS of a connection.
#[derive(Debug)]
pub struct ConnectionTls {
    /// The name that the client asked for.
    pub sni: Option<Hostname>,
    /// What was asked of its certificate.
    pub client_auth: Option<Arc<ClientAuth>>,
    /// The certificate that it has shown.
    pub client: Option<Arc<ClientCertificate>>,
    /// Whether its requests are served, by `client_auth`.
    pub admitted: bool,
}

/// What is decided about a request before it goes anywhere.
#[derive(Debug)]
enum Decision {
    Forward {
        route: Arc<ResolvedRoute>,
        authority: String,
        /// The kernel may carry such requests too, with the fields that they have.
        as_sent: bool,
    },
    Redirect {
        route: Arc<ResolvedRoute>,
        host: Hostname,
        https_port: Option<u16>,
    },
    /// `OPTIONS *`.
    Router,
    Refuse {
        status: StatusCode,
        flag: Flag,
        route: Option<Arc<ResolvedRoute>>,
    },
}

/// Answers one request. The routing table is the newest one, so that a change is effective on connections that were
/// there before it.
pub async fn handle(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Infallible> {
    let in_flight = connection.clock.request();
    let mut record = AccessRecord::new(
        connection.router.clone(),
        connection.client,
        connection.listener,
        DataPath::Proxy,
        Arc::clone(&shared.counters),
    );
    let (head, content) = request.into_parts();
    let show_cause = shared.config.show_cause;
    let own = OwnResponse {
        accept: accept_of(&head.headers),
        version: head.version,
        grpc: grpc::is_grpc(&head.headers),
        show_cause,
    };
    if let Some((status, _)) = connection.clock.refused() {
        // The stream has refused what the client sent; this request only stands for it.
        let flag = if status == StatusCode::REQUEST_TIMEOUT { Flag::ClientTimeout } else { Flag::BadRequest };
        return Ok(own.refuse(status, flag, record, in_flight));
    }
    record.method = Some(head.method.clone());
    record.path = Some(head.uri.path().to_owned());
    let response = match decide(&shared, &connection, &head, &mut record) {
        Decision::Refuse { status, flag, route } => {
            record.route = route;
            own.refuse(status, flag, record, in_flight)
        }
        Decision::Router => own.give(pages::empty(StatusCode::OK), Flag::Fine, record, in_flight),
        Decision::Redirect { route, host, https_port } => {
            record.route = Some(route);
            let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
            match pages::redirect(host.as_str(), https_port, path) {
                Some(redirect) => own.give(redirect, Flag::Fine, record, in_flight),
                None => own.refuse(StatusCode::BAD_REQUEST, Flag::BadRequest, record, in_flight),
            }
        }
        Decision::Forward { route, authority, as_sent } => {
            record.route = Some(Arc::clone(&route));
            let request = Request::from_parts(head, content);
            let destination = Destination { route: &route, authority: &authority, as_sent };
            let forwarded = forward::forward(&shared, &connection, &destination, request, record, in_flight);
            match forwarded.await {
                Ok(response) => response,
                Err(Failure { record, in_flight, .. }) if connection.clock.body_stalled() => {
                    own.refuse(StatusCode::REQUEST_TIMEOUT, Flag::ClientTimeout, *record, in_flight)
                }
                Err(Failure { status, flag, record, in_flight }) => own.refuse(status, flag, *record, in_flight),
            }
        }
    };
    Ok(response)
}

fn decide(shared: &Shared, connection: &Connection, head: &request::Parts, record: &mut AccessRecord) -> Decision {
    let refuse = |status, flag| Decision::Refuse { status, flag, route: None };
    let (host, authority) = match read_target(head) {
        Ok(Target::Resource { host, authority }) => (host, authority),
        Ok(Target::Router) => return Decision::Router,
        Err(error) => return refuse(error.status(), Flag::BadRequest),
    };
    record.host = Some(host.as_ref().map_or_else(|| authority.clone(), |host| host.as_str().to_owned()));
    let no_route = || refuse(StatusCode::SERVICE_UNAVAILABLE, Flag::NoRoute);
    let snapshot = shared.snapshot.load();
    let Some(router) = snapshot.routers.get(&connection.router) else { return no_route() };
    let path = head.uri.path();
    let found = match (&connection.tls, &host) {
        (Some(tls), _) if misdirected(router, tls, host.as_ref()) => {
            return refuse(StatusCode::MISDIRECTED_REQUEST, Flag::Misdirected);
        }
        (Some(ConnectionTls { admitted: false, .. }), _) => {
            return refuse(StatusCode::FORBIDDEN, Flag::ClientCertificate);
        }
        (_, None) => RequestMatch::NoRoute,
        (Some(_), Some(host)) => router.table.match_tls_request(host, path),
        (None, Some(host)) => router.table.match_cleartext_request(host, path),
    };
    let (route, redirect) = match found {
        RequestMatch::NoRoute => return no_route(),
        RequestMatch::Forward(route) => (Arc::clone(route), false),
        RequestMatch::RedirectToHttps(route) => (Arc::clone(route), true),
    };
    if !route.admits_source(connection.client.ip()) {
        let flag = Flag::SourceNotAllowed;
        return Decision::Refuse { status: StatusCode::FORBIDDEN, flag, route: Some(route) };
    }
    match host {
        Some(host) if redirect => {
            let https_port = names_listener(&authority, connection.listener).then_some(router.table.https_port);
            Decision::Redirect { route, host, https_port }
        }
        _ => {
            let as_sent = connection.tls.is_none() && is_steerable(router, &route);
            Decision::Forward { route, authority, as_sent }
        }
    }
}

/// Whether the kernel may carry the clear-text connections of the route's host.
fn is_steerable(router: &ServedRouter, route: &ResolvedRoute) -> bool {
    router.table.hosts.entry(&route.host).is_some_and(|host| host.steerable_cleartext().is_some())
}

/// Whether the client wrote the listener's own port: then no load balancer maps ports in between, and the HTTPS port
/// is reached as it is, too. Otherwise a redirect names none, as OpenShift's do (openshift.md a.9).
fn names_listener(authority: &str, listener: SocketAddr) -> bool {
    normalise_authority(authority.as_bytes()).is_ok_and(|(written, _)| written.port() == Some(listener.port()))
}

/// Whether a request came over a connection that was not made for its host: one that needs another certificate, or
/// is passed through; or when other client certificates have come to be asked for since. Without SNI the client has
/// chosen nothing, and Host decides (openshift.md b.7, decision 6).
fn misdirected(router: &ServedRouter, tls: &ConnectionTls, host: Option<&Hostname>) -> bool {
    let asks_the_same = router.tls.as_ref().is_some_and(|now| match (&now.client_auth, &tls.client_auth) {
        (None, None) => true,
        (Some(now), Some(then)) => Arc::ptr_eq(now, then),
        _ => false,
    });
    if !asks_the_same || matches!(router.table.match_sni(host), SniMatch::Passthrough(_)) {
        return true;
    }
    let Some(sni) = tls.sni.as_ref().filter(|sni| Some(*sni) != host) else { return false };
    match (router.certificate(Some(sni)), router.certificate(host)) {
        (Some(shown), Some(needed)) => !same_certificate(shown, needed),
        _ => false,
    }
}

/// How to phrase a response that the router makes itself.
struct OwnResponse {
    accept: HeaderMap,
    version: Version,
    grpc: bool,
    show_cause: bool,
}

impl OwnResponse {
    fn refuse(
        &self,
        status: StatusCode,
        flag: Flag,
        record: AccessRecord,
        in_flight: InFlight,
    ) -> Response<ResponseBody> {
        let page = || pages::error(status, flag, &self.accept, self.show_cause);
        let answer = if self.grpc { grpc::error(status).unwrap_or_else(page) } else { page() };
        self.give(answer, flag, record, in_flight)
    }

    fn give(
        &self,
        mut response: Response<Bytes>,
        flag: Flag,
        mut record: AccessRecord,
        in_flight: InFlight,
    ) -> Response<ResponseBody> {
        if self.version == Version::HTTP_2 {
            // No connection fields in HTTP/2 (RFC 9113 §8.2.2).
            response.headers_mut().remove(http::header::CONNECTION);
        }
        record.flag = flag;
        record.status = Some(response.status());
        response.map(|content| ResponseBody::own(content, record, in_flight))
    }
}

fn accept_of(headers: &HeaderMap) -> HeaderMap {
    let values = headers.get_all(http::header::ACCEPT);
    values.iter().map(|value| (http::header::ACCEPT, value.clone())).collect()
}

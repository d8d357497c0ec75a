//! What becomes of a request: which route serves it, or what it is told instead (openshift.md b.7).

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderValue, StatusCode, request};
use router_common::hostname::normalise_authority;
use router_core::lookup::{RequestMatch, SniMatch};
use router_core::model::Hostname;
use router_core::table::ResolvedRoute;

use super::target::{Target, read_target};
use super::{Connection, ConnectionTls};
use crate::proxy::access::{AccessRecord, Flag};
use crate::proxy::certificates::same_certificate;
use crate::proxy::snapshot::ServedRouter;

/// What is decided about a request before it goes anywhere.
#[derive(Debug)]
pub enum Decision {
    /// It goes to an endpoint of this route.
    Forward {
        /// The route.
        route: Arc<ResolvedRoute>,
        /// Host and port as the client wrote them.
        authority: HeaderValue,
        /// The kernel may carry such requests too, with the fields that they have.
        as_sent: bool,
    },
    /// The client is sent to https.
    Redirect {
        /// The route.
        route: Arc<ResolvedRoute>,
        /// The host.
        host: Hostname,
        /// The port, when the client is to be told of one.
        https_port: Option<u16>,
    },
    /// `OPTIONS *`.
    Router,
    /// The router answers by itself.
    Refuse {
        /// The response's status.
        status: StatusCode,
        /// Why.
        flag: Flag,
        /// The route, if one was found.
        route: Option<Arc<ResolvedRoute>>,
    },
}

/// Decides about a request by the router's newest table.
pub fn decide(
    router: &ServedRouter,
    connection: &Connection,
    head: &request::Parts,
    record: &mut AccessRecord,
) -> Decision {
    let refuse = |status, flag| Decision::Refuse { status, flag, route: None };
    let (host, authority) = match read_target(head, &connection.first_host) {
        Ok(Target::Resource { host, authority }) => (host, authority),
        Ok(Target::Router) => return Decision::Router,
        Err(error) => return refuse(error.status(), Flag::BadRequest),
    };
    if record.is_wanted() {
        record.host = Some(host.as_ref().map_or_else(|| written(&authority), |host| host.as_str().to_owned()));
    }
    let no_route = || refuse(StatusCode::SERVICE_UNAVAILABLE, Flag::NoRoute);
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
            let https_port = router.table.https_port.filter(|_| names_listener(&authority, connection.listener));
            Decision::Redirect { route, host, https_port }
        }
        _ => {
            let as_sent = connection.tls.is_none() && is_steerable(router, &route);
            Decision::Forward { route, authority, as_sent }
        }
    }
}

/// Whether the kernel may carry the clear-text connections of the route's host. For nearly all routes that is known
/// without looking the host up again.
fn is_steerable(router: &ServedRouter, route: &ResolvedRoute) -> bool {
    let host = || router.table.hosts.entry(&route.host);
    route.is_left_alone() && host().is_some_and(|host| host.steerable_cleartext().is_some())
}

/// Whether the client wrote the listener's own port: then no load balancer maps ports in between, and the HTTPS port
/// is reached as it is, too. Otherwise a redirect names none, as OpenShift's do (openshift.md a.9).
fn names_listener(authority: &HeaderValue, listener: SocketAddr) -> bool {
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

/// An authority, which is ASCII, as text.
fn written(authority: &HeaderValue) -> String {
    String::from_utf8_lossy(authority.as_bytes()).into_owned()
}

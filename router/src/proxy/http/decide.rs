//! What becomes of a request: which route or rule serves it, or what it is told instead (openshift.md b.7,
//! gateway-api.md).

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderValue, StatusCode, request};
use router_common::hostname::normalise_authority;
use router_core::lookup::{RequestMatch, SniMatch};
use router_core::model::Hostname;
use router_core::parse::TlsVersion;
use router_core::rule::{Action, Rule, Site};
use router_core::table::{ResolvedRoute, RouterTable};

use super::asked::{Asked, AskedPath};
use super::cors;
use super::paths::rewritten;
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
        /// The rule that it is of, if it is no Route.
        rule: Option<Arc<Rule>>,
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
    /// The rule sends the client elsewhere.
    RuleRedirect {
        /// The rule, whose action is a redirect.
        rule: Arc<Rule>,
        /// Host and port as the client wrote them.
        authority: HeaderValue,
    },
    /// A browser asks what another site's page may do; the rule's `CORS` filter knows.
    Preflight(Arc<Rule>),
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

/// Decides about a request by the router's newest table. Where its path was compared in another form than it was sent in,
/// it has that form from then on.
pub fn decide(
    router: &ServedRouter,
    connection: &Connection,
    head: &mut request::Parts,
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
    if let Some(tls) = &connection.tls
        && misdirected(router, tls, host.as_deref())
    {
        return refuse(StatusCode::MISDIRECTED_REQUEST, Flag::Misdirected);
    }
    let path = AskedPath::new(head.uri.path());
    let asked = Asked::new(head, &authority, &path);
    let found = find(&router.table, connection, host.as_deref(), &asked);
    match (&found, &connection.tls) {
        (RequestMatch::PassedThrough, _) => return refuse(StatusCode::MISDIRECTED_REQUEST, Flag::Misdirected),
        (_, Some(ConnectionTls { admitted: false, .. })) => {
            return refuse(StatusCode::FORBIDDEN, Flag::ClientCertificate);
        }
        _ => {}
    }
    if let Some(method) = cors::preflight(head) {
        // The rule that would have the request that is asked about.
        let about = find(&router.table, connection, host.as_deref(), &asked.with_method(method));
        if let RequestMatch::Rule(rule) = about
            && rule.route.admits_source(connection.client.ip())
            && rule.route.rule.as_ref().is_some_and(|policy| policy.cors.is_some())
        {
            return Decision::Preflight(Arc::clone(rule));
        }
    }
    let (route, rule, redirect) = match found {
        RequestMatch::Closed => return refuse(StatusCode::NOT_FOUND, Flag::NoRule),
        RequestMatch::NoRoute | RequestMatch::PassedThrough => {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, Flag::NoRoute);
        }
        RequestMatch::Forward(route) => (route, None, false),
        RequestMatch::Rule(rule) => (&rule.route, Some(rule), false),
        RequestMatch::RedirectToHttps(route) => (route, None, true),
    };
    let route = Arc::clone(route);
    let form = rule.map_or(router.table.policy.path_form, |rule| rule.path_form);
    if let Some(path) = path.changed(form) {
        match rewritten(&head.uri, path) {
            Some(uri) => head.uri = uri,
            // With its escapes it is longer than a URI can be.
            None => return refuse(StatusCode::URI_TOO_LONG, Flag::BadRequest),
        }
    }
    if !route.admits_source(connection.client.ip()) {
        let flag = Flag::SourceNotAllowed;
        return Decision::Refuse { status: StatusCode::FORBIDDEN, flag, route: Some(route) };
    }
    if let Some(rule) = rule {
        return act(rule, authority);
    }
    match host {
        Some(host) if redirect => {
            let https_port = router.table.https_port.filter(|_| names_listener(&authority, connection.listener));
            Decision::Redirect { route, host: host.into_owned(), https_port }
        }
        _ => {
            let as_sent = connection.tls.is_none() && is_steerable(router, &route);
            Decision::Forward { route, rule: None, authority, as_sent }
        }
    }
}

/// Looks a request up. Where nobody has its host, a connection that was made for a site is told so as sites do: the site's
/// listener does not have the host, and no other has (Gateway API, Listener.hostname).
fn find<'t>(
    table: &'t RouterTable,
    connection: &Connection,
    host: Option<&Hostname>,
    asked: &Asked<'_>,
) -> RequestMatch<'t> {
    let Some(tls) = &connection.tls else { return table.match_cleartext_request(host, asked) };
    match table.match_tls_request(host, asked) {
        RequestMatch::NoRoute if tls.sni.is_some() && site_of(&table.match_sni(tls.sni.as_ref())).is_some() => {
            RequestMatch::Closed
        }
        found => found,
    }
}

/// What a rule does with its requests.
fn act(rule: &Arc<Rule>, authority: HeaderValue) -> Decision {
    let (rule, route) = (Arc::clone(rule), Arc::clone(&rule.route));
    match route.rule.as_ref().map(|policy| &policy.action) {
        None | Some(Action::Forward) => Decision::Forward { route, rule: Some(rule), authority, as_sent: false },
        Some(Action::Redirect(_)) => Decision::RuleRedirect { rule, authority },
        Some(Action::Answer(status)) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Decision::Refuse { status, flag: Flag::RuleAnswer, route: Some(route) }
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

/// Whether a request came over a connection that was not made for its host: one that needs another certificate or is of
/// another listener; or when other client certificates have come to be asked for since. Without SNI the client has
/// chosen nothing, and Host decides (openshift.md b.7, decision 6).
fn misdirected(router: &ServedRouter, tls: &ConnectionTls, host: Option<&Hostname>) -> bool {
    let asks_the_same = router.tls.as_ref().is_some_and(|now| match (&now.client_auth, &tls.client_auth) {
        (None, None) => true,
        (Some(now), Some(then)) => Arc::ptr_eq(now, then),
        _ => false,
    });
    if !asks_the_same {
        return true;
    }
    // By another SNI, or none, nobody gets below the version that a site asks for.
    if !tls.is_newest && site_of(&router.table.match_sni(host)).is_some_and(asks_for_newest) {
        return true;
    }
    let Some(sni) = tls.sni.as_ref().filter(|sni| Some(*sni) != host) else { return false };
    let (shown, needed) = (router.table.match_sni(Some(sni)), router.table.match_sni(host));
    match (site_of(&shown), site_of(&needed)) {
        (Some(shown), Some(needed)) => shown.listener != needed.listener,
        // Nobody has the host: 404.
        (Some(_), None) => !matches!(needed, SniMatch::Default),
        (None, Some(_)) => true,
        (None, None) => match (router.certificate(&shown), router.certificate(&needed)) {
            (Some(shown), Some(needed)) => !same_certificate(shown, needed),
            _ => false,
        },
    }
}

/// Whether a site is for connections of TLS 1.3 alone.
fn asks_for_newest(site: &Site) -> bool {
    site.tls.as_ref().and_then(|tls| tls.minimum).is_some_and(|minimum| minimum >= TlsVersion::Tls13)
}

/// The site that terminates a connection.
fn site_of<'t>(found: &SniMatch<'t>) -> Option<&'t Site> {
    match found {
        SniMatch::Terminate(host) => host.site.as_deref(),
        SniMatch::Passthrough(_) | SniMatch::Default => None,
    }
}

/// An authority, which is ASCII, as text.
fn written(authority: &HeaderValue) -> String {
    String::from_utf8_lossy(authority.as_bytes()).into_owned()
}

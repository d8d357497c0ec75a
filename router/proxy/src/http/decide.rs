//! Decides how a request is handled: which route or rule serves it, or which response the router sends itself
//! (docs/openshift.md#matching, docs/gateway-api.md#which-rule-serves).

use std::sync::Arc;

use http::{HeaderValue, StatusCode, request};
use router_access_log::Flag;
use router_model::names::Hostname;
use router_table::decide;
use router_table::decide::{Via, ViaTls};
use router_table::location::mapped_port;
use router_table::rule::Rule;
use router_table::table::ResolvedRoute;

use super::connection::{Connection, ConnectionTls};
use super::target::{RequestTarget, read_target};
use crate::access_record::AccessRecord;
use crate::http::path_rewrite::rewritten;
use crate::http::request_view::{RequestPath, RequestView};
use crate::serving_table::ServedRouter;

/// How a request is handled.
#[derive(Debug)]
pub enum RequestAction {
    /// Forward it to an endpoint of this route.
    Forward {
        /// The route.
        route: Arc<ResolvedRoute>,
        /// The matching rule; `None` for a Route.
        rule: Option<Arc<Rule>>,
        /// Host and port as sent.
        authority: HeaderValue,
        /// Whether to keep the fields as sent, because the kernel may carry such requests unchanged.
        as_sent: bool,
    },
    /// Redirect to https.
    Redirect {
        /// The route.
        route: Arc<ResolvedRoute>,
        /// The host.
        host: Hostname,
        /// Port for the redirect, unless it is the default.
        https_port: Option<u16>,
    },
    /// Redirect by a rule.
    RuleRedirect {
        /// The rule with the redirect.
        rule: Arc<Rule>,
        /// Host and port as sent.
        authority: HeaderValue,
    },
    /// Answer a CORS preflight by the rule's `CORS` filter.
    Preflight(Arc<Rule>),
    /// `OPTIONS *`.
    Router,
    /// Send an error response.
    Refuse {
        /// Status of the response.
        status: StatusCode,
        /// Cause, for the access log.
        flag: Flag,
        /// The route, if one matched.
        route: Option<Arc<ResolvedRoute>>,
    },
}

/// Decides by the router's newest table. Replaces the request's path by its normalized form, if the matching used that.
pub fn decide(
    router: &ServedRouter,
    connection: &Connection,
    head: &mut request::Parts,
    record: &mut AccessRecord,
) -> RequestAction {
    let refuse = |status, flag| RequestAction::Refuse { status, flag, route: None };
    let (host, authority) = match read_target(head, &connection.first_host) {
        Ok(RequestTarget::Resource { host, authority }) => (host, authority),
        Ok(RequestTarget::Router) => return RequestAction::Router,
        Err(error) => return refuse(error.status(), Flag::BadRequest),
    };
    if record.is_wanted() {
        record.host = Some(host.as_ref().map_or_else(|| written(&authority), |host| host.as_str().to_owned()));
    }
    let tls = connection.tls.as_ref().map(|tls| ViaTls {
        sni: tls.sni.as_ref(),
        has_same_client_policy: has_same_client_policy(router, tls),
        admitted: tls.admitted,
        is_newest: tls.is_newest,
    });
    let via = Via { client: Some(connection.client.ip()), tls };
    let path = RequestPath::new(head.uri.path());
    let decision = decide::decide(&router.table, &via, host.as_deref(), &RequestView::new(head, &authority, &path));
    if let Some(path) = path.changed(decision.path_form(&router.table)) {
        match rewritten(&head.uri, path) {
            Some(uri) => head.uri = uri,
            // With its escapes it exceeds the longest URI.
            None => return refuse(StatusCode::URI_TOO_LONG, Flag::BadRequest),
        }
    }
    match decision {
        decide::RequestDecision::Forward { route, rule } => RequestAction::Forward {
            route: Arc::clone(route),
            rule: rule.map(Arc::clone),
            authority,
            as_sent: rule.is_none() && connection.tls.is_none() && is_steerable(router, route),
        },
        decide::RequestDecision::RedirectToHttps(route) => match host {
            Some(host) => {
                let written = authority.to_str().unwrap_or_default();
                let https_port = mapped_port(written, connection.listener.port(), router.table.https_port);
                RequestAction::Redirect { route: Arc::clone(route), host: host.into_owned(), https_port }
            }
            // No Route has an address as its host.
            None => refuse(StatusCode::SERVICE_UNAVAILABLE, Flag::NoRoute),
        },
        decide::RequestDecision::RuleRedirect { rule, .. } => {
            RequestAction::RuleRedirect { rule: Arc::clone(rule), authority }
        }
        decide::RequestDecision::Preflight(rule) => RequestAction::Preflight(Arc::clone(rule)),
        decide::RequestDecision::Refuse { status, flag, route, .. } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            RequestAction::Refuse { status, flag, route: route.map(Arc::clone) }
        }
    }
}

/// Whether the kernel may carry clear-text connections of the route's host. For nearly all routes this is known without
/// another look-up.
fn is_steerable(router: &ServedRouter, route: &ResolvedRoute) -> bool {
    let host = || router.table.hosts.entry(&route.host);
    route.is_left_alone() && host().is_some_and(|host| host.steerable_cleartext().is_some())
}

/// Whether the client certificate policy is still that of the connection's handshake.
fn has_same_client_policy(router: &ServedRouter, tls: &ConnectionTls) -> bool {
    router.tls.as_ref().is_some_and(|now| match (&now.client_auth, &tls.client_auth) {
        (None, None) => true,
        (Some(now), Some(then)) => Arc::ptr_eq(now, then),
        _ => false,
    })
}

/// An authority, which is ASCII, as text.
fn written(authority: &HeaderValue) -> String {
    String::from_utf8_lossy(authority.as_bytes()).into_owned()
}

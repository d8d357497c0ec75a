//! What becomes of a request: which route or rule serves it, or what it is told instead (docs/openshift.md#matching,
//! docs/gateway-api.md#which-rule-serves).

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
use super::target::{Target, read_target};
use crate::http::path_rewrite::rewritten;
use crate::http::request_view::{AskedPath, RequestView};
use crate::record::AccessRecord;
use crate::snapshot::ServedRouter;

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
    let tls = connection.tls.as_ref().map(|tls| ViaTls {
        sni: tls.sni.as_ref(),
        asks_the_same: asks_the_same(router, tls),
        admitted: tls.admitted,
        is_newest: tls.is_newest,
    });
    let via = Via { client: Some(connection.client.ip()), tls };
    let path = AskedPath::new(head.uri.path());
    let decision = decide::decide(&router.table, &via, host.as_deref(), &RequestView::new(head, &authority, &path));
    if let Some(path) = path.changed(decision.path_form(&router.table)) {
        match rewritten(&head.uri, path) {
            Some(uri) => head.uri = uri,
            // With its escapes it is longer than a URI can be.
            None => return refuse(StatusCode::URI_TOO_LONG, Flag::BadRequest),
        }
    }
    match decision {
        decide::Decision::Forward { route, rule } => Decision::Forward {
            route: Arc::clone(route),
            rule: rule.map(Arc::clone),
            authority,
            as_sent: rule.is_none() && connection.tls.is_none() && is_steerable(router, route),
        },
        decide::Decision::RedirectToHttps(route) => match host {
            Some(host) => {
                let written = authority.to_str().unwrap_or_default();
                let https_port = mapped_port(written, connection.listener.port(), router.table.https_port);
                Decision::Redirect { route: Arc::clone(route), host: host.into_owned(), https_port }
            }
            // No Route has an address.
            None => refuse(StatusCode::SERVICE_UNAVAILABLE, Flag::NoRoute),
        },
        decide::Decision::RuleRedirect { rule, .. } => Decision::RuleRedirect { rule: Arc::clone(rule), authority },
        decide::Decision::Preflight(rule) => Decision::Preflight(Arc::clone(rule)),
        decide::Decision::Refuse { status, flag, route, .. } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Decision::Refuse { status, flag, route: route.map(Arc::clone) }
        }
    }
}

/// Whether the kernel may carry the clear-text connections of the route's host. For nearly all routes that is known
/// without looking the host up again.
fn is_steerable(router: &ServedRouter, route: &ResolvedRoute) -> bool {
    let host = || router.table.hosts.entry(&route.host);
    route.is_left_alone() && host().is_some_and(|host| host.steerable_cleartext().is_some())
}

/// Whether clients are still asked for the certificates that a connection's client was asked for.
fn asks_the_same(router: &ServedRouter, tls: &ConnectionTls) -> bool {
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

//! The decision about a request before it is forwarded: the route or rule that serves it, or the response of the router
//! itself (docs/openshift.md#matching, docs/gateway-api.md#which-rule-serves). The proxy decides each request with it,
//! `explain` the request in question.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use router_model::names::Hostname;

use crate::flag::Flag;
use crate::lookup::{Request, RequestMatch, SniMatch};
use crate::path_form::PathForm;
use crate::policy::tls_profile::TlsVersion;
use crate::rule::{Action, HostRules, RedirectTo, Rule};
use crate::table::{ResolvedRoute, RouterTable};

/// The properties of a request's connection that affect the decision.
#[derive(Clone, Copy, Debug)]
pub struct Via<'c> {
    /// The client's address; `None`: an address that every allow-list admits.
    pub client: Option<IpAddr>,
    /// How TLS was terminated; `None` for clear text.
    pub tls: Option<ViaTls<'c>>,
}

/// TLS of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ViaTls<'c> {
    /// The SNI of the handshake.
    pub sni: Option<&'c Hostname>,
    /// Whether the router's client certificate settings are those of the handshake.
    pub has_same_client_policy: bool,
    /// Whether the client's certificate, or its absence, is accepted.
    pub admitted: bool,
    /// Whether the version is TLS 1.3, the newest one.
    pub is_newest: bool,
}

/// The decision about a request.
#[derive(Clone, Copy, Debug)]
pub enum RequestDecision<'t> {
    /// Forwarded to an endpoint of this route.
    Forward {
        /// The route.
        route: &'t Arc<ResolvedRoute>,
        /// The route's rule; `None` for a Route.
        rule: Option<&'t Arc<Rule>>,
    },
    /// Redirected to https.
    RedirectToHttps(&'t Arc<ResolvedRoute>),
    /// Redirected by the rule.
    RuleRedirect {
        /// The rule.
        rule: &'t Arc<Rule>,
        /// The target.
        to: &'t RedirectTo,
    },
    /// A CORS preflight request; the rule's `CORS` filter answers it.
    Preflight(&'t Arc<Rule>),
    /// Answered by the router.
    Refuse {
        /// Status of the response.
        status: u16,
        /// The cause.
        flag: Flag,
        /// The route, if one was found.
        route: Option<&'t Arc<ResolvedRoute>>,
        /// The route's rule; `None` for a Route.
        rule: Option<&'t Arc<Rule>>,
    },
}

impl RequestDecision<'_> {
    /// The path form that applies to the request from here on.
    pub fn path_form(&self, router: &RouterTable) -> PathForm {
        let of = |rule: Option<&Arc<Rule>>| rule.map_or(router.policy.path_form, |rule| rule.path_form);
        match *self {
            RequestDecision::Forward { rule, .. } | RequestDecision::Refuse { route: Some(_), rule, .. } => of(rule),
            RequestDecision::RedirectToHttps(_) => of(None),
            RequestDecision::RuleRedirect { rule, .. } | RequestDecision::Preflight(rule) => of(Some(rule)),
            RequestDecision::Refuse { route: None, .. } => PathForm::AsSent,
        }
    }
}

/// Whether requests with this method are routed. TRACE and CONNECT are not meant for a reverse proxy, except CONNECT
/// for WebSocket over HTTP/2 (RFC 8441).
pub fn method_is_routed(method: &str) -> bool {
    !matches!(method, "TRACE" | "CONNECT")
}

/// Whether a target can be routed. Paths are compared byte by byte and forwarded unmodified. Raw non-ASCII bytes, also
/// in a query, and an encoded NUL are rejected, because implementations interpret them differently.
pub fn target_is_valid(path: &str, query: Option<&str>) -> bool {
    path.starts_with('/') && path.is_ascii() && !path.contains("%00") && query.is_none_or(str::is_ascii)
}

/// Whether this content type is that of gRPC: `application/grpc`, with an optional encoding or parameters. gRPC-Web is
/// another protocol. The router's own responses to gRPC requests have status 200 and a `grpc-status`.
pub fn type_is_grpc(content_type: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let parts = content_type.split_at_checked(GRPC.len());
    parts.is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(GRPC) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
    })
}

/// Whether a status can be expressed as `grpc-status`. 421 cannot: only over HTTP does it make a client retry over
/// another connection.
pub const fn grpc_has_words_for(status: u16) -> bool {
    status != 421
}

/// Decides a request for a host; `None` for an IP address, which no host name covers.
pub fn decide<'t>(
    router: &'t RouterTable,
    via: &Via<'_>,
    host: Option<&Hostname>,
    request: &(impl Request + ?Sized),
) -> RequestDecision<'t> {
    let refuse = |status, flag| RequestDecision::Refuse { status, flag, route: None, rule: None };
    if let Some(tls) = &via.tls
        && is_misdirected(router, tls, host)
    {
        return refuse(421, Flag::Misdirected);
    }
    let found = find(router, via, host, request);
    match (&found, &via.tls) {
        (RequestMatch::PassedThrough, _) => return refuse(421, Flag::Misdirected),
        (_, Some(ViaTls { admitted: false, .. })) => return refuse(403, Flag::ClientCertificate),
        _ => {}
    }
    let lets_in = |route: &ResolvedRoute| via.client.is_none_or(|client| route.admits_source(client));
    if let Some(method) = preflight(request).as_deref() {
        // The rule for the request that the preflight announces.
        let about = find(router, via, host, &WithMethod { request, method });
        if let RequestMatch::Rule(rule) = about
            && lets_in(&rule.route)
            && rule.route.rule.as_ref().is_some_and(|policy| policy.cors.is_some())
        {
            return RequestDecision::Preflight(rule);
        }
    }
    let (route, rule, redirect) = match found {
        RequestMatch::Closed => return refuse(404, Flag::NoRule),
        RequestMatch::NoRoute | RequestMatch::PassedThrough => return refuse(503, Flag::NoRoute),
        RequestMatch::Forward(route) => (route, None, false),
        RequestMatch::Rule(rule) => (&rule.route, Some(rule), false),
        RequestMatch::RedirectToHttps(route) => (route, None, true),
    };
    if !lets_in(route) {
        return RequestDecision::Refuse { status: 403, flag: Flag::SourceNotAllowed, route: Some(route), rule };
    }
    match (rule, route.rule.as_ref().map(|policy| &policy.action)) {
        (Some(rule), Some(Action::Redirect(to))) => RequestDecision::RuleRedirect { rule, to },
        (Some(_), Some(Action::Answer(status) | Action::Direct(status))) => {
            RequestDecision::Refuse { status: *status, flag: Flag::RuleAnswer, route: Some(route), rule }
        }
        _ if redirect => RequestDecision::RedirectToHttps(route),
        _ => RequestDecision::Forward { route, rule },
    }
}

/// Finds the route or rule of a request. An unclaimed host on a connection that terminated at a host with rules is not
/// found (404): it does not belong to that host's listener, nor to another one (Gateway API, Listener.hostname).
fn find<'t>(
    table: &'t RouterTable,
    via: &Via<'_>,
    host: Option<&Hostname>,
    request: &(impl Request + ?Sized),
) -> RequestMatch<'t> {
    let Some(tls) = &via.tls else { return table.match_cleartext_request(host, request) };
    match table.match_tls_request(host, request) {
        RequestMatch::NoRoute if tls.sni.is_some() && rules_of(&table.match_sni(tls.sni)).is_some() => {
            RequestMatch::Closed
        }
        found => found,
    }
}

/// The method that a preflight request announces; `None` for any other request (Fetch, 3.2.2: `OPTIONS` with `Origin`
/// and `Access-Control-Request-Method`).
fn preflight(request: &(impl Request + ?Sized)) -> Option<String> {
    if request.method() != "OPTIONS" {
        return None;
    }
    let method = request.header("access-control-request-method").filter(|_| request.header("origin").is_some());
    String::from_utf8(method?.into_owned()).ok()
}

/// A request with its method replaced.
struct WithMethod<'r, R: ?Sized> {
    request: &'r R,
    method: &'r str,
}

impl<R: Request + ?Sized> Request for WithMethod<'_, R> {
    fn path_in(&self, form: PathForm) -> Cow<'_, str> {
        self.request.path_in(form)
    }

    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        self.request.path()
    }

    fn query(&self) -> Option<&str> {
        self.request.query()
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.request.header(name)
    }
}

/// Whether a request's connection is not valid for its host: the host needs another certificate or belongs to another
/// listener, or the client certificate settings have changed since the handshake. A client without SNI has selected
/// nothing, so Host decides (docs/openshift.md#http2).
fn is_misdirected(router: &RouterTable, tls: &ViaTls<'_>, host: Option<&Hostname>) -> bool {
    if !tls.has_same_client_policy {
        return true;
    }
    // A host's minimum version also applies to connections with another SNI or none.
    if !tls.is_newest && rules_of(&router.match_sni(host)).is_some_and(requires_newest) {
        return true;
    }
    let Some(sni) = tls.sni.filter(|sni| Some(*sni) != host) else { return false };
    let (shown, needed) = (router.match_sni(Some(sni)), router.match_sni(host));
    match (rules_of(&shown), rules_of(&needed)) {
        (Some(shown), Some(needed)) => shown.listener != needed.listener,
        // The host is unclaimed: 404.
        (Some(_), None) => !matches!(needed, SniMatch::Default),
        (None, Some(_)) => true,
        // If two names share a certificate, a client may use one connection for both. `None`: the self-signed
        // certificate.
        (None, None) => shown.certificate(router) != needed.certificate(router),
    }
}

/// Whether a host requires TLS 1.3.
fn requires_newest(host_rules: &HostRules) -> bool {
    host_rules.tls.as_ref().and_then(|tls| tls.minimum).is_some_and(|minimum| minimum >= TlsVersion::Tls13)
}

/// The host rules that terminate a connection.
fn rules_of<'t>(found: &SniMatch<'t>) -> Option<&'t HostRules> {
    match found {
        SniMatch::Terminate(host) => host.rules.as_deref(),
        SniMatch::Passthrough(_) | SniMatch::Default => None,
    }
}

#[cfg(test)]
mod tests;

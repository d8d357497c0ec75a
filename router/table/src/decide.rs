//! What becomes of a request before it goes anywhere: which route or rule serves it, or what its client gets instead
//! (docs/openshift.md#matching, docs/gateway-api.md#which-rule-serves). The proxy asks this for each request, `explain`
//! for the request of its question.

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

/// The connection of a request, as far as it decides anything.
#[derive(Clone, Copy, Debug)]
pub struct Via<'c> {
    /// The client's address; `None`: one that every allow-list lets in.
    pub client: Option<IpAddr>,
    /// How TLS was terminated; `None` for clear text.
    pub tls: Option<ViaTls<'c>>,
}

/// TLS of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ViaTls<'c> {
    /// The name that the client asked for.
    pub sni: Option<&'c Hostname>,
    /// Whether clients are still asked for the certificates that were asked for in the handshake.
    pub asks_the_same: bool,
    /// Whether the client's certificate, or the lack of one, lets its requests in.
    pub admitted: bool,
    /// Whether it speaks TLS 1.3, the newest version.
    pub is_newest: bool,
}

/// What is decided about a request.
#[derive(Clone, Copy, Debug)]
pub enum Decision<'t> {
    /// It goes to an endpoint of this route.
    Forward {
        /// The route.
        route: &'t Arc<ResolvedRoute>,
        /// The rule that it is of, if it is no Route.
        rule: Option<&'t Arc<Rule>>,
    },
    /// The client is sent to https.
    RedirectToHttps(&'t Arc<ResolvedRoute>),
    /// The rule sends the client elsewhere.
    RuleRedirect {
        /// The rule.
        rule: &'t Arc<Rule>,
        /// Where.
        to: &'t RedirectTo,
    },
    /// A browser asks what another site's page may do; the rule's `CORS` filter knows.
    Preflight(&'t Arc<Rule>),
    /// The router answers by itself.
    Refuse {
        /// The response's status.
        status: u16,
        /// Why.
        flag: Flag,
        /// The route, if one was found.
        route: Option<&'t Arc<ResolvedRoute>>,
        /// The rule that it is of, if it is no Route.
        rule: Option<&'t Arc<Rule>>,
    },
}

impl Decision<'_> {
    /// The form of its path that the request has from then on.
    pub fn path_form(&self, router: &RouterTable) -> PathForm {
        let of = |rule: Option<&Arc<Rule>>| rule.map_or(router.policy.path_form, |rule| rule.path_form);
        match *self {
            Decision::Forward { rule, .. } | Decision::Refuse { route: Some(_), rule, .. } => of(rule),
            Decision::RedirectToHttps(_) => of(None),
            Decision::RuleRedirect { rule, .. } | Decision::Preflight(rule) => of(Some(rule)),
            Decision::Refuse { route: None, .. } => PathForm::AsSent,
        }
    }
}

/// Whether requests of a method are routed at all. TRACE is not for a reverse proxy, nor is CONNECT, but for a WebSocket
/// over HTTP/2 (RFC 8441).
pub fn method_is_routed(method: &str) -> bool {
    !matches!(method, "TRACE" | "CONNECT")
}

/// Whether a target can be routed. Paths are compared byte by byte and passed on as they are; raw non-ASCII bytes, which
/// no query may have either, and an encoded NUL are where readers begin to differ.
pub fn target_is_valid(path: &str, query: Option<&str>) -> bool {
    path.starts_with('/') && path.is_ascii() && !path.contains("%00") && query.is_none_or(str::is_ascii)
}

/// Whether a request with content of this type is one of gRPC: `application/grpc`, which may name an encoding or have
/// parameters. gRPC-Web is another protocol. The router's own answers to it have status 200, and a `grpc-status`.
pub fn type_is_grpc(content_type: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let parts = content_type.split_at_checked(GRPC.len());
    parts.is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(GRPC) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
    })
}

/// Whether a gRPC client can be told a status in `grpc-status`; 421 only HTTP has words for, after which a client may ask
/// again over another connection.
pub const fn grpc_has_words_for(status: u16) -> bool {
    status != 421
}

/// Decides about a request for a host; `None` for an address, which no name covers.
pub fn decide<'t>(
    router: &'t RouterTable,
    via: &Via<'_>,
    host: Option<&Hostname>,
    request: &(impl Request + ?Sized),
) -> Decision<'t> {
    let refuse = |status, flag| Decision::Refuse { status, flag, route: None, rule: None };
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
        // The rule that would have the request that is asked about.
        let about = find(router, via, host, &WithMethod { request, method });
        if let RequestMatch::Rule(rule) = about
            && lets_in(&rule.route)
            && rule.route.rule.as_ref().is_some_and(|policy| policy.cors.is_some())
        {
            return Decision::Preflight(rule);
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
        return Decision::Refuse { status: 403, flag: Flag::SourceNotAllowed, route: Some(route), rule };
    }
    match (rule, route.rule.as_ref().map(|policy| &policy.action)) {
        (Some(rule), Some(Action::Redirect(to))) => Decision::RuleRedirect { rule, to },
        (Some(_), Some(Action::Answer(status) | Action::Direct(status))) => {
            Decision::Refuse { status: *status, flag: Flag::RuleAnswer, route: Some(route), rule }
        }
        _ if redirect => Decision::RedirectToHttps(route),
        _ => Decision::Forward { route, rule },
    }
}

/// Looks a request up. Where nobody has its host, a connection that was made for a site is told so as sites do: the site's
/// listener does not have the host, and no other has (Gateway API, Listener.hostname).
fn find<'t>(
    table: &'t RouterTable,
    via: &Via<'_>,
    host: Option<&Hostname>,
    request: &(impl Request + ?Sized),
) -> RequestMatch<'t> {
    let Some(tls) = &via.tls else { return table.match_cleartext_request(host, request) };
    match table.match_tls_request(host, request) {
        RequestMatch::NoRoute if tls.sni.is_some() && site_of(&table.match_sni(tls.sni)).is_some() => {
            RequestMatch::Closed
        }
        found => found,
    }
}

/// The method that a preflight request asks about; `None` for any other request (Fetch, 3.2.2: `OPTIONS` with `Origin`
/// and `Access-Control-Request-Method`).
fn preflight(request: &(impl Request + ?Sized)) -> Option<String> {
    if request.method() != "OPTIONS" {
        return None;
    }
    let method = request.header("access-control-request-method").filter(|_| request.header("origin").is_some());
    String::from_utf8(method?.into_owned()).ok()
}

/// A request with another method.
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

/// Whether a request came over a connection that was not made for its host: one that needs another certificate or is of
/// another listener; or when other client certificates have come to be asked for since. Without SNI the client has
/// chosen nothing, and Host decides (docs/openshift.md#http2).
fn is_misdirected(router: &RouterTable, tls: &ViaTls<'_>, host: Option<&Hostname>) -> bool {
    if !tls.asks_the_same {
        return true;
    }
    // By another SNI, or none, nobody gets below the version that a site asks for.
    if !tls.is_newest && site_of(&router.match_sni(host)).is_some_and(asks_for_newest) {
        return true;
    }
    let Some(sni) = tls.sni.filter(|sni| Some(*sni) != host) else { return false };
    let (shown, needed) = (router.match_sni(Some(sni)), router.match_sni(host));
    match (site_of(&shown), site_of(&needed)) {
        (Some(shown), Some(needed)) => shown.listener != needed.listener,
        // Nobody has the host: 404.
        (Some(_), None) => !matches!(needed, SniMatch::Default),
        (None, Some(_)) => true,
        // With one certificate for two names, a client may use one connection for both; `None`: that of last resort.
        (None, None) => shown.certificate(router) != needed.certificate(router),
    }
}

/// Whether a site is for connections of TLS 1.3 alone.
fn asks_for_newest(site: &HostRules) -> bool {
    site.tls.as_ref().and_then(|tls| tls.minimum).is_some_and(|minimum| minimum >= TlsVersion::Tls13)
}

/// The site that terminates a connection.
fn site_of<'t>(found: &SniMatch<'t>) -> Option<&'t HostRules> {
    match found {
        SniMatch::Terminate(host) => host.site.as_deref(),
        SniMatch::Passthrough(_) | SniMatch::Default => None,
    }
}

#[cfg(test)]
mod tests;

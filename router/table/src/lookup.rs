//! Matching of names and requests to routes and rules: the only implementation of docs/openshift.md#matching and
//! docs/gateway-api.md#which-rule-serves.

mod request;

use std::iter;
use std::sync::Arc;

pub use request::{Request, Unmet, joined};
use router_model::certificate::Certificate;
use router_model::names::Hostname;

use crate::rule::Rule;
use crate::table::{InsecurePolicy, ResolvedRoute, RouteKind, RouterTable, VirtualHost};

/// Result of matching the SNI of a ClientHello.
#[derive(Clone, Debug)]
pub enum SniMatch<'t> {
    /// Forward the TLS stream unmodified.
    Passthrough(&'t Arc<ResolvedRoute>),
    /// Terminate TLS; the host has TLS routes, or rules that terminate TLS.
    Terminate(&'t Arc<VirtualHost>),
    /// Terminate TLS with the default certificate; each request is matched by its own host.
    Default,
}

impl<'t> SniMatch<'t> {
    /// The certificate for the name, the first if there are several; `None`: the agent's self-signed one.
    pub fn certificate(&self, router: &'t RouterTable) -> Option<&'t Certificate> {
        let own = match *self {
            SniMatch::Terminate(host) => match host.rules.as_ref().and_then(|host_rules| host_rules.tls.as_ref()) {
                Some(tls) => tls.certificates.first(),
                None => host.certificate.as_ref(),
            },
            SniMatch::Passthrough(_) | SniMatch::Default => None,
        };
        own.or(router.default_certificate.as_ref())
    }
}

/// Result of matching a request.
#[derive(Clone, Debug)]
pub enum RequestMatch<'t> {
    /// Forward to this route.
    Forward(&'t Arc<ResolvedRoute>),
    /// Apply this rule.
    Rule(&'t Arc<Rule>),
    /// Redirect the client to https.
    RedirectToHttps(&'t Arc<ResolvedRoute>),
    /// The host is passed through: its requests must not be read here.
    PassedThrough,
    /// The host has rules, and none of them matches: 404.
    Closed,
    /// No route serves it: 503 with the default page.
    NoRoute,
}

impl RouterTable {
    /// Virtual hosts that cover a name, most specific first: the exact one, the one-label wildcard, the wildcards of
    /// more labels from the longest domain to the shortest, and the one for every name. Only the last covers
    /// connections without SNI and requests for an IP address.
    pub fn candidates<'h>(&self, host: impl Into<Option<&'h Hostname>>) -> impl Iterator<Item = &Arc<VirtualHost>> {
        let host = host.into();
        self.candidates_behind(host.and_then(|host| self.hosts.exact.get(host)), host)
    }

    fn candidates_behind<'t, 'h>(
        &'t self,
        exact: Option<&'t Arc<VirtualHost>>,
        host: Option<&'h Hostname>,
    ) -> impl Iterator<Item = &'t Arc<VirtualHost>> + use<'t, 'h> {
        // Looked up only if the exact host does not match.
        let wildcard = iter::once_with(move || self.hosts.wildcard.get(host?.parent()?)).flatten();
        exact.into_iter().chain(wildcard).chain(self.wide_candidates(host))
    }

    fn wide_candidates<'h>(&self, host: Option<&'h Hostname>) -> impl Iterator<Item = &Arc<VirtualHost>> + use<'_, 'h> {
        let parent = host.and_then(Hostname::parent).filter(|_| !self.hosts.suffix.is_empty());
        let domains = iter::successors(parent, |domain| domain.split_once('.').map(|(_, parent)| parent));
        domains.filter_map(|domain| self.hosts.suffix.get(domain)).chain(&self.hosts.any)
    }

    /// Decides a TLS connection by its SNI. The most specific host that has any TLS route wins, whatever its
    /// termination (docs/openshift.md#specific-host-first). The search ends at a host with rules.
    pub fn match_sni(&self, host: Option<&Hostname>) -> SniMatch<'_> {
        for candidate in self.candidates(host) {
            if let Some(route) = &candidate.passthrough {
                return SniMatch::Passthrough(route);
            }
            match &candidate.rules {
                Some(host_rules) if host_rules.tls.is_some() => return SniMatch::Terminate(candidate),
                Some(_) => return SniMatch::Default,
                None if !candidate.terminated.is_empty() => return SniMatch::Terminate(candidate),
                None => {}
            }
        }
        SniMatch::Default
    }

    /// Decides a request over TLS that was terminated here. Passthrough hosts are recognised as in
    /// [`RouterTable::match_sni`].
    pub fn match_tls_request<'h>(
        &self,
        host: impl Into<Option<&'h Hostname>>,
        request: &(impl Request + ?Sized),
    ) -> RequestMatch<'_> {
        let host = host.into();
        let mut has_tls = false;
        for candidate in self.candidates(host) {
            if candidate.passthrough.is_some() && !has_tls {
                return RequestMatch::PassedThrough;
            }
            has_tls |= !candidate.terminated.is_empty();
            if let Some(host_rules) = &candidate.rules {
                return first(host_rules.tls.as_ref().map(|tls| &*tls.rules), request);
            }
            if let Some(route) = longest(&candidate.terminated, &request.path_in(self.policy.path_form)) {
                return RequestMatch::Forward(route);
            }
        }
        self.nothing(host)
    }

    /// Decides a clear-text request. If no path of an exact host's Routes matches, the wildcard is tried.
    pub fn match_cleartext_request<'h>(
        &self,
        host: impl Into<Option<&'h Hostname>>,
        request: &(impl Request + ?Sized),
    ) -> RequestMatch<'_> {
        let host = host.into();
        let exact = host.and_then(|host| self.hosts.exact.get_with_plain(host.as_str()));
        if let Some((_, Some(route))) = exact {
            return RequestMatch::Forward(route);
        }
        for candidate in self.candidates_behind(exact.map(|(host, _)| host), host) {
            if let Some(host_rules) = &candidate.rules {
                return first(host_rules.cleartext.as_deref(), request);
            }
            let path = request.path_in(self.policy.path_form);
            let Some(route) = longest(&candidate.cleartext, &path) else { continue };
            if route.is_plain {
                return RequestMatch::Forward(route);
            }
            return match &route.kind {
                RouteKind::Passthrough { redirect: true } => RequestMatch::RedirectToHttps(route),
                RouteKind::Passthrough { redirect: false } => RequestMatch::NoRoute,
                RouteKind::Http { tls: None, .. } => RequestMatch::Forward(route),
                RouteKind::Http { tls: Some(tls), .. } => match tls.insecure {
                    InsecurePolicy::None => RequestMatch::NoRoute,
                    InsecurePolicy::Allow => RequestMatch::Forward(route),
                    InsecurePolicy::Redirect => RequestMatch::RedirectToHttps(route),
                },
            };
        }
        self.nothing(host)
    }

    /// The result for an unmatched request. A host that has Routes, but none for this path, gets the response of Routes
    /// everywhere.
    fn nothing(&self, host: Option<&Hostname>) -> RequestMatch<'_> {
        let is_closed = self.hosts.finds_nothing(host.filter(|_| self.candidates(host).next().is_none()));
        if is_closed { RequestMatch::Closed } else { RequestMatch::NoRoute }
    }
}

fn longest<'t>(routes: &'t [Arc<ResolvedRoute>], path: &str) -> Option<&'t Arc<ResolvedRoute>> {
    routes.iter().find(|route| {
        route.is_plain
            || match &route.kind {
                RouteKind::Http { path: prefix, .. } => prefix.covers(path),
                RouteKind::Passthrough { .. } => true,
            }
    })
}

/// The first rule that matches; rules are in order of precedence.
fn first<'t>(rules: Option<&'t [Arc<Rule>]>, request: &(impl Request + ?Sized)) -> RequestMatch<'t> {
    let found = rules.unwrap_or_default().iter().find(|rule| rule.takes(request));
    found.map_or(RequestMatch::Closed, RequestMatch::Rule)
}

#[cfg(test)]
mod tests;

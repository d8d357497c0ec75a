//! Which route or rule a name or a request belongs to: the rules of docs/openshift.md#matching and of
//! docs/gateway-api.md#which-rule-serves, in the one place where they stand.

mod request;

use std::iter;
use std::sync::Arc;

pub use request::{Request, Unmet, joined};
use router_model::certificate::Certificate;
use router_model::names::Hostname;

use crate::rule::Rule;
use crate::table::{InsecurePolicy, ResolvedRoute, RouteKind, RouterTable, VirtualHost};

/// What the name in a ClientHello decides.
#[derive(Clone, Debug)]
pub enum SniMatch<'t> {
    /// Forward the stream as it is.
    Passthrough(&'t Arc<ResolvedRoute>),
    /// Terminate here; the host has TLS routes, or a site that terminates TLS.
    Terminate(&'t Arc<VirtualHost>),
    /// Terminate here with the default certificate; requests will find their own host.
    Default,
}

impl<'t> SniMatch<'t> {
    /// The certificate that a name which leads there is served with, of several the first; `None`: that of last resort.
    pub fn certificate(&self, router: &'t RouterTable) -> Option<&'t Certificate> {
        let own = match *self {
            SniMatch::Terminate(host) => match host.site.as_ref().and_then(|site| site.tls.as_ref()) {
                Some(tls) => tls.certificates.first(),
                None => host.certificate.as_ref(),
            },
            SniMatch::Passthrough(_) | SniMatch::Default => None,
        };
        own.or(router.default_certificate.as_ref())
    }
}

/// What a request decides.
#[derive(Clone, Debug)]
pub enum RequestMatch<'t> {
    /// Forward to this route.
    Forward(&'t Arc<ResolvedRoute>),
    /// Do what this rule says.
    Rule(&'t Arc<Rule>),
    /// Send the client to https.
    RedirectToHttps(&'t Arc<ResolvedRoute>),
    /// The connection should have been passed through: its requests are not for reading.
    PassedThrough,
    /// The host is served by rules, and none of them matches: 404.
    Closed,
    /// Nothing serves it: 503 with the default page.
    NoRoute,
}

impl RouterTable {
    /// Virtual hosts that cover a name, most specific first: the exact one, the one-label wildcard, then the wildcards
    /// of more labels from the longest domain to the shortest, and what serves every name. The last alone covers what
    /// has no name: a connection without SNI, a request for an address.
    pub fn candidates<'h>(&self, host: impl Into<Option<&'h Hostname>>) -> impl Iterator<Item = &Arc<VirtualHost>> {
        let host = host.into();
        self.candidates_behind(host.and_then(|host| self.hosts.exact.get(host)), host)
    }

    fn candidates_behind<'t, 'h>(
        &'t self,
        exact: Option<&'t Arc<VirtualHost>>,
        host: Option<&'h Hostname>,
    ) -> impl Iterator<Item = &'t Arc<VirtualHost>> + use<'t, 'h> {
        // Looked for when the exact host will not do.
        let wildcard = iter::once_with(move || self.hosts.wildcard.get(host?.parent()?)).flatten();
        exact.into_iter().chain(wildcard).chain(self.wide_candidates(host))
    }

    fn wide_candidates<'h>(&self, host: Option<&'h Hostname>) -> impl Iterator<Item = &Arc<VirtualHost>> + use<'_, 'h> {
        let parent = host.and_then(Hostname::parent).filter(|_| !self.hosts.suffix.is_empty());
        let domains = iter::successors(parent, |domain| domain.split_once('.').map(|(_, parent)| parent));
        domains.filter_map(|domain| self.hosts.suffix.get(domain)).chain(&self.hosts.any)
    }

    /// Decides a TLS connection by its SNI. The most specific host that has any TLS route wins, whatever its
    /// termination (docs/openshift.md#specific-host-first). A host with a site is the last that is asked.
    pub fn match_sni(&self, host: Option<&Hostname>) -> SniMatch<'_> {
        for candidate in self.candidates(host) {
            if let Some(route) = &candidate.passthrough {
                return SniMatch::Passthrough(route);
            }
            match &candidate.site {
                Some(site) if site.tls.is_some() => return SniMatch::Terminate(candidate),
                Some(_) => return SniMatch::Default,
                None if !candidate.terminated.is_empty() => return SniMatch::Terminate(candidate),
                None => {}
            }
        }
        SniMatch::Default
    }

    /// Decides a request that came over TLS terminated here. Whether the host is one that is passed through is seen as
    /// [`RouterTable::match_sni`] sees it.
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
            if let Some(site) = &candidate.site {
                return first(site.tls.as_ref().map(|tls| &*tls.rules), request);
            }
            if let Some(route) = longest(&candidate.terminated, &request.path_in(self.policy.path_form)) {
                return RequestMatch::Forward(route);
            }
        }
        self.nothing(host)
    }

    /// Decides a clear-text request. An exact host of Routes whose paths do not match falls through to the wildcard.
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
            if let Some(site) = &candidate.site {
                return first(site.cleartext.as_deref(), request);
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

    /// For what nobody has. A host that a Route has, and not for this path, is answered as Routes are, wherever it is.
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

/// The first rule that matches; they stand in order of precedence.
fn first<'t>(rules: Option<&'t [Arc<Rule>]>, request: &(impl Request + ?Sized)) -> RequestMatch<'t> {
    let found = rules.unwrap_or_default().iter().find(|rule| rule.takes(request));
    found.map_or(RequestMatch::Closed, RequestMatch::Rule)
}

#[cfg(test)]
mod tests;

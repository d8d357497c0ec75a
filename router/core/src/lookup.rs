//! Which route a name or a request belongs to: the rules of openshift.md b.7, in the one place where they stand.

use std::iter;
use std::sync::Arc;

use crate::model::Hostname;
use crate::table::{InsecurePolicy, ResolvedRoute, RouteKind, RouterTable, VirtualHost};

/// What the name in a ClientHello decides.
#[derive(Clone, Debug)]
pub enum SniMatch<'t> {
    /// Forward the stream as it is.
    Passthrough(&'t Arc<ResolvedRoute>),
    /// Terminate here; the host has TLS routes.
    Terminate(&'t Arc<VirtualHost>),
    /// Terminate here with the default certificate; requests will find their own host.
    Default,
}

/// What a request's host and path decide.
#[derive(Clone, Debug)]
pub enum RequestMatch<'t> {
    /// Forward to this route.
    Forward(&'t Arc<ResolvedRoute>),
    /// Send the client to https.
    RedirectToHttps(&'t Arc<ResolvedRoute>),
    /// Nothing serves it: 503 with the default page.
    NoRoute,
}

impl RouterTable {
    /// Virtual hosts that cover a name, most specific first: the exact one, then the one-label wildcard.
    pub fn candidates<'t>(&'t self, host: &Hostname) -> impl Iterator<Item = &'t Arc<VirtualHost>> {
        let exact = self.hosts.exact.get(host);
        // Looked for when the exact host will not do.
        let wildcard = iter::once_with(move || host.parent().and_then(|parent| self.hosts.wildcard.get(parent)));
        exact.into_iter().chain(wildcard.flatten())
    }

    /// Decides a TLS connection by its SNI. The most specific host that has any TLS route wins, whatever its
    /// termination (openshift.md, decision 5).
    pub fn match_sni(&self, host: Option<&Hostname>) -> SniMatch<'_> {
        let Some(host) = host else { return SniMatch::Default };
        for candidate in self.candidates(host) {
            if let Some(route) = &candidate.passthrough {
                return SniMatch::Passthrough(route);
            }
            if !candidate.terminated.is_empty() {
                return SniMatch::Terminate(candidate);
            }
        }
        SniMatch::Default
    }

    /// Decides a request that came over TLS terminated here.
    pub fn match_tls_request(&self, host: &Hostname, path: &str) -> RequestMatch<'_> {
        for candidate in self.candidates(host) {
            if let Some(route) = longest(&candidate.terminated, path) {
                return RequestMatch::Forward(route);
            }
        }
        RequestMatch::NoRoute
    }

    /// Decides a clear-text request. An exact host whose paths do not match falls through to the wildcard.
    pub fn match_cleartext_request(&self, host: &Hostname, path: &str) -> RequestMatch<'_> {
        for candidate in self.candidates(host) {
            let Some(route) = longest(&candidate.cleartext, path) else { continue };
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
        RequestMatch::NoRoute
    }
}

fn longest<'t>(routes: &'t [Arc<ResolvedRoute>], path: &str) -> Option<&'t Arc<ResolvedRoute>> {
    routes.iter().find(|route| match &route.kind {
        RouteKind::Http { path: prefix, .. } => prefix.covers(path),
        RouteKind::Passthrough { .. } => true,
    })
}

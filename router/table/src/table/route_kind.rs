//! The kinds of route, with their specific settings.

use std::sync::Arc;

use router_model::certificate::{Certificate, TrustRoots};
use router_model::names::PathMatch;
use rustls::RootCertStore;

/// The kinds of route. A passthrough route *cannot* carry a path or a certificate.
#[derive(Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Requests are parsed: clear text, edge, re-encrypt.
    Http {
        /// Path prefix.
        path: PathMatch,
        /// `None` for a route without `spec.tls`.
        tls: Option<HttpTls>,
    },
    /// The TLS stream is forwarded unmodified.
    Passthrough {
        /// `insecureEdgeTerminationPolicy: Redirect`: clear-text requests are redirected to https.
        redirect: bool,
    },
}

/// TLS of an edge or re-encrypt route.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpTls {
    /// Handling of clear-text requests.
    pub insecure: InsecurePolicy,
    /// The route's own certificate.
    pub certificate: Option<Certificate>,
    /// Present for re-encrypt.
    pub reencrypt: Option<Reencrypt>,
}

/// `spec.tls.insecureEdgeTerminationPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsecurePolicy {
    /// `None`: not served, 503.
    None,
    /// `Allow`: served as over TLS.
    Allow,
    /// `Redirect`: 302 to https.
    Redirect,
}

/// Verification of a re-encrypt route's backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reencrypt {
    /// `destinationCACertificate`: the chain must end at one of these CAs, and any name is accepted
    /// (docs/openshift.md#tls). `None`: the service CA, and the name must be `<service>.<namespace>.svc`.
    pub destination_ca: Option<TrustRoots>,
}

impl Reencrypt {
    /// The trust anchors of endpoints, and whether any name is accepted in their certificates. `None`: there is no
    /// anchor to verify the chain with, so nothing may be sent.
    pub fn anchors<'a>(&'a self, service_ca: Option<&'a Arc<RootCertStore>>) -> Option<(&'a Arc<RootCertStore>, bool)> {
        let own = self.destination_ca.as_deref().map(|own| (own, true));
        own.or(service_ca.map(|service_ca| (service_ca, false))).filter(|(store, _)| !store.is_empty())
    }
}

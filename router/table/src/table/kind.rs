//! The kinds of route, with what only one of them may have.

use std::sync::Arc;

use router_model::certificate::{Certificate, TrustRoots};
use router_model::names::PathMatch;
use rustls::RootCertStore;

/// The kinds of route. A passthrough route *cannot* carry a path or a certificate.
#[derive(Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Requests are read: clear text, edge, re-encrypt.
    Http {
        /// Path prefix.
        path: PathMatch,
        /// `None` for a route without `spec.tls`.
        tls: Option<HttpTls>,
    },
    /// The TLS stream is forwarded as it is.
    Passthrough {
        /// `insecureEdgeTerminationPolicy: Redirect`: clear text is sent to https.
        redirect: bool,
    },
}

/// TLS of an edge or re-encrypt route.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpTls {
    /// What clear-text requests get.
    pub insecure: InsecurePolicy,
    /// The route's own certificate.
    pub certificate: Option<Certificate>,
    /// Present for re-encrypt.
    pub reencrypt: Option<Reencrypt>,
}

/// `spec.tls.insecureEdgeTerminationPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsecurePolicy {
    /// Not served: 503.
    None,
    /// Served as over TLS.
    Allow,
    /// 302 to https.
    Redirect,
}

/// How a re-encrypt route's backend is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reencrypt {
    /// `destinationCACertificate`: the chain must end here, any name is good (docs/openshift.md#tls).
    /// `None`: the service CA, and the name must be `<service>.<namespace>.svc`.
    pub destination_ca: Option<TrustRoots>,
}

impl Reencrypt {
    /// Where the chains of endpoints must end, and whether their certificates may have any name. `None`: nothing is there
    /// to verify them with, so nothing may be sent to them.
    pub fn anchors<'a>(&'a self, service_ca: Option<&'a Arc<RootCertStore>>) -> Option<(&'a Arc<RootCertStore>, bool)> {
        let own = self.destination_ca.as_deref().map(|own| (own, true));
        own.or(service_ca.map(|service_ca| (service_ca, false))).filter(|(store, _)| !store.is_empty())
    }
}

//! The traffic of a Route: HTTP or TLS passthrough.

use std::sync::{Arc, LazyLock};

use router_model::certificate::Certificate;
use router_model::field::FieldError;
use router_model::names::PathMatch;
use router_table::table::{InsecurePolicy, Reencrypt};

/// The traffic of a route, with the settings of its kind.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// HTTP: without TLS, edge or re-encrypt.
    Http {
        /// `spec.path`.
        path: PathMatch,
        /// `spec.tls`; `None`: clear text only.
        tls: Option<Arc<RouteTls>>,
    },
    /// TLS streams, not terminated.
    Passthrough {
        /// `insecureEdgeTerminationPolicy: Redirect`.
        redirect: bool,
    },
}

impl Traffic {
    /// `spec.path`; empty for passthrough.
    pub fn path(&self) -> &str {
        match self {
            Traffic::Http { path, .. } => path.as_str(),
            Traffic::Passthrough { .. } => "",
        }
    }

    /// Whether the route has `spec.tls`.
    pub fn has_tls(&self) -> bool {
        !matches!(self, Traffic::Http { tls: None, .. })
    }

    /// Whether it is a passthrough route.
    pub fn is_passthrough(&self) -> bool {
        matches!(self, Traffic::Passthrough { .. })
    }
}

/// TLS of an edge or re-encrypt route. A route with invalid material keeps its host and serves nothing.
#[derive(Clone, Debug)]
pub struct RouteTls {
    /// Handling of clear-text requests.
    pub insecure: InsecurePolicy,
    /// Certificates and trust roots, or their errors.
    pub material: Result<TlsMaterial, Vec<FieldError>>,
}

impl RouteTls {
    /// The value, shared if it has no material of its own.
    pub(super) fn new(insecure: InsecurePolicy, material: Result<TlsMaterial, Vec<FieldError>>) -> Arc<Self> {
        static PLAIN: LazyLock<[Arc<RouteTls>; 3]> = LazyLock::new(|| {
            [InsecurePolicy::None, InsecurePolicy::Allow, InsecurePolicy::Redirect].map(|insecure| {
                let material = TlsMaterial { certificate: CertificateSource::Controller, reencrypt: None };
                Arc::new(RouteTls { insecure, material: Ok(material) })
            })
        });
        if let Ok(TlsMaterial { certificate: CertificateSource::Controller, reencrypt: None }) = &material
            && let Some(plain) = PLAIN.iter().find(|plain| plain.insecure == insecure)
        {
            return plain.clone();
        }
        Arc::new(RouteTls { insecure, material })
    }
}

/// Certificates and trust roots of a route.
#[derive(Clone, Debug)]
pub struct TlsMaterial {
    /// The source of the certificate.
    pub certificate: CertificateSource,
    /// Present for re-encrypt.
    pub reencrypt: Option<Reencrypt>,
}

/// The source of a route's certificate.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// The IngressController's default certificate.
    Controller,
    /// `certificate`, `key` and `caCertificate`.
    Inline(Certificate),
    /// `externalCertificate`: a Secret of this name in the route's namespace.
    Secret(Arc<str>),
}

//! What a running agent alone knows of routes' endpoints.

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;

use crate::table::{Endpoint, ResolvedRoute, ServiceEndpoints};

/// What a running agent alone knows.
pub trait Live: fmt::Debug {
    /// Why an endpoint of a route gets nothing while there are others; `None`: as far as is known it is well.
    fn trouble(&self, route: &ResolvedRoute, service: &ServiceEndpoints, endpoint: &Endpoint) -> Option<String>;
}

/// What endpoints are verified with, beside what objects name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trust<'f> {
    /// For re-encrypt routes without a CA of their own.
    pub service_ca: Option<&'f Arc<RootCertStore>>,
    /// The system's roots, for policies that ask for them.
    pub system: Option<&'f Arc<RootCertStore>>,
}

impl Trust<'_> {
    /// What to do for the endpoints of a service, with which TLS is spoken and which nothing is there to verify; `None`:
    /// they can be verified, or there is no TLS.
    pub fn missing(&self, route: &ResolvedRoute, service: &ServiceEndpoints) -> Option<&'static str> {
        match (service.policy.as_ref().and_then(|policy| policy.tls.as_ref()), route.reencrypt()) {
            (Some(tls), _) if tls.anchors(self.system).is_none() => {
                Some("install the system's CA certificates, or name a CA in the BackendTLSPolicy")
            }
            (None, Some(reencrypt)) if reencrypt.anchors(self.service_ca).is_none() => {
                Some("write spec.tls.destinationCACertificate, or start the agent with --service-ca FILE")
            }
            _ => None,
        }
    }
}

//! Endpoint state that only a running agent has.

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;

use crate::table::{Endpoint, ResolvedRoute, WeightedService};

/// Endpoint state of a running agent.
pub trait LiveState: fmt::Debug {
    /// Why an endpoint of a route gets no requests while there are others; `None`: no problem is known.
    fn trouble(&self, route: &ResolvedRoute, service: &WeightedService, endpoint: &Endpoint) -> Option<String>;
}

/// CAs for verifying endpoints, beside those that objects refer to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trust<'f> {
    /// For re-encrypt routes without a CA of their own (`--service-ca`).
    pub service_ca: Option<&'f Arc<RootCertStore>>,
    /// The system's roots, for policies that use them (`wellKnownCACertificates: System`).
    pub system: Option<&'f Arc<RootCertStore>>,
}

impl Trust<'_> {
    /// Advice to the user if a service's endpoints use TLS and no CA is available to verify them; `None`: they can be
    /// verified, or do not use TLS.
    pub fn missing(&self, route: &ResolvedRoute, service: &WeightedService) -> Option<&'static str> {
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

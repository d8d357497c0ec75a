//! An endpoint of a route, and its TLS peer.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use router_table::rule::BackendPolicy;
use router_table::table::{Endpoint, ResolvedRoute};
use rustls::RootCertStore;

/// An endpoint of a route, with its service. The service names the TLS peer.
#[derive(Clone, Copy, Debug)]
pub struct EndpointTarget<'r> {
    /// Service name.
    pub service: &'r Arc<str>,
    /// Address and properties.
    pub endpoint: &'r Endpoint,
    /// Policy of the backend, for a rule's backend.
    pub policy: Option<&'r Arc<BackendPolicy>>,
}

impl EndpointTarget<'_> {
    /// The TLS peer, if the backend's policy requires TLS.
    pub fn peer(&self) -> Option<TlsPeer> {
        self.policy.filter(|policy| policy.tls.is_some()).map(|policy| TlsPeer::Policy(Arc::clone(policy)))
    }

    /// The TLS peer for a route: by the backend's policy, else by the route's re-encrypt termination.
    pub fn peer_for(&self, route: &ResolvedRoute) -> Option<TlsPeer> {
        let of_route = || {
            route.reencrypt().map(|reencrypt| TlsPeer::Service {
                ca: reencrypt.destination_ca.as_deref().cloned(),
                service: Arc::clone(self.service),
                namespace: Arc::clone(&route.id.namespace),
            })
        };
        self.peer().or_else(of_route)
    }
}

/// Identity that a TLS connection verifies.
#[derive(Clone, Debug)]
pub enum TlsPeer {
    /// An endpoint of a re-encrypt route.
    Service {
        /// `destinationCACertificate`; `None`: the service CA.
        ca: Option<Arc<RootCertStore>>,
        /// Service name, part of the server name.
        service: Arc<str>,
        /// Namespace of the service.
        namespace: Arc<str>,
    },
    /// A backend whose policy requires TLS.
    Policy(Arc<BackendPolicy>),
}

impl TlsPeer {
    /// Whether two peers are the same. Trust stores of routes are compared by address: the key keeps its store alive,
    /// so its address is not reused. Policies are compared by content, because equal policies are often rebuilt.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (TlsPeer::Service { ca, service, namespace }, TlsPeer::Service { ca: ca2, service: s2, namespace: n2 }) => {
                ca.as_ref().map(Arc::as_ptr) == ca2.as_ref().map(Arc::as_ptr) && service == s2 && namespace == n2
            }
            (TlsPeer::Policy(policy), TlsPeer::Policy(other)) => Arc::ptr_eq(policy, other) || policy.tls == other.tls,
            _ => false,
        }
    }
}

impl PartialEq for TlsPeer {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for TlsPeer {}

impl Hash for TlsPeer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            TlsPeer::Service { ca, service, namespace } => {
                (ca.as_ref().map(|ca| Arc::as_ptr(ca).addr()), service, namespace).hash(state);
            }
            TlsPeer::Policy(policy) => policy.tls.as_ref().map(|tls| (tls.server_name(), tls.names())).hash(state),
        }
    }
}

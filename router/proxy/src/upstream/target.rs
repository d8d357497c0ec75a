//! An endpoint of a route, and whom TLS is spoken with there.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use router_table::rule::BackendPolicy;
use router_table::table::{Endpoint, ResolvedRoute};
use rustls::RootCertStore;

/// An endpoint of a route, with the service that it belongs to, which names it for TLS.
#[derive(Clone, Copy, Debug)]
pub struct Target<'r> {
    /// Service name.
    pub service: &'r Arc<str>,
    /// Where to connect.
    pub endpoint: &'r Endpoint,
    /// What the service has of its own, if it is a rule's.
    pub policy: Option<&'r Arc<BackendPolicy>>,
}

impl Target<'_> {
    /// Whom TLS is spoken with, where the backend's policy says that it is.
    pub fn peer(&self) -> Option<Peer> {
        self.policy.filter(|policy| policy.tls.is_some()).map(|policy| Peer::Policy(Arc::clone(policy)))
    }

    /// Whom TLS is spoken with for a route.
    pub fn peer_for(&self, route: &ResolvedRoute) -> Option<Peer> {
        let of_route = || {
            route.reencrypt().map(|reencrypt| Peer::Service {
                ca: reencrypt.destination_ca.as_deref().cloned(),
                service: Arc::clone(self.service),
                namespace: Arc::clone(&route.id.namespace),
            })
        };
        self.peer().or_else(of_route)
    }
}

/// Whom a TLS connection was verified to be with.
#[derive(Clone, Debug)]
pub enum Peer {
    /// An endpoint of a re-encrypt route.
    Service {
        /// `destinationCACertificate`; `None`: the service CA.
        ca: Option<Arc<RootCertStore>>,
        /// Service, which names the peer.
        service: Arc<str>,
        /// Its namespace.
        namespace: Arc<str>,
    },
    /// One that a policy for its backend describes, which has TLS.
    Policy(Arc<BackendPolicy>),
}

impl Peer {
    /// Whether both ask for the same. Stores of routes are the same when they are one: the key keeps its store, so its
    /// address is not given to another. What a policy says is compared, as policies are often made anew.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Peer::Service { ca, service, namespace }, Peer::Service { ca: ca2, service: s2, namespace: n2 }) => {
                ca.as_ref().map(Arc::as_ptr) == ca2.as_ref().map(Arc::as_ptr) && service == s2 && namespace == n2
            }
            (Peer::Policy(policy), Peer::Policy(other)) => Arc::ptr_eq(policy, other) || policy.tls == other.tls,
            _ => false,
        }
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Peer::Service { ca, service, namespace } => {
                (ca.as_ref().map(|ca| Arc::as_ptr(ca).addr()), service, namespace).hash(state);
            }
            Peer::Policy(policy) => policy.tls.as_ref().map(|tls| (tls.server_name(), tls.names())).hash(state),
        }
    }
}

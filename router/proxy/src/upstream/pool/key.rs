//! Which connections to endpoints are interchangeable.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::uri::Scheme;
use router_core::rule::BackendPolicy;
use rustls::RootCertStore;

/// What connections are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// Endpoint.
    pub address: SocketAddr,
    /// What is spoken with it.
    pub wire: Wire,
    /// How long one is kept that no request uses.
    pub keep: Duration,
}

/// What is spoken with an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// HTTP/1.1 in clear text.
    Http1,
    /// HTTP/2 in clear text, without asking (RFC 9113 §3.3).
    Http2,
    /// Whichever of the two the endpoint chooses in a TLS handshake.
    Tls(Peer),
    /// HTTP/1.1 over TLS, for requests that only it can carry.
    TlsHttp1(Peer),
}

impl Wire {
    /// The one of an endpoint with this peer, in clear text without: HTTP/1.1 where only that will do, or where nothing
    /// says that the endpoint speaks HTTP/2 (`h2c`).
    pub fn of(peer: Option<Peer>, h2c: bool, http1_only: bool) -> Self {
        match peer {
            Some(peer) if http1_only => Wire::TlsHttp1(peer),
            Some(peer) => Wire::Tls(peer),
            None if h2c && !http1_only => Wire::Http2,
            None => Wire::Http1,
        }
    }

    /// Whether the connections carry one request at a time.
    pub fn is_http1(&self) -> bool {
        matches!(self, Wire::Http1 | Wire::TlsHttp1(_))
    }

    /// Whom TLS is spoken with.
    pub fn peer(&self) -> Option<&Peer> {
        match self {
            Wire::Http1 | Wire::Http2 => None,
            Wire::Tls(peer) | Wire::TlsHttp1(peer) => Some(peer),
        }
    }

    /// Scheme of the requests that it carries.
    pub fn scheme(&self) -> Scheme {
        match self {
            Wire::Http1 | Wire::Http2 => Scheme::HTTP,
            Wire::Tls(_) | Wire::TlsHttp1(_) => Scheme::HTTPS,
        }
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

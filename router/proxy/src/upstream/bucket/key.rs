//! Which connections to endpoints are interchangeable.

use std::net::SocketAddr;
use std::time::Duration;

use http::uri::Scheme;

use crate::upstream::target::Peer;

/// How long a connection is kept that no request uses, where its rule says nothing.
pub const MAX_AGE: Duration = Duration::from_secs(30);

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

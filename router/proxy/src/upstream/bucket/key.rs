//! The key of interchangeable connections to endpoints.

use std::net::SocketAddr;
use std::time::Duration;

use http::uri::Scheme;

use crate::upstream::target::TlsPeer;

/// Longest idle time of a pooled connection, unless its rule sets another.
pub const MAX_AGE: Duration = Duration::from_secs(30);

/// Connections with equal keys are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// Address of the endpoint.
    pub address: SocketAddr,
    /// Protocol.
    pub wire: Wire,
    /// Longest idle time.
    pub keep: Duration,
}

/// Protocol of a connection to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Clear-text HTTP/1.1.
    Http1,
    /// Clear-text HTTP/2 with prior knowledge (RFC 9113 §3.3).
    Http2,
    /// TLS; ALPN selects HTTP/1.1 or HTTP/2.
    Tls(TlsPeer),
    /// HTTP/1.1 over TLS, for requests that need it.
    TlsHttp1(TlsPeer),
}

impl Wire {
    /// The protocol for an endpoint: TLS with this peer, clear text without one. HTTP/1.1 if `http1_only`, or in clear
    /// text without `h2c`.
    pub fn of(peer: Option<TlsPeer>, h2c: bool, http1_only: bool) -> Self {
        match peer {
            Some(peer) if http1_only => Wire::TlsHttp1(peer),
            Some(peer) => Wire::Tls(peer),
            None if h2c && !http1_only => Wire::Http2,
            None => Wire::Http1,
        }
    }

    /// Whether a connection carries one request at a time.
    pub fn is_http1(&self) -> bool {
        matches!(self, Wire::Http1 | Wire::TlsHttp1(_))
    }

    /// The TLS peer.
    pub fn peer(&self) -> Option<&TlsPeer> {
        match self {
            Wire::Http1 | Wire::Http2 => None,
            Wire::Tls(peer) | Wire::TlsHttp1(peer) => Some(peer),
        }
    }

    /// URI scheme of its requests.
    pub fn scheme(&self) -> Scheme {
        match self {
            Wire::Http1 | Wire::Http2 => Scheme::HTTP,
            Wire::Tls(_) | Wire::TlsHttp1(_) => Scheme::HTTPS,
        }
    }
}

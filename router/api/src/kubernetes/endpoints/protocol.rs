//! `appProtocol` of ports of Services and slices (Kubernetes, `ServicePort.appProtocol`): IANA service
//! names, `kubernetes.io/…` of KEP-3726, or domain-prefixed names.

use std::sync::Arc;

use router_model::object::Interner;

/// An `appProtocol`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppProtocol {
    /// As written.
    pub name: Arc<str>,
    /// Its meaning.
    pub speaks: EndpointProtocol,
}

/// Protocol of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointProtocol {
    /// HTTP of any version.
    Http,
    /// HTTP/2 without TLS, with prior knowledge (RFC 9113 §3.3), as gRPC does.
    Http2,
    /// HTTP/1.1 that is upgraded to WebSocket.
    WebSocket,
    /// HTTP over TLS.
    Https,
    /// WebSocket over TLS.
    SecureWebSocket,
    /// TLS with any protocol inside.
    Tls,
    /// Any other protocol.
    Other,
}

impl AppProtocol {
    /// Parses `appProtocol`; empty counts as absent.
    pub fn of(written: Option<&str>, texts: Option<&mut Interner>) -> Option<Self> {
        let written = written.filter(|written| !written.is_empty())?;
        let mut name: Arc<str> = written.into();
        if let Some(texts) = texts {
            texts.share(&mut name);
        }
        Some(AppProtocol { name, speaks: EndpointProtocol::of(written) })
    }

    /// Whether it is HTTP/2 without TLS to Routes and to Contour's objects (docs/openshift.md#backends).
    pub fn is_h2c(&self) -> bool {
        matches!(&*self.name, "h2c" | "kubernetes.io/h2c")
    }
}

impl EndpointProtocol {
    /// Names are case-insensitive (RFC 6335 §5.1).
    fn of(name: &str) -> Self {
        match &*name.to_ascii_lowercase() {
            "http" | "http/1.1" | "grpc-web" => EndpointProtocol::Http,
            "h2c" | "kubernetes.io/h2c" | "http2" | "grpc" => EndpointProtocol::Http2,
            "ws" | "kubernetes.io/ws" => EndpointProtocol::WebSocket,
            "https" | "grpcs" => EndpointProtocol::Https,
            "wss" | "kubernetes.io/wss" => EndpointProtocol::SecureWebSocket,
            "tls" | "ssl" => EndpointProtocol::Tls,
            _ => EndpointProtocol::Other,
        }
    }

    /// Whether it runs over TLS.
    pub fn is_tls(self) -> bool {
        matches!(self, EndpointProtocol::Https | EndpointProtocol::SecureWebSocket | EndpointProtocol::Tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_any_case() {
        let speaks = |name: &str| AppProtocol::of(Some(name), None).map(|protocol| protocol.speaks);
        for (name, expected) in [
            ("", None),
            ("HTTP", Some(EndpointProtocol::Http)),
            ("kubernetes.io/h2c", Some(EndpointProtocol::Http2)),
            ("gRPC", Some(EndpointProtocol::Http2)),
            ("kubernetes.io/ws", Some(EndpointProtocol::WebSocket)),
            ("HTTPS", Some(EndpointProtocol::Https)),
            ("kubernetes.io/wss", Some(EndpointProtocol::SecureWebSocket)),
            ("example.com/http", Some(EndpointProtocol::Other)),
            ("redis", Some(EndpointProtocol::Other)),
        ] {
            assert_eq!(speaks(name), expected, "{name}");
        }
        assert_eq!(AppProtocol::of(None, None), None);
    }
}

//! A listener placed on a router: protocol, certificates, kinds of routes and conditions.

use router_api::gateway_api::types::Listener;
use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::names::RouterName;

use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::listeners::ports::PortKind;
use crate::status::condition::Condition;

/// Protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayProtocol {
    /// `HTTP`.
    Http,
    /// `HTTPS`, terminated here.
    Https,
    /// `TLS`, terminated here.
    TlsTerminate,
    /// `TLS`, passed through.
    TlsPassthrough,
}

impl GatewayProtocol {
    pub(super) fn from_listener(listener: &Listener) -> Option<GatewayProtocol> {
        let passthrough = listener.tls.as_ref().is_some_and(|tls| tls.passthrough);
        match (&*listener.protocol, passthrough) {
            ("HTTP", _) => Some(GatewayProtocol::Http),
            ("HTTPS", false) => Some(GatewayProtocol::Https),
            ("TLS", false) => Some(GatewayProtocol::TlsTerminate),
            ("TLS", true) => Some(GatewayProtocol::TlsPassthrough),
            _ => None,
        }
    }

    /// The port of a router that serves it.
    pub fn port_kind(self) -> PortKind {
        if self == GatewayProtocol::Http { PortKind::Cleartext } else { PortKind::Tls }
    }

    /// True if TLS is terminated here.
    pub fn terminates(self) -> bool {
        matches!(self, GatewayProtocol::Https | GatewayProtocol::TlsTerminate)
    }

    /// Payload of its connections to backends.
    pub fn payload(self) -> BackendPayload {
        if self == GatewayProtocol::TlsPassthrough { BackendPayload::Passthrough } else { BackendPayload::Content }
    }

    /// The kinds of routes that it supports.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            GatewayProtocol::Http | GatewayProtocol::Https => &[Kind::HttpRoute, Kind::GrpcRoute],
            GatewayProtocol::TlsTerminate | GatewayProtocol::TlsPassthrough => &[Kind::TlsRoute],
        }
    }
}

/// An evaluated listener, placed on a router if it is accepted.
#[derive(Debug)]
pub struct PlacedListener {
    /// The listener's spec.
    pub listener: Listener,
    /// `None` if the protocol is not supported.
    pub protocol: Option<GatewayProtocol>,
    /// The router that serves it; `None` if it is not accepted.
    pub router: Option<RouterName>,
    /// The kinds of routes that may attach.
    pub kinds: Vec<Kind>,
    /// Valid certificates.
    pub certificates: Vec<Certificate>,
    /// Condition `Accepted`.
    pub accepted: Condition,
    /// Condition `Conflicted`.
    pub conflicted: Condition,
    /// Condition `ResolvedRefs`.
    pub resolved: Condition,
    /// Condition `OverlappingTLSConfig`; present only if true.
    pub overlapping: Option<Condition>,
    /// Why the router cannot terminate TLS; `None` if it can.
    pub tls_fault: Option<&'static str>,
}

impl PlacedListener {
    /// True if it receives traffic.
    pub fn is_programmed(&self) -> bool {
        let lacks_certificate = self.protocol.is_some_and(GatewayProtocol::terminates) && self.certificates.is_empty();
        self.router.is_some() && !lacks_certificate && self.tls_fault.is_none()
    }

    /// Condition `Programmed`.
    pub fn programmed(&self) -> Condition {
        match (self.is_programmed(), &self.router) {
            (true, _) => Condition::new("Programmed", true, "Programmed", ""),
            (false, Some(router)) if let Some(reason) = self.tls_fault => {
                let message = format!("IngressController {router}, whose port it is, refuses TLS: {reason}");
                Condition::new("Programmed", false, "Invalid", message)
            }
            (false, Some(_)) => Condition::new(
                "Programmed",
                false,
                "Invalid",
                "no certificate can be shown to clients; see ResolvedRefs",
            ),
            (false, None) => {
                let whole = if self.accepted.holds { "Gateway" } else { "listener" };
                Condition::new("Programmed", false, "Invalid", format!("the {whole} is not accepted"))
            }
        }
    }
}

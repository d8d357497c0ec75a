//! What became of a listener.

use router_api::gateway_api::types::Listener;
use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::names::RouterName;

use crate::gateway::carried::Carried;
use crate::gateway::listeners::ports::Side;
use crate::status::condition::Condition;

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `HTTP`.
    Http,
    /// `HTTPS`, terminated here.
    Https,
    /// `TLS`, terminated here.
    TlsTerminate,
    /// `TLS`, carried as it is.
    TlsPassthrough,
}

impl Protocol {
    pub(super) fn of(listener: &Listener) -> Option<Protocol> {
        let passthrough = listener.tls.as_ref().is_some_and(|tls| tls.passthrough);
        match (&*listener.protocol, passthrough) {
            ("HTTP", _) => Some(Protocol::Http),
            ("HTTPS", false) => Some(Protocol::Https),
            ("TLS", false) => Some(Protocol::TlsTerminate),
            ("TLS", true) => Some(Protocol::TlsPassthrough),
            _ => None,
        }
    }

    /// Which port of a router it needs.
    pub fn side(self) -> Side {
        if self == Protocol::Http { Side::Cleartext } else { Side::Tls }
    }

    /// Whether TLS is taken off here.
    pub fn terminates(self) -> bool {
        matches!(self, Protocol::Https | Protocol::TlsTerminate)
    }

    /// What backends get of its clients' connections.
    pub fn carried(self) -> Carried {
        if self == Protocol::TlsPassthrough { Carried::AsItCame } else { Carried::Content }
    }

    /// The kinds of route that it can carry.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Protocol::Http | Protocol::Https => &[Kind::HttpRoute, Kind::GrpcRoute],
            Protocol::TlsTerminate | Protocol::TlsPassthrough => &[Kind::TlsRoute],
        }
    }
}

/// What became of a listener.
#[derive(Debug)]
pub struct Placed<'r> {
    /// As it was written.
    pub listener: &'r Listener,
    /// `None`: one that is not done.
    pub protocol: Option<Protocol>,
    /// Where it lives; `None`: nowhere, see `accepted`.
    pub router: Option<RouterName>,
    /// The kinds of route that it takes.
    pub kinds: Vec<Kind>,
    /// The certificates that can be used.
    pub certificates: Vec<Certificate>,
    /// Condition `Accepted`.
    pub accepted: Condition,
    /// Condition `Conflicted`.
    pub conflicted: Condition,
    /// Condition `ResolvedRefs`.
    pub resolved: Condition,
    /// Condition `OverlappingTLSConfig`; only there when it holds.
    pub overlapping: Option<Condition>,
    /// Why its router refuses TLS that is terminated, where it does.
    pub tls_fault: Option<&'static str>,
}

impl Placed<'_> {
    /// Whether it takes traffic.
    pub fn is_programmed(&self) -> bool {
        let lacks_certificate = self.protocol.is_some_and(Protocol::terminates) && self.certificates.is_empty();
        self.router.is_some() && !lacks_certificate && self.tls_fault.is_none()
    }

    /// Condition `Programmed`.
    pub fn programmed(&self) -> Condition {
        match (self.is_programmed(), &self.router) {
            (true, _) => Condition::new("Programmed", true, "Programmed", ""),
            (false, Some(router)) if let Some(fault) = self.tls_fault => {
                let message = format!("IngressController {router}, whose port it is, refuses TLS: {fault}");
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

//! The decision about a complete first flight: the same function in the kernel and in user space.

use crate::http::{Framing, HeadHost, RequestHead, TargetForm};
use crate::maps::{HostRoute, PROTOCOL_TLS, ROUTE_ALLOW_LIST};
use crate::tls::{ClientHello, Sni};
use crate::verdict::{Reason, Verdict};

/// Selects one of the two map keys of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKeyKind {
    /// The name itself.
    Exact,
    /// `*.` and the name's parent domain.
    Wildcard,
}

/// The entries of the route maps for one name on one router.
pub trait Tables {
    /// Whether `sni_passthrough` has the host.
    fn is_passthrough(&self, candidate: HostKeyKind) -> bool;
    /// The host's entry in `tcp_be`.
    fn tcp_be(&self, candidate: HostKeyKind) -> Option<HostRef>;
    /// The host's entry in `edge_reencrypt`.
    fn edge_reencrypt(&self, candidate: HostKeyKind) -> Option<HostRef>;
    /// The host's entry in `http_be`.
    fn http_be(&self, candidate: HostKeyKind) -> Option<HostRef>;
    /// Whether `allowlists` admits the client's address to this route.
    fn source_allowed(&self, route: u32) -> bool;
}

/// The fields of a [`HostRoute`] that a decision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRef {
    /// Route id.
    pub route: u32,
    /// Reason code of a match.
    pub reason: u16,
    /// `ROUTE_*` bits.
    pub flags: u16,
}

impl From<&HostRoute> for HostRef {
    #[inline(always)]
    fn from(value: &HostRoute) -> Self {
        HostRef { route: value.route, reason: value.reason, flags: value.flags }
    }
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionDecision {
    /// The reason; it determines the verdict.
    pub reason: Reason,
    /// Route id, 0 for none.
    pub route: u32,
}

impl ConnectionDecision {
    /// A decision without a route.
    #[inline(always)]
    pub const fn of(reason: Reason) -> Self {
        ConnectionDecision { reason, route: 0 }
    }

    /// The verdict.
    #[inline(always)]
    pub const fn verdict(self) -> Verdict {
        self.reason.verdict()
    }
}

/// Decides a TLS connection by its ClientHello. The most specific host that has a TLS route wins, whatever its
/// termination.
#[inline(always)]
pub fn tls(hello: ClientHello, tables: &impl Tables) -> ConnectionDecision {
    match hello.sni {
        Sni::None => return ConnectionDecision::of(Reason::NoSni),
        Sni::IpLiteral => return ConnectionDecision::of(Reason::SniAddress),
        Sni::Name => {}
    }
    match tls_candidate(HostKeyKind::Exact, tables) {
        Some(decision) => decision,
        None => tls_candidate(HostKeyKind::Wildcard, tables).unwrap_or(ConnectionDecision::of(Reason::UnknownSni)),
    }
}

/// Decides a clear-text connection by its first request. `received`: bytes received when the head was complete.
#[inline(always)]
pub fn http(head: RequestHead, received: u32, tables: &impl Tables) -> ConnectionDecision {
    if head.form as u8 != TargetForm::Origin as u8 {
        return ConnectionDecision::of(Reason::TargetForm);
    }
    match head.host {
        HeadHost::None => return ConnectionDecision::of(Reason::NoHost),
        HeadHost::IpLiteral => return ConnectionDecision::of(Reason::HostAddress),
        HeadHost::Name => {}
    }
    let found = match tables.http_be(HostKeyKind::Exact) {
        Some(route) => Some(route),
        None => tables.http_be(HostKeyKind::Wildcard),
    };
    match found {
        None => ConnectionDecision::of(Reason::UnknownHost),
        // Over HTTP a rejection is a 403, which the proxy writes.
        Some(route) if refused(&route, tables) => ConnectionDecision { reason: Reason::NeedsProxy, route: route.route },
        Some(route) if route.reason == Reason::Cleartext as u16 => {
            let reason = if received > head.len {
                Reason::MoreThanHead
            } else if head.framing as u8 == Framing::Unclear as u8 {
                Reason::UnclearContent
            } else {
                Reason::Cleartext
            };
            ConnectionDecision { reason, route: route.route }
        }
        Some(route) => ConnectionDecision { reason: Reason::NeedsProxy, route: route.route },
    }
}

/// The reason for a first flight that is not a valid ClientHello or request head.
#[inline(always)]
pub const fn malformed(protocol: u8) -> Reason {
    if protocol == PROTOCOL_TLS { Reason::BadHello } else { Reason::BadHead }
}

/// The reason for a first flight that is longer than the kernel reads.
#[inline(always)]
pub const fn too_long(protocol: u8) -> Reason {
    if protocol == PROTOCOL_TLS { Reason::LargeHello } else { Reason::LargeHead }
}

#[inline(always)]
fn tls_candidate(candidate: HostKeyKind, tables: &impl Tables) -> Option<ConnectionDecision> {
    // `tcp_be` first: its entry is written first and deleted last, so most names take one look-up.
    if let Some(route) = tables.tcp_be(candidate) {
        let reason = if refused(&route, tables) {
            Reason::SourceNotAllowed
        } else if route.reason == Reason::NeedsRelay as u16 {
            Reason::NeedsRelay
        } else {
            Reason::Passthrough
        };
        return Some(ConnectionDecision { reason, route: route.route });
    }
    if tables.is_passthrough(candidate) {
        // In `sni_passthrough` without a backend: the agent is between two map writes, and decides.
        return Some(ConnectionDecision::of(Reason::UnknownSni));
    }
    let route = tables.edge_reencrypt(candidate)?;
    Some(ConnectionDecision { reason: Reason::TlsTerminate, route: route.route })
}

#[inline(always)]
fn refused(route: &HostRef, tables: &impl Tables) -> bool {
    route.flags & ROUTE_ALLOW_LIST != 0 && !tables.source_allowed(route.route)
}

#[cfg(test)]
mod tests;

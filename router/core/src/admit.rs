//! Which routes a router serves, and why it refuses the others (docs/openshift.md#admission).
//!
//! Everything is recomputed from the objects, oldest first, so the answer depends neither on the order of events nor on
//! what was served before: a loser is admitted the moment its blocker leaves.

mod claims;
mod domains;
mod foreign;
mod host;
mod material;
mod wildcards;

use std::fmt;
use std::sync::Arc;

use rustls::sign::CertifiedKey;

use crate::model::HostMatch;
use crate::object::{Kind, ObjectKey, ObjectRef};
use crate::parse::{NamespaceOwnership, Route, Secret, WildcardAdmission, WildcardPolicy};
use crate::resources::Objects;
use crate::sites::OwnedAge;
use claims::HostClaims;
use wildcards::WildcardClaims;

pub use domains::DomainLists;
pub use foreign::{ForeignClaim, ForeignClaims, contested};
pub use host::effective_host;

/// What a router admits by: the part of an IngressController that admission looks at.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What `spec.subdomain` is joined to.
    pub domain: String,
    /// `routeAdmission.namespaceOwnership`.
    pub ownership: NamespaceOwnership,
    /// `routeAdmission.wildcardPolicy`.
    pub wildcards: WildcardAdmission,
    /// Domains that are denied or allowed.
    pub domains: DomainLists,
}

/// A route that a router serves. Only [`admit`] makes one, so holding it proves the claim.
#[derive(Clone, Debug)]
pub struct AdmittedRoute {
    route: Arc<Route>,
    host: HostMatch,
    certificate: Option<Arc<CertifiedKey>>,
}

impl AdmittedRoute {
    /// The route.
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// What it serves on this router.
    pub fn host(&self) -> &HostMatch {
        &self.host
    }

    /// Its own certificate, inline or from a Secret.
    pub fn certificate(&self) -> Option<&Arc<CertifiedKey>> {
        self.certificate.as_ref()
    }
}

/// A route that a router refuses.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// `reason` of its Admitted condition.
    pub reason: RejectReason,
    /// `message` of its Admitted condition.
    pub message: String,
    /// The older object that stands in the way. For operators only: statuses never name a foreign namespace.
    pub winner: Option<ObjectRef>,
}

/// Why a route is refused, as the condition's reason spells it (docs/openshift.md#reasons).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RejectReason {
    /// The router admits no wildcard routes, or does not serve the host's domain.
    RouteNotAdmitted,
    /// The effective host is empty.
    NoHostValue,
    /// The effective host is no host name.
    InvalidHost,
    /// An older route, or an older object of another kind, stands in the way.
    HostAlreadyClaimed,
    /// Certificate, key or CA of the route are no good.
    ExtendedValidationFailed,
    /// `externalCertificate` names a Secret that is not there.
    ExternalCertificateGetFailed,
    /// `externalCertificate` names a Secret that cannot be used.
    ExternalCertificateValidationFailed,
    /// The manifest is refused, and there is no earlier version.
    InvalidManifest,
}

impl RejectReason {
    /// As the condition writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            RejectReason::RouteNotAdmitted => "RouteNotAdmitted",
            RejectReason::NoHostValue => "NoHostValue",
            RejectReason::InvalidHost => "InvalidHost",
            RejectReason::HostAlreadyClaimed => "HostAlreadyClaimed",
            RejectReason::ExtendedValidationFailed => "ExtendedValidationFailed",
            RejectReason::ExternalCertificateGetFailed => "ExternalCertificateGetFailed",
            RejectReason::ExternalCertificateValidationFailed => "ExternalCertificateValidationFailed",
            RejectReason::InvalidManifest => "InvalidManifest",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of one route on one router.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The route.
    pub route: Arc<Route>,
    /// Its effective host on this router, good or not; empty when it has none.
    pub host: Arc<str>,
    /// Served, or not and why.
    pub outcome: Result<AdmittedRoute, Rejection>,
}

/// What became of routes.
#[derive(Debug, Default)]
pub struct Admission {
    /// In the order of the routes.
    pub decisions: Vec<Decision>,
    /// Hosts that objects of other kinds wanted, and the Route that has each of them.
    pub won: Vec<(HostMatch, ObjectKey)>,
}

/// Decides every route that a router has selected. `routes` must be in order of age, oldest first (`Meta::age`).
pub fn admit<'r>(
    policy: &Policy,
    routes: impl IntoIterator<Item = &'r Arc<Route>>,
    secrets: &Objects<Secret>,
    foreign: &ForeignClaims,
) -> Admission {
    let routes = routes.into_iter();
    let mut claims = Claims {
        hosts: HostClaims::with_capacity(routes.size_hint().0),
        domains: WildcardClaims::default(),
        foreign,
        won: Vec::new(),
    };
    let decide = |route: &'r Arc<Route>| {
        let host = effective_host(route, &policy.domain);
        let outcome = claims.claim(policy, route, &host).and_then(|host_match| {
            // Claims come before certificates: a broken certificate must not open the host to a younger route.
            let certificate = material::certificate(route, secrets)?;
            Ok(AdmittedRoute { route: route.clone(), host: host_match, certificate })
        });
        Decision { route: route.clone(), host, outcome }
    };
    let decisions = routes.map(decide).collect();
    Admission { decisions, won: claims.won }
}

/// Who holds what on a router.
struct Claims<'r, 'f> {
    hosts: HostClaims<'r>,
    domains: WildcardClaims<'r>,
    foreign: &'f ForeignClaims,
    won: Vec<(HostMatch, ObjectKey)>,
}

impl<'r> Claims<'r, '_> {
    fn claim(&mut self, policy: &Policy, route: &'r Route, host: &Arc<str>) -> Result<HostMatch, Rejection> {
        policy.domains.check(host)?;
        let wildcards_allowed = policy.wildcards == WildcardAdmission::WildcardsAllowed;
        if route.wildcard_policy == WildcardPolicy::Subdomain && !wildcards_allowed {
            return Err(reject(RejectReason::RouteNotAdmitted, "wildcard routes are not allowed"));
        }
        let host_match = host::host_match(route, host)?;
        if let HostMatch::Wildcard(domain) = &host_match {
            // The first label is decoration: what is served is every name of the domain.
            policy.domains.check(domain.as_str())?;
        }
        let contested = self.foreign.on(&host_match).filter(|_| !self.hosts.is_held(&host_match));
        if let Some((_, claim)) = contested.as_ref().filter(|(_, claim)| claim.age < OwnedAge::of(&route.meta)) {
            return Err(foreign::refusal(route, host, claim));
        }
        let claimed = |taken: Taken<'_>| Rejection {
            reason: RejectReason::HostAlreadyClaimed,
            message: taken.message,
            winner: Some(ObjectRef { kind: Kind::Route, key: taken.by.meta.key.clone() }),
        };
        if wildcards_allowed {
            self.domains.check(route, host, policy.ownership).map_err(claimed)?;
        }
        self.hosts.check(route, host, &host_match, policy.ownership).map_err(claimed)?;
        if wildcards_allowed {
            self.domains.hold(route, host);
        }
        self.hosts.hold(route, &host_match);
        self.won.extend(contested.map(|(host, _)| (host, route.meta.key.clone())));
        Ok(host_match)
    }
}

fn reject(reason: RejectReason, message: impl Into<String>) -> Rejection {
    Rejection { reason, message: message.into(), winner: None }
}

/// What a route wants is another's.
struct Taken<'r> {
    message: String,
    by: &'r Route,
}

#[cfg(test)]
mod tests;

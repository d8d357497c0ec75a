//! Admission: which Routes a router serves, and why it rejects the others (docs/openshift.md#admission).
//!
//! Recomputed from all objects, oldest first, so the result depends neither on the order of events nor on what was
//! served before: a Route that lost a claim is admitted as soon as the claim is free.

pub mod cross_api;
pub mod host;
pub(crate) mod host_claims;
pub(crate) mod material;
pub(crate) mod wildcards;

use std::sync::Arc;

use host_claims::HostClaims;
use router_api::kubernetes::secret::Secret;
use router_api::openshift::ingress_controller::{NamespaceOwnership, WildcardAdmission};
use router_api::openshift::route::{Route, WildcardPolicy};
use router_api::resources::Objects;
use router_model::certificate::Certificate;
use router_model::names::HostMatch;
use router_model::object::ObjectKey;
use wildcards::WildcardClaims;

use crate::domain_lists::DomainLists;
use crate::openshift::claims::cross_api::{OtherApiClaims, conflict};
use crate::openshift::claims::host::effective_host;
use crate::owned_age::OwnedAge;
use crate::status::rejection::{RejectReason, Rejection, reject};

/// The fields of an IngressController that admission uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionPolicy {
    /// Domain appended to `spec.subdomain`.
    pub domain: String,
    /// `routeAdmission.namespaceOwnership`.
    pub ownership: NamespaceOwnership,
    /// `routeAdmission.wildcardPolicy`.
    pub wildcards: WildcardAdmission,
    /// Denied and allowed domains.
    pub domains: DomainLists,
}

/// A Route that a router serves. Only [`admit`] creates one, so holding it proves the claim.
#[derive(Clone, Debug)]
pub struct AdmittedRoute {
    route: Arc<Route>,
    host: HostMatch,
    certificate: Option<Certificate>,
}

impl AdmittedRoute {
    /// The route.
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// The host or wildcard that it serves on this router.
    pub fn host(&self) -> &HostMatch {
        &self.host
    }

    /// Its own certificate, inline or from a Secret.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }
}

/// Decision on one Route by one router.
#[derive(Clone, Debug)]
pub struct AdmissionDecision {
    /// The route.
    pub route: Arc<Route>,
    /// Its effective host on this router, valid or not; empty if it has none.
    pub host: Arc<str>,
    /// Admitted, or rejected and why.
    pub outcome: Result<AdmittedRoute, Rejection>,
}

/// Decisions on Routes.
#[derive(Debug, Default)]
pub struct Admission {
    /// In the order of the routes.
    pub decisions: Vec<AdmissionDecision>,
    /// Hosts that other APIs' objects claim, and the Route that owns each.
    pub won: Vec<(HostMatch, ObjectKey)>,
}

/// Decides on every Route that a router has selected. `routes` must be sorted by age, oldest first (`Meta::age`).
pub fn admit<'r>(
    policy: &AdmissionPolicy,
    routes: impl IntoIterator<Item = &'r Arc<Route>>,
    secrets: &Objects<Secret>,
    foreign: &OtherApiClaims,
) -> Admission {
    let routes = routes.into_iter();
    let mut claims = RouterClaims {
        hosts: HostClaims::with_capacity(routes.size_hint().0),
        domains: WildcardClaims::default(),
        foreign,
        won: Vec::new(),
    };
    let decide = |route: &'r Arc<Route>| {
        let host = effective_host(route, &policy.domain);
        let outcome = claims.claim(policy, route, &host).and_then(|host_match| {
            // Claims precede certificates: an invalid certificate must not free the host for a younger Route.
            let certificate = material::certificate(route, secrets)?;
            Ok(AdmittedRoute { route: route.clone(), host: host_match, certificate })
        });
        AdmissionDecision { route: route.clone(), host, outcome }
    };
    let decisions = routes.map(decide).collect();
    Admission { decisions, won: claims.won }
}

fn is_in_domains(domains: &DomainLists, host: &str) -> Result<(), Rejection> {
    domains.fault(host).map_or(Ok(()), |message| Err(reject(RejectReason::RouteNotAdmitted, message)))
}

/// Claims on the hosts of a router.
struct RouterClaims<'r, 'f> {
    hosts: HostClaims<'r>,
    domains: WildcardClaims<'r>,
    foreign: &'f OtherApiClaims,
    won: Vec<(HostMatch, ObjectKey)>,
}

impl<'r> RouterClaims<'r, '_> {
    fn claim(&mut self, policy: &AdmissionPolicy, route: &'r Route, host: &Arc<str>) -> Result<HostMatch, Rejection> {
        is_in_domains(&policy.domains, host)?;
        let wildcards_allowed = policy.wildcards == WildcardAdmission::WildcardsAllowed;
        if route.wildcard_policy == WildcardPolicy::Subdomain && !wildcards_allowed {
            return Err(reject(RejectReason::RouteNotAdmitted, "wildcard routes are not allowed"));
        }
        let host_match = host::host_match(route, host)?;
        if let HostMatch::Wildcard(domain) = &host_match {
            // The first label has no meaning: a wildcard Route serves every name of the domain.
            is_in_domains(&policy.domains, domain.as_str())?;
        }
        let contested = self.foreign.on(&host_match).filter(|_| !self.hosts.is_held(&host_match));
        if let Some((_, claim)) = contested.as_ref().filter(|(_, claim)| claim.age < OwnedAge::of(&route.meta)) {
            return Err(Box::new(conflict(claim, route, host)).into());
        }
        if wildcards_allowed {
            self.domains.check(route, host, policy.ownership)?;
        }
        self.hosts.check(route, host, &host_match, policy.ownership)?;
        if wildcards_allowed {
            self.domains.hold(route, host);
        }
        self.hosts.hold(route, &host_match);
        self.won.extend(contested.map(|(host, _)| (host, route.meta.key.clone())));
        Ok(host_match)
    }
}

#[cfg(test)]
mod tests;

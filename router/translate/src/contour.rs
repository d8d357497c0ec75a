//! Contour: translates IngressRoutes, HTTPProxies and TLSCertificateDelegations into host rules and statuses
//! (docs/delegation.md#subdomains).
//!
//! `claims` decides which object may have which host, `walk` follows the delegations below a host, `serve` builds the
//! virtual host, and `status` writes the statuses. All objects are served on the router `default`; if no router has
//! this name, on the first one.

mod backends;
mod claims;
pub(crate) mod matching;
mod serve;
pub mod status;
mod tls;
mod walk;

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_model::certificate::subject;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::table::VirtualHost;

use self::backends::Backends;
use self::serve::Maker;
use self::tls::HostTls;
use self::walk::{DelegationWalk, own_faults};
use crate::contour::claims::types::{Claim, ContourClaims, Proxies};
use crate::contour::status::{Report, root_invalid};
use crate::endpoints::services::Services;
use crate::owned_age::OwnedAge;
use crate::translator::{ApiTranslation, HostClaim, Inputs, LostHosts, RouterPorts, Translator};

/// The router that serves Contour's objects, if a router of this name exists.
pub const ROUTER: &str = "default";
/// Status code for requests to a subdomain whose delegate does not exist, as for a missing include of an HTTPProxy.
const NO_DELEGATE: u16 = 502;

/// Contour's objects, with the decision on which object may have which host.
#[derive(Debug)]
pub struct ContourTranslator<'r> {
    inputs: Inputs<'r>,
    proxies: Proxies<'r>,
    router: Option<&'r RouterPorts>,
    claims: ContourClaims<'r>,
}

impl<'r> ContourTranslator<'r> {
    /// Decides which object may have which host.
    pub fn new(inputs: &Inputs<'r>) -> Self {
        let resources = inputs.resources;
        let proxies: Proxies<'r> = resources
            .ingress_routes
            .iter()
            .chain(resources.http_proxies.iter())
            .filter(|proxy| !proxy.is_foreign())
            .map(|proxy| (proxy.object(), proxy))
            .collect();
        let router = inputs.routers.iter().find(|router| *router.name.0 == *ROUTER).or(inputs.routers.first());
        let claims = claims::decide(&proxies, inputs.settings);
        ContourTranslator { inputs: *inputs, proxies, router, claims }
    }

    fn backends(&self) -> Backends<'r> {
        let Inputs { resources, endpoints, .. } = self.inputs;
        Backends { resources, services: Services::new(resources, endpoints) }
    }

    /// The TLS of each domain, or why the domain is invalid; outermost first.
    fn domains(&self) -> Vec<Result<HostTls, Violation>> {
        let mut states: Vec<Result<HostTls, Violation>> = Vec::new();
        for delegated_domain in &self.claims.delegated_domains {
            let parent = delegated_domain.parent.and_then(|at| states.get(at));
            let state = match delegated_domain.root {
                None => Err(Violation::new("VirtualHostError", "DuplicateVhost", "several roots have this domain")),
                Some(root) => self.domain(root, parent),
            };
            states.push(state);
        }
        states
    }

    fn domain(
        &self,
        root: &Arc<ContourProxy>,
        parent: Option<&Result<HostTls, Violation>>,
    ) -> Result<HostTls, Violation> {
        let inputs = match parent {
            Some(Ok(tls)) => tls.clone(),
            Some(Err(_)) => return Err(root_invalid()),
            None => HostTls::None,
        };
        if let Some(fault) = root.faults.first() {
            return Err(fault.clone());
        }
        if !root.routes.is_empty() || root.tcp.is_some() {
            return Err(Violation::new("VirtualHostError", "DomainRootWithRoutes", "domain root cannot define routes"));
        }
        if root.subdomains.is_empty() {
            let message = "Spec.Subdomains must be specified for a Fqdn that begins with a dot";
            return Err(Violation::new("VirtualHostError", "NoSubdomains", message));
        }
        match root.virtual_host.as_ref().and_then(|host| host.tls.as_ref()) {
            Some(spec) => tls::own(root, spec, self.inputs.resources).map(|own| own.at_least(&inputs)),
            None => Ok(inputs),
        }
    }

    /// The virtual host of a claim; `None` if the claim is invalid. Adds the claim's faults to `report`.
    fn host(
        &self,
        claim: &Claim<'r>,
        domains: &[Result<HostTls, Violation>],
        maker: &mut Maker,
        report: &mut Report,
    ) -> Option<VirtualHost> {
        let domain = match claim.entry {
            None => HostTls::None,
            Some((delegated_domain, _)) => match domains.get(delegated_domain)? {
                Ok(tls) => tls.clone(),
                Err(_) => {
                    report.fault(claim, root_invalid());
                    return None;
                }
            },
        };
        let Some(start) = claim.start else {
            let delegate = self.delegate(claim).map(ToString::to_string).unwrap_or_default();
            report.entry(claim, format!("delegate {delegate} not found"));
            return Some(maker.answer(claim, &domain, NO_DELEGATE));
        };
        let own = start.virtual_host.as_ref().and_then(|host| host.tls.as_ref());
        let tls = match own.map(|spec| tls::own(start, spec, self.inputs.resources)) {
            None => Ok(domain),
            Some(own) => own.map(|own| own.at_least(&domain)),
        };
        let tls = match tls.and_then(|tls| fits(start, &tls, own.is_some()).map(|()| tls)) {
            Ok(tls) => tls,
            Err(fault) => {
                report.fault(claim, fault);
                return None;
            }
        };
        if let HostTls::Terminate { certificate, secret, .. } = &tls
            && claim.entry.is_some()
            && !subject::covers(certificate, &claim.name)
        {
            // Only the owner of the Secret gets the warning: a delegate must not learn the name of an inherited Secret.
            let warning = format!("certificate {secret} does not cover {}", claim.name);
            if own.is_some() {
                report.warn_delegate(claim, warning);
            } else {
                report.warn_domain(&self.claims, claim, warning);
            }
        }
        let entered = report.entered.entry(Arc::clone(&claim.root.meta.key.namespace)).or_default();
        let mut walk = DelegationWalk::new(&self.proxies, self.backends(), claim, *entered);
        walk.visit(&DelegationWalk::start(start));
        let tcp = start.tcp.as_ref().and_then(|_| walk.tcp(&DelegationWalk::start(start)));
        walk.routes(start);
        *entered += walk.entered;
        let host = maker.virtual_host(claim, &tls, walk.rules, tcp);
        report.visits(walk.visits.into_values());
        Some(host)
    }

    fn delegate(&self, claim: &Claim<'r>) -> Option<&'r ObjectKey> {
        let (_, entry) = claim.entry?;
        claim.root.subdomains.get(entry).map(|subdomain| &subdomain.delegate)
    }
}

/// Checks that what an object serves is possible with its TLS.
fn fits(start: &ContourProxy, tls: &HostTls, is_own: bool) -> Result<(), Violation> {
    if let Some(fault) = own_faults(start).into_iter().next() {
        return Err(fault);
    }
    match (tls, &start.tcp) {
        (HostTls::None, Some(_)) => {
            let message = "Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set";
            Err(Violation::new("TCPProxyError", "TLSMustBeConfigured", message))
        }
        (HostTls::Passthrough { .. }, None) => {
            let message = if is_own {
                "Spec.VirtualHost.TLS.Passthrough requires that Spec.TCPProxy be set"
            } else {
                "TLS of the domain is passed through, which requires that Spec.TCPProxy be set"
            };
            Err(Violation::new("TLSError", "TLSConfigNotValid", message))
        }
        _ => Ok(()),
    }
}

impl Translator for ContourTranslator<'_> {
    fn claims(&self) -> Vec<HostClaim> {
        let Some(router) = self.router else { return Vec::new() };
        let claim = |(host, owner): (&_, &&Arc<ContourProxy>)| HostClaim {
            router: router.name.clone(),
            host: Clone::clone(host),
            owner: owner.object(),
            age: OwnedAge::of(&owner.meta),
        };
        self.claims.claimed.iter().map(claim).collect()
    }

    fn translate(&self, lost: &LostHosts) -> ApiTranslation {
        let mut report = Report::new(&self.claims);
        let mut translation = ApiTranslation::default();
        let domains = self.domains();
        report.domains(&self.claims, &domains);
        if let Some(router) = self.router {
            let good = self.claims.delegated_domains.iter().zip(&domains).filter(|(_, domain)| domain.is_ok());
            translation.domains =
                good.map(|(delegated_domain, _)| (router.name.clone(), delegated_domain.domain.clone())).collect();
            let conflict = |claim: &Claim<'_>| {
                let owner = lost.get(&(router.name.clone(), claim.host.clone()))?;
                Some(owner.conflict(claim.name.to_string(), claim.root.object(), claim.root.meta.created))
            };
            for (claim, _) in &self.claims.lost_to_other_kind {
                if let Some(conflict) = conflict(claim) {
                    report.forget(claim);
                    report.lost(claim, &conflict);
                }
            }
            let mut maker = Maker::new(router.traffic);
            for claim in &self.claims.granted {
                match conflict(claim) {
                    Some(conflict) => report.lost(claim, &conflict),
                    None => {
                        let host = self.host(claim, &domains, &mut maker, &mut report);
                        translation.hosts.extend(host.map(|host| (router.name.clone(), host)));
                    }
                }
            }
        }
        let router = self.router.map(|router| &router.name);
        translation.statuses = report.statuses(&self.proxies, router);
        let delegations = self.inputs.resources.certificate_delegations.iter().filter(|object| object.has_status);
        translation.statuses.extend(delegations.map(|object| {
            let reference = ObjectRef { kind: Kind::TlsCertificateDelegation, key: object.meta.key.clone() };
            (reference, status::serialize::certificate_delegation(object, self.inputs.resources))
        }));
        translation
    }
}

#[cfg(test)]
mod tests;

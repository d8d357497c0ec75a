//! Contour's IngressRoute, HTTPProxy and TLSCertificateDelegation: from objects to sites and statuses
//! (docs/delegation.md#subdomains).
//!
//! `claims` says who may have which host, `walk` follows the delegations below a host, `serve` makes what is served,
//! `report` what objects are told. All objects hang on the router `default`, or else on the first one.

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
use self::walk::{Walk, own_faults};
use crate::contour::claims::types::{Claim, Claims, Vertices};
use crate::contour::status::{Report, root_invalid};
use crate::endpoints::services::Services;
use crate::owned_age::OwnedAge;
use crate::translator::{ApiTranslation, HostClaim, Inputs, LostHosts, RouterPorts, Translator};

/// The router that Contour's objects hang on, where there is one of this name.
pub const ROUTER: &str = "default";
/// What requests for a subdomain are answered whose delegate is not there, as an HTTPProxy's include is.
const NO_DELEGATE: u16 = 502;

/// Contour's objects, and who may have which host.
#[derive(Debug)]
pub struct Model<'r> {
    inputs: Inputs<'r>,
    vertices: Vertices<'r>,
    router: Option<&'r RouterPorts>,
    claims: Claims<'r>,
}

impl<'r> Model<'r> {
    /// Decides about names.
    pub fn new(inputs: &Inputs<'r>) -> Self {
        let resources = inputs.resources;
        let vertices: Vertices<'r> = resources
            .ingress_routes
            .iter()
            .chain(resources.http_proxies.iter())
            .filter(|vertex| !vertex.is_foreign)
            .map(|vertex| (vertex.object(), vertex))
            .collect();
        let router = inputs.routers.iter().find(|router| *router.name.0 == *ROUTER).or(inputs.routers.first());
        let claims = claims::decide(&vertices, inputs.settings);
        Model { inputs: *inputs, vertices, router, claims }
    }

    fn backends(&self) -> Backends<'r> {
        let Inputs { resources, endpoints, .. } = self.inputs;
        Backends { resources, services: Services::new(resources, endpoints) }
    }

    /// The TLS of each domain, or why the domain cannot be served, outermost first.
    fn domains(&self) -> Vec<Result<HostTls, Violation>> {
        let mut states: Vec<Result<HostTls, Violation>> = Vec::new();
        for zone in &self.claims.zones {
            let parent = zone.parent.and_then(|at| states.get(at));
            let state = match zone.root {
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

    /// What a host serves. `None`: nothing, and the report says why.
    fn host(
        &self,
        claim: &Claim<'r>,
        domains: &[Result<HostTls, Violation>],
        maker: &mut Maker,
        report: &mut Report,
    ) -> Option<VirtualHost> {
        let domain = match claim.entry {
            None => HostTls::None,
            Some((zone, _)) => match domains.get(zone)? {
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
            // Whose Secret it is hears of it; a delegate is never told the name of what it inherits.
            let warning = format!("certificate {secret} does not cover {}", claim.name);
            if own.is_some() {
                report.warn_delegate(claim, warning);
            } else {
                report.warn_domain(&self.claims, claim, warning);
            }
        }
        let entered = report.entered.entry(Arc::clone(&claim.root.meta.key.namespace)).or_default();
        let mut walk = Walk::new(&self.vertices, self.backends(), claim, *entered);
        walk.visit(&Walk::start(start));
        let tcp = start.tcp.as_ref().and_then(|_| walk.tcp(&Walk::start(start)));
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

/// Whether what an object serves goes with its TLS, and nothing is asked for that would not be kept.
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

impl Translator for Model<'_> {
    fn claims(&self) -> Vec<HostClaim> {
        let Some(router) = self.router else { return Vec::new() };
        let want = |(host, owner): (&_, &&Arc<ContourProxy>)| HostClaim {
            router: router.name.clone(),
            host: Clone::clone(host),
            owner: owner.object(),
            age: OwnedAge::of(&owner.meta),
        };
        self.claims.wanted.iter().map(want).collect()
    }

    fn translate(&self, lost: &LostHosts) -> ApiTranslation {
        let mut report = Report::new(&self.claims);
        let mut settled = ApiTranslation::default();
        let domains = self.domains();
        report.domains(&self.claims, &domains);
        if let Some(router) = self.router {
            let good = self.claims.zones.iter().zip(&domains).filter(|(_, domain)| domain.is_ok());
            settled.domains = good.map(|(zone, _)| (router.name.clone(), zone.domain.clone())).collect();
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
                        settled.hosts.extend(host.map(|host| (router.name.clone(), host)));
                    }
                }
            }
        }
        let router = self.router.map(|router| &router.name);
        settled.statuses = report.told(&self.vertices, router);
        let delegations = self.inputs.resources.certificate_delegations.iter().filter(|object| object.has_status);
        settled.statuses.extend(delegations.map(|object| {
            let reference = ObjectRef { kind: Kind::TlsCertificateDelegation, key: object.meta.key.clone() };
            (reference, status::written::certificate_delegation(object, self.inputs.resources))
        }));
        settled
    }
}

#[cfg(test)]
mod tests;

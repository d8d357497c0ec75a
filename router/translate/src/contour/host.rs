//! Translates one host, given its claims.

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_model::certificate::subject;
use router_table::table::VirtualHost;

use super::backends::Backends;
use super::serve::VirtualHostBuilder;
use super::tls::{self, HostTls};
use super::walk::{DelegationWalk, own_faults};
use crate::contour::claims::types::{Claim, Contest, proxy};
use crate::contour::domain_tls::DomainStates;
use crate::contour::numbers::Numbers;
use crate::contour::outcome::ContourOutcome;
use crate::contour::status::wording::root_invalid;
use crate::status::host_conflict::HostOwner;
use crate::translator::RouterPorts;

/// Status code for requests to a subdomain whose delegate does not exist, as for a missing include of an HTTPProxy.
const NO_DELEGATE: u16 = 502;

/// Inputs for the translation of one host.
#[derive(Clone, Copy, Debug)]
pub struct HostTranslator<'r> {
    /// Objects.
    pub backends: Backends<'r>,
    /// The router; without one, no host is served.
    pub router: Option<&'r RouterPorts>,
    /// The TLS of domains.
    pub states: &'r DomainStates,
    /// The numbers of routes.
    pub numbers: &'r Numbers,
}

impl HostTranslator<'_> {
    /// The outcome of a host, and its virtual host if it is served. `owner` is an object of another API that owns the
    /// host; `earlier_visits` is the number of visits below hosts before it whose roots are in the same namespace.
    pub fn translate(
        &self,
        contest: &Contest,
        owner: Option<&HostOwner>,
        earlier_visits: usize,
    ) -> (ContourOutcome, Option<VirtualHost>) {
        // The conflict with another API compares the age of the root.
        let roots = contest.claims().filter(|_| owner.is_some()).map(|claim| claim.root.clone());
        let others = contest.claims().map(|claim| claim.start.clone()).chain(roots).collect();
        let namespace = contest.granted().map(|claim| Arc::clone(&claim.root.key.namespace));
        let mut outcome = ContourOutcome { others, namespace, earlier_visits, ..ContourOutcome::default() };
        for (claim, conflict) in &contest.others {
            match owner {
                Some(owner) => self.lost(claim, owner, &mut outcome),
                None => outcome.lost_to_other_kind(claim, conflict),
            }
        }
        let host = match (contest.granted(), owner) {
            (None, _) => {
                outcome.duplicates(&contest.own);
                None
            }
            (Some(claim), Some(owner)) => {
                self.lost(claim, owner, &mut outcome);
                None
            }
            (Some(claim), None) => self.router.and_then(|router| self.host(claim, router, &mut outcome)),
        };
        outcome.served = host.is_some();
        outcome.sort();
        (outcome, host)
    }

    fn lost(&self, claim: &Claim, owner: &HostOwner, outcome: &mut ContourOutcome) {
        let created = proxy(self.backends.resources, &claim.root).map(|root| root.meta.created).unwrap_or_default();
        outcome.lost(claim, &owner.conflict(claim.name.to_string(), claim.root.clone(), created));
    }

    /// The virtual host of a granted claim; `None` if the claim is invalid. Adds its faults to `outcome`.
    fn host(&self, claim: &Claim, router: &RouterPorts, outcome: &mut ContourOutcome) -> Option<VirtualHost> {
        let resources = self.backends.resources;
        let domain = match claim.domain.as_ref().map(|domain| self.states.get(domain)) {
            None => HostTls::None,
            Some(Some(Ok(tls))) => tls.clone(),
            Some(_) => {
                outcome.fault(claim, root_invalid());
                return None;
            }
        };
        let (root, start) = (proxy(resources, &claim.root)?, proxy(resources, &claim.start));
        let mut builder = VirtualHostBuilder::new(claim, root, start, router.traffic, self.numbers);
        let Some(start) = start else {
            outcome.problem = Some(format!("delegate {} not found", claim.start.key));
            let host = builder.answer(&domain, NO_DELEGATE);
            outcome.parts = builder.parts();
            return Some(host);
        };
        let own = start.virtual_host.as_ref().and_then(|host| host.tls.as_ref());
        let tls = match own.map(|spec| tls::own(start, spec, resources)) {
            None => Ok(domain),
            Some(own) => own.map(|own| own.at_least(&domain)),
        };
        let tls = match tls.and_then(|tls| fits(start, &tls, own.is_some()).map(|()| tls)) {
            Ok(tls) => tls,
            Err(fault) => {
                outcome.fault(claim, fault);
                return None;
            }
        };
        if let HostTls::Terminate { certificate, secret, .. } = &tls
            && claim.domain.is_some()
            && !subject::covers(certificate, &claim.name)
        {
            // Only the owner of the Secret gets the warning: a delegate must not learn the name of an inherited Secret.
            let warning = format!("certificate {secret} does not cover {}", claim.name);
            if own.is_some() {
                outcome.warn_delegate(claim, warning);
            } else {
                outcome.warning = Some(warning);
            }
        }
        let mut walk = DelegationWalk::new(self.backends, claim, outcome.earlier_visits);
        walk.visit(&DelegationWalk::start(start));
        let tcp = start.tcp.as_ref().and_then(|_| walk.tcp(&DelegationWalk::start(start)));
        walk.routes(start);
        outcome.visit_count = walk.visit_count;
        let host = builder.virtual_host(&tls, walk.rules, tcp);
        outcome.parts = builder.parts();
        outcome.visits.extend(walk.visits.into_values());
        Some(host)
    }
}

/// Checks that an object's `tcpproxy` and routes are possible with its TLS.
fn fits(start: &Arc<ContourProxy>, tls: &HostTls, is_own: bool) -> Result<(), Violation> {
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

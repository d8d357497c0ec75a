//! Statuses of Contour objects. A delegate's status has one entry for each path that leads to it, and a summary: it is
//! valid if one of them is (docs/delegation.md#s10).

mod path_status;
pub mod serialize;
pub mod wording;

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Subdomain};
use router_api::resources::Resources;
use router_model::names::{HostMatch, Hostname, RouterName};
use router_model::object::ObjectRef;

use super::claims::delegated_domains::domain_of;
use super::claims::types::{ContourClaims, is_domain, proxy};
use super::domain_tls::DomainStates;
use super::outcome::ContourOutcome;
use super::outcomes::Outcomes;
use super::walk::ProxyVisit;
use crate::contour::claims::delegated_domain::{DelegatedDomain, Delegation};
use crate::contour::status::path_status::{PathStatus, Validity, summary};
use crate::contour::status::serialize::status;
use crate::contour::status::wording::{DomainFindings, about};
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Reason of a row for an object that is partly invalid and still serves something.
pub const PARTLY: &str = "PartiallyInvalid";

/// Inputs for statuses.
#[derive(Clone, Copy, Debug)]
pub struct StatusInputs<'f> {
    /// Objects.
    pub resources: &'f Resources,
    /// The decision on hosts.
    pub claims: &'f ContourClaims,
    /// The TLS of domains.
    pub states: &'f DomainStates,
    /// The outcomes of hosts.
    pub outcomes: &'f Outcomes,
    /// The router.
    pub router: Option<&'f RouterName>,
}

impl StatusInputs<'_> {
    /// The status of an IngressRoute or HTTPProxy.
    pub fn status_of(&self, proxy: &ContourProxy) -> ObjectStatus {
        let object = proxy.object();
        let own = if is_domain(proxy) { domain_of(proxy).ok() } else { None };
        let domain = own.and_then(|domain| self.claims.domains.get(&domain));
        match domain.filter(|domain| domain.root.as_ref() == Some(&object)) {
            Some(domain) => self.status_of_domain(proxy, &object, domain),
            None => self.status_of_paths(proxy, &object),
        }
    }

    /// Findings about a domain that a single root owns.
    fn domain(&self, domain: &DelegatedDomain) -> DomainFindings {
        let problem = |entry: &Delegation| {
            let outcome = entry.host.as_ref().and_then(|host| self.outcome(host));
            let inner = entry.domain.as_ref().and_then(|domain| self.states.get(domain)?.as_ref().err());
            let own = entry.fault.as_ref().map(|fault| fault.message.clone());
            own.or_else(|| outcome?.problem.clone()).or_else(|| inner.map(|_| "the delegate is invalid".to_owned()))
        };
        DomainFindings {
            fault: self.states.get(&domain.domain).and_then(|state| state.as_ref().err().cloned()),
            entries: domain.entries.iter().map(problem).collect(),
            warnings: self.warnings(domain),
        }
    }

    fn outcome(&self, host: &Hostname) -> Option<&ContourOutcome> {
        self.outcomes.get(&HostMatch::Exact(host.clone()))
    }

    /// The warnings about the certificate that the root of a domain names, by host; inner domains inherit it.
    fn warnings(&self, domain: &DelegatedDomain) -> Vec<String> {
        let has_tls = |domain: &DelegatedDomain| {
            let root = domain.root.as_ref().and_then(|root| proxy(self.resources, root));
            root.is_some_and(|root| root.virtual_host.as_ref().is_some_and(|own| own.tls.is_some()))
        };
        let mut warnings = Vec::new();
        let mut inheriting = if has_tls(domain) { vec![domain] } else { Vec::new() };
        while let Some(domain) = inheriting.pop() {
            for entry in domain.entries.iter().filter(|entry| entry.fault.is_none()) {
                let host = entry.host.as_ref();
                warnings.extend(host.and_then(|host| Some((host, self.outcome(host)?.warning.clone()?))));
                let inner = entry.domain.as_ref().and_then(|inner| self.claims.domains.get(inner));
                let inherits = |inner: &&DelegatedDomain| inner.parent.as_ref() == Some(&domain.domain);
                inheriting.extend(inner.filter(inherits).filter(|inner| !has_tls(inner)));
            }
        }
        warnings.sort();
        warnings.into_iter().map(|(_, warning)| warning).collect()
    }

    fn row(&self) -> ParentStatus {
        ParentStatus { parent: self.router.map(ToString::to_string).unwrap_or_default(), ..ParentStatus::default() }
    }

    fn status_of_domain(&self, proxy: &ContourProxy, object: &ObjectRef, delegated: &DelegatedDomain) -> ObjectStatus {
        let domain = self.domain(delegated);
        let path_status = domain.path_status(&proxy.subdomains.iter().map(|entry| &*entry.name).collect::<Vec<_>>());
        let admitted = path_status.state == Validity::Valid;
        // Hosts that are served; if none is, the hosts that are claimed.
        let names = proxy.subdomains.iter().zip(&domain.entries).filter(|(_, it)| it.is_none() || !admitted);
        let mut rows = vec![ParentStatus {
            hosts: names.map(|(entry, _)| entry.name.to_string()).collect(),
            admitted,
            reason: path_status.state.reason().to_owned(),
            message: path_status.description.clone(),
            ..self.row()
        }];
        let entries = proxy.subdomains.iter().zip(&domain.entries).zip(&delegated.entries);
        for ((entry, problem), delegation) in entries.filter(|_| admitted) {
            let Some(problem) = problem else { continue };
            let winners = self.outcomes.winners(object, &entry.name);
            // The delegate's own status has more detail.
            if winners.is_empty() && delegation.fault.is_none() && self.has_detail(object, entry) {
                continue;
            }
            rows.push(ParentStatus {
                hosts: vec![entry.name.to_string()],
                admitted: false,
                reason: Validity::Invalid.reason().to_owned(),
                message: about(&entry.name, problem),
                winners,
                ..self.row()
            });
        }
        ObjectStatus::new(&status(proxy, &path_status, &[]), rows)
    }

    fn status_of_paths(&self, proxy: &ContourProxy, object: &ObjectRef) -> ObjectStatus {
        let rejected = self.claims.rejected.get(object).map(|fault| ProxyVisit::of_root(object, fault.clone()));
        let mut visits: Vec<&ProxyVisit> = self.outcomes.visits_of(object).chain(&rejected).collect();
        visits.sort_by(|a, b| a.path.cmp(&b.path));
        // A rejected root has no host; its claimed one is shown.
        let claimed = proxy.virtual_host.as_ref().map(|host| Arc::clone(&host.fqdn)).unwrap_or_default();
        let path_statuses: Vec<PathStatus> =
            visits.iter().map(|visit| PathStatus::of_visit(proxy.kind, visit)).collect();
        let rows = visits.iter().zip(&path_statuses).map(|(visit, path_status)| {
            let host = [&visit.host, &claimed].into_iter().find(|host| !host.is_empty());
            // A domain has no host of its own.
            let subdomains = proxy.subdomains.iter().filter(|_| visit.host.is_empty()).map(|entry| &entry.name);
            ParentStatus {
                parent: visit.parent().map_or_else(|| self.row().parent, |(parent, _)| parent.to_string()),
                hosts: host.into_iter().chain(subdomains).map(|host| host.to_string()).collect(),
                admitted: path_status.state == Validity::Valid || visit.serves,
                reason: if path_status.state == Validity::Invalid && visit.serves {
                    PARTLY.to_owned()
                } else {
                    path_status.state.reason().to_owned()
                },
                message: visit
                    .faults
                    .iter()
                    .skip(1)
                    .fold(path_status.description.clone(), |message, fault| format!("{message}; {}", fault.message)),
                winners: host.map(|host| self.outcomes.winners(object, &host.to_ascii_lowercase())).unwrap_or_default(),
            }
        });
        let mut rows: Vec<ParentStatus> = rows.collect();
        let path_status = summary(proxy.kind, path_statuses.as_slice());
        if rows.is_empty() {
            let (reason, message) = (path_status.state.reason().to_owned(), path_status.description.clone());
            rows.push(ParentStatus { reason, message, ..self.row() });
        }
        let lines: Vec<(&ProxyVisit, &PathStatus)> = visits.iter().copied().zip(&path_statuses).collect();
        ObjectStatus::new(&status(proxy, &path_status, &lines), rows)
    }

    /// True if the delegate's status reports the faults of this subdomain.
    fn has_detail(&self, root: &ObjectRef, entry: &Subdomain) -> bool {
        let delegate = ObjectRef { kind: root.kind, key: entry.delegate.clone() };
        let outcome = Hostname::parse(&entry.name).ok().and_then(|host| self.outcome(&host));
        outcome.is_some_and(|outcome| outcome.has_faults(&delegate, &entry.name))
    }
}

impl ProxyVisit {
    /// The parent on the path, and the entry that leads here.
    fn parent(&self) -> Option<(&ObjectRef, &str)> {
        let [.., parent, own] = &*self.path else { return None };
        Some((&parent.object, &own.via))
    }
}

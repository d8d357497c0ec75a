//! Statuses of Contour objects. A delegate's status has one entry for each path that leads to it, and a summary: it is
//! valid if one of them is (docs/delegation.md#s10).

mod path_status;
pub mod serialize;
pub mod wording;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::contour::status::path_status::{PathStatus, Validity, summary};
use router_api::contour::types::{ContourProxy, Subdomain, Violation};
use router_model::kind::Kind;
use router_model::names::RouterName;
use router_model::object::ObjectRef;

use super::claims::lost;
use super::tls::HostTls;
use super::walk::{Passed, ProxyVisit};
use crate::contour::claims::types::{Claim, ContourClaims, Proxies, Winners};
use crate::contour::status::serialize::status;
use crate::contour::status::wording::{Domain, ROOT_INVALID, about, partly};
use crate::status::host_conflict::HostConflict;
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Reason of a row for an object that is partly invalid and still serves something.
pub const PARTLY: &str = "PartiallyInvalid";

/// Violation of a delegate whose root is invalid; it must not reveal the cause.
pub fn root_invalid() -> Violation {
    Violation::new("Orphaned", ROOT_INVALID, "the root of the delegation is invalid")
}

/// Findings, collected while virtual hosts are built.
#[derive(Debug)]
pub struct Report {
    visits: BTreeMap<ObjectRef, BTreeMap<Vec<Passed>, ProxyVisit>>,
    /// Number of proxies visited below the roots of each namespace.
    pub entered: BTreeMap<Arc<str>, usize>,
    /// Roots of domains, with the index of the domain.
    roots: BTreeMap<ObjectRef, usize>,
    domains: Vec<Domain>,
    winners: Winners,
}

impl Report {
    /// Starts from the decision on hosts.
    pub fn new(claims: &ContourClaims<'_>) -> Self {
        let domains = claims.delegated_domains.iter().map(|delegated_domain| {
            let entries =
                delegated_domain.entries.iter().map(|entry| entry.fault.as_ref().map(|fault| fault.message.clone()));
            Domain { fault: None, entries: entries.collect(), warnings: Vec::new() }
        });
        let roots = claims
            .delegated_domains
            .iter()
            .enumerate()
            .filter_map(|(at, delegated_domain)| Some((delegated_domain.root?.object(), at)));
        let mut report = Report {
            visits: BTreeMap::new(),
            entered: BTreeMap::new(),
            roots: roots.collect(),
            domains: domains.collect(),
            winners: claims.winners.clone(),
        };
        for (object, fault) in &claims.refused {
            let path = vec![Passed { object: object.clone(), via: "".into(), entry: 0 }];
            report.visits([ProxyVisit {
                object: object.clone(),
                path,
                host: "".into(),
                faults: vec![fault.clone()],
                warnings: Vec::new(),
                serves: false,
            }]);
        }
        for delegated_domain in &claims.delegated_domains {
            let written = delegated_domain.root.into_iter().flat_map(|root| &root.subdomains);
            for (entry, written) in delegated_domain.entries.iter().zip(written) {
                let contended = |fault: &&Violation| fault.reason == "DuplicateVhost";
                let (Some(root), Some(fault)) = (delegated_domain.root, entry.fault.as_ref().filter(contended)) else {
                    continue;
                };
                let delegate = ObjectRef { kind: root.kind, key: written.delegate.clone() };
                report.visits([subdomain_visit(root, &delegate, &written.name, fault.clone())]);
            }
        }
        for (claim, conflict) in &claims.lost_to_other_kind {
            if let Some(delegate) = claim.start.filter(|_| claim.entry.is_some()).map(|start| start.object()) {
                let fault = lost(conflict, &delegate);
                report.visits([subdomain_visit(claim.root, &delegate, &claim.name, fault)]);
            }
        }
        report
    }

    /// Records invalid domains.
    pub fn domains(&mut self, claims: &ContourClaims<'_>, states: &[Result<HostTls, Violation>]) {
        for (domain, state) in self.domains.iter_mut().zip(states) {
            domain.fault = state.as_ref().err().cloned();
        }
        for (domain, delegated_domain) in self.domains.iter_mut().zip(&claims.delegated_domains) {
            for (problem, entry) in domain.entries.iter_mut().zip(&delegated_domain.entries) {
                let inner =
                    entry.domain.as_ref().and_then(|name| states.get(*claims.domains.get(name)?)?.as_ref().err());
                if problem.is_none() && inner.is_some() {
                    *problem = Some("the delegate is invalid".to_owned());
                }
            }
        }
    }

    /// Records a violation of the object where a host begins; the host is not served.
    pub fn fault(&mut self, claim: &Claim<'_>, fault: Violation) {
        if fault.reason != ROOT_INVALID {
            let delegate = claim.start.map(|start| start.meta.key.to_string()).unwrap_or_default();
            self.entry(claim, format!("delegate {delegate} is invalid"));
        }
        let Some(start) = claim.start else { return };
        let visit = match claim.entry {
            Some(_) => subdomain_visit(claim.root, &start.object(), &claim.name, fault),
            None => {
                let path = vec![Passed { object: start.object(), via: "".into(), entry: 0 }];
                let host = claim.name.clone();
                let (faults, warnings) = (vec![fault], Vec::new());
                ProxyVisit { object: start.object(), path, host, faults, warnings, serves: false }
            }
        };
        self.visits([visit]);
    }

    /// Records a host lost to an object of another kind.
    pub fn lost(&mut self, claim: &Claim<'_>, conflict: &HostConflict) {
        for object in [Some(claim.root), claim.start].into_iter().flatten().map(|proxy| proxy.object()) {
            self.winners.entry((object, Arc::clone(&claim.name))).or_default().insert(conflict.winner.clone());
        }
        if let Some(start) = claim.start {
            self.fault(claim, lost(conflict, &start.object()));
        }
        self.entry(claim, conflict.message(&claim.root.object()));
    }

    /// Takes back what a claim that lost to Contour's other kind reported.
    pub fn forget(&mut self, claim: &Claim<'_>) {
        let is_of_claim = |visit: &ProxyVisit| visit.host.is_empty() || visit.host == claim.name;
        for object in [Some(claim.root), claim.start].into_iter().flatten().map(|proxy| proxy.object()) {
            self.winners.remove(&(object.clone(), Arc::clone(&claim.name)));
            let visits = self.visits.get_mut(&object);
            visits.into_iter().for_each(|visits| visits.retain(|_, visit| !is_of_claim(visit)));
        }
    }

    /// Records why a subdomain is not served, for the root of its domain.
    pub fn entry(&mut self, claim: &Claim<'_>, problem: String) {
        let Some((delegated_domain, entry)) = claim.entry else { return };
        let slot = self.domains.get_mut(delegated_domain).and_then(|domain| domain.entries.get_mut(entry));
        slot.into_iter().for_each(|slot| *slot = Some(problem.clone()));
    }

    /// Records a warning about a subdomain's own certificate, for the delegate.
    pub fn warn_delegate(&mut self, claim: &Claim<'_>, warning: String) {
        let Some(start) = claim.start else { return };
        let mut visit = subdomain_visit(claim.root, &start.object(), &claim.name, root_invalid());
        visit.faults.clear();
        visit.warnings.push(partly(warning));
        self.visits([visit]);
    }

    /// Records a warning about a domain's certificate, for the root that names it; inner domains inherit the
    /// certificate.
    pub fn warn_domain(&mut self, claims: &ContourClaims<'_>, claim: &Claim<'_>, warning: String) {
        let mut at = claim.entry.map(|(delegated_domain, _)| delegated_domain);
        while let Some(delegated_domain) = at.and_then(|at| claims.delegated_domains.get(at)) {
            let names_it = delegated_domain
                .root
                .is_some_and(|root| root.virtual_host.as_ref().is_some_and(|own| own.tls.is_some()));
            if names_it {
                let domain = at.and_then(|at| self.domains.get_mut(at));
                domain.into_iter().for_each(|domain| domain.warnings.push(warning.clone()));
                return;
            }
            at = delegated_domain.parent;
        }
    }

    /// Records the results of a walk; results for the same path are merged.
    pub fn visits(&mut self, visits: impl IntoIterator<Item = ProxyVisit>) {
        for visit in visits {
            let known = self.visits.entry(visit.object.clone()).or_default();
            match known.get_mut(&visit.path) {
                Some(known) => {
                    known.faults.extend(visit.faults);
                    known.warnings.extend(visit.warnings);
                }
                None => drop(known.insert(visit.path.clone(), visit)),
            }
        }
    }

    /// The status of every object.
    pub fn statuses(&self, proxies: &Proxies<'_>, router: Option<&RouterName>) -> BTreeMap<ObjectRef, ObjectStatus> {
        proxies.iter().map(|(object, proxy)| (object.clone(), self.status_of(object, proxy, router))).collect()
    }

    fn status_of(&self, object: &ObjectRef, proxy: &ContourProxy, router: Option<&RouterName>) -> ObjectStatus {
        let router = router.map(ToString::to_string).unwrap_or_default();
        let winners = |name: &str| {
            let found = self.winners.get(&(object.clone(), name.to_ascii_lowercase().into()));
            found.into_iter().flatten().cloned().collect::<Vec<_>>()
        };
        let delegated_domain = self.roots.get(object);
        if let Some(domain) = delegated_domain.and_then(|at| self.domains.get(*at)) {
            let verdict = domain.verdict(&proxy.subdomains.iter().map(|entry| &*entry.name).collect::<Vec<_>>());
            let admitted = verdict.state == Validity::Valid;
            // Hosts that are served; if none is, the hosts that are claimed.
            let names = proxy.subdomains.iter().zip(&domain.entries).filter(|(_, it)| it.is_none() || !admitted);
            let mut rows = vec![ParentStatus {
                parent: router.clone(),
                hosts: names.map(|(entry, _)| entry.name.to_string()).collect(),
                admitted,
                reason: verdict.state.reason().to_owned(),
                message: verdict.description.clone(),
                winners: Vec::new(),
            }];
            for (entry, problem) in proxy.subdomains.iter().zip(&domain.entries).filter(|_| admitted) {
                let Some(problem) = problem else { continue };
                let winners = winners(&entry.name);
                // The delegate's own status has more detail.
                if winners.is_empty() && self.has_detail(object.kind, entry) {
                    continue;
                }
                rows.push(ParentStatus {
                    parent: router.clone(),
                    hosts: vec![entry.name.to_string()],
                    admitted: false,
                    reason: Validity::Invalid.reason().to_owned(),
                    message: about(&entry.name, problem),
                    winners,
                });
            }
            return ObjectStatus { status: status(proxy, &verdict, &[]), rows };
        }
        // A rejected root has no host; its claimed one is shown.
        let claimed = proxy.virtual_host.as_ref().map(|host| Arc::clone(&host.fqdn)).unwrap_or_default();
        let visits: Vec<&ProxyVisit> = self.visits.get(object).into_iter().flat_map(BTreeMap::values).collect();
        let verdicts: Vec<PathStatus> = visits.iter().map(|visit| PathStatus::of_visit(proxy.kind, visit)).collect();
        let rows = visits.iter().zip(&verdicts).map(|(visit, verdict)| {
            let host = [&visit.host, &claimed].into_iter().find(|host| !host.is_empty());
            // A domain has no host of its own.
            let subdomains = proxy.subdomains.iter().filter(|_| visit.host.is_empty()).map(|entry| &entry.name);
            ParentStatus {
                parent: visit.parent().map_or_else(|| router.clone(), |(parent, _)| parent.to_string()),
                hosts: host.into_iter().chain(subdomains).map(|host| host.to_string()).collect(),
                admitted: verdict.state == Validity::Valid || visit.serves,
                reason: if verdict.state == Validity::Invalid && visit.serves {
                    PARTLY.to_owned()
                } else {
                    verdict.state.reason().to_owned()
                },
                message: visit
                    .faults
                    .iter()
                    .skip(1)
                    .fold(verdict.description.clone(), |message, fault| format!("{message}; {}", fault.message)),
                winners: host.map(|host| winners(host)).unwrap_or_default(),
            }
        });
        let mut rows: Vec<ParentStatus> = rows.collect();
        let verdict = summary(proxy.kind, verdicts.as_slice());
        if rows.is_empty() {
            let (reason, message) = (verdict.state.reason().to_owned(), verdict.description.clone());
            rows.push(ParentStatus { parent: router, reason, message, ..ParentStatus::default() });
        }
        let lines: Vec<(&ProxyVisit, &PathStatus)> = visits.iter().copied().zip(&verdicts).collect();
        ObjectStatus { status: status(proxy, &verdict, &lines), rows }
    }

    /// True if the delegate's status reports the faults of this subdomain.
    fn has_detail(&self, kind: Kind, entry: &Subdomain) -> bool {
        let delegate = ObjectRef { kind, key: entry.delegate.clone() };
        let mut ways = self.visits.get(&delegate).into_iter().flat_map(BTreeMap::values);
        ways.any(|visit| visit.host == entry.name && !visit.faults.is_empty())
    }
}

fn subdomain_visit(root: &ContourProxy, delegate: &ObjectRef, name: &Arc<str>, fault: Violation) -> ProxyVisit {
    let path = vec![
        Passed { object: root.object(), via: "".into(), entry: 0 },
        Passed { object: delegate.clone(), via: name.clone(), entry: 0 },
    ];
    let (faults, warnings) = (vec![fault], Vec::new());
    ProxyVisit { object: delegate.clone(), path, host: name.clone(), faults, warnings, serves: false }
}

impl ProxyVisit {
    /// The parent on the path, and the entry that led here.
    fn parent(&self) -> Option<(&ObjectRef, &str)> {
        let [.., parent, own] = &*self.path else { return None };
        Some((&parent.object, &own.via))
    }
}

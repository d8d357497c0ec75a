//! What objects are told. A vertex that is delegated to is told one line for each way that leads to it, and a summary:
//! it is valid when one of them is (docs/delegation.md#s10).

mod path_status;
pub mod words;
pub mod written;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::contour::status::path_status::{PathStatus, State, summary};
use router_api::contour::types::{ContourProxy, Subdomain, Violation};
use router_model::kind::Kind;
use router_model::names::RouterName;
use router_model::object::ObjectRef;

use super::claims::lost;
use super::tls::HostTls;
use super::walk::{Passed, Visit};
use crate::contour::claims::types::{Claim, Claims, Vertices, Winners};
use crate::contour::status::words::{Domain, ROOT_INVALID, about, partly};
use crate::contour::status::written::status;
use crate::status::host_conflict::HostConflict;
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Reason of a row of what is invalid and yet serves something.
pub const PARTLY: &str = "PartiallyInvalid";

/// What a delegate is told whose root is invalid: nothing of why.
pub fn root_invalid() -> Violation {
    Violation::new("Orphaned", ROOT_INVALID, "the root of the delegation is invalid")
}

/// What was found out, while hosts are made.
#[derive(Debug)]
pub struct Report {
    visits: BTreeMap<ObjectRef, BTreeMap<Vec<Passed>, Visit>>,
    /// How many vertices were entered below the roots of each namespace.
    pub entered: BTreeMap<Arc<str>, usize>,
    /// Which objects are roots of domains, by place.
    roots: BTreeMap<ObjectRef, usize>,
    domains: Vec<Domain>,
    winners: Winners,
}

impl Report {
    /// What is known once names are decided.
    pub fn new(claims: &Claims<'_>) -> Self {
        let domains = claims.zones.iter().map(|zone| {
            let entries = zone.entries.iter().map(|entry| entry.fault.as_ref().map(|fault| fault.message.clone()));
            Domain { fault: None, entries: entries.collect(), warnings: Vec::new() }
        });
        let roots = claims.zones.iter().enumerate().filter_map(|(at, zone)| Some((zone.root?.object(), at)));
        let mut report = Report {
            visits: BTreeMap::new(),
            entered: BTreeMap::new(),
            roots: roots.collect(),
            domains: domains.collect(),
            winners: claims.winners.clone(),
        };
        for (object, fault) in &claims.refused {
            let path = vec![Passed { object: object.clone(), via: "".into(), entry: 0 }];
            report.visits([Visit {
                object: object.clone(),
                path,
                host: "".into(),
                faults: vec![fault.clone()],
                warnings: Vec::new(),
                serves: false,
            }]);
        }
        for zone in &claims.zones {
            let written = zone.root.into_iter().flat_map(|root| &root.subdomains);
            for (entry, written) in zone.entries.iter().zip(written) {
                let contended = |fault: &&Violation| fault.reason == "DuplicateVhost";
                let (Some(root), Some(fault)) = (zone.root, entry.fault.as_ref().filter(contended)) else { continue };
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

    /// Notes which domains are no good.
    pub fn domains(&mut self, claims: &Claims<'_>, states: &[Result<HostTls, Violation>]) {
        for (domain, state) in self.domains.iter_mut().zip(states) {
            domain.fault = state.as_ref().err().cloned();
        }
        for (domain, zone) in self.domains.iter_mut().zip(&claims.zones) {
            for (told, entry) in domain.entries.iter_mut().zip(&zone.entries) {
                let inner =
                    entry.domain.as_ref().and_then(|name| states.get(*claims.domains.get(name)?)?.as_ref().err());
                if told.is_none() && inner.is_some() {
                    *told = Some("the delegate is invalid".to_owned());
                }
            }
        }
    }

    /// What is wrong with the vertex where a host begins; it is not served.
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
                Visit { object: start.object(), path, host, faults, warnings, serves: false }
            }
        };
        self.visits([visit]);
    }

    /// A host that went to an object of another API.
    pub fn lost(&mut self, claim: &Claim<'_>, conflict: &HostConflict) {
        for object in [Some(claim.root), claim.start].into_iter().flatten().map(|vertex| vertex.object()) {
            self.winners.entry((object, Arc::clone(&claim.name))).or_default().insert(conflict.winner.clone());
        }
        if let Some(start) = claim.start {
            self.fault(claim, lost(conflict, &start.object()));
        }
        self.entry(claim, conflict.message(&claim.root.object()));
    }

    /// Takes back what was said of a claim that lost to Contour's other kind.
    pub fn forget(&mut self, claim: &Claim<'_>) {
        let is_of_claim = |visit: &Visit| visit.host.is_empty() || visit.host == claim.name;
        for object in [Some(claim.root), claim.start].into_iter().flatten().map(|vertex| vertex.object()) {
            self.winners.remove(&(object.clone(), Arc::clone(&claim.name)));
            let visits = self.visits.get_mut(&object);
            visits.into_iter().for_each(|visits| visits.retain(|_, visit| !is_of_claim(visit)));
        }
    }

    /// Why a subdomain is not served, for the root of its domain.
    pub fn entry(&mut self, claim: &Claim<'_>, problem: String) {
        let Some((zone, entry)) = claim.entry else { return };
        let told = self.domains.get_mut(zone).and_then(|domain| domain.entries.get_mut(entry));
        told.into_iter().for_each(|told| *told = Some(problem.clone()));
    }

    /// Something odd about a subdomain's own certificate, for its delegate.
    pub fn warn_delegate(&mut self, claim: &Claim<'_>, warning: String) {
        let Some(start) = claim.start else { return };
        let mut visit = subdomain_visit(claim.root, &start.object(), &claim.name, root_invalid());
        visit.faults.clear();
        visit.warnings.push(partly(warning));
        self.visits([visit]);
    }

    /// Something odd about a domain's certificate, for whoever names it: a domain inside of it inherits it too.
    pub fn warn_domain(&mut self, claims: &Claims<'_>, claim: &Claim<'_>, warning: String) {
        let mut at = claim.entry.map(|(zone, _)| zone);
        while let Some(zone) = at.and_then(|at| claims.zones.get(at)) {
            let names_it =
                zone.root.is_some_and(|root| root.virtual_host.as_ref().is_some_and(|own| own.tls.is_some()));
            if names_it {
                let domain = at.and_then(|at| self.domains.get_mut(at));
                domain.into_iter().for_each(|domain| domain.warnings.push(warning.clone()));
                return;
            }
            at = zone.parent;
        }
    }

    /// What was found on the way; what is said of the same way twice is put together.
    pub fn visits(&mut self, visits: impl IntoIterator<Item = Visit>) {
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

    /// What every object is told.
    pub fn told(&self, vertices: &Vertices<'_>, router: Option<&RouterName>) -> BTreeMap<ObjectRef, ObjectStatus> {
        vertices.iter().map(|(object, vertex)| (object.clone(), self.told_to(object, vertex, router))).collect()
    }

    fn told_to(&self, object: &ObjectRef, vertex: &ContourProxy, router: Option<&RouterName>) -> ObjectStatus {
        let router = router.map(ToString::to_string).unwrap_or_default();
        let winners = |name: &str| {
            let found = self.winners.get(&(object.clone(), name.to_ascii_lowercase().into()));
            found.into_iter().flatten().cloned().collect::<Vec<_>>()
        };
        let zone = self.roots.get(object);
        if let Some(domain) = zone.and_then(|at| self.domains.get(*at)) {
            let verdict = domain.verdict(&vertex.subdomains.iter().map(|entry| &*entry.name).collect::<Vec<_>>());
            let admitted = verdict.state == State::Valid;
            // What is served, or else what was to be.
            let names = vertex.subdomains.iter().zip(&domain.entries).filter(|(_, it)| it.is_none() || !admitted);
            let mut rows = vec![ParentStatus {
                parent: router.clone(),
                hosts: names.map(|(entry, _)| entry.name.to_string()).collect(),
                admitted,
                reason: verdict.state.reason().to_owned(),
                message: verdict.description.clone(),
                winners: Vec::new(),
            }];
            for (entry, problem) in vertex.subdomains.iter().zip(&domain.entries).filter(|_| admitted) {
                let Some(problem) = problem else { continue };
                let winners = winners(&entry.name);
                // Its delegate says more.
                if winners.is_empty() && self.is_told(object.kind, entry) {
                    continue;
                }
                rows.push(ParentStatus {
                    parent: router.clone(),
                    hosts: vec![entry.name.to_string()],
                    admitted: false,
                    reason: State::Invalid.reason().to_owned(),
                    message: about(&entry.name, problem),
                    winners,
                });
            }
            return ObjectStatus { status: status(vertex, &verdict, &[]), rows };
        }
        // A root that is refused has no host, but wants one.
        let wanted = vertex.virtual_host.as_ref().map(|host| Arc::clone(&host.fqdn)).unwrap_or_default();
        let visits: Vec<&Visit> = self.visits.get(object).into_iter().flat_map(BTreeMap::values).collect();
        let verdicts: Vec<PathStatus> = visits.iter().map(|visit| PathStatus::of_visit(vertex.kind, visit)).collect();
        let rows = visits.iter().zip(&verdicts).map(|(visit, verdict)| {
            let host = [&visit.host, &wanted].into_iter().find(|host| !host.is_empty());
            // A domain has no name itself.
            let subdomains = vertex.subdomains.iter().filter(|_| visit.host.is_empty()).map(|entry| &entry.name);
            ParentStatus {
                parent: visit.parent().map_or_else(|| router.clone(), |(parent, _)| parent.to_string()),
                hosts: host.into_iter().chain(subdomains).map(|host| host.to_string()).collect(),
                admitted: verdict.state == State::Valid || visit.serves,
                reason: if verdict.state == State::Invalid && visit.serves {
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
        let verdict = summary(vertex.kind, verdicts.as_slice());
        if rows.is_empty() {
            let (reason, message) = (verdict.state.reason().to_owned(), verdict.description.clone());
            rows.push(ParentStatus { parent: router, reason, message, ..ParentStatus::default() });
        }
        let lines: Vec<(&Visit, &PathStatus)> = visits.iter().copied().zip(&verdicts).collect();
        ObjectStatus { status: status(vertex, &verdict, &lines), rows }
    }

    /// Whether the delegate of a subdomain is told what is wrong with it there.
    fn is_told(&self, kind: Kind, entry: &Subdomain) -> bool {
        let delegate = ObjectRef { kind, key: entry.delegate.clone() };
        let mut ways = self.visits.get(&delegate).into_iter().flat_map(BTreeMap::values);
        ways.any(|visit| visit.host == entry.name && !visit.faults.is_empty())
    }
}

fn subdomain_visit(root: &ContourProxy, delegate: &ObjectRef, name: &Arc<str>, fault: Violation) -> Visit {
    let path = vec![
        Passed { object: root.object(), via: "".into(), entry: 0 },
        Passed { object: delegate.clone(), via: name.clone(), entry: 0 },
    ];
    let (faults, warnings) = (vec![fault], Vec::new());
    Visit { object: delegate.clone(), path, host: name.clone(), faults, warnings, serves: false }
}

impl Visit {
    /// The vertex before this one, and what of it led here.
    fn parent(&self) -> Option<(&ObjectRef, &str)> {
        let [.., parent, own] = &*self.path else { return None };
        Some((&parent.object, &own.via))
    }
}

//! What objects are told. A vertex that is delegated to is told one line for each way that leads to it, and a summary:
//! it is valid when one of them is (delegation.md, S10).

mod status;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::{Claim, Claims, Vertices, lost};
use super::spec::{Fault, Vertex};
use super::tls::HostTls;
use super::walk::{Passed, Visit};
use crate::model::RouterName;
use crate::object::{ObjectRef, Seniority};
use crate::sites::{Row, Told};
use status::status;
use verdict::{State, Verdict, summary};

pub use status::certificate_delegation;

/// Reason of what hangs below a root that is no good itself.
const ROOT_INVALID: &str = "RootInvalid";

/// What a delegate is told whose root is invalid: nothing of why.
pub fn root_invalid() -> Fault {
    Fault::new("Orphaned", ROOT_INVALID, "the root of the delegation is invalid")
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
    winners: BTreeMap<ObjectRef, BTreeSet<ObjectRef>>,
}

/// What the root of a domain is told.
#[derive(Debug, Default)]
struct Domain {
    fault: Option<Fault>,
    entries: Vec<Option<String>>,
    warnings: Vec<String>,
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
            }]);
        }
        for zone in &claims.zones {
            let written = zone.root.into_iter().flat_map(|root| &root.subdomains);
            for (entry, written) in zone.entries.iter().zip(written) {
                let contended = |fault: &&Fault| matches!(fault.reason, "DuplicateVhost" | "HostAlreadyClaimed");
                let (Some(root), Some(fault)) = (zone.root, entry.fault.as_ref().filter(contended)) else { continue };
                let delegate = ObjectRef { kind: root.kind, key: written.delegate.clone() };
                report.visits([subdomain_visit(root, &delegate, &written.name, fault.clone())]);
            }
        }
        report
    }

    /// Notes which domains are no good.
    pub fn domains(&mut self, claims: &Claims<'_>, states: &[Result<HostTls, Fault>]) {
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
    pub fn fault(&mut self, claim: &Claim<'_>, fault: Fault) {
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
                Visit { object: start.object(), path, host, faults: vec![fault], warnings: Vec::new() }
            }
        };
        self.visits([visit]);
    }

    /// A host that went to an object of another kind.
    pub fn lost(&mut self, claim: &Claim<'_>, winner: &ObjectRef, seniority: Seniority) {
        let fault = lost(&claim.name, winner.kind, seniority);
        for object in [Some(claim.root), claim.start].into_iter().flatten().map(|vertex| vertex.object()) {
            self.winners.entry(object).or_default().insert(winner.clone());
        }
        self.fault(claim, fault.clone());
        self.entry(claim, fault.message);
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
    pub fn told(
        &self,
        vertices: &Vertices<'_>,
        claims: &Claims<'_>,
        router: Option<&RouterName>,
    ) -> BTreeMap<ObjectRef, Told> {
        vertices.iter().map(|(object, vertex)| (object.clone(), self.told_to(object, vertex, claims, router))).collect()
    }

    fn told_to(&self, object: &ObjectRef, vertex: &Vertex, claims: &Claims<'_>, router: Option<&RouterName>) -> Told {
        let router = router.map(ToString::to_string).unwrap_or_default();
        let winners = || self.winners.get(object).into_iter().flatten().cloned().collect();
        let zone = self.roots.get(object);
        if let Some((zone, domain)) = zone.and_then(|at| Some((claims.zones.get(*at)?, self.domains.get(*at)?))) {
            let verdict = domain.verdict(&vertex.subdomains.iter().map(|entry| &*entry.name).collect::<Vec<_>>());
            let served = zone.entries.iter().zip(&domain.entries).filter(|(_, problem)| problem.is_none());
            let row = Row {
                parent: router,
                hosts: served.filter_map(|(entry, _)| Some(entry.host.as_ref()?.to_string())).collect(),
                admitted: verdict.state == State::Valid,
                reason: verdict.state.reason().to_owned(),
                message: verdict.description.clone(),
                winners: winners(),
            };
            return Told { status: status(vertex, &verdict, &[]), rows: vec![row] };
        }
        // A root that is refused has no host, but wants one.
        let wanted = vertex.virtual_host.as_ref().map(|host| Arc::clone(&host.fqdn)).unwrap_or_default();
        let visits: Vec<&Visit> = self.visits.get(object).into_iter().flat_map(BTreeMap::values).collect();
        let verdicts: Vec<Verdict> = visits.iter().map(|visit| Verdict::of_visit(vertex.kind, visit)).collect();
        let rows = visits.iter().zip(&verdicts).map(|(visit, verdict)| Row {
            parent: visit.parent().map_or_else(|| router.clone(), |(parent, _)| parent.to_string()),
            hosts: [&visit.host, &wanted]
                .into_iter()
                .find(|host| !host.is_empty())
                .map(|host| host.to_string())
                .into_iter()
                .collect(),
            admitted: verdict.state == State::Valid,
            reason: verdict.state.reason().to_owned(),
            message: verdict.description.clone(),
            winners: winners(),
        });
        let mut rows: Vec<Row> = rows.collect();
        let verdict = summary(vertex.kind, verdicts.as_slice());
        if rows.is_empty() {
            let (reason, message) = (verdict.state.reason().to_owned(), verdict.description.clone());
            rows.push(Row { parent: router, reason, message, ..Row::default() });
        }
        let lines: Vec<(&Visit, &Verdict)> = visits.iter().copied().zip(&verdicts).collect();
        Told { status: status(vertex, &verdict, &lines), rows }
    }
}

/// Something odd about one of the ways to an object, or about a domain.
fn partly(message: String) -> Fault {
    Fault::new("PathWarning", "PartiallyValid", message)
}

fn subdomain_visit(root: &Vertex, delegate: &ObjectRef, name: &Arc<str>, fault: Fault) -> Visit {
    let path = vec![
        Passed { object: root.object(), via: "".into(), entry: 0 },
        Passed { object: delegate.clone(), via: name.clone(), entry: 0 },
    ];
    Visit { object: delegate.clone(), path, host: name.clone(), faults: vec![fault], warnings: Vec::new() }
}

impl Visit {
    /// The vertex before this one, and what of it led here.
    fn parent(&self) -> Option<(&ObjectRef, &str)> {
        let [.., parent, own] = &*self.path else { return None };
        Some((&parent.object, &own.via))
    }
}

//! Outcome of the translation of a host: findings for the statuses of its objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::Violation;
use router_model::object::{ObjectKey, ObjectRef};

use crate::contour::claims::lost;
use crate::contour::claims::types::{Claim, duplicate};
use crate::contour::numbers::Parts;
use crate::contour::status::wording::{ROOT_INVALID, partly};
use crate::contour::walk::{PathElement, ProxyVisit};
use crate::status::host_conflict::HostConflict;

/// Findings about one host.
#[derive(Debug, Default)]
pub struct ContourOutcome {
    /// Visits of proxies, by object and path, each once.
    pub visits: Vec<ProxyVisit>,
    /// Further objects that it depends on; they may not exist.
    pub others: Vec<ObjectRef>,
    /// The objects that won the host, for each loser. For operators only.
    pub winners: BTreeMap<ObjectRef, BTreeSet<ObjectRef>>,
    /// Why a subdomain is not served, for the root of its domain.
    pub problem: Option<String>,
    /// A warning about the certificate that a subdomain inherits, for the root that names it.
    pub warning: Option<String>,
    /// The namespace of the root that the host is granted to.
    pub namespace: Option<Arc<str>>,
    /// Number of visits below the host.
    pub visit_count: usize,
    /// Number of visits below hosts before it whose roots are in the same namespace, as far as they were counted.
    pub earlier_visits: usize,
    /// The numbers of the routes of each object.
    pub parts: Vec<(ObjectRef, Parts)>,
    /// True if it is served.
    pub served: bool,
}

impl ContourOutcome {
    /// The objects that it depends on, each at least once.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.visits.iter().map(|visit| &visit.object).chain(&self.others)
    }

    /// The visits of an object.
    pub fn visits_of(&self, object: &ObjectRef) -> &[ProxyVisit] {
        let from = self.visits.partition_point(|visit| visit.object < *object);
        let rest = self.visits.get(from..).unwrap_or_default();
        rest.get(..rest.partition_point(|visit| visit.object == *object)).unwrap_or_default()
    }

    /// True if the status of a delegate reports faults for this host.
    pub fn has_faults(&self, delegate: &ObjectRef, name: &str) -> bool {
        self.visits_of(delegate).iter().any(|visit| *visit.host == *name && !visit.faults.is_empty())
    }

    /// Sorts visits, and merges those of one path.
    pub fn sort(&mut self) {
        self.visits.sort_by(|a, b| (&a.object, &a.path).cmp(&(&b.object, &b.path)));
        self.visits.dedup_by(|later, known| {
            let is_same = (&later.object, &later.path) == (&known.object, &known.path);
            if is_same {
                known.faults.append(&mut later.faults);
                known.warnings.append(&mut later.warnings);
            }
            is_same
        });
    }

    /// Records that several objects of one kind claim the host.
    pub fn duplicates(&mut self, rivals: &[Claim]) {
        let names: BTreeSet<&ObjectKey> = rivals.iter().map(|claim| &claim.root.key).collect();
        for claim in rivals {
            let others = rivals.iter().map(|rival| &rival.root).filter(|other| **other != claim.root);
            self.winners.entry(claim.root.clone()).or_default().extend(others.cloned());
            self.reject(claim, duplicate(claim.root.kind, &claim.name, &names), None);
        }
    }

    /// Records that an object of Contour's other kind owns the host.
    pub fn lost_to_other_kind(&mut self, claim: &Claim, conflict: &HostConflict) {
        self.winners.entry(claim.root.clone()).or_default().insert(conflict.winner.clone());
        self.reject(claim, lost(conflict, &claim.root), Some(lost(conflict, &claim.start)));
    }

    /// Records a host that was lost to an object of another API.
    pub fn lost(&mut self, claim: &Claim, conflict: &HostConflict) {
        for object in [&claim.root, &claim.start] {
            self.winners.entry(object.clone()).or_default().insert(conflict.winner.clone());
        }
        self.fault(claim, lost(conflict, &claim.start));
        if claim.domain.is_some() {
            self.problem = Some(conflict.message(&claim.root));
        }
    }

    /// Records a violation of the object whose routes serve the host.
    pub fn fault(&mut self, claim: &Claim, fault: Violation) {
        if fault.reason != ROOT_INVALID && claim.domain.is_some() {
            self.problem = Some(format!("delegate {} is invalid", claim.start.key));
        }
        let visit = match claim.domain {
            Some(_) => subdomain_visit(claim, vec![fault]),
            None => ProxyVisit { host: claim.name.clone(), ..ProxyVisit::of_root(&claim.root, fault) },
        };
        self.visits.push(visit);
    }

    /// Records a warning about a subdomain's own certificate, for the delegate.
    pub fn warn_delegate(&mut self, claim: &Claim, warning: String) {
        let mut visit = subdomain_visit(claim, Vec::new());
        visit.warnings.push(partly(warning));
        self.visits.push(visit);
    }

    /// Records a claim that is not granted; `of_delegate` is the violation of the delegate if it differs.
    fn reject(&mut self, claim: &Claim, fault: Violation, of_delegate: Option<Violation>) {
        if claim.domain.is_none() {
            self.visits.push(ProxyVisit::of_root(&claim.root, fault));
            return;
        }
        self.problem = Some(fault.message.clone());
        self.visits.push(subdomain_visit(claim, vec![of_delegate.unwrap_or(fault)]));
    }
}

impl ProxyVisit {
    /// A root that does not get its host.
    pub fn of_root(root: &ObjectRef, fault: Violation) -> Self {
        let path = vec![PathElement { object: root.clone(), via: "".into(), entry: 0 }];
        let (host, faults, warnings) = ("".into(), vec![fault], Vec::new());
        ProxyVisit { object: root.clone(), path, host, faults, warnings, serves: false }
    }
}

fn subdomain_visit(claim: &Claim, faults: Vec<Violation>) -> ProxyVisit {
    let path = vec![
        PathElement { object: claim.root.clone(), via: "".into(), entry: 0 },
        PathElement { object: claim.start.clone(), via: claim.name.clone(), entry: 0 },
    ];
    let (host, warnings) = (claim.name.clone(), Vec::new());
    ProxyVisit { object: claim.start.clone(), path, host, faults, warnings, serves: false }
}

//! Status of one path to an object, and the summary of all paths.

use router_api::contour::types::Violation;
use router_model::kind::Kind;

use super::super::walk::ProxyVisit;
use crate::contour::status::wording::{DomainFindings, ROOT_INVALID, about, partly};

/// `currentStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Served.
    Valid,
    /// Has a violation.
    Invalid,
    /// Not reached from any root.
    Orphaned,
}

impl Validity {
    /// The value as written in the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Validity::Valid => "valid",
            Validity::Invalid => "invalid",
            Validity::Orphaned => "orphaned",
        }
    }

    /// Reason of a condition.
    pub const fn reason(self) -> &'static str {
        match self {
            Validity::Valid => "Valid",
            Validity::Invalid => "Invalid",
            Validity::Orphaned => "Orphaned",
        }
    }
}

/// Status of an object as a whole, or for one path to it.
#[derive(Clone, Debug)]
pub struct PathStatus {
    /// `currentStatus`.
    pub state: Validity,
    /// `description`.
    pub description: String,
    /// Violations.
    pub faults: Vec<Violation>,
    /// Warnings.
    pub warnings: Vec<Violation>,
}

impl PathStatus {
    /// Status for one path.
    pub fn of_visit(kind: Kind, visit: &ProxyVisit) -> Self {
        let state = match &*visit.faults {
            [] => Validity::Valid,
            faults if faults.iter().all(|fault| fault.reason == ROOT_INVALID) => Validity::Orphaned,
            _ => Validity::Invalid,
        };
        let mut description = match visit.faults.first() {
            None => format!("valid {kind}"),
            Some(fault) => fault.message.clone(),
        };
        for warning in &visit.warnings {
            description.push_str(&format!("; {}", warning.message));
        }
        PathStatus { state, description, faults: visit.faults.clone(), warnings: visit.warnings.clone() }
    }
}

impl DomainFindings {
    /// Status of a domain's root: valid if one of its subdomains is.
    pub fn path_status(&self, names: &[&str]) -> PathStatus {
        if let Some(fault) = &self.fault {
            let state = if fault.reason == ROOT_INVALID { Validity::Orphaned } else { Validity::Invalid };
            let (description, faults) = (fault.message.clone(), vec![fault.clone()]);
            return PathStatus { state, description, faults, warnings: Vec::new() };
        }
        let valid = self.entries.iter().filter(|problem| problem.is_none()).count();
        let count = format!("{valid} of {} subdomains", self.entries.len());
        let (state, mut description) = match valid {
            0 => (Validity::Invalid, format!("no valid subdomain ({count})")),
            _ => (Validity::Valid, format!("valid {} ({count})", Kind::IngressRoute)),
        };
        for (name, problem) in names.iter().zip(&self.entries) {
            let Some(problem) = problem else { continue };
            description.push_str(&format!("; {}", about(name, problem)));
        }
        for warning in &self.warnings {
            description.push_str(&format!("; {warning}"));
        }
        PathStatus {
            state,
            description,
            faults: Vec::new(),
            warnings: self.warnings.iter().cloned().map(partly).collect(),
        }
    }
}

/// Summary of the statuses for all paths.
pub fn summary(kind: Kind, path_statuses: &[PathStatus]) -> PathStatus {
    let orphaned = || {
        let root = if kind == Kind::IngressRoute { "IngressRoute" } else { "HTTPProxy" };
        let message = format!("this {root} is not part of a delegation chain from a root {root}");
        let faults = vec![Violation::new("Orphaned", "Orphaned", message.clone())];
        PathStatus { state: Validity::Orphaned, description: message, faults, warnings: Vec::new() }
    };
    let valid = path_statuses.iter().filter(|path_status| path_status.state == Validity::Valid).count();
    if let Some(first) = path_statuses.iter().find(|path_status| path_status.state == Validity::Valid) {
        let mut whole = first.clone();
        if valid < path_statuses.len() {
            whole.description = format!("valid {kind} ({valid} of {} paths)", path_statuses.len());
            let failed = path_statuses.iter().flat_map(|path_status| &path_status.faults);
            whole.warnings.extend(failed.map(|fault| partly(fault.message.clone())));
        }
        return whole;
    }
    match path_statuses.iter().find(|path_status| path_status.state == Validity::Invalid) {
        None => orphaned(),
        Some(first) => {
            let mut whole = first.clone();
            let all = path_statuses
                .iter()
                .flat_map(|path_status| &path_status.faults)
                .filter(|fault| fault.reason != ROOT_INVALID);
            whole.faults = all.fold(Vec::new(), |mut known, fault| {
                if !known.contains(fault) {
                    known.push(fault.clone());
                }
                known
            });
            whole
        }
    }
}

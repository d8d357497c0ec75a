//! A domain that delegates names, and what is said of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_model::names::Hostname;

/// A domain, `fqdn: .example.com`, and who has it.
#[derive(Debug)]
pub struct DelegatedDomain<'r> {
    /// Without the dot.
    pub domain: Hostname,
    /// Who claims it: several have it in common, and it is nobody's.
    pub owners: Vec<&'r Arc<ContourProxy>>,
    /// The one owner.
    pub root: Option<&'r Arc<ContourProxy>>,
    /// The domain that delegates this one, by place.
    pub parent: Option<usize>,
    /// What is said of each of the root's `subdomains`.
    pub entries: Vec<Delegation>,
    /// Their places by name.
    pub(super) names: BTreeMap<Hostname, usize>,
}

/// What is said of one of `subdomains`.
#[derive(Clone, Debug, Default)]
pub struct Delegation {
    /// The name that is delegated; `None`: it is a domain, or no name.
    pub host: Option<Hostname>,
    /// A domain that is delegated, without the dot.
    pub domain: Option<Hostname>,
    /// Why nothing is delegated.
    pub fault: Option<Violation>,
}

impl DelegatedDomain<'_> {
    /// Whether the root delegates this name.
    pub fn delegates(&self, name: &str) -> bool {
        let entry = self.names.get(name).and_then(|at| self.entries.get(*at));
        entry.is_some_and(|entry| entry.fault.is_none())
    }

    /// What a root is told that has a name of this domain.
    pub fn not_delegated(&self, name: &str) -> Violation {
        let owners: BTreeSet<String> = self.owners.iter().map(|owner| owner.meta.key.to_string()).collect();
        let owners: Vec<String> = owners.into_iter().collect();
        let message = format!("{name} is within .{} owned by {} and not delegated", self.domain, owners.join(", "));
        Violation::new("VirtualHostError", "NotDelegated", message)
    }
}

/// Domains by name.
pub type Domains = BTreeMap<Hostname, usize>;

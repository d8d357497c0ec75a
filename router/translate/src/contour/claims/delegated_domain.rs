//! A domain that delegates names, and the state of each delegation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_model::names::Hostname;

/// A domain (`fqdn: .example.com`) and its owner.
#[derive(Debug)]
pub struct DelegatedDomain<'r> {
    /// The domain, without the leading dot.
    pub domain: Hostname,
    /// Roots that claim it; if there are several, none owns it.
    pub owners: Vec<&'r Arc<ContourProxy>>,
    /// The owner; `None` if several roots claim the domain.
    pub root: Option<&'r Arc<ContourProxy>>,
    /// Index of the domain that delegates this one.
    pub parent: Option<usize>,
    /// One entry for each of the root's `subdomains`.
    pub entries: Vec<Delegation>,
    /// Index in `entries`, by delegated name.
    pub(super) names: BTreeMap<Hostname, usize>,
}

/// State of one entry of `subdomains`.
#[derive(Clone, Debug, Default)]
pub struct Delegation {
    /// The delegated name; `None` if the entry is a domain, or no valid name.
    pub host: Option<Hostname>,
    /// The delegated domain, without the leading dot.
    pub domain: Option<Hostname>,
    /// Why the entry is invalid.
    pub fault: Option<Violation>,
}

impl DelegatedDomain<'_> {
    /// True if the domain has an entry for this name.
    pub fn delegates(&self, name: &str) -> bool {
        let entry = self.names.get(name).and_then(|at| self.entries.get(*at));
        entry.is_some_and(|entry| entry.fault.is_none())
    }

    /// The violation of a root that claims a name in this domain.
    pub fn not_delegated(&self, name: &str) -> Violation {
        let owners: BTreeSet<String> = self.owners.iter().map(|owner| owner.meta.key.to_string()).collect();
        let owners: Vec<String> = owners.into_iter().collect();
        let message = format!("{name} is within .{} owned by {} and not delegated", self.domain, owners.join(", "));
        Violation::new("VirtualHostError", "NotDelegated", message)
    }
}

/// Index of each domain.
pub type DomainIndex = BTreeMap<Hostname, usize>;

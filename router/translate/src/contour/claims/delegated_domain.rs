//! A delegated domain (`fqdn: .example.com`), and the state of each of its delegations.

use std::collections::{BTreeMap, BTreeSet};

use router_api::contour::types::Violation;
use router_model::names::Hostname;
use router_model::object::ObjectRef;

/// A domain (`fqdn: .example.com`) and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegatedDomain {
    /// The domain, without the leading dot.
    pub domain: Hostname,
    /// Roots that claim it; if there are several, none owns it.
    pub owners: Vec<ObjectRef>,
    /// The owner; `None` if several roots claim the domain.
    pub root: Option<ObjectRef>,
    /// The domain that delegates this one.
    pub parent: Option<Hostname>,
    /// One entry for each of the root's `subdomains`.
    pub entries: Vec<Delegation>,
    /// Index in `entries`, by delegated name.
    pub(super) names: BTreeMap<Hostname, usize>,
}

/// State of one entry of `subdomains`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delegation {
    /// The delegated name; `None` if the entry is a domain, or not a valid name.
    pub host: Option<Hostname>,
    /// The delegated domain, without the leading dot.
    pub domain: Option<Hostname>,
    /// Why the entry is invalid.
    pub fault: Option<Violation>,
}

impl DelegatedDomain {
    /// True if the domain has an entry for this name.
    pub fn delegates(&self, name: &str) -> bool {
        let entry = self.names.get(name).and_then(|at| self.entries.get(*at));
        entry.is_some_and(|entry| entry.fault.is_none())
    }

    /// The violation of a root that claims a name in this domain.
    pub fn not_delegated(&self, name: &str) -> Violation {
        let owners: BTreeSet<String> = self.owners.iter().map(|owner| owner.key.to_string()).collect();
        let owners: Vec<String> = owners.into_iter().collect();
        let message = format!("{name} is within .{} owned by {} and not delegated", self.domain, owners.join(", "));
        Violation::new("VirtualHostError", "NotDelegated", message)
    }
}

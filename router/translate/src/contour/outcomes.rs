//! Outcomes of all hosts, indexed by the objects that they depend on.

use std::collections::{BTreeMap, BTreeSet};

use router_model::names::{HostMatch, Hostname};
use router_model::object::ObjectRef;

use crate::contour::outcome::ContourOutcome;
use crate::contour::walk::ProxyVisit;

/// Outcomes by host, with an index by object.
#[derive(Debug, Default)]
pub struct Outcomes {
    hosts: BTreeMap<HostMatch, ContourOutcome>,
    by_object: BTreeMap<ObjectRef, BTreeSet<HostMatch>>,
}

impl Outcomes {
    /// The outcome of a host.
    pub fn get(&self, host: &HostMatch) -> Option<&ContourOutcome> {
        self.hosts.get(host)
    }

    /// The hosts that are served, in order.
    pub fn served(&self) -> impl Iterator<Item = &HostMatch> {
        self.hosts.iter().filter(|(_, outcome)| outcome.served).map(|(host, _)| host)
    }

    /// Sets the outcome of a host, or removes it (`None`). Returns the previous one.
    pub fn set(&mut self, host: &HostMatch, outcome: Option<ContourOutcome>) -> Option<ContourOutcome> {
        let last = self.hosts.remove(host);
        for object in last.iter().flat_map(ContourOutcome::objects) {
            if let Some(hosts) = self.by_object.get_mut(object) {
                hosts.remove(host);
                if hosts.is_empty() {
                    self.by_object.remove(object);
                }
            }
        }
        for object in outcome.iter().flat_map(ContourOutcome::objects) {
            match self.by_object.get_mut(object) {
                Some(hosts) => drop(hosts.insert(host.clone())),
                None => drop(self.by_object.insert(object.clone(), BTreeSet::from([host.clone()]))),
            }
        }
        if let Some(outcome) = outcome {
            self.hosts.insert(host.clone(), outcome);
        }
        last
    }

    /// The hosts whose outcome depends on an object.
    pub fn hosts_of<'m>(&'m self, object: &ObjectRef) -> impl Iterator<Item = &'m HostMatch> + use<'m> {
        self.by_object.get(object).into_iter().flatten()
    }

    /// The visits of an object below all hosts.
    pub fn visits_of(&self, object: &ObjectRef) -> impl Iterator<Item = &ProxyVisit> {
        let outcomes = self.hosts_of(object).filter_map(move |host| self.hosts.get(host));
        outcomes.flat_map(move |outcome| outcome.visits_of(object))
    }

    /// The objects that won a name which this object claims or serves.
    pub fn winners(&self, object: &ObjectRef, name: &str) -> Vec<ObjectRef> {
        let host = match name.strip_prefix("*.") {
            Some(domain) => Hostname::parse(domain).ok().map(HostMatch::Wildcard),
            None => Hostname::parse(name).ok().map(HostMatch::Exact),
        };
        let outcome = host.and_then(|host| self.hosts.get(&host));
        outcome.and_then(|outcome| outcome.winners.get(object)).into_iter().flatten().cloned().collect()
    }
}

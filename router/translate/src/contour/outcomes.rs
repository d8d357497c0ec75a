//! The outcomes of all hosts, and which of them an object has to do with.

use std::collections::{BTreeMap, BTreeSet};

use router_model::names::{HostMatch, Hostname};
use router_model::object::ObjectRef;

use crate::contour::outcome::HostOutcome;
use crate::contour::walk::ProxyVisit;

/// See the module.
#[derive(Debug, Default)]
pub struct Outcomes {
    hosts: BTreeMap<HostMatch, HostOutcome>,
    by_object: BTreeMap<ObjectRef, BTreeSet<HostMatch>>,
}

impl Outcomes {
    /// The outcome of a host.
    pub fn get(&self, host: &HostMatch) -> Option<&HostOutcome> {
        self.hosts.get(host)
    }

    /// The hosts that are served, in order.
    pub fn served(&self) -> impl Iterator<Item = &HostMatch> {
        self.hosts.iter().filter(|(_, outcome)| outcome.served).map(|(host, _)| host)
    }

    /// Takes over the outcome of a host, or that nothing claims it. Returns the last one.
    pub fn set(&mut self, host: &HostMatch, outcome: Option<HostOutcome>) -> Option<HostOutcome> {
        let last = self.hosts.remove(host);
        for object in last.iter().flat_map(HostOutcome::objects) {
            if let Some(hosts) = self.by_object.get_mut(object) {
                hosts.remove(host);
                if hosts.is_empty() {
                    self.by_object.remove(object);
                }
            }
        }
        for object in outcome.iter().flat_map(HostOutcome::objects) {
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

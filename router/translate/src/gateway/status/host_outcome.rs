//! Outcome of a route's hosts: served, served by another listener, owned by an object of another API, or denied.

use std::collections::{BTreeMap, BTreeSet};

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::host_pattern::HostPattern;

use crate::gateway::Model;
use crate::gateway::serve::ListenerAt;
use crate::status::condition::Condition;
use crate::translator::Lost;

/// Outcome of a route's hosts.
#[derive(Default)]
pub(super) struct HostOutcome {
    /// At least one host is served by the listener concerned.
    is_served: bool,
    /// At least one host is in a denied domain.
    is_denied: bool,
    /// Notes for the message of `Accepted`.
    pub notes: Vec<String>,
    /// Objects of other APIs that own some of the hosts.
    pub winners: Vec<ObjectRef>,
}

impl HostOutcome {
    /// Condition `Accepted` with the notes on hosts; false if no host is served because other APIs own them or domains
    /// are denied.
    pub fn accepted(&self, mut accepted: Condition, notes: Option<&BTreeSet<String>>) -> Condition {
        let own = (!accepted.message.is_empty()).then(|| accepted.message.clone());
        let notes = own.into_iter().chain(self.notes.iter().cloned()).chain(notes.into_iter().flatten().cloned());
        accepted.message = notes.collect::<Vec<_>>().join("; ");
        if !self.is_served && (self.is_denied || !self.winners.is_empty()) {
            accepted.holds = false;
            accepted.reason =
                if self.winners.is_empty() { "HostNotPermitted" } else { "HostAlreadyClaimed" }.to_owned();
        }
        accepted
    }
}

impl Model<'_> {
    /// Outcome of a route's hosts on listeners; `own` lists all listeners that the route is attached to.
    pub(super) fn host_outcome<'h>(
        &self,
        hosts: impl Iterator<Item = (ListenerAt, &'h HostPattern)>,
        key: &ObjectKey,
        own: &BTreeSet<ListenerAt>,
        lost: &Lost,
    ) -> HostOutcome {
        let mut host_outcome = HostOutcome::default();
        let (mut elsewhere, mut kept) = (BTreeSet::new(), BTreeSet::new());
        let mut taken: BTreeMap<(String, &str), BTreeSet<String>> = BTreeMap::new();
        for (at, host) in hosts {
            let placed = self.gateways.get(at.0).and_then(|state| state.listeners.get(at.1));
            let Some((router, protocol)) = placed.and_then(|placed| Some((placed.router.as_ref()?, placed.protocol?)))
            else {
                continue;
            };
            if let Some(fault) = self.domains.fault(host) {
                host_outcome.is_denied = true;
                host_outcome.notes.push(format!("host {host} is {fault}"));
                continue;
            }
            let closest = self.hosts.closest(router, protocol.side(), host);
            if closest != Some(at) {
                if let Some(closest) = closest.filter(|closest| !own.contains(closest)) {
                    let of = |at: ListenerAt| self.gateways.get(at.0).and_then(|state| state.listeners.get(at.1));
                    let hostname = |at| of(at).map(|placed| placed.listener.hostname.specificity());
                    let list = if hostname(closest) < hostname(at) { &mut elsewhere } else { &mut kept };
                    list.insert(host.to_string());
                }
                continue;
            }
            let place = (router.clone(), host.to_match());
            match lost.get(&place) {
                Some(winner) => {
                    let own = self.hosts.built.get(&place).map(|built| built.age.created()).unwrap_or_default();
                    let words = winner.created.seniority(own).words();
                    host_outcome.winners.push(winner.object.clone());
                    taken.entry((who(&winner.object, key), words)).or_default().insert(host.to_string());
                }
                None => host_outcome.is_served = true,
            }
        }
        host_outcome.winners.sort();
        host_outcome.winners.dedup();
        let list = |hosts: BTreeSet<String>| hosts.into_iter().collect::<Vec<_>>().join(", ");
        if !elsewhere.is_empty() {
            host_outcome
                .notes
                .push(format!("not served here, as a more specific listener of the port has it: {}", list(elsewhere)));
        }
        if !kept.is_empty() {
            host_outcome
                .notes
                .push(format!("not served here, as an older route of another Gateway has it: {}", list(kept)));
        }
        let note = |((who, words), hosts)| format!("{who} {words} and has {}", list(hosts));
        host_outcome.notes.extend(taken.into_iter().map(note));
        host_outcome
    }
}

/// Name of a winner for the losing object's message: its name only within the same namespace.
fn who(winner: &ObjectRef, own: &ObjectKey) -> String {
    if winner.key.namespace == own.namespace {
        winner.to_string()
    } else {
        let article = if winner.kind == Kind::IngressRoute { "an" } else { "a" };
        format!("{article} {} of another namespace", winner.kind)
    }
}

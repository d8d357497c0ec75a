//! What becomes of hosts: served, another listener's, an older object's of another kind, or in a domain that is denied.

use std::collections::BTreeSet;

use router_model::object::{Created, ObjectRef};
use router_table::host_pattern::HostPattern;

use crate::gateway::Model;
use crate::gateway::serve::ListenerAt;
use crate::status::condition::Condition;
use crate::status::host_conflict::{HostConflict, messages};
use crate::translator::LostHosts;

/// What becomes of hosts that a route wants.
#[derive(Default)]
pub(super) struct Fate {
    /// One of them is the route's where it is looked for.
    is_served: bool,
    /// One of them is in a domain that is not served.
    is_denied: bool,
    /// What is to be said of them.
    pub notes: Vec<String>,
    /// Who has some of them instead.
    pub winners: Vec<ObjectRef>,
}

impl Fate {
    /// `Accepted` with what is to be said about hosts; when objects of other kinds have them all, it does not hold.
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
    /// What becomes of hosts of a route on listeners, for the status of `reader`; `own` are all listeners that it hangs
    /// on.
    pub(super) fn fate<'h>(
        &self,
        hosts: impl Iterator<Item = (ListenerAt, &'h HostPattern)>,
        reader: &ObjectRef,
        own: &BTreeSet<ListenerAt>,
        lost: &LostHosts,
    ) -> Fate {
        let mut fate = Fate::default();
        let (mut elsewhere, mut kept) = (BTreeSet::new(), BTreeSet::new());
        let mut taken: Vec<HostConflict> = Vec::new();
        for (at, host) in hosts {
            let placed = self.gates.get(at.0).and_then(|gate| gate.listeners.get(at.1));
            let Some((router, protocol)) = placed.and_then(|placed| Some((placed.router.as_ref()?, placed.protocol?)))
            else {
                continue;
            };
            if let Some(fault) = self.domains.fault(host) {
                fate.is_denied = true;
                fate.notes.push(format!("host {host} is {fault}"));
                continue;
            }
            let closest = self.hosts.closest(router, protocol.side(), host);
            if closest != Some(at) {
                if let Some(closest) = closest.filter(|closest| !own.contains(closest)) {
                    let of = |at: ListenerAt| self.gates.get(at.0).and_then(|gate| gate.listeners.get(at.1));
                    let hostname = |at| of(at).map(|placed| placed.listener.hostname.specificity());
                    let list = if hostname(closest) < hostname(at) { &mut elsewhere } else { &mut kept };
                    list.insert(host.to_string());
                }
                continue;
            }
            let place = (router.clone(), host.to_match());
            match lost.get(&place) {
                Some(owner) => {
                    let (loser, created) = match self.hosts.built.get(&place) {
                        Some(built) => (built.site.owner.clone(), built.age.created()),
                        None => (reader.clone(), Created::default()),
                    };
                    taken.push(owner.conflict(host.to_string(), loser, created));
                }
                None => fate.is_served = true,
            }
        }
        fate.winners = taken.iter().map(|conflict| conflict.winner.clone()).collect();
        fate.winners.sort();
        fate.winners.dedup();
        let list = |hosts: BTreeSet<String>| hosts.into_iter().collect::<Vec<_>>().join(", ");
        if !elsewhere.is_empty() {
            fate.notes
                .push(format!("not served here, as a more specific listener of the port has it: {}", list(elsewhere)));
        }
        if !kept.is_empty() {
            fate.notes.push(format!("not served here, as an older route of another Gateway has it: {}", list(kept)));
        }
        fate.notes.extend(messages(&taken, reader));
        fate
    }
}

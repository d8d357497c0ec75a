//! Outcome of a route's hosts: served, served by another listener, owned by an object of another API, or denied.

use std::collections::BTreeSet;

use router_model::kind::Kind;
use router_model::object::{Created, ObjectRef};
use router_table::host_pattern::HostPattern;

use crate::gateway::GatewayTranslator;
use crate::gateway::base::ListenerAt;
use crate::gateway::status::CrossApiClaims;
use crate::status::condition::Condition;
use crate::status::host_conflict::{HostConflict, messages};

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

/// Outcome of a listener's hostname.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerOutcome {
    /// Notes for the message of `Accepted`.
    pub notes: Vec<String>,
    /// The object of another API that owns the host, if any.
    pub winners: Vec<ObjectRef>,
}

impl GatewayTranslator {
    /// Outcome of a listener's hostname.
    pub(in crate::gateway) fn listener_outcome(
        &self,
        at: ListenerAt,
        cross_api: CrossApiClaims<'_>,
    ) -> ListenerOutcome {
        let Some((state, placed)) = self.base.gateways.get(at.0).zip(self.base.listener(at)) else {
            return ListenerOutcome::default();
        };
        let subject = ObjectRef { kind: Kind::Gateway, key: state.gateway.meta.key.clone() };
        let own = [(at, &placed.listener.hostname)];
        let HostOutcome { notes, winners, .. } = self.host_outcome(own.into_iter(), &subject, &[at], cross_api);
        ListenerOutcome { notes, winners }
    }

    /// Outcome of hosts on listeners, for the status of `subject`; `own`: all listeners that it is attached to.
    pub(super) fn host_outcome<'h>(
        &self,
        hosts: impl Iterator<Item = (ListenerAt, &'h HostPattern)>,
        subject: &ObjectRef,
        own: &[ListenerAt],
        cross_api: CrossApiClaims<'_>,
    ) -> HostOutcome {
        let mut host_outcome = HostOutcome::default();
        let (mut more_specific, mut older) = (BTreeSet::new(), BTreeSet::new());
        let mut conflicts: Vec<HostConflict> = Vec::new();
        for (at, host) in hosts {
            let placed = self.base.listener(at);
            let Some((router, protocol)) = placed.and_then(|placed| Some((placed.router.as_ref()?, placed.protocol?)))
            else {
                continue;
            };
            if let Some(reason) = self.base.domains.denial(host) {
                host_outcome.is_denied = true;
                host_outcome.notes.push(format!("host {host} is {reason}"));
                continue;
            }
            let closest = self.hosts.closest(self.base.router_index(at), protocol.port_kind(), host);
            if closest != Some(at) {
                if let Some(closest) = closest.filter(|closest| !own.contains(closest)) {
                    let hostname = |at| self.base.listener(at).map(|placed| placed.listener.hostname.specificity());
                    let list = if hostname(closest) < hostname(at) { &mut more_specific } else { &mut older };
                    list.insert(host.to_string());
                }
                continue;
            }
            let router_host = (router.clone(), host.to_match());
            match cross_api.lost.get(&router_host) {
                Some(owner) => {
                    let (loser, created) = match cross_api.claims.get(&router_host) {
                        Some(claim) => (claim.owner(), claim.age.created()),
                        None => (subject.clone(), Created::default()),
                    };
                    conflicts.push(owner.conflict(host.to_string(), loser, created));
                }
                None => host_outcome.is_served = true,
            }
        }
        host_outcome.winners = conflicts.iter().map(|conflict| conflict.winner.clone()).collect();
        host_outcome.winners.sort();
        host_outcome.winners.dedup();
        let list = |hosts: BTreeSet<String>| hosts.into_iter().collect::<Vec<_>>().join(", ");
        if !more_specific.is_empty() {
            host_outcome.notes.push(format!(
                "not served here, as a more specific listener of the port has it: {}",
                list(more_specific)
            ));
        }
        if !older.is_empty() {
            host_outcome
                .notes
                .push(format!("not served here, as an older route of another Gateway has it: {}", list(older)));
        }
        host_outcome.notes.extend(messages(&conflicts, subject));
        host_outcome
    }
}

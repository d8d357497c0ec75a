//! Statuses of Gateways.

use std::collections::BTreeSet;

use router_api::gateway_api::types::GROUP;
use router_model::kind::Kind;
use router_model::object::ObjectRef;
use serde_json::json;

use super::Counts;
use crate::gateway::GatewayTranslator;
use crate::gateway::conditions::conditions;
use crate::gateway::gateway_state::GatewayState;
use crate::gateway::listeners::evaluated::Placed;
use crate::status::condition::Condition;
use crate::status::object_status::{ObjectStatus, ParentStatus};
use crate::translator::LostHosts;

impl GatewayTranslator<'_> {
    /// Status of a Gateway.
    pub(super) fn gateway(
        &self,
        index: usize,
        state: &GatewayState<'_>,
        counts: &Counts,
        lost: &LostHosts,
    ) -> ObjectStatus {
        let reader = ObjectRef { kind: Kind::Gateway, key: state.gateway.meta.key.clone() };
        let generation = state.gateway.meta.generation;
        let (mut listeners, mut rows) = (Vec::new(), Vec::new());
        for (j, placed) in state.listeners.iter().enumerate() {
            let mut accepted = placed.accepted.clone();
            let own = [((index, j), &placed.listener.hostname)];
            let host_outcome = self.host_outcome(own.into_iter(), &reader, &BTreeSet::from([(index, j)]), lost);
            if accepted.holds && !host_outcome.notes.is_empty() {
                accepted.message = host_outcome.notes.join("; ");
            }
            let programmed = placed.programmed();
            let kinds: Vec<_> =
                placed.kinds.iter().map(|kind| json!({ "group": GROUP, "kind": kind.name() })).collect();
            let written = [&accepted, &placed.conflicted, &placed.resolved, &programmed];
            listeners.push(json!({
                "name": &*placed.listener.name,
                "supportedKinds": kinds,
                "attachedRoutes": counts.get(&(index, j)).map_or(0, BTreeSet::len),
                "conditions": conditions(written.into_iter().chain(&placed.overlapping), generation),
            }));
            // The condition that prevents the listener from receiving traffic, else its state.
            let says = match (&state.refusal, accepted.holds && !programmed.holds, placed.resolved.holds) {
                (Some(refusal), ..) => refusal,
                (None, false, _) => &accepted,
                (None, true, false) => &placed.resolved,
                (None, true, true) => &programmed,
            };
            let router = placed.router.as_ref().map_or("", |router| &*router.0);
            rows.push(ParentStatus {
                parent: format!("{router}#{}", placed.listener.name),
                // A listener with an unsupported protocol has no hosts.
                hosts: placed.protocol.iter().map(|_| placed.listener.hostname.to_string()).collect(),
                admitted: placed.is_programmed(),
                reason: says.reason.clone(),
                message: says.message.clone(),
                winners: host_outcome.winners,
            });
        }
        let addresses: Vec<_> = self
            .inputs
            .addresses
            .iter()
            .map(|address| json!({ "type": "IPAddress", "value": address.to_string() }))
            .collect();
        let status = json!({
            "addresses": addresses,
            "conditions": conditions(&of_gateway(state), generation),
            "listeners": listeners,
        });
        ObjectStatus { status, rows }
    }
}

/// Conditions of the Gateway itself.
fn of_gateway(state: &GatewayState<'_>) -> [Condition; 3] {
    let names = |bad: &dyn Fn(&Placed<'_>) -> bool| {
        let names = state.listeners.iter().filter(|placed| bad(placed)).map(|placed| &*placed.listener.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let invalid = names(&|placed| !placed.accepted.holds);
    let unresolved = names(&|placed| !placed.resolved.holds);
    let accepted = match &state.refusal {
        Some(refusal) => refusal.clone(),
        None if invalid.is_empty() => Condition::new("Accepted", true, "Accepted", ""),
        None => {
            let some = state.listeners.iter().any(|placed| placed.accepted.holds);
            Condition::new("Accepted", some, "ListenersNotValid", format!("listeners are not accepted: {invalid}"))
        }
    };
    let is_programmed = state.listeners.iter().any(Placed::is_programmed);
    let programmed = match is_programmed {
        true => Condition::new("Programmed", true, "Programmed", ""),
        false => Condition::new("Programmed", false, "Invalid", "no listener takes traffic"),
    };
    let resolved = match unresolved.is_empty() {
        true => Condition::new("ResolvedRefs", true, "ResolvedRefs", ""),
        false => {
            let message = format!("listeners have references that cannot be used: {unresolved}");
            Condition::new("ResolvedRefs", false, "ListenersNotResolved", message)
        }
    };
    [accepted, programmed, resolved]
}

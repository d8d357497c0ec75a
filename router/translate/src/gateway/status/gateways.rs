//! What Gateways are told.

use std::collections::BTreeSet;

use router_api::gateway_api::types::GROUP;
use router_model::kind::Kind;
use router_model::object::ObjectRef;
use serde_json::json;

use super::Counts;
use crate::gateway::Model;
use crate::gateway::conditions::conditions;
use crate::gateway::gateway_state::GatewayState;
use crate::gateway::listeners::placed::Placed;
use crate::status::condition::Condition;
use crate::status::object_status::{ObjectStatus, ParentStatus};
use crate::translator::LostHosts;

impl Model<'_> {
    /// What a Gateway is told.
    pub(super) fn gateway(
        &self,
        index: usize,
        gate: &GatewayState<'_>,
        counts: &Counts,
        lost: &LostHosts,
    ) -> ObjectStatus {
        let reader = ObjectRef { kind: Kind::Gateway, key: gate.gateway.meta.key.clone() };
        let generation = gate.gateway.meta.generation;
        let (mut listeners, mut rows) = (Vec::new(), Vec::new());
        for (j, placed) in gate.listeners.iter().enumerate() {
            let mut accepted = placed.accepted.clone();
            let own = [((index, j), &placed.listener.hostname)];
            let fate = self.fate(own.into_iter(), &reader, &BTreeSet::from([(index, j)]), lost);
            if accepted.holds && !fate.notes.is_empty() {
                accepted.message = fate.notes.join("; ");
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
            // What keeps the listener from taking traffic, or else how it stands.
            let says = match (&gate.refusal, accepted.holds && !programmed.holds, placed.resolved.holds) {
                (Some(refusal), ..) => refusal,
                (None, false, _) => &accepted,
                (None, true, false) => &placed.resolved,
                (None, true, true) => &programmed,
            };
            let router = placed.router.as_ref().map_or("", |router| &*router.0);
            rows.push(ParentStatus {
                parent: format!("{router}#{}", placed.listener.name),
                // One of a protocol that is not done has no hosts.
                hosts: placed.protocol.iter().map(|_| placed.listener.hostname.to_string()).collect(),
                admitted: placed.is_programmed(),
                reason: says.reason.clone(),
                message: says.message.clone(),
                winners: fate.winners,
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
            "conditions": conditions(&of_gateway(gate), generation),
            "listeners": listeners,
        });
        ObjectStatus { status, rows }
    }
}

/// Conditions of a Gateway as a whole.
fn of_gateway(gate: &GatewayState<'_>) -> [Condition; 3] {
    let names = |bad: &dyn Fn(&Placed<'_>) -> bool| {
        let names = gate.listeners.iter().filter(|placed| bad(placed)).map(|placed| &*placed.listener.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let invalid = names(&|placed| !placed.accepted.holds);
    let unresolved = names(&|placed| !placed.resolved.holds);
    let accepted = match &gate.refusal {
        Some(refusal) => refusal.clone(),
        None if invalid.is_empty() => Condition::new("Accepted", true, "Accepted", ""),
        None => {
            let some = gate.listeners.iter().any(|placed| placed.accepted.holds);
            Condition::new("Accepted", some, "ListenersNotValid", format!("listeners are not accepted: {invalid}"))
        }
    };
    let is_programmed = gate.listeners.iter().any(Placed::is_programmed);
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

//! Writes the statuses of Gateways.

use std::collections::BTreeMap;

use router_api::gateway_api::types::GROUP;
use serde_json::json;

use crate::gateway::base::ListenerAt;
use crate::gateway::conditions::conditions;
use crate::gateway::gateway_state::GatewayState;
use crate::gateway::listeners::placed_listener::PlacedListener;
use crate::gateway::status::host_outcome::ListenerOutcome;
use crate::settings::GatewayAddress;
use crate::status::condition::Condition;
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Status of a Gateway. `index`: its index in `GatewayBase::gateways`; `counts`: number of routes attached to each
/// listener; `outcomes`: outcome of each listener's hostname.
pub fn status(
    state: &GatewayState,
    index: usize,
    addresses: &[GatewayAddress],
    counts: &BTreeMap<ListenerAt, usize>,
    outcomes: &BTreeMap<ListenerAt, ListenerOutcome>,
) -> ObjectStatus {
    let generation = state.gateway.meta.generation;
    let (mut listeners, mut rows) = (Vec::new(), Vec::new());
    for (j, placed) in state.listeners.iter().enumerate() {
        let mut accepted = placed.accepted.clone();
        let outcome = outcomes.get(&(index, j)).cloned().unwrap_or_default();
        if accepted.holds && !outcome.notes.is_empty() {
            accepted.message = outcome.notes.join("; ");
        }
        let programmed = placed.programmed();
        let kinds: Vec<_> = placed.kinds.iter().map(|kind| json!({ "group": GROUP, "kind": kind.name() })).collect();
        let written = [&accepted, &placed.conflicted, &placed.resolved, &programmed];
        listeners.push(json!({
            "name": &*placed.listener.name,
            "supportedKinds": kinds,
            "attachedRoutes": counts.get(&(index, j)).copied().unwrap_or_default(),
            "conditions": conditions(written.into_iter().chain(&placed.overlapping), generation),
        }));
        // The condition that prevents the listener from receiving traffic, else its state.
        let relevant = match (&state.rejection, accepted.holds && !programmed.holds, placed.resolved.holds) {
            (Some(rejection), ..) => rejection,
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
            reason: relevant.reason.clone(),
            message: relevant.message.clone(),
            winners: outcome.winners,
        });
    }
    let address = |address: &GatewayAddress| json!({ "type": address.kind(), "value": address.to_string() });
    let addresses: Vec<_> = addresses.iter().map(address).collect();
    let status = json!({
        "addresses": addresses,
        "conditions": conditions(&of_gateway(state), generation),
        "listeners": listeners,
    });
    ObjectStatus::new(&status, rows)
}

/// Conditions of the Gateway itself.
fn of_gateway(state: &GatewayState) -> [Condition; 3] {
    let names = |is_invalid: &dyn Fn(&PlacedListener) -> bool| {
        let names = state.listeners.iter().filter(|placed| is_invalid(placed)).map(|placed| &*placed.listener.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let invalid = names(&|placed| !placed.accepted.holds);
    let unresolved = names(&|placed| !placed.resolved.holds);
    let accepted = match &state.rejection {
        Some(rejection) => rejection.clone(),
        None if invalid.is_empty() => Condition::new("Accepted", true, "Accepted", ""),
        None => {
            let some = state.listeners.iter().any(|placed| placed.accepted.holds);
            Condition::new("Accepted", some, "ListenersNotValid", format!("listeners are not accepted: {invalid}"))
        }
    };
    let is_programmed = state.listeners.iter().any(PlacedListener::is_programmed);
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

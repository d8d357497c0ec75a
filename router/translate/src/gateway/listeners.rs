//! Evaluates the listeners of Gateways: their routers, conflicts, and the kinds of routes that they accept.
//!
//! Gateways share the agent's addresses, so their listeners are merged by port. Indistinct listeners of one Gateway are
//! all conflicted; among Gateways, the listener of the oldest one is accepted.

mod certificates;
pub mod placed_listener;
pub(crate) mod ports;

use std::collections::{BTreeMap, HashMap};

use router_api::gateway_api::types::{GROUP, Gateway, Listener};
use router_model::kind::Kind;
use router_table::host_pattern::HostPattern;

use super::conditions::ReferenceErrors;
use crate::gateway::grants::Grants;
use crate::gateway::listeners::placed_listener::{GatewayProtocol, PlacedListener};
use crate::gateway::listeners::ports::Ports;
use crate::status::condition::Condition;
use crate::translator::Inputs;

/// Places the listeners of a Gateway on routers. Call it for older Gateways first. Listeners of a rejected Gateway are
/// not placed, but their errors are reported.
pub fn place<'r>(
    gateway: &'r Gateway,
    is_rejected: bool,
    inputs: &Inputs<'_>,
    grants: &Grants,
    ports: &mut Ports<'r>,
) -> Vec<PlacedListener> {
    let conflicts = conflicts(&gateway.listeners);
    let mut placed: Vec<_> = gateway
        .listeners
        .iter()
        .zip(conflicts)
        .map(|(listener, conflict)| {
            let mut placed = evaluate(gateway, listener, inputs, grants);
            if let Some((reason, message)) = conflict {
                placed.conflicted = Condition::new("Conflicted", true, reason, message.clone());
                if placed.accepted.holds {
                    placed.accepted = Condition::new("Accepted", false, reason, message);
                }
            }
            placed
        })
        .collect();
    for placed in placed.iter_mut().filter(|placed| placed.accepted.holds && !is_rejected) {
        let Some(protocol) = placed.protocol else { continue };
        match ports.reserve(gateway, &placed.listener, protocol.port_kind()) {
            Ok(router) => {
                placed.tls_fault = ports.tls_fault(&router).filter(|_| protocol.terminates());
                placed.router = Some(router);
            }
            Err(message) => placed.accepted = Condition::new("Accepted", false, "PortUnavailable", message),
        }
    }
    certificates::note_overlaps(&mut placed);
    placed
}

/// Evaluates a listener independently of the others.
fn evaluate(gateway: &Gateway, listener: &Listener, inputs: &Inputs<'_>, grants: &Grants) -> PlacedListener {
    let protocol = GatewayProtocol::from_listener(listener);
    let accepted = match (protocol, listener.unsupported.is_empty()) {
        (None, _) => {
            let message =
                format!("protocol {:?} is not supported; write HTTP, HTTPS (mode Terminate) or TLS", listener.protocol);
            Condition::new("Accepted", false, "UnsupportedProtocol", message)
        }
        (_, false) => Condition::new("Accepted", false, "UnsupportedValue", listener.unsupported.join("; ")),
        (_, true) => Condition::new("Accepted", true, "Accepted", ""),
    };
    let mut errors = ReferenceErrors::default();
    let certificates = match protocol.is_some_and(GatewayProtocol::terminates) {
        true => certificates::resolve(gateway, listener, inputs.resources, grants, &mut errors),
        false => Vec::new(),
    };
    let kinds = kinds(listener, protocol, &mut errors);
    PlacedListener {
        listener: listener.clone(),
        protocol,
        router: None,
        kinds,
        certificates,
        accepted,
        conflicted: Condition::new("Conflicted", false, "NoConflicts", ""),
        resolved: errors.condition("ResolvedRefs", "ResolvedRefs"),
        overlapping: None,
        tls_fault: None,
    }
}

/// The entries of `allowedRoutes.kinds` that the protocol supports.
fn kinds(listener: &Listener, protocol: Option<GatewayProtocol>, errors: &mut ReferenceErrors) -> Vec<Kind> {
    let possible = protocol.map_or(&[][..], GatewayProtocol::kinds);
    let Some(allowed) = &listener.allowed.kinds else { return possible.to_vec() };
    let mut kinds = Vec::new();
    for (group, name) in allowed {
        match possible.iter().find(|kind| **group == *GROUP && **name == *kind.name()) {
            Some(kind) if !kinds.contains(kind) => kinds.push(*kind),
            Some(_) => {}
            // An unsupported protocol supports no kind, so a message could not suggest one.
            None if protocol.is_none() => {}
            None => {
                let names: Vec<_> = possible.iter().map(|kind| kind.name()).collect();
                let message = format!(
                    "allowedRoutes.kinds: a listener of protocol {} cannot carry {}; write {}",
                    listener.protocol,
                    qualified(group, name),
                    names.join(" or ")
                );
                errors.add("InvalidRouteKinds", message);
            }
        }
    }
    kinds
}

fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// For each listener of a Gateway: reason and message if another one is indistinct from it.
fn conflicts(listeners: &[Listener]) -> Vec<Option<(&'static str, String)>> {
    let mut by_port: BTreeMap<u16, Vec<(usize, GatewayProtocol)>> = BTreeMap::new();
    for (i, listener) in listeners.iter().enumerate() {
        by_port
            .entry(listener.port)
            .or_default()
            .extend(GatewayProtocol::from_listener(listener).map(|protocol| (i, protocol)));
    }
    let mut conflicts = vec![None; listeners.len()];
    for (port, group) in by_port {
        let is_mixed = group.iter().any(|(_, one)| group.iter().any(|(_, other)| one.port_kind() != other.port_kind()));
        let mut by_host: HashMap<&HostPattern, Vec<(usize, GatewayProtocol)>> = HashMap::new();
        for &(i, protocol) in &group {
            by_host.entry(&listeners[i].hostname).or_default().push((i, protocol));
        }
        for &(i, protocol) in &group {
            let listener = &listeners[i];
            let same = by_host.get(&listener.hostname).map_or(&[][..], Vec::as_slice);
            let others = same.iter().filter(|(other, _)| *other != i);
            let names: Vec<&str> = others.clone().map(|(other, _)| &*listeners[*other].name).collect();
            let is_https = |protocol| protocol == GatewayProtocol::Https;
            conflicts[i] = if is_mixed {
                let message = format!("port {port} has listeners for HTTP and for TLS; give each its own port");
                Some(("ProtocolConflict", message))
            } else if names.is_empty() {
                None
            } else {
                let mixes = others.clone().any(|(_, other)| is_https(*other) != is_https(protocol));
                let reason = if mixes { "ProtocolConflict" } else { "HostnameConflict" };
                let message = format!(
                    "listeners {} have port {port} and hostname {} as well; change one of them",
                    names.join(", "),
                    listener.hostname
                );
                Some((reason, message))
            };
        }
    }
    conflicts
}

#[cfg(test)]
mod tests;

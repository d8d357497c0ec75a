//! Everything that translation reads except routes: classes, Gateways with their listeners, grants and policies. It
//! changes rarely, and is reused when only routes change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use router_api::gateway_api::types::Gateway;
use router_model::names::RouterName;
use router_model::object::ObjectKey;
use router_table::host_pattern::HostPattern;
use router_table::policy::gate::GatePolicy;

use crate::gateway::backend_tls::BackendTlsPolicies;
use crate::gateway::claims::age_order;
use crate::gateway::class::Classes;
use crate::gateway::domains::DomainPatterns;
use crate::gateway::gateway_state::GatewayState;
use crate::gateway::grants::Grants;
use crate::gateway::listeners;
use crate::gateway::listeners::placed_listener::PlacedListener;
use crate::gateway::listeners::ports::{PortKind, Ports};
use crate::gateway::pattern_map::PatternMap;
use crate::owned_age::OwnedAge;
use crate::status::condition::Condition;
use crate::translator::{Inputs, RouterPorts};

/// A listener: index of its Gateway, and index in that Gateway.
pub type ListenerAt = (usize, usize);

/// Hosts, each with its router ([`GatewayBase::router_index`]).
pub type HostScope = BTreeSet<(usize, HostPattern)>;

/// Everything that translation reads except routes; see the module.
#[derive(Debug)]
pub struct GatewayBase {
    /// Classes of Sluice's controller.
    pub classes: Classes,
    /// Gateways of accepted classes, the oldest first.
    pub gateways: Vec<GatewayState>,
    /// Index of each Gateway in `gateways`.
    pub by_key: BTreeMap<ObjectKey, usize>,
    /// Routers created for listener ports that no configured router serves.
    pub created_routers: Vec<RouterPorts>,
    /// All routers: the configured ones, then `created_routers`.
    pub routers: Vec<RouterPorts>,
    /// ReferenceGrants.
    pub grants: Grants,
    /// BackendTLSPolicies.
    pub policies: BackendTlsPolicies,
    /// Denied and allowed domains.
    pub domains: DomainPatterns,
    /// The listeners of each router's ports, by index of the router in `routers`.
    ports: BTreeMap<(usize, PortKind), PortListeners>,
    /// Age of each of `gateways`.
    pub ages: Vec<OwnedAge>,
    /// Router of each listener; see [`GatewayBase::router_index`].
    router_indices: BTreeMap<ListenerAt, usize>,
}

/// The listeners of a port.
#[derive(Debug, Default)]
struct PortListeners {
    by_hostname: PatternMap<ListenerAt>,
    /// Indices of their Gateways.
    gateways: BTreeSet<usize>,
}

impl GatewayBase {
    /// Evaluates classes, Gateways, listeners, grants and policies.
    pub fn new(inputs: &Inputs<'_>) -> Self {
        let resources = inputs.resources;
        let grants = Grants::new(resources);
        let classes = Classes::new(resources);
        let mut ports = Ports::new(inputs.routers);
        let gateways = gateways(inputs, &classes, &grants, &mut ports);
        let mut created_routers: Vec<_> = ports.created().cloned().collect();
        let gates = common_gates(&gateways);
        for router in &mut created_routers {
            router.gate = gates.get(&router.name).cloned().flatten().cloned();
        }
        let routers: Vec<RouterPorts> = inputs.routers.iter().chain(&created_routers).cloned().collect();
        let indices: HashMap<&RouterName, usize> =
            routers.iter().enumerate().map(|(i, router)| (&router.name, i)).collect();
        let mut router_indices = BTreeMap::new();
        let mut by_port: BTreeMap<_, PortListeners> = BTreeMap::new();
        for (i, state) in gateways.iter().enumerate() {
            for (j, placed) in state.listeners.iter().enumerate() {
                let index = placed.router.as_ref().and_then(|router| indices.get(router)).copied();
                router_indices.insert((i, j), index.unwrap_or(routers.len() + router_indices.len()));
                let Some((index, protocol)) = index.zip(placed.protocol) else { continue };
                let of_port = by_port.entry((index, protocol.port_kind())).or_default();
                of_port.by_hostname.or_insert(&placed.listener.hostname, (i, j));
                of_port.gateways.insert(i);
            }
        }
        let keys = gateways.iter().enumerate().map(|(i, state)| (state.gateway.meta.key.clone(), i));
        GatewayBase {
            by_key: keys.collect(),
            ages: gateways.iter().map(|state| OwnedAge::of(&state.gateway.meta)).collect(),
            routers,
            router_indices,
            policies: BackendTlsPolicies::new(resources),
            domains: DomainPatterns::new(&inputs.settings.domains),
            classes,
            gateways,
            created_routers,
            grants,
            ports: by_port,
        }
    }

    /// A listener.
    pub fn listener(&self, at: ListenerAt) -> Option<&PlacedListener> {
        self.gateways.get(at.0)?.listeners.get(at.1)
    }

    /// All listeners with their Gateways.
    pub fn listeners(&self) -> impl Iterator<Item = (ListenerAt, &GatewayState, &PlacedListener)> {
        self.gateways
            .iter()
            .enumerate()
            .flat_map(|(i, state)| state.listeners.iter().enumerate().map(move |(j, placed)| ((i, j), state, placed)))
    }

    /// Index in `routers` of the router that serves a listener. A listener without a router has a unique number beyond
    /// these.
    pub fn router_index(&self, at: ListenerAt) -> usize {
        self.router_indices.get(&at).copied().unwrap_or(usize::MAX)
    }

    /// The listener with exactly this hostname on a port of the router with this index.
    pub fn with_hostname(&self, router: usize, port_kind: PortKind, hostname: &HostPattern) -> Option<ListenerAt> {
        self.ports.get(&(router, port_kind))?.by_hostname.get(hostname).copied()
    }

    /// The listener with the most specific hostname that covers a host, on a port of the router with this index.
    pub fn covering(&self, router: usize, port_kind: PortKind, host: &HostPattern) -> Option<ListenerAt> {
        self.ports.get(&(router, port_kind))?.by_hostname.covering(host).next().copied()
    }

    /// Whether listeners of several Gateways are on a port of the router with this index.
    pub fn is_shared(&self, router: usize, port_kind: PortKind) -> bool {
        self.ports.get(&(router, port_kind)).is_some_and(|port| port.gateways.len() > 1)
    }
}

/// Gateways of accepted classes, the oldest first, with their listeners placed on routers.
fn gateways<'r>(inputs: &Inputs<'r>, classes: &Classes, grants: &Grants, ports: &mut Ports<'r>) -> Vec<GatewayState> {
    let accepted =
        inputs.resources.gateways.iter().filter_map(|gateway| Some((gateway, classes.accepts(&gateway.class)?)));
    let mut accepted: Vec<_> = accepted.collect();
    accepted.sort_by(|(one, _), (other, _)| age_order(&one.meta, &other.meta));
    accepted
        .into_iter()
        .map(|(gateway, is_class_accepted)| {
            let rejection = rejection(gateway, is_class_accepted, inputs);
            let listeners = listeners::place(gateway, rejection.is_some(), inputs, grants, ports);
            GatewayState { gateway: Arc::clone(gateway), rejection, listeners }
        })
        .collect()
}

/// For each router, the gate's policy that all Gateways with a listener there have.
fn common_gates(gateways: &[GatewayState]) -> BTreeMap<&RouterName, Option<&Arc<GatePolicy>>> {
    let mut gates = BTreeMap::new();
    for state in gateways {
        let gate = state.gateway.gate.as_ref();
        for router in state.listeners.iter().filter_map(|placed| placed.router.as_ref()) {
            let common = gates.entry(router).or_insert(gate);
            *common = common.filter(|common| Some(*common) == gate);
        }
    }
    gates
}

/// Condition `Accepted` of a Gateway that is rejected as a whole; `None` if it is accepted.
fn rejection(gateway: &Gateway, is_class_accepted: bool, inputs: &Inputs<'_>) -> Option<Condition> {
    let rejected = |reason: &str, message: String| Some(Condition::new("Accepted", false, reason, message));
    if !is_class_accepted {
        return rejected("Pending", format!("GatewayClass {} is not accepted", gateway.class));
    }
    if gateway.has_parameters {
        let message = "spec.infrastructure.parametersRef: no kind of parameters is known; remove the field";
        return rejected("InvalidParameters", message.to_owned());
    }
    if !gateway.unsupported.is_empty() {
        return rejected("Invalid", gateway.unsupported.join("; "));
    }
    let is_ours = |(kind, value): &&(Arc<str>, Arc<str>)| {
        let is_own = || value.parse().is_ok_and(|own| inputs.addresses.contains(&own) && own.kind() == &**kind);
        (**kind == *"IPAddress" && value.is_empty()) || is_own()
    };
    let foreign: Vec<_> = gateway.addresses.iter().filter(|address| !is_ours(address)).collect();
    if foreign.is_empty() {
        return None;
    }
    let foreign: Vec<_> = foreign.iter().map(|(kind, value)| format!("{kind} {value}")).collect();
    let own: Vec<_> = inputs.addresses.iter().map(ToString::to_string).collect();
    let message = format!(
        "spec.addresses: not addresses of this router: {}; it has {}",
        foreign.join(", "),
        if own.is_empty() { "none that is known".to_owned() } else { own.join(", ") }
    );
    rejected("UnsupportedAddress", message)
}

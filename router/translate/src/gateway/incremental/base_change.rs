//! Detects changes of the [`GatewayBase`], and how much must be translated again.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::gateway_api::types::BackendTlsPolicy;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::gateway::base::{GatewayBase, ListenerAt};
use crate::gateway::inclusion::slots::SlotResolver;
use crate::gateway::listeners::placed_listener::PlacedListener;
use crate::gateway::references::secrets_of;
use crate::translator::{Changes, Inputs};

/// Results that a change of the base affects.
#[derive(Debug, PartialEq, Eq)]
pub enum BaseChange {
    /// Attachments of routes are unchanged.
    Listeners {
        /// Listeners whose certificates changed.
        certificates: Vec<ListenerAt>,
        /// Gateways whose status may differ.
        gateways: BTreeSet<usize>,
    },
    /// All: any route may attach elsewhere.
    Everything,
}

/// True if a new base might differ from this one.
pub fn may_differ(base: &GatewayBase, inputs: &Inputs<'_>, changes: &Changes<'_>) -> bool {
    let (new, old) = (inputs.resources, changes.last);
    changes.routers_differ
        || new.gateway_classes.in_force_since(&old.gateway_classes).next().is_some()
        || new.gateways.in_force_since(&old.gateways).next().is_some()
        || new.definitions.in_force_since(&old.definitions).next().is_some()
        || new.reference_grants.in_force_since(&old.reference_grants).next().is_some()
        || changed_policies(base, new, old).next().is_some()
        || new.secrets.in_force_since(&old.secrets).any(|changed| is_referenced(base, changed.key))
}

/// True if a listener references this Secret.
fn is_referenced(base: &GatewayBase, secret: &ObjectKey) -> bool {
    base.gateways.iter().any(|state| secrets_of(&state.gateway).any(|key| key == *secret))
}

/// BackendTLSPolicies that changed (old and new version) or whose ConfigMaps did.
pub fn changed_policies<'r>(
    base: &'r GatewayBase,
    new: &'r Resources,
    old: &'r Resources,
) -> impl Iterator<Item = &'r Arc<BackendTlsPolicy>> {
    let policies = new.backend_tls_policies.in_force_since(&old.backend_tls_policies);
    let policies = policies.flat_map(|changed| changed.old.into_iter().chain(changed.new));
    let trusting = new.config_maps.in_force_since(&old.config_maps).flat_map(move |changed| {
        base.policies.iter().filter(move |policy| {
            let mut named = policy.ca_certificates.iter();
            policy.meta.key.namespace == changed.key.namespace && named.any(|map| map.name == changed.key.name)
        })
    });
    policies.chain(trusting)
}

/// The results that the difference of two bases affects.
pub fn compare(inputs: &Inputs<'_>, changes: &Changes<'_>, old: &GatewayBase, new: &GatewayBase) -> BaseChange {
    let has_inclusion_fields = |resources: &Resources| SlotResolver::new(resources).has_inclusion_fields;
    if has_inclusion_fields(inputs.resources) != has_inclusion_fields(changes.last)
        || old.routers != new.routers
        || old.classes.statuses != new.classes.statuses
        || old.gateways.len() != new.gateways.len()
    {
        return BaseChange::Everything;
    }
    for (old, new) in old.gateways.iter().zip(&new.gateways) {
        let admit_alike =
            |(old, new): (&PlacedListener, &PlacedListener)| old.router == new.router && old.kinds == new.kinds;
        if !Arc::ptr_eq(&old.gateway, &new.gateway)
            || old.rejection != new.rejection
            || !old.listeners.iter().zip(&new.listeners).all(admit_alike)
        {
            return BaseChange::Everything;
        }
    }
    let (mut certificates, mut gateways) = (Vec::new(), BTreeSet::new());
    for ((at, _, old), (.., new)) in old.listeners().zip(new.listeners()) {
        if old.certificates != new.certificates {
            certificates.push(at);
        }
        let has_same_status = old.certificates.is_empty() == new.certificates.is_empty()
            && old.accepted == new.accepted
            && old.conflicted == new.conflicted
            && old.resolved == new.resolved
            && old.overlapping == new.overlapping;
        if !has_same_status {
            gateways.insert(at.0);
        }
    }
    BaseChange::Listeners { certificates, gateways }
}

/// All objects of the kinds that have a status.
pub fn objects(resources: &Resources) -> BTreeSet<ObjectRef> {
    macro_rules! keys {
        ($($collection:ident $kind:ident),*) => {
            [$(resources.$collection.versions().map(|(key, _)| (Kind::$kind, key)).collect::<Vec<_>>()),*]
        };
    }
    let all = keys!(
        gateway_classes GatewayClass, gateways Gateway, http_routes HttpRoute, grpc_routes GrpcRoute,
        tls_routes TlsRoute, route_slots RouteSlot, backend_tls_policies BackendTlsPolicy
    );
    all.into_iter().flatten().map(|(kind, key)| ObjectRef { kind, key: key.clone() }).collect()
}

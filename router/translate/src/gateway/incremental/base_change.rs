//! Whether what routes share has changed, and how far that reaches.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::gateway_api::types::BackendTlsPolicy;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::gateway::base::{Base, ListenerAt};
use crate::gateway::inclusion::slots::SlotResolver;
use crate::gateway::incremental::differing::{differing, good};
use crate::gateway::listeners::evaluated::Placed;
use crate::translator::{Changes, Inputs};

/// How far a change of the base reaches.
#[derive(Debug, PartialEq, Eq)]
pub enum BaseChange {
    /// Routes attach as before.
    Listeners {
        /// Listeners that show other certificates.
        certificates: Vec<ListenerAt>,
        /// Gateways whose status differs.
        gateways: BTreeSet<usize>,
    },
    /// Anything may be attached elsewhere.
    Everything,
}

/// Whether a base made anew might differ from this one.
pub fn may_differ(base: &Base, world: &Inputs<'_>, changes: &Changes<'_>) -> bool {
    let (new, old) = (world.resources, changes.last);
    world.routers != changes.last_routers
        || differing(&new.gateway_classes, &old.gateway_classes).next().is_some()
        || differing(&new.gateways, &old.gateways).next().is_some()
        || differing(&new.definitions, &old.definitions).next().is_some()
        || differing(&new.reference_grants, &old.reference_grants).next().is_some()
        || changed_policies(base, new, old).next().is_some()
        || differing(&new.secrets, &old.secrets).any(|changed| is_shown(base, changed.key))
}

/// True if a listener names this Secret.
fn is_shown(base: &Base, secret: &ObjectKey) -> bool {
    base.listeners().any(|(_, state, placed)| {
        let mut named = placed.listener.tls.iter().flat_map(|tls| &tls.certificates);
        named.any(|reference| {
            let namespace = reference.namespace.as_ref().unwrap_or(&state.gateway.meta.key.namespace);
            reference.name == secret.name && *namespace == secret.namespace
        })
    })
}

/// Old and new versions of BackendTLSPolicies that changed or whose ConfigMaps did.
pub fn changed_policies<'r>(
    base: &'r Base,
    new: &'r Resources,
    old: &'r Resources,
) -> impl Iterator<Item = &'r Arc<BackendTlsPolicy>> {
    let policies = differing(&new.backend_tls_policies, &old.backend_tls_policies);
    let policies = policies.flat_map(|changed| good(changed.old).into_iter().chain(good(changed.new)));
    let trusting = differing(&new.config_maps, &old.config_maps).flat_map(move |changed| {
        base.policies.iter().filter(move |policy| {
            let mut named = policy.ca_certificates.iter();
            policy.meta.key.namespace == changed.key.namespace && named.any(|map| map.name == changed.key.name)
        })
    });
    policies.chain(trusting)
}

/// How far the difference of two bases reaches.
pub fn compare(world: &Inputs<'_>, changes: &Changes<'_>, old: &Base, new: &Base) -> BaseChange {
    let literal = |resources: &Resources| SlotResolver::new(resources).literal;
    if literal(world.resources) != literal(changes.last)
        || old.routers != new.routers
        || old.classes.statuses != new.classes.statuses
        || old.gateways.len() != new.gateways.len()
    {
        return BaseChange::Everything;
    }
    for (old, new) in old.gateways.iter().zip(&new.gateways) {
        let attach_alike = |(old, new): (&Placed, &Placed)| old.router == new.router && old.kinds == new.kinds;
        if !Arc::ptr_eq(&old.gateway, &new.gateway)
            || old.refusal != new.refusal
            || !old.listeners.iter().zip(&new.listeners).all(attach_alike)
        {
            return BaseChange::Everything;
        }
    }
    let (mut certificates, mut gateways) = (Vec::new(), BTreeSet::new());
    for ((at, _, old), (.., new)) in old.listeners().zip(new.listeners()) {
        if old.certificates != new.certificates {
            certificates.push(at);
        }
        let says_the_same = old.certificates.is_empty() == new.certificates.is_empty()
            && old.accepted == new.accepted
            && old.conflicted == new.conflicted
            && old.resolved == new.resolved
            && old.overlapping == new.overlapping;
        if !says_the_same {
            gateways.insert(at.0);
        }
    }
    BaseChange::Listeners { certificates, gateways }
}

/// All objects that a translation may have given a status.
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

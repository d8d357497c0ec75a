//! Objects that a change affects directly: the seeds from which all dependent results are found.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::gateway_api::types::{FromNamespaces, GatewayRoute};
use router_api::resources::{Objects, Resources};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::gateway::backend_tls;
use crate::gateway::base::GatewayBase;
use crate::gateway::inclusion::slots::SlotResolver;
use crate::gateway::incremental::base_change::changed_policies;
use crate::gateway::incremental::indexes::{Indexes, RouteVersions};
use crate::translator::Changes;

/// Objects that a change affects directly.
#[derive(Debug, Default)]
pub struct Seeds<'r> {
    /// Routes that changed.
    pub changed: Vec<RouteVersions<'r>>,
    /// Routes and RouteSlots that changed, or that reference a changed object.
    pub objects: BTreeSet<ObjectRef>,
    /// Services that changed, or that a BackendTLSPolicy targets of which the policy or a ConfigMap changed.
    pub services: BTreeSet<ObjectKey>,
    /// BackendTLSPolicies that changed, or a ConfigMap of them.
    pub policies: BTreeSet<ObjectKey>,
    /// Deleted BackendTLSPolicies.
    pub deleted: BTreeSet<ObjectRef>,
}

impl<'r> Seeds<'r> {
    /// Objects that these changes affect directly. `base` is the one before the changes.
    pub fn new(base: &GatewayBase, indexes: &Indexes, resources: &'r Resources, changes: &Changes<'r>) -> Self {
        let mut seeds = Seeds::default();
        let last = changes.last;
        seeds.routes(Kind::HttpRoute, &resources.http_routes, &last.http_routes);
        seeds.routes(Kind::GrpcRoute, &resources.grpc_routes, &last.grpc_routes);
        seeds.routes(Kind::TlsRoute, &resources.tls_routes, &last.tls_routes);
        for changed in resources.route_slots.in_force_since(&last.route_slots) {
            seeds.objects.insert(ObjectRef { kind: Kind::RouteSlot, key: changed.key.clone() });
        }
        for changed in resources.services.in_force_since(&last.services) {
            seeds.services.insert(changed.key.clone());
        }
        seeds.services.extend(changes.protocols.iter().cloned());
        for policy in changed_policies(base, resources, last) {
            seeds.services.extend(backend_tls::services(policy));
            let key = &policy.meta.key;
            seeds.policies.insert(key.clone());
            if resources.backend_tls_policies.get(key).is_none() {
                seeds.deleted.insert(ObjectRef { kind: Kind::BackendTlsPolicy, key: key.clone() });
            }
        }
        for service in &seeds.services {
            seeds.objects.extend(indexes.services.get(service).iter().cloned());
        }
        let grants = resources.reference_grants.in_force_since(&last.reference_grants);
        for namespace in grants.map(|changed| &changed.key.namespace).collect::<BTreeSet<_>>() {
            let from = ObjectKey { namespace: Arc::clone(namespace), name: "".into() };
            let in_namespace = indexes.services.range(from..).take_while(|(key, _)| key.namespace == *namespace);
            let referring = in_namespace.flat_map(|(_, routes)| routes);
            seeds.objects.extend(referring.filter(|route| route.key.namespace != *namespace).cloned());
        }
        seeds.namespaces(base, resources, changes);
        seeds
    }

    fn routes(&mut self, kind: Kind, new: &'r Objects<GatewayRoute>, old: &'r Objects<GatewayRoute>) {
        for changed in new.in_force_since(old) {
            self.objects.insert(ObjectRef { kind, key: changed.key.clone() });
            self.changed.push((changed.old, changed.new));
        }
    }

    /// Adds routes of namespaces for whose labels a selector's result has changed.
    fn namespaces(&mut self, base: &GatewayBase, resources: &Resources, changes: &Changes<'_>) {
        for namespace in changes.relabelled {
            let (old, new) = (changes.last.namespace_labels(namespace), resources.namespace_labels(namespace));
            let differs = |from: &FromNamespaces| match from {
                FromNamespaces::Selector(selector) => selector.matches(&old) != selector.matches(&new),
                _ => false,
            };
            let affects_listeners = base.listeners().any(|(.., placed)| differs(&placed.listener.allowed.from));
            let affects_slots = resources.route_slots.iter().any(|slot| differs(&slot.allowed.from));
            // Rules with `allowedRoutes` are rare, as are CRDs with that field.
            if affects_listeners || affects_slots || SlotResolver::new(resources).has_inclusion_fields {
                let Resources { http_routes, grpc_routes, tls_routes, .. } = resources;
                let routes =
                    [http_routes, grpc_routes, tls_routes].into_iter().flat_map(|it| it.of_namespace(namespace));
                self.objects.extend(routes.map(|route| route.object()));
            }
        }
    }
}

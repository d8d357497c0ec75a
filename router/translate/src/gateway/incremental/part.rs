//! Part of a translation: what is decided anew, and the restricted world that decides it.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::gateway::GatewayTranslator;
use crate::gateway::backend_tls;
use crate::gateway::base::{Base, ListenerAt, Scope};
use crate::gateway::incremental::world::Indexes;
use crate::gateway::listeners::ports::PortKind;
use crate::translator::Inputs;

/// What is decided anew.
#[derive(Debug, Default)]
pub struct Part {
    /// Hosts.
    pub hosts: Scope,
    /// Routes and RouteSlots whose status may differ.
    pub objects: BTreeSet<ObjectRef>,
    /// Listeners whose hostname's outcome may differ.
    pub listeners: BTreeSet<ListenerAt>,
    /// BackendTLSPolicies whose status may differ.
    pub policies: BTreeSet<ObjectKey>,
}

impl Part {
    /// Whether nothing is decided anew.
    pub fn is_empty(&self) -> bool {
        let Part { hosts, objects, listeners, policies } = self;
        hosts.is_empty() && objects.is_empty() && listeners.is_empty() && policies.is_empty()
    }

    /// Adds the routes and listeners whose status depends on these hosts.
    pub fn add_dependents(&mut self, base: &Base, indexes: &Indexes, hosts: &Scope) {
        for (place, host) in hosts {
            self.objects.extend(indexes.patterns.exactly(*place, host).iter().cloned());
            let sides = [PortKind::Cleartext, PortKind::Tls].into_iter();
            self.listeners.extend(sides.filter_map(|side| base.with_hostname(*place, side, host)));
        }
    }

    /// Translates the objects that decide this part.
    pub fn translate(&self, base: &Arc<Base>, indexes: &Indexes, world: &Inputs<'_>) -> GatewayTranslator {
        let resources = world.resources;
        let mut patterns = indexes.patterns_of(base, resources, &self.objects);
        let of_listeners = self.listeners.iter().filter_map(|at| Some((*at, base.listener(*at)?)));
        patterns.extend(of_listeners.map(|(at, placed)| (base.place(at), placed.listener.hostname.clone())));
        // The notes of TLSRoutes are made as hosts are built.
        let tls = self.objects.iter().filter(|object| object.kind == Kind::TlsRoute).cloned().collect();
        let mut scope = indexes.patterns_of(base, resources, &tls);
        scope.extend(self.hosts.iter().cloned());
        let claiming = patterns.iter().flat_map(|(place, host)| indexes.patterns.exactly(*place, host));
        let targeted = base.policies.iter().filter(|policy| self.policies.contains(&policy.meta.key));
        let targeted: BTreeSet<ObjectKey> = targeted.flat_map(|policy| backend_tls::services(policy)).collect();
        let referring = targeted.iter().flat_map(|service| indexes.services.get(service));
        let objects = self.objects.iter().chain(claiming).chain(referring).cloned();
        let resources = indexes.world(base, resources, objects, &scope);
        GatewayTranslator::new(&Inputs { resources: &resources, ..*world }, base, Some(&scope))
    }
}

//! The part of a translation to recompute, and the subset of objects that determines it.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::gateway::GatewayTranslator;
use crate::gateway::backend_tls;
use crate::gateway::base::{GatewayBase, HostScope, ListenerAt};
use crate::gateway::incremental::indexes::Indexes;
use crate::gateway::listeners::ports::PortKind;
use crate::translator::Inputs;

/// Results to recompute.
#[derive(Debug, Default)]
pub struct Part {
    /// Hosts.
    pub hosts: HostScope,
    /// Routes and RouteSlots whose status may differ.
    pub objects: BTreeSet<ObjectRef>,
    /// Listeners for whose hostname the outcome may differ.
    pub listeners: BTreeSet<ListenerAt>,
    /// BackendTLSPolicies whose status may differ.
    pub policies: BTreeSet<ObjectKey>,
}

impl Part {
    /// True if there is nothing to recompute.
    pub fn is_empty(&self) -> bool {
        let Part { hosts, objects, listeners, policies } = self;
        hosts.is_empty() && objects.is_empty() && listeners.is_empty() && policies.is_empty()
    }

    /// Adds the routes and listeners whose status depends on these hosts.
    pub fn add_dependents(&mut self, base: &GatewayBase, indexes: &Indexes, hosts: &HostScope) {
        for (router_index, host) in hosts {
            self.objects.extend(indexes.patterns.exactly(*router_index, host).iter().cloned());
            let port_kinds = [PortKind::Cleartext, PortKind::Tls].into_iter();
            self.listeners
                .extend(port_kinds.filter_map(|port_kind| base.with_hostname(*router_index, port_kind, host)));
        }
    }

    /// Translates the subset of objects that determines this part.
    pub fn translate(&self, base: &Arc<GatewayBase>, indexes: &Indexes, inputs: &Inputs<'_>) -> GatewayTranslator {
        let resources = inputs.resources;
        let mut patterns = indexes.patterns_of(base, resources, &self.objects);
        let selected_listeners = self.listeners.iter().filter_map(|at| Some((*at, base.listener(*at)?)));
        patterns
            .extend(selected_listeners.map(|(at, placed)| (base.router_index(at), placed.listener.hostname.clone())));
        // Notes of TLSRoutes result from building their hosts.
        let tls = self.objects.iter().filter(|object| object.kind == Kind::TlsRoute).cloned().collect();
        let mut scope = indexes.patterns_of(base, resources, &tls);
        scope.extend(self.hosts.iter().cloned());
        let claiming = patterns.iter().flat_map(|(router_index, host)| indexes.patterns.exactly(*router_index, host));
        let targeted = base.policies.iter().filter(|policy| self.policies.contains(&policy.meta.key));
        let targeted: BTreeSet<ObjectKey> = targeted.flat_map(|policy| backend_tls::services(policy)).collect();
        let referring = targeted.iter().flat_map(|service| indexes.services.get(service));
        let objects = self.objects.iter().chain(claiming).chain(referring).cloned();
        let resources = indexes.restricted(base, resources, objects, &scope);
        GatewayTranslator::new(&Inputs { resources: &resources, ..*inputs }, base, Some(&scope))
    }
}

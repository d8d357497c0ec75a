//! The part of a translation to recompute, and the subset of objects that determines it.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::host_pattern::HostPattern;

use crate::gateway::backend_tls;
use crate::gateway::base::{GatewayBase, HostScope, ListenerAt};
use crate::gateway::incremental::indexes::Indexes;
use crate::gateway::incremental::trees::Trees;
use crate::gateway::listeners::ports::PortKind;
use crate::gateway::{GatewayTranslator, Selection};
use crate::translator::Inputs;

const PORT_KINDS: [PortKind; 2] = [PortKind::Cleartext, PortKind::Tls];

/// Results to recompute.
#[derive(Debug, Default)]
pub struct Part {
    /// True if all objects were translated; `hosts` and `rules` are then empty.
    pub is_all: bool,
    /// Hosts.
    pub hosts: HostScope,
    /// Routes and RouteSlots whose status may differ.
    pub objects: BTreeSet<ObjectRef>,
    /// Those routes whose effective rules may differ.
    pub rules: BTreeSet<ObjectRef>,
    /// Listeners for whose hostname the outcome may differ.
    pub listeners: BTreeSet<ListenerAt>,
    /// BackendTLSPolicies whose status may differ.
    pub policies: BTreeSet<ObjectKey>,
}

impl Part {
    /// True if there is nothing to recompute.
    pub fn is_empty(&self) -> bool {
        let Part { is_all: _, hosts, objects, rules: _, listeners, policies } = self;
        hosts.is_empty() && objects.is_empty() && listeners.is_empty() && policies.is_empty()
    }

    /// Adds the routes and listeners whose status depends on which object owns these hosts.
    pub fn add_claimants(&mut self, base: &GatewayBase, indexes: &Indexes, hosts: &HostScope) {
        for (router_index, host) in hosts {
            self.objects.extend(indexes.patterns.exactly(*router_index, host).iter().cloned());
        }
        self.add_listeners(base, hosts);
    }

    /// Adds the routes and listeners whose status depends on which routes claim these hosts: other routes than
    /// TLSRoutes only if the Gateways that share a port, or objects of another API (`is_lost`), compete for the host.
    pub fn add_dependents(
        &mut self,
        base: &GatewayBase,
        indexes: &Indexes,
        hosts: &HostScope,
        is_lost: impl Fn(&(usize, HostPattern)) -> bool,
    ) {
        for (router_index, host) in hosts {
            let is_shared = PORT_KINDS.iter().any(|port_kind| base.is_shared(*router_index, *port_kind));
            let routes = indexes.patterns.exactly(*router_index, host).iter();
            let all = is_shared || is_lost(&(*router_index, host.clone()));
            self.objects.extend(routes.filter(|route| all || route.kind == Kind::TlsRoute).cloned());
        }
        self.add_listeners(base, hosts);
    }

    fn add_listeners(&mut self, base: &GatewayBase, hosts: &HostScope) {
        for (router_index, host) in hosts {
            let listeners = PORT_KINDS.iter().filter_map(|kind| base.with_hostname(*router_index, *kind, host));
            self.listeners.extend(listeners);
        }
    }

    /// Translates the subset of objects that determines this part.
    pub fn translate(
        &self,
        base: &Arc<GatewayBase>,
        indexes: &Indexes,
        trees: &Trees,
        inputs: &Inputs<'_>,
    ) -> GatewayTranslator {
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
        let covering = scope.iter().flat_map(|(router_index, host)| indexes.patterns.covering(*router_index, host));
        let policies = self.policies.iter().filter_map(|key| resources.backend_tls_policies.get(key));
        let services: BTreeSet<ObjectKey> = policies.flat_map(|policy| backend_tls::services(policy)).collect();
        let referring = services.iter().flat_map(|service| indexes.services.get(service));
        // Routes below have the mirrors of those above.
        let referring = indexes.links.below(referring.cloned());
        let mut others: Vec<&ObjectRef> = claiming.chain(covering).chain(&referring).collect();
        others.sort();
        others.dedup();

        let (mut routes, mut known) = (BTreeSet::new(), Vec::new());
        for object in others.into_iter().filter(|object| !self.rules.contains(*object)) {
            match trees.get(object) {
                Some(rules) => known.extend(resources.gateway_route(object).map(|route| (route, rules))),
                None => drop(routes.insert(object.clone())),
            }
        }
        let own = self.objects.iter().filter(|object| object.kind != Kind::RouteSlot);
        let mut context = indexes.links.context(resources, own);
        if trees.is_limited() {
            // Which routes fit depends on all of a tree.
            context = indexes.links.components(resources, context);
        }
        routes.append(&mut context);
        let restricted = indexes.restricted(base, resources, routes);
        let selection = Selection {
            hosts: &scope,
            objects: &self.objects,
            services: &services,
            is_complete: &|object| self.rules.contains(object) || trees.get(object).is_none(),
            known,
        };
        GatewayTranslator::new(&Inputs { resources: &restricted, ..*inputs }, base, Some(&selection))
    }
}

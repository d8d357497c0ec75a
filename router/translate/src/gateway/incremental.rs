//! Incremental translation of Gateway API: cost is proportional to the objects that depend on a change.
//!
//! [`GatewayTranslator`] first translates all objects. For each change, [`Incremental`] runs it on a subset: the routes
//! that affect the results to recompute ([`Part`]). Only these results replace the previous ones. Hosts whose owner
//! changes to or from another API, without a change of routes, are recomputed in a second run.
//!
//! Dependencies of each result, besides the [`GatewayBase`] (classes, Gateways with placed listeners, grants,
//! policies):
//!
//! - Attachment of a route (`claims`): its `parentRefs`, hostnames and kind; labels of its namespace, if a selector
//!   matches on them; its slots (`RouteValidity::rejection`); and, if it is an HTTPRoute or GRPCRoute, older routes of
//!   the other kind whose hosts overlap its own on the listener, transitively: the routes that *conflict*
//!   ([`indexes::Indexes::closure`]).
//! - Effective rules and status fragments of inclusion: the attachments of the route's *component* ([`components`]) and
//!   labels of its namespaces.
//! - `GatewayHosts::closest` of a pattern: the listeners of the port (base), and the routes that claim exactly this
//!   pattern on any listener of the port.
//! - A virtual host: `closest` of each pattern that covers it (the host may exist only as the allowed part of a wider
//!   claim), and the rules of these patterns on both ports of the router.
//! - `RouteId::part` of a rule: the inclusion paths to its route, all within its component. For a TLSRoute's
//!   connections: all hosts of that route on the router, which are numbered in order
//!   ([`indexes::Indexes::add_connections`]).
//! - Status of a route: `closest` and notes of its own patterns, their owners in other APIs, its validity (its
//!   Services, grants for these, whether a policy targets them), and the fragments.
//! - Status of a RouteSlot: its component, which contains all routes that reference it.
//! - Status of a Gateway: its listeners; for each, `closest` of its hostname, and the number of accepted routes.
//! - Status of a BackendTLSPolicy: policies with the same targets, the targeted Services, and the Gateways of all
//!   routes that reference these.
//!
//! Indexes contain *footprints* ([`footprint()`]): the hosts that routes may claim, whether or not they are accepted.
//! So they change only with routes and listeners, and a subset is never too small; after a rejection it may be larger
//! than needed.
//!
//! Limits: a change of a wildcard or catch-all route affects all hosts that it covers; a component and a TLSRoute's
//! hosts are translated as a whole; a change of a Gateway, class, router or definition translates everything.

mod base_change;
mod components;
mod footprint;
mod indexes;
mod part;
mod pattern_index;
mod seeds;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::parallel;
use router_table::host_pattern::HostPattern;

use crate::gateway::GatewayTranslator;
use crate::gateway::backend_tls;
use crate::gateway::base::{GatewayBase, HostScope, ListenerAt};
use crate::gateway::inclusion::edges::routes;
use crate::gateway::incremental::base_change::BaseChange;
use crate::gateway::incremental::footprint::footprint;
use crate::gateway::incremental::indexes::{Indexes, services_of};
use crate::gateway::incremental::part::Part;
use crate::gateway::incremental::seeds::Seeds;
use crate::gateway::serve::Built;
use crate::gateway::status::CountedRoutes;
use crate::gateway::status::host_outcome::ListenerOutcome;
use crate::translator::{Changes, Delta, HostClaim, Inputs, LostHosts, RouterHost, Translator};

/// Translates Gateway API incrementally; see the module.
#[derive(Debug, Default)]
pub struct Incremental {
    /// `None` before the first call.
    base: Option<Arc<GatewayBase>>,
    indexes: Indexes,
    claims: BTreeMap<RouterHost, Arc<HostClaim>>,
    /// Claimed hosts that are not served, as an object of another API owns them.
    unserved: BTreeSet<RouterHost>,
    counted: CountedRoutes,
    /// The number of routes attached to each listener.
    counts: BTreeMap<ListenerAt, usize>,
    outcomes: BTreeMap<ListenerAt, ListenerOutcome>,
    pending: Pending,
}

/// State that `claims` passes to `translate`.
#[derive(Debug, Default)]
struct Pending {
    /// All objects were translated.
    all: bool,
    /// The part to recompute, and the translation of its subset; `None` if there is nothing to recompute.
    decided: Option<(Part, GatewayTranslator)>,
    /// Built hosts; `None` for a host that is no longer claimed.
    hosts: BTreeMap<RouterHost, PendingHost>,
    /// Gateways whose status may differ.
    gateways: BTreeSet<usize>,
    /// Deleted objects.
    deleted: BTreeSet<ObjectRef>,
}

/// A host that may differ.
#[derive(Debug)]
struct PendingHost {
    /// `None` if it is gone.
    built: Option<Built>,
    was_served: bool,
}

impl Translator for Incremental {
    fn claims(&mut self, inputs: &Inputs<'_>, changes: &Changes<'_>) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        self.pending = Pending::default();
        let Some(old_base) = self.base.clone() else {
            return self.translate_all(Arc::new(GatewayBase::new(inputs)), inputs, changes);
        };
        let mut base = Arc::clone(&old_base);
        let mut certificates = Vec::new();
        if base_change::may_differ(&old_base, inputs, changes) {
            base = Arc::new(GatewayBase::new(inputs));
            match base_change::compare(inputs, changes, &old_base, &base) {
                BaseChange::Everything => return self.translate_all(base, inputs, changes),
                BaseChange::Listeners { certificates: shown, gateways } => {
                    (certificates, self.pending.gateways) = (shown, gateways);
                }
            }
            self.base = Some(Arc::clone(&base));
        }
        let seeds = Seeds::new(&old_base, &self.indexes, inputs.resources, changes);
        let mut services = seeds.services.clone();
        let mut part = Part::default();
        let mut patterns = self.update_routes(&base, inputs, changes, &seeds, &mut part, &mut services);
        for placed in certificates.iter().filter_map(|at| Some((base.router_index(*at), base.listener(*at)?))) {
            patterns.insert((placed.0, placed.1.listener.hostname.clone()));
        }
        self.pending.deleted = seeds.deleted;
        let is_changed = |service| services.contains(&service);
        let policies = base.policies.iter();
        let policies = policies.filter(|it| seeds.policies || backend_tls::services(it).any(is_changed));
        part.policies = policies.map(|policy| policy.meta.key.clone()).collect();
        let mut hosts = self.indexes.hosts(&base, &patterns);
        self.indexes.add_connections(&base, inputs.resources, &mut hosts);
        part.add_dependents(&base, &self.indexes, &patterns);
        part.add_dependents(&base, &self.indexes, &hosts);
        part.hosts = hosts;
        if part.is_empty() {
            return Vec::new();
        }
        let mut model = part.translate(&base, &self.indexes, inputs);
        let built = take_built(&mut model, &base, &part.hosts);
        self.pending.decided = Some((part, model));
        self.update_claims(built)
    }

    fn translate(&mut self, inputs: &Inputs<'_>, lost: &LostHosts, changed: &[RouterHost]) -> Delta {
        self.decide(inputs, lost, changed)
    }
}

impl Incremental {
    /// Updates the indexes for changed routes. Adds these and all routes that they conflict with to `part`, and the
    /// Services that they reference to `services`. Returns the hosts that they may have claimed before and may claim
    /// now.
    fn update_routes(
        &mut self,
        base: &GatewayBase,
        inputs: &Inputs<'_>,
        changes: &Changes<'_>,
        seeds: &Seeds<'_>,
        part: &mut Part,
        services: &mut BTreeSet<ObjectKey>,
    ) -> HostScope {
        if seeds.objects.is_empty() {
            return HostScope::new();
        }
        let (last, resources) = (changes.last, inputs.resources);
        let affected_before = self.indexes.closure(base, last, seeds.objects.iter().cloned());
        seeds.changed.iter().for_each(|change| self.indexes.replace(*change));
        let components = self.indexes.links.components(resources, affected_before);
        let (old, new) = (footprint(base, last, &components), footprint(base, resources, &components));
        self.indexes.replace_hosts(base, &old, &new);
        let affected = self.indexes.closure(base, resources, components);
        let all = footprint(base, resources, &affected);
        for version in [last, resources] {
            let routes = affected.iter().filter_map(|object| version.gateway_route(object));
            services.extend(routes.flat_map(|route| services_of(route)));
        }
        part.objects.extend(affected);
        old.into_iter().chain(all).map(|(_, at, host)| (base.router_index(at), host)).collect()
    }

    /// Translates all objects.
    fn translate_all(
        &mut self,
        base: Arc<GatewayBase>,
        inputs: &Inputs<'_>,
        changes: &Changes<'_>,
    ) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        let resources = inputs.resources;
        let mut objects: BTreeSet<ObjectRef> = routes(resources).map(|route| route.object()).collect();
        let translate = || GatewayTranslator::new(inputs, &base, None);
        let (mut model, indexes) = parallel::both(translate, || Indexes::new(&base, resources, &objects));
        self.indexes = indexes;
        let slots = resources.route_slots.iter().map(|slot| slot.meta.key.clone());
        objects.extend(slots.map(|key| ObjectRef { kind: Kind::RouteSlot, key }));
        let part = Part {
            hosts: HostScope::new(),
            objects,
            listeners: base.listeners().map(|(at, ..)| at).collect(),
            policies: base.policies.iter().map(|policy| policy.meta.key.clone()).collect(),
        };
        let mut hosts: BTreeMap<_, _> = self.claims.keys().map(|at| (at.clone(), None)).collect();
        hosts.append(&mut std::mem::take(&mut model.hosts.built).into_iter().map(|(at, it)| (at, Some(it))).collect());
        self.pending = Pending {
            all: true,
            decided: Some((part, model)),
            hosts: BTreeMap::new(),
            gateways: (0..base.gateways.len()).collect(),
            deleted: base_change::objects(changes.last),
        };
        self.base = Some(base);
        self.update_claims(hosts)
    }

    /// Stores the claims of hosts, which become pending, and returns the claims that differ.
    fn update_claims(
        &mut self,
        hosts: BTreeMap<RouterHost, Option<Built>>,
    ) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        let mut differing = Vec::new();
        let pending = hosts.into_iter().filter_map(|(at, built)| {
            let old = self.claims.get(&at);
            let is_same = match (&built, old) {
                (Some(built), Some(old)) => (&built.host_rules.owner, &built.age) == (&old.owner, &old.age),
                (None, None) => return None,
                _ => false,
            };
            let was_served = old.is_some() && !self.unserved.contains(&at);
            if !is_same {
                let claim =
                    built.as_ref().map(|it| HostClaim { owner: it.host_rules.owner.clone(), age: it.age.clone() });
                let claim = claim.map(Arc::new);
                match &claim {
                    Some(claim) => drop(self.claims.insert(at.clone(), Arc::clone(claim))),
                    None => drop(self.claims.remove(&at)),
                }
                differing.push((at.clone(), claim));
            }
            Some((at, PendingHost { built, was_served }))
        });
        self.pending.hosts = pending.collect();
        differing
    }
}

/// Removes these hosts from a translation that has built them; `None` for a host that does not exist.
fn take_built(
    model: &mut GatewayTranslator,
    base: &GatewayBase,
    hosts: &HostScope,
) -> BTreeMap<RouterHost, Option<Built>> {
    let at = |(router_index, host): &(usize, HostPattern)| {
        Some((base.routers.get(*router_index)?.name.clone(), host.to_match()))
    };
    hosts.iter().filter_map(at).map(|at| (at.clone(), model.hosts.built.remove(&at))).collect()
}

#[cfg(test)]
mod tests;

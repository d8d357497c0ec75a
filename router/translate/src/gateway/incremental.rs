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
//! - Effective rules of a route in an inclusion tree: all routes above it, with their attachments, and labels of their
//!   namespaces; whether any child attaches to its slots ([`reach`]). Rules that a change does not affect are kept
//!   ([`trees`]).
//! - Status fragment of such a route: the same, its children, and those siblings that have a match in common with it.
//! - `GatewayHosts::closest` of a pattern: the listeners of the port (base), and the routes that claim exactly this
//!   pattern on any listener of the port.
//! - A virtual host: `closest` of each pattern that covers it (the host may exist only as the allowed part of a wider
//!   claim), and the rules of these patterns on both ports of the router.
//! - `RouteId::part` of a rule: the inclusion paths to its route. For a TLSRoute's connections: all hosts of that route
//!   on the router, which are numbered in order ([`indexes::Indexes::add_connections`]).
//! - Status of a route: `closest` and notes of its own patterns, their owners in other APIs, its validity (its
//!   Services, grants for these, whether a policy targets them), and the fragment.
//! - Status of a RouteSlot: the fragments of all routes that reference it.
//! - Status of a Gateway: its listeners; for each, `closest` of its hostname, and the number of accepted routes.
//! - Status of a BackendTLSPolicy: policies with the same targets, the targeted Services, and the Gateways of all
//!   routes that reference these.
//!
//! Indexes contain *footprints* ([`footprint()`]): the hosts that routes may claim on the listeners whose
//! `allowedRoutes` admits them, whether or not they are accepted. So a subset is never too small; after a rejection for
//! another reason it may be larger than needed.
//!
//! Limits: a change of a wildcard or catch-all route affects all hosts that it covers. If a listener admits such a
//! route, and routes of the other kind (HTTPRoute, GRPCRoute) claim hosts that it covers, a change of any of them
//! recomputes all of them. A change of a child visits all children of its parents, and the list of all rules of its
//! hosts. A tree with more matches or paths than the limits of inclusion is translated as a whole, with the *component*
//! ([`components`]) of each route; a route joins a component by its `parentRefs`, without consent of the route that
//! they name. The hosts of a TLSRoute are translated as a whole. A change of a Gateway, class, router or definition
//! translates everything.

mod base_change;
mod components;
mod footprint;
mod indexes;
mod part;
mod pattern_index;
mod reach;
mod seeds;
mod settle;
mod trees;

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
use crate::gateway::incremental::components::above;
use crate::gateway::incremental::footprint::footprint;
use crate::gateway::incremental::indexes::Indexes;
use crate::gateway::incremental::part::Part;
use crate::gateway::incremental::reach::{Reach, rivals};
use crate::gateway::incremental::seeds::Seeds;
use crate::gateway::incremental::trees::Trees;
use crate::gateway::references::services_of;
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
    trees: Trees,
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
        let mut seeds = Seeds::new(&old_base, &self.indexes, inputs.resources, changes);
        let mut services = std::mem::take(&mut seeds.services);
        let mut part = Part::default();
        let mut patterns = self.update_routes(&base, inputs, changes, &seeds, &mut part, &mut services);
        for placed in certificates.iter().filter_map(|at| Some((base.router_index(*at), base.listener(*at)?))) {
            patterns.insert((placed.0, placed.1.listener.hostname.clone()));
        }
        self.pending.deleted = seeds.deleted;
        part.policies = std::mem::take(&mut seeds.policies);
        if !services.is_empty() {
            let is_changed = |service| services.contains(&service);
            let policies = base.policies.iter().filter(|policy| backend_tls::services(policy).any(is_changed));
            part.policies.extend(policies.map(|policy| policy.meta.key.clone()));
        }
        let mut hosts = self.indexes.hosts(&base, &patterns);
        self.indexes.add_connections(&base, inputs.resources, &mut hosts);
        let is_lost = |(router_index, host): &(usize, HostPattern)| {
            let router = base.routers.get(*router_index);
            router.is_some_and(|router| self.unserved.contains(&(router.name.clone(), host.to_match())))
        };
        part.add_dependents(&base, &self.indexes, &patterns, is_lost);
        part.add_dependents(&base, &self.indexes, &hosts, is_lost);
        part.hosts = hosts;
        if part.is_empty() {
            return Vec::new();
        }
        let mut model = part.translate(&base, &self.indexes, &self.trees, inputs);
        let links = &self.indexes.links;
        let (rules, is_limited) =
            model.take_rules(&|object| part.rules.contains(object) && links.is_in_tree(inputs.resources, object));
        let was_limited = self.trees.is_limited();
        let slots = self.trees.replace(&part.rules, rules, is_limited);
        if self.trees.is_limited() && !was_limited {
            return self.translate_all(base, inputs, changes);
        }
        part.objects.extend(slots.into_iter().map(|key| ObjectRef { kind: Kind::RouteSlot, key }));
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
        let (whole_trees, mut reach) = (self.trees.is_limited(), Reach::default());
        let changed = self.indexes.closure(base, last, seeds.objects.iter().cloned(), whole_trees);
        reach.extend(&self.indexes.links, last, &changed);
        seeds.changed.iter().for_each(|change| self.indexes.replace(*change));
        reach.extend(&self.indexes.links, resources, &changed);
        let (old, new) = (footprint(base, last, &reach.rules), footprint(base, resources, &reach.rules));
        self.indexes.replace_hosts(base, &old, &new);
        let changed = self.indexes.closure(base, resources, changed, whole_trees);
        reach.extend(&self.indexes.links, resources, &changed);
        let all = footprint(base, resources, &reach.rules);
        for version in [last, resources] {
            // Rules have the mirrors of the routes above.
            let routes = above(version, reach.below.iter().cloned());
            let routes = routes.iter().filter_map(|object| version.gateway_route(object));
            services.extend(routes.flat_map(|route| services_of(route)));
        }
        part.objects.extend(rivals(&self.indexes.links, [last, resources], &changed));
        part.objects.extend(reach.rules.iter().cloned());
        part.rules = reach.rules;
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
        let (rules, is_limited) = model.take_rules(&|object| indexes.links.is_in_tree(resources, object));
        self.trees = Trees::new(rules, is_limited);
        self.indexes = indexes;
        let slots = resources.route_slots.iter().map(|slot| slot.meta.key.clone());
        objects.extend(slots.map(|key| ObjectRef { kind: Kind::RouteSlot, key }));
        let part = Part {
            is_all: true,
            hosts: HostScope::new(),
            rules: BTreeSet::new(),
            objects,
            listeners: base.listeners().map(|(at, ..)| at).collect(),
            policies: base.policies.iter().map(|policy| policy.meta.key.clone()).collect(),
        };
        let gone = self.claims.keys().map(|at| (at.clone(), None));
        let built = std::mem::take(&mut model.hosts.built).into_iter().map(|(at, built)| (at, Some(built)));
        // Of a host that was claimed and is built, the second entry counts.
        let hosts = gone.chain(built).map(|(at, built)| (at, PendingHost { built, was_served: false })).collect();
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
        mut hosts: BTreeMap<RouterHost, PendingHost>,
    ) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        let (mut differing, mut new_claims) = (Vec::new(), Vec::new());
        hosts.retain(|at, PendingHost { built, was_served }| {
            let old = self.claims.get(at);
            let claim = built.as_ref().map(|built| &built.claim);
            if claim.is_none() && old.is_none() {
                return false;
            }
            *was_served = old.is_some() && !self.unserved.contains(at);
            if claim != old {
                match claim {
                    Some(claim) => new_claims.push((at.clone(), Arc::clone(claim))),
                    None => drop(self.claims.remove(at)),
                }
                differing.push((at.clone(), claim.cloned()));
            }
            true
        });
        self.pending.hosts = hosts;
        if self.claims.is_empty() {
            // A map of many is built at once.
            self.claims = new_claims.into_iter().collect();
        } else {
            self.claims.extend(new_claims);
        }
        differing
    }
}

/// Removes these hosts from a translation that has built them; `None` for a host that does not exist.
fn take_built(
    model: &mut GatewayTranslator,
    base: &GatewayBase,
    hosts: &HostScope,
) -> BTreeMap<RouterHost, PendingHost> {
    let at = |(router_index, host): &(usize, HostPattern)| {
        Some((base.routers.get(*router_index)?.name.clone(), host.to_match()))
    };
    let mut built: BTreeMap<_, _> = std::mem::take(&mut model.hosts.built).into_iter().collect();
    let hosts = hosts.iter().filter_map(at).map(|at| {
        let built = built.remove(&at);
        (at, PendingHost { built, was_served: false })
    });
    hosts.collect()
}

#[cfg(test)]
mod tests;

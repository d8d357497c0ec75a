//! Incremental translation of Gateway API: a change visits what depends on it.
//!
//! [`GatewayTranslator`] translates all objects at first. [`Incremental`] then runs it on restricted worlds: with only
//! the routes without which a result would come out differently, and takes over only what such a world decides rightly
//! ([`Part`]). A change has one such world; hosts that pass from or to another API without a change of routes have a
//! second one.
//!
//! What each result reads, beside the [`Base`] (classes, Gateways with placed listeners, grants, policies):
//!
//! - Attachment of a route (`claims`): its `parentRefs`, hostnames and kind; labels of its namespace, if a selector reads
//!   them; its slots (`RouteValidity::refusal`); and, if it is an HTTPRoute or GRPCRoute, older routes of the other kind
//!   whose hosts meet its own on the listener, and so on: the routes that *compete* ([`world::Indexes::closed`]).
//! - Effective rules and status fragments of inclusion: the attachments of the route's *unit* ([`units`]) and labels of
//!   its namespaces.
//! - `Hosts::closest` of a pattern: the listeners of the port (base), and the routes that claim exactly this pattern on
//!   any listener of the port.
//! - A virtual host: `closest` of each pattern that covers it (a claim on one of these may be what makes it exist, as the
//!   allowed part of a wider host), and the rules of these patterns on both ports of the router.
//! - `RouteId::part` of a rule: the ways to its route, all of which are in its unit. Of a TLSRoute's connections: all
//!   hosts of that route on the router, which are numbered in order ([`world::Indexes::add_connections`]).
//! - Status of a route: `closest` and notes of its own patterns, the owner of such a host if another API has it, its
//!   validity (its Services, grants to these, whether a policy targets them), and the fragments.
//! - Status of a RouteSlot: its unit, which has all routes that name it.
//! - Status of a Gateway: its listeners; for each, `closest` of its hostname, and the number of accepted routes.
//! - Status of a BackendTLSPolicy: policies with the same targets, the targeted Services, and the Gateways of all routes
//!   that refer to these.
//!
//! Indexes are made of *footprints* ([`footprint()`]): the hosts that routes may claim, whether or not they are accepted. So
//! they change with routes and listeners only, and a world is never too small, be it larger than needed after a rejection.
//!
//! Limits: a wildcard or catch-all route reaches all hosts under it when it itself changes; a unit and a TLSRoute's hosts
//! are translated whole; a change of a Gateway, class, router or definition translates everything.

mod base_change;
mod differing;
mod footprint;
mod objects_by;
mod part;
mod pattern_index;
mod seeds;
mod settle;
mod units;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::names::HostMatch;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::parallel;
use router_table::host_pattern::HostPattern;

use crate::gateway::GatewayTranslator;
use crate::gateway::backend_tls;
use crate::gateway::base::{Base, ListenerAt, Scope};
use crate::gateway::inclusion::edges::{reference_of, routes};
use crate::gateway::incremental::base_change::BaseChange;
use crate::gateway::incremental::footprint::footprint;
use crate::gateway::incremental::part::Part;
use crate::gateway::incremental::seeds::Seeds;
use crate::gateway::incremental::world::{Indexes, services_of};
use crate::gateway::serve::Built;
use crate::gateway::status::Counted;
use crate::gateway::status::host_outcome::ListenerOutcome;
use crate::translator::{Changes, Delta, HostClaim, Inputs, LostHosts, RouterHost, Translator};

/// Translates Gateway API incrementally; see the module.
#[derive(Debug, Default)]
pub struct Incremental {
    /// `None` before the first call.
    base: Option<Arc<Base>>,
    indexes: Indexes,
    claims: BTreeMap<RouterHost, Arc<HostClaim>>,
    /// Claimed hosts that are not served: those that another API has.
    unserved: BTreeSet<RouterHost>,
    counted: Counted,
    /// The number of routes attached to each listener.
    counts: BTreeMap<ListenerAt, usize>,
    outcomes: BTreeMap<ListenerAt, ListenerOutcome>,
    pending: Pending,
}

/// What `follow` leaves to `settle`.
#[derive(Debug, Default)]
struct Pending {
    /// All statuses differ.
    everything: bool,
    /// What is decided anew, and the model that decides it; `None` if nothing is.
    decided: Option<(Part, GatewayTranslator)>,
    /// Hosts that were built, and those that were claimed and are gone.
    hosts: BTreeMap<RouterHost, PendingHost>,
    /// Gateways whose status differs.
    gateways: BTreeSet<usize>,
    /// Objects that are there no more.
    gone: BTreeSet<ObjectRef>,
}

/// A host that may differ.
#[derive(Debug)]
struct PendingHost {
    /// `None` if it is gone.
    built: Option<Built>,
    was_served: bool,
}

impl Translator for Incremental {
    fn follow(&mut self, world: &Inputs<'_>, changes: &Changes<'_>) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        self.pending = Pending::default();
        let Some(old_base) = self.base.clone() else {
            return self.everything(Arc::new(Base::new(world)), world, changes);
        };
        let mut base = Arc::clone(&old_base);
        let mut certificates = Vec::new();
        if base_change::may_differ(&old_base, world, changes) {
            base = Arc::new(Base::new(world));
            match base_change::compare(world, changes, &old_base, &base) {
                BaseChange::Everything => return self.everything(base, world, changes),
                BaseChange::Listeners { certificates: shown, gateways } => {
                    (certificates, self.pending.gateways) = (shown, gateways);
                }
            }
            self.base = Some(Arc::clone(&base));
        }
        let seeds = Seeds::of(&old_base, &self.indexes, world.resources, changes);
        let mut services = seeds.services.clone();
        let mut part = Part::default();
        let mut patterns = self.follow_routes(&base, world, changes, &seeds, &mut part, &mut services);
        for placed in certificates.iter().filter_map(|at| Some((base.place(*at), base.listener(*at)?))) {
            patterns.insert((placed.0, placed.1.listener.hostname.clone()));
        }
        self.pending.gone = seeds.gone;
        let of_service = |service| services.contains(&service);
        let policies = base.policies.iter();
        let policies = policies.filter(|it| seeds.policies || backend_tls::services(it).any(of_service));
        part.policies = policies.map(|policy| policy.meta.key.clone()).collect();
        let mut hosts = self.indexes.hosts(&base, &patterns);
        self.indexes.add_connections(&base, world.resources, &mut hosts);
        part.add_dependents(&base, &self.indexes, &patterns);
        part.add_dependents(&base, &self.indexes, &hosts);
        part.hosts = hosts;
        if part.is_empty() {
            return Vec::new();
        }
        let mut model = part.translate(&base, &self.indexes, world);
        let built = take_built(&mut model, &base, &part.hosts);
        self.pending.decided = Some((part, model));
        self.claim(built)
    }

    fn settle(&mut self, world: &Inputs<'_>, lost: &LostHosts, changed: &[RouterHost]) -> Delta {
        self.decide(world, lost, changed)
    }
}

impl Incremental {
    /// Takes over what changed of routes, and all that these compete with: adds to `part` the routes, and to `services` those
    /// that they name. Returns the hosts that they may have claimed, and those that they may claim now.
    fn follow_routes(
        &mut self,
        base: &Base,
        world: &Inputs<'_>,
        changes: &Changes<'_>,
        seeds: &Seeds<'_>,
        part: &mut Part,
        services: &mut BTreeSet<ObjectKey>,
    ) -> Scope {
        if seeds.objects.is_empty() {
            return Scope::new();
        }
        let (last, resources) = (changes.last, world.resources);
        let competed = self.indexes.closed(base, last, seeds.objects.iter().cloned());
        seeds.changed.iter().for_each(|change| self.indexes.replace(*change));
        let units = self.indexes.links.units(resources, competed);
        let (old, new) = (footprint(base, last, &units), footprint(base, resources, &units));
        self.indexes.replace_hosts(base, &old, &new);
        let competing = self.indexes.closed(base, resources, units);
        let all = footprint(base, resources, &competing);
        for version in [last, resources] {
            let routes = competing.iter().filter_map(|object| version.gateway_route(object));
            services.extend(routes.flat_map(|route| services_of(route)));
        }
        part.objects.extend(competing);
        old.into_iter().chain(all).map(|(_, at, host)| (base.place(at), host)).collect()
    }

    /// Translates everything anew.
    fn everything(
        &mut self,
        base: Arc<Base>,
        world: &Inputs<'_>,
        changes: &Changes<'_>,
    ) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        let resources = world.resources;
        let mut objects: BTreeSet<ObjectRef> = routes(resources).map(|route| reference_of(route)).collect();
        let translate = || GatewayTranslator::new(world, &base, None);
        let (mut model, indexes) = parallel::both(translate, || Indexes::new(&base, resources, &objects));
        self.indexes = indexes;
        let slots = resources.route_slots.iter().map(|slot| slot.meta.key.clone());
        objects.extend(slots.map(|key| ObjectRef { kind: Kind::RouteSlot, key }));
        let part = Part {
            hosts: Scope::new(),
            objects,
            listeners: base.listeners().map(|(at, ..)| at).collect(),
            policies: base.policies.iter().map(|policy| policy.meta.key.clone()).collect(),
        };
        let mut hosts: BTreeMap<_, _> = self.claims.keys().map(|at| (at.clone(), None)).collect();
        hosts.append(&mut std::mem::take(&mut model.hosts.built).into_iter().map(|(at, it)| (at, Some(it))).collect());
        self.pending = Pending {
            everything: true,
            decided: Some((part, model)),
            hosts: BTreeMap::new(),
            gateways: (0..base.gateways.len()).collect(),
            gone: base_change::objects(changes.last),
        };
        self.base = Some(base);
        self.claim(hosts)
    }

    /// Takes over the claims of hosts, which become pending, and returns the claims that differ.
    fn claim(&mut self, hosts: BTreeMap<RouterHost, Option<Built>>) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        let mut differing = Vec::new();
        let pending = hosts.into_iter().filter_map(|(at, built)| {
            let old = self.claims.get(&at);
            let is_same = match (&built, old) {
                (Some(built), Some(old)) => (&built.site.owner, &built.age) == (&old.owner, &old.age),
                (None, None) => return None,
                _ => false,
            };
            let was_served = old.is_some() && !self.unserved.contains(&at);
            if !is_same {
                let claim = built.as_ref().map(|it| HostClaim { owner: it.site.owner.clone(), age: it.age.clone() });
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

/// Takes these hosts out of a model that has built them; `None` for a host that does not exist.
fn take_built(model: &mut GatewayTranslator, base: &Base, hosts: &Scope) -> BTreeMap<RouterHost, Option<Built>> {
    let at = |(place, host): &(usize, HostPattern)| Some((base.routers.get(*place)?.name.clone(), host.to_match()));
    hosts.iter().filter_map(at).map(|at| (at.clone(), model.hosts.built.remove(&at))).collect()
}

/// A host of the table as a pattern; `None` for one that Gateway API does not have.
fn pattern(host: &HostMatch) -> Option<HostPattern> {
    match host {
        HostMatch::Exact(name) => Some(HostPattern::Exact(name.clone())),
        HostMatch::Suffix(domain) => Some(HostPattern::Suffix(domain.clone())),
        HostMatch::Any => Some(HostPattern::Any),
        HostMatch::Wildcard(_) => None,
    }
}

#[cfg(test)]
mod tests;

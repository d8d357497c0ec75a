//! The second step of a translation: hosts and statuses, once the owners of hosts among all APIs are known.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::names::{HostMatch, RouterName};
use router_model::object::ObjectRef;
use router_model::persistent::last_of_each;
use router_table::host_pattern::HostPattern;
use router_table::table::VirtualHost;
use serde_json::json;

use crate::gateway::base::{GatewayBase, HostScope};
use crate::gateway::incremental::part::Part;
use crate::gateway::incremental::{Incremental, Pending, PendingHost, take_built};
use crate::gateway::status::{CountedRoutes, CrossApiClaims, gateways};
use crate::gateway::{GatewayTranslator, virtual_host};
use crate::status::object_status::ObjectStatus;
use crate::translator::{Delta, Inputs, LostHosts, RouterHost};

/// Of several changes of an object, the last one counts.
type StatusChanges = Vec<(ObjectRef, Option<ObjectStatus>)>;

impl Incremental {
    /// See [`crate::translator::Translator::translate`].
    pub(super) fn decide(&mut self, inputs: &Inputs<'_>, lost: &LostHosts, changed: &[RouterHost]) -> Delta {
        let Some(base) = self.base.clone() else { return Delta::default() };
        let mut pending = std::mem::take(&mut self.pending);
        let mut statuses = StatusChanges::new();
        statuses.extend(pending.deleted.iter().map(|object| (object.clone(), None)));
        if pending.all {
            (self.counted, self.counts) = Default::default();
            self.outcomes.clear();
            statuses
                .extend(base.classes.statuses.iter().map(|(object, status)| (object.clone(), Some(status.clone()))));
        }
        let mut decided: Vec<(Part, GatewayTranslator)> = pending.decided.take().into_iter().collect();
        if let Some((part, mut model)) = self.owner_changes(&base, inputs, &pending, &decided, changed) {
            let built = take_built(&mut model, &base, &part.hosts).into_iter();
            pending.hosts.extend(built.filter(|(_, host)| host.built.is_some()).map(|(at, host)| {
                let was_served = !self.unserved.contains(&at);
                (at, PendingHost { was_served, ..host })
            }));
            decided.push((part, model));
        }
        for (part, model) in decided {
            pending.gateways.extend(self.report(inputs.resources, &part, &model, lost, &mut statuses));
        }
        for i in &pending.gateways {
            let Some(state) = base.gateways.get(*i) else { continue };
            let object = ObjectRef { kind: Kind::Gateway, key: state.gateway.meta.key.clone() };
            let status = gateways::status(state, *i, inputs.addresses, &self.counts, &self.outcomes);
            statuses.push((object, Some(status)));
        }
        let mut hosts = Vec::with_capacity(pending.hosts.len());
        hosts.extend(pending.hosts.into_iter().filter_map(|(at, host)| self.serve(at, host, lost)));
        Delta {
            hosts,
            statuses: last_of_each(statuses, |(object, _)| object),
            routers: pending.all.then(|| base.created_routers.clone()),
            domains: None,
        }
    }

    /// The new virtual host of the table, or `None` if the host is no longer served. Returns `None` if the table does
    /// not change.
    fn serve(
        &mut self,
        at: RouterHost,
        PendingHost { built, was_served }: PendingHost,
        lost: &LostHosts,
    ) -> Option<(RouterHost, Option<VirtualHost>)> {
        match built {
            Some(built) if !lost.contains_key(&at) => {
                self.unserved.remove(&at);
                let host = virtual_host(at.1.clone(), built);
                return Some((at, Some(host)));
            }
            Some(_) => drop(self.unserved.insert(at.clone())),
            None => drop(self.unserved.remove(&at)),
        }
        was_served.then_some((at, None))
    }

    /// Recomputes hosts whose owner changed to or from another API, except those that are pending.
    fn owner_changes(
        &self,
        base: &Arc<GatewayBase>,
        inputs: &Inputs<'_>,
        pending: &Pending,
        decided: &[(Part, GatewayTranslator)],
        changed: &[RouterHost],
    ) -> Option<(Part, GatewayTranslator)> {
        let claimed: HostScope = changed.iter().filter_map(|(router, host)| pattern_at(base, router, host)).collect();
        let changed = changed.iter().filter(|at| !pending.hosts.contains_key(*at));
        let mut hosts: HostScope = changed.filter_map(|(router, host)| pattern_at(base, router, host)).collect();
        self.indexes.add_connections(base, inputs.resources, &mut hosts);
        let mut part = Part::default();
        part.add_claimants(base, &self.indexes, &claimed);
        part.add_claimants(base, &self.indexes, &hosts);
        part.hosts = hosts;
        for (decided, _) in decided {
            part.objects.retain(|object| !decided.objects.contains(object));
            part.listeners.retain(|at| !decided.listeners.contains(at));
        }
        let model = (!part.is_empty()).then(|| part.translate(base, &self.indexes, &self.trees, inputs))?;
        Some((part, model))
    }

    /// Adds the statuses of a part. Returns the Gateways whose status may differ.
    fn report(
        &mut self,
        resources: &Resources,
        part: &Part,
        model: &GatewayTranslator,
        lost: &LostHosts,
        statuses: &mut StatusChanges,
    ) -> BTreeSet<usize> {
        let cross_api = CrossApiClaims { lost, claims: &self.claims };
        let policy = |key: &_| ObjectRef { kind: Kind::BackendTlsPolicy, key: Clone::clone(key) };
        // Statuses of all earlier objects are already removed if all are translated.
        if !part.is_all {
            let objects = part.objects.iter().cloned().chain(part.policies.iter().map(policy));
            statuses.extend(objects.map(|object| (object, None)));
        }
        let (routes, counted) = model.route_statuses(&|object| part.is_all || part.objects.contains(object), cross_api);
        let policies = model.policy_statuses(&|key| part.policies.contains(key));
        let slots = part.objects.iter().filter(|object| object.kind == Kind::RouteSlot);
        let slots = slots.filter(|slot| resources.route_slots.get(&slot.key).is_some());
        let slots = slots.map(|slot| (slot.clone(), self.slot_status(slot)));
        let decided = routes.into_iter().chain(policies).chain(slots);
        statuses.extend(decided.map(|(object, status)| (object, Some(status))));
        let outcomes: Vec<_> = part.listeners.iter().map(|at| (*at, model.listener_outcome(*at, cross_api))).collect();
        let mut gateways = self.count(&part.objects, counted);
        for (at, outcome) in outcomes {
            if self.outcomes.get(&at) != Some(&outcome) {
                self.outcomes.insert(at, outcome);
                gateways.insert(at.0);
            }
        }
        gateways
    }

    /// The status of a RouteSlot: an entry for each route that references it and each listener that reaches the route.
    fn slot_status(&self, slot: &ObjectRef) -> ObjectStatus {
        let routes = self.indexes.links.naming(slot).iter().filter_map(|route| self.trees.get(route));
        let entries: Vec<_> = routes.filter_map(|rules| rules.slots.get(&slot.key)).flatten().collect();
        ObjectStatus::new(&json!({ "inclusions": entries }), Vec::new())
    }

    /// Updates the listeners that count these routes in `attachedRoutes`. Returns the Gateways whose numbers may
    /// differ.
    fn count(&mut self, objects: &BTreeSet<ObjectRef>, counted: CountedRoutes) -> BTreeSet<usize> {
        let mut differing = BTreeSet::new();
        if self.counted.is_empty() {
            for at in counted.values().flatten() {
                differing.insert(at.0);
                *self.counts.entry(*at).or_default() += 1;
            }
            self.counted = counted;
            return differing;
        }
        for object in objects {
            let new = counted.get(object).map_or(&[][..], AsRef::as_ref);
            let old = self.counted.remove(object).unwrap_or_default();
            for at in old.iter().filter(|at| !new.contains(at)) {
                differing.insert(at.0);
                self.counts.entry(*at).and_modify(|count| *count = count.saturating_sub(1));
            }
            for at in new.iter().filter(|at| !old.contains(at)) {
                differing.insert(at.0);
                *self.counts.entry(*at).or_default() += 1;
            }
        }
        self.counted.extend(counted);
        differing
    }
}

fn pattern_at(base: &GatewayBase, router: &RouterName, host: &HostMatch) -> Option<(usize, HostPattern)> {
    let router_index = base.routers.iter().position(|known| known.name == *router)?;
    Some((router_index, HostPattern::of_match(host)?))
}

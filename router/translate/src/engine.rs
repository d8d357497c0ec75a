//! Translation that costs what changed.
//!
//! The engine keeps the last objects, and works on the difference to the new ones. Claims of two routes can only touch
//! each other within a *group*: the routes of one host, or, where a wildcard route is selected, all routes of its
//! domain. So a change decides its groups anew, from their objects alone and with the same functions as ever, and
//! leaves the rest of the table as it is. The result never depends on the way there: it is what a new engine makes of
//! the same objects (`engine/tests.rs`).

mod assembly;
mod groups;
mod host_rules;
mod rejected_manifests;
mod reuse;
mod route_conditions;
pub mod route_revision;
mod router_state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::kubernetes::endpoints::EndpointSlice;
use router_api::openshift::route::Route;
use router_api::resources::{Resources, Versions};
use router_model::names::{HostMatch, RouterName};
use router_model::object::ObjectKey;
use router_model::persistent::{Difference, OrderedMap};
use router_state::RouterState;
use router_table::table::{Endpoints, RouterTable, RoutingTable};

use crate::endpoints::EndpointIndex;
use crate::engine::assembly::ChangedRoutes;
use crate::engine::host_rules::HostContests;
use crate::engine::route_revision::RouteRevision;
use crate::openshift::{compile, controllers};
use crate::settings::Settings;
use crate::status::condition::last_good_serves;
use crate::status::controller::ControllerStatus;
use crate::status::ingress::{Ingress, IngressEntry};
use crate::status::report::{Conflict, StatusReport};
use crate::translator::{Inputs, RouterPorts, Translator};
use crate::{contour, gateway};

/// See the module.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    apis: Apis,
    state: Option<(Ground, EngineState)>,
    /// Outlives the state, so that what is served by objects of other kinds stays where the routers are made anew.
    sites: HostContests,
    /// The routers of the last table, and the endpoints of their routes: these outlive the state as well.
    routers: Vec<Arc<RouterTable>>,
    endpoints: Endpoints,
}

/// The APIs whose objects want hosts beside Routes, in the order in which equally old objects of theirs have them.
type Apis = for<'r> fn(Inputs<'r>) -> Vec<Box<dyn Translator + 'r>>;

fn apis(surroundings: Inputs<'_>) -> Vec<Box<dyn Translator + '_>> {
    vec![
        Box::new(gateway::GatewayTranslator::new(&surroundings)),
        Box::new(contour::ContourTranslator::new(&surroundings)),
    ]
}

/// What the last objects are looked up in.
#[derive(Debug)]
struct Ground {
    endpoints: EndpointIndex,
    /// The routers of IngressControllers.
    ports: Vec<RouterPorts>,
}

/// What was made of the last objects.
#[derive(Debug)]
struct EngineState {
    /// `None`: the routers are new and serve nothing yet.
    resources: Option<Resources>,
    routers: Vec<RouterState>,
    statuses: BTreeMap<ObjectKey, ControllerStatus>,
    report: OrderedMap<ObjectKey, Ingress>,
    conflicts: OrderedMap<ObjectKey, Arc<[Conflict]>>,
}

/// What changed EndpointSlices may bear on.
#[derive(Debug, Default)]
struct SliceChanges {
    /// Whose endpoints may differ.
    services: BTreeSet<ObjectKey>,
    /// What is said of protocols differs, by which rules may be refused.
    bear_on_rules: bool,
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(settings: Settings) -> Self {
        let (routers, endpoints) = (Vec::new(), Endpoints::default());
        Engine { settings, apis, state: None, sites: HostContests::default(), routers, endpoints }
    }

    /// Translates these objects: the table (with revision 0, whoever publishes it numbers it) and the report.
    pub fn apply(&mut self, resources: &Resources) -> (RoutingTable, StatusReport) {
        let last = self.state.take().filter(|(_, state)| !state.needs_new_routers(resources));
        let (mut ground, mut state) = last.unwrap_or_else(|| EngineState::new(resources, &self.settings));
        let is_new = state.resources.is_none();
        let slices = state.follow_slices(resources, &mut ground.endpoints);
        self.decide(resources, &ground, &mut state, slices.bear_on_rules);
        let tables = state.routers.iter().map(|served| served.table()).chain(self.sites.made());
        let mut routers: Vec<Arc<RouterTable>> = tables.cloned().collect();
        routers.sort_by(|a, b| a.name.cmp(&b.name));
        self.bind(&ground.endpoints, &routers, (!is_new).then_some(slices.services));
        let report = StatusReport {
            routes: state.report.clone(),
            ingress_controllers: state.statuses.clone(),
            routers: state.routers.iter().map(|served| served.name().clone()).collect(),
            others: self.sites.told().clone(),
            conflicts: state.conflicts.clone(),
        };
        self.state = Some((ground, state));
        (RoutingTable { revision: 0, routers, endpoints: self.endpoints.clone() }, report)
    }

    /// Finds the endpoints of what these routers name. `changed` are the Services whose slices changed; `None`: any may
    /// have.
    fn bind(&mut self, index: &EndpointIndex, routers: &[Arc<RouterTable>], changed: Option<BTreeSet<ObjectKey>>) {
        match changed {
            None => self.endpoints.renew_all(|key| index.find(key)),
            Some(changed) => changed
                .iter()
                .for_each(|service| self.endpoints.renew(&service.namespace, &service.name, |key| index.find(key))),
        }
        self.endpoints.follow(&self.routers, routers, |key| index.find(key));
        self.routers = routers.to_vec();
    }

    /// Decides Routes and objects of other kinds: first who wants what, then who has it, then what is served.
    fn decide(&mut self, resources: &Resources, ground: &Ground, state: &mut EngineState, slices_differ: bool) {
        let denies = !self.settings.domains.denied.is_empty();
        let are_wanted = denies || host_rules::are_wanted(resources) || !self.sites.is_empty();
        let last = state.resources.as_ref();
        let differ = |last| slices_differ || host_rules::may_differ(resources, last);
        let may_differ = are_wanted && last.is_none_or(differ);
        let routes_differ = last.is_none_or(|last| resources.routes.changes_since(&last.routes).next().is_some());
        let make = || {
            ground.endpoints.forget_lookups();
            (self.apis)(Inputs {
                resources,
                settings: &self.settings,
                endpoints: &ground.endpoints,
                routers: &ground.ports,
                addresses: &self.settings.addresses,
            })
        };
        let apis = may_differ.then(make);
        if let Some(apis) = &apis {
            self.sites.claim(apis.iter().map(|api| api.claims()).collect());
        }
        let (changed, touched) = state.follow(resources, &self.sites);
        let may_be_lost = are_wanted && (may_differ || routes_differ);
        if may_be_lost && (self.sites.contest(&state.won(), resources) || may_differ) {
            let apis = apis.unwrap_or_else(make);
            let settled = apis.iter().zip(self.sites.lost()).map(|(api, lost)| api.translate(lost)).collect();
            let names = state.names().cloned().collect();
            self.sites.settle(settled, resources, &names, &self.settings);
        }
        state.assemble(changed, &self.sites);
        state.report_routes(touched, resources);
    }
}

impl EngineState {
    fn new(resources: &Resources, settings: &Settings) -> (Ground, Self) {
        let plan = controllers::plan(resources, settings);
        let names: BTreeSet<RouterName> = plan.routers.iter().map(|router| router.name.clone()).collect();
        let ids = compile::router_ids(&names, &BTreeSet::new());
        let id = |name: &RouterName| ids.get(name).copied().unwrap_or_default();
        let ground = Ground {
            endpoints: EndpointIndex::new(resources, settings.endpoint_addresses),
            ports: plan.routers.iter().map(controllers::PlannedRouter::ports).collect(),
        };
        let state = EngineState {
            resources: None,
            routers: plan.routers.into_iter().map(|router| RouterState::new(id(&router.name), router)).collect(),
            statuses: plan.statuses,
            report: OrderedMap::default(),
            conflicts: OrderedMap::default(),
        };
        (ground, state)
    }

    /// What routers are made of, and what all of their routes may depend on. These change rarely; everything is then
    /// decided anew.
    fn needs_new_routers(&self, resources: &Resources) -> bool {
        let Some(last) = &self.resources else { return true };
        resources.ingress_controllers.changes_since(&last.ingress_controllers).next().is_some()
            || resources.namespaces.changes_since(&last.namespaces).next().is_some()
            || resources.secrets.changes_since(&last.secrets).next().is_some()
            || resources
                .config_maps
                .changes_since(&last.config_maps)
                .any(|changed| controllers::uses(changed.key, resources))
    }

    fn names(&self) -> impl Iterator<Item = &RouterName> {
        self.routers.iter().map(RouterState::name)
    }

    /// Takes over changed Routes and what other kinds want. Returns what changes of each router's Routes, and the Routes
    /// whose status may differ.
    fn follow(&mut self, resources: &Resources, sites: &HostContests) -> (Vec<Option<ChangedRoutes>>, Vec<ObjectKey>) {
        let last = self.resources.replace(resources.clone()).unwrap_or_default();
        let differences: Vec<Difference<'_, ObjectKey, Versions<Route>>> =
            resources.routes.changes_since(&last.routes).collect();
        let changes: Vec<RouteRevision<'_>> = differences
            .iter()
            .map(|change| RouteRevision {
                old: change.old.and_then(|versions| versions.accepted.as_ref()),
                new: change.new.and_then(|versions| versions.accepted.as_ref()),
            })
            .collect();
        let mut touched: Vec<ObjectKey> = differences.iter().map(|change| change.key.clone()).collect();
        let mut changed = Vec::with_capacity(self.routers.len());
        for served in &mut self.routers {
            let foreign = sites.foreign(served.name());
            changed.push(served.follow(&changes, &foreign, resources, &mut touched));
        }
        touched.sort_unstable();
        touched.dedup();
        (changed, touched)
    }

    /// The hosts that objects of other kinds want and a Route has.
    fn won(&self) -> BTreeMap<(RouterName, HostMatch), ObjectKey> {
        let of = |served: &RouterState| -> Vec<_> {
            let won = served.won().map(|(host, route)| ((served.name().clone(), host.clone()), route.clone()));
            won.collect()
        };
        self.routers.iter().flat_map(of).collect()
    }

    /// Puts into the tables what changes of each router's Routes, and what objects of other kinds serve.
    fn assemble(&mut self, changed: Vec<Option<ChangedRoutes>>, sites: &HostContests) {
        for (served, changed) in self.routers.iter_mut().zip(changed) {
            let rules = sites.served(served.name());
            served.assemble(changed, &rules);
        }
    }

    /// Takes changed EndpointSlices over.
    fn follow_slices(&self, resources: &Resources, endpoints: &mut EndpointIndex) -> SliceChanges {
        let mut changes = SliceChanges::default();
        // For new routers `endpoints` was made of these very slices.
        let Some(last) = &self.resources else { return changes };
        for changed in resources.endpoint_slices.changes_since(&last.endpoint_slices) {
            let accepted =
                |versions: Option<&Versions<EndpointSlice>>| versions.and_then(|versions| versions.accepted.clone());
            let (services, bear_on_rules) = endpoints.replace(accepted(changed.old), accepted(changed.new));
            changes.services.extend(services);
            changes.bear_on_rules |= bear_on_rules;
        }
        changes
    }

    /// Writes the entries of these routes.
    fn report_routes(&mut self, keys: Vec<ObjectKey>, resources: &Resources) {
        let mut reports = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(versions) = resources.routes.versions_of(&key) else {
                self.report.remove(&key);
                self.conflicts.remove(&key);
                continue;
            };
            let conflicts = versions.accepted.iter().flat_map(|route| self.conflicts_of(route)).collect::<Arc<[_]>>();
            let ingress = self.ingress(&key, versions, resources);
            if conflicts.is_empty() {
                self.conflicts.remove(&key);
            } else {
                self.conflicts.insert(key.clone(), conflicts);
            }
            reports.push((key, ingress));
        }
        self.report.extend(reports);
    }

    fn conflicts_of(&self, route: &Route) -> impl Iterator<Item = Conflict> {
        self.routers.iter().filter_map(|served| served.conflict(route))
    }

    /// What routers say of a route, in order of router.
    fn ingress(&self, key: &ObjectKey, versions: &Versions<Route>, resources: &Resources) -> Ingress {
        let accepted = versions.accepted.as_deref();
        if let (Some(route), None) = (accepted, &versions.rejected) {
            let mut selecting = self.routers.iter().filter(|served| served.selects(route));
            if let (Some(only), None) = (selecting.next(), selecting.next())
                && let Some(ingress) = only.plain_ingress(route)
            {
                return ingress;
            }
        }
        let mut entries: Vec<IngressEntry> = Vec::new();
        for served in &self.routers {
            match (accepted, &versions.rejected) {
                (Some(route), refused) => {
                    let Some(mut entry) = served.entry(route) else { continue };
                    if let Some(refused) = refused {
                        let more = [last_good_serves(refused)];
                        entry.conditions = entry.conditions.iter().cloned().chain(more).collect();
                    }
                    entries.push(entry);
                }
                (None, Some(refused)) => entries.extend(served.refused_entry(key, refused, resources)),
                (None, None) => {}
            }
        }
        Ingress::new(entries)
    }
}

#[cfg(test)]
mod contests;
#[cfg(test)]
mod denied_domains;
#[cfg(test)]
mod tests;

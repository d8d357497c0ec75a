//! Incremental translation: the cost is proportional to the change.
//!
//! The engine keeps the previous objects and applies the difference. Claims of two Routes can only conflict within a
//! *group*: the Routes of one host, or, where a wildcard Route is selected, all Routes of its domain. The groups of
//! changed Routes are admitted again, from their objects alone; the rest of the table does not change. Other APIs
//! translate changes themselves ([`crate::translator`]). The result does not depend on history: a new engine returns
//! the same for the same objects (`engine/tests/history.rs`).

mod assembly;
mod contests;
mod groups;
mod other_apis;
mod rejected_manifests;
mod reuse;
mod route_conditions;
mod route_report;
pub mod route_revision;
mod router_state;
mod rule_table;
mod secret_users;
mod selection;
mod statuses;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::kubernetes::endpoints::EndpointSlice;
use router_api::kubernetes::secret::Namespace;
use router_api::openshift::route::Route;
use router_api::resources::{Resources, Versions};
use router_model::names::RouterName;
use router_model::object::ObjectKey;
use router_model::persistent::Difference;
use router_table::table::{Endpoints, RouterTable, RoutingTable};

use crate::contour::incremental::Contour;
use crate::endpoints::EndpointIndex;
use crate::engine::assembly::ChangedRoutes;
use crate::engine::other_apis::OtherApis;
use crate::engine::route_report::RouteReport;
use crate::engine::route_revision::{RouteChanges, RouteRevision};
use crate::engine::router_state::RouterState;
use crate::engine::secret_users::SecretUsers;
use crate::gateway::incremental::Incremental;
use crate::openshift::{compile, controllers};
use crate::settings::Settings;
use crate::status::controller::ControllerStatus;
use crate::status::report::StatusReport;
use crate::translator::{Changes, Inputs, RouterPorts, Translator};

/// Translates all objects, and then changes of them.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    /// The previous objects; `None` before the first apply.
    resources: Option<Resources>,
    index: EndpointIndex,
    /// The routers of IngressControllers, by name.
    routers: Vec<RouterState>,
    /// Their ports, for other APIs.
    ports: Vec<RouterPorts>,
    controllers: BTreeMap<ObjectKey, ControllerStatus>,
    others: OtherApis,
    secret_users: SecretUsers,
    /// Routes whose newest version is rejected.
    rejected: BTreeSet<ObjectKey>,
    report: RouteReport,
    /// The previous tables.
    tables: Vec<Arc<RouterTable>>,
    /// The endpoints of their routes.
    endpoints: Endpoints,
}

/// The APIs other than Routes whose objects claim hosts. If objects of two APIs are equally old, the first API gets the
/// host.
fn apis() -> Vec<Box<dyn Translator>> {
    vec![Box::new(Incremental::default()), Box::new(Contour::default())]
}

/// Services whose EndpointSlices differ.
#[derive(Debug, Default)]
struct ChangedServices {
    /// All such Services.
    all: BTreeSet<ObjectKey>,
    /// Those whose slices give other protocols.
    protocols: BTreeSet<ObjectKey>,
}

impl Engine {
    /// An engine without objects.
    pub fn new(settings: Settings) -> Self {
        Engine::with(settings, apis())
    }

    fn with(settings: Settings, apis: Vec<Box<dyn Translator>>) -> Self {
        Engine {
            index: EndpointIndex::new(&Resources::default(), settings.endpoint_addresses),
            settings,
            resources: None,
            routers: Vec::new(),
            ports: Vec::new(),
            controllers: BTreeMap::new(),
            others: OtherApis::new(apis),
            secret_users: SecretUsers::default(),
            rejected: BTreeSet::new(),
            report: RouteReport::default(),
            tables: Vec::new(),
            endpoints: Endpoints::default(),
        }
    }

    /// Translates these objects: the table (with revision 0, the publisher numbers it) and the report.
    pub fn apply(&mut self, resources: &Resources) -> (RoutingTable, StatusReport) {
        let last = self.resources.replace(resources.clone());
        let services = self.apply_slices(resources, last.as_ref());
        let mut affected = Vec::new();
        let last_ports = self.ports.clone();
        if last.as_ref().is_none_or(|last| controllers::may_differ(resources, last)) {
            self.plan(resources, &mut affected);
        }
        let is_first = last.is_none();
        let last = last.unwrap_or_default();
        let inputs = Inputs {
            resources,
            settings: &self.settings,
            endpoints: &self.index,
            routers: &self.ports,
            addresses: &self.settings.addresses,
        };
        let changes = Changes { last: &last, last_routers: &last_ports, protocols: &services.protocols };
        self.others.update_claims(&inputs, &changes);
        let changed = self.apply_routes(resources, &last, &mut affected);
        self.translate_other_apis(resources, &last);
        self.assemble(changed);
        self.report.update(affected, resources, &self.routers);
        self.bind_endpoints((!is_first).then_some(services.all));
        let report = StatusReport {
            routes: self.report.entries().clone(),
            ingress_controllers: self.controllers.clone(),
            routers: self.routers.iter().map(|state| state.name().clone()).collect(),
            others: self.others.statuses().clone(),
            conflicts: self.report.conflicts().clone(),
        };
        (RoutingTable { revision: 0, routers: self.tables.clone(), endpoints: self.endpoints.clone() }, report)
    }

    /// Applies changed EndpointSlices to the index. Returns the Services that they belong to.
    fn apply_slices(&mut self, resources: &Resources, last: Option<&Resources>) -> ChangedServices {
        let mut changes = ChangedServices::default();
        let Some(last) = last else {
            self.index = EndpointIndex::new(resources, self.settings.endpoint_addresses);
            return changes;
        };
        for changed in resources.endpoint_slices.changes_since(&last.endpoint_slices) {
            let accepted =
                |versions: Option<&Versions<EndpointSlice>>| versions.and_then(|versions| versions.accepted.clone());
            let (services, protocols) = self.index.replace(accepted(changed.old), accepted(changed.new));
            changes.all.extend(services);
            changes.protocols.extend(protocols);
        }
        changes
    }

    /// Plans the routers again. Routers that admit Routes as before remain. Adds the Routes that the others selected to
    /// `affected`.
    fn plan(&mut self, resources: &Resources, affected: &mut Vec<ObjectKey>) {
        let plan = controllers::plan(resources, &self.settings);
        self.controllers = plan.statuses;
        self.ports = plan.routers.iter().map(controllers::PlannedRouter::ports).collect();
        let names: BTreeSet<RouterName> = plan.routers.iter().map(|router| router.name.clone()).collect();
        let ids = compile::router_ids(&names, &BTreeSet::new());
        let mut before: BTreeMap<RouterName, RouterState> =
            self.routers.drain(..).map(|state| (state.name().clone(), state)).collect();
        let mut is_same = true;
        for router in plan.routers {
            let id = ids.get(&router.name).copied().unwrap_or_default();
            let kept = before.get_mut(&router.name).is_some_and(|state| state.configure(id, &router));
            let kept = if kept { before.remove(&router.name) } else { None };
            is_same &= kept.is_some();
            self.routers.push(kept.unwrap_or_else(|| RouterState::new(id, router)));
        }
        for (name, removed) in &before {
            affected.extend(removed.selected().cloned());
            self.others.set_route_owners(name, removed.won().map(|host| (host.clone(), None)));
        }
        if !is_same || !before.is_empty() {
            affected.extend(self.rejected.iter().cloned());
        }
    }

    /// Applies changed Routes and changes that they depend on: Secrets, labels of namespaces, claims of other APIs.
    /// Adds the Routes whose status may differ to `affected`. Returns the changes of each router's table; `None` if
    /// there are none.
    fn apply_routes(
        &mut self,
        resources: &Resources,
        last: &Resources,
        affected: &mut Vec<ObjectKey>,
    ) -> Vec<Option<ChangedRoutes>> {
        let differences: Vec<Difference<'_, ObjectKey, Versions<Route>>> =
            resources.routes.changes_since(&last.routes).collect();
        let mut routes: Vec<RouteRevision<'_>> = differences
            .iter()
            .map(|change| RouteRevision {
                old: change.old.and_then(|versions| versions.accepted.as_ref()),
                new: change.new.and_then(|versions| versions.accepted.as_ref()),
            })
            .collect();
        for change in &differences {
            affected.push(change.key.clone());
            if change.new.is_some_and(|versions| versions.rejected.is_some()) {
                self.rejected.insert(change.key.clone());
            } else {
                self.rejected.remove(change.key);
            }
        }
        self.secret_users.update(&routes);
        let changed: BTreeSet<&ObjectKey> = differences.iter().map(|change| change.key).collect();
        let secrets = resources.secrets.changes_since(&last.secrets);
        let users: BTreeSet<ObjectKey> = secrets.flat_map(|secret| self.secret_users.of(secret.key)).collect();
        for user in users.iter().filter(|user| !changed.contains(user)) {
            let route = resources.routes.get(user);
            routes.push(RouteRevision { old: route, new: route });
        }
        let namespaces = relabelled(resources, last);
        for namespace in &namespaces {
            let of_namespace = self.rejected.iter().filter(|key| key.namespace == *namespace);
            affected.extend(of_namespace.cloned());
        }
        let all: Vec<RouteRevision<'_>> = if self.routers.iter().any(RouterState::is_new) {
            resources.routes.iter().map(|route| RouteRevision { old: None, new: Some(route) }).collect()
        } else {
            Vec::new()
        };
        let mut tables = Vec::with_capacity(self.routers.len());
        for state in &mut self.routers {
            let routes = if state.is_new() { &all } else { &routes };
            let changes = RouteChanges { routes, namespaces: &namespaces };
            let claims = self.others.claims_on(state.name());
            let decided = state.apply_changes(changes, claims, resources, affected);
            tables.push(decided.map(|decided| {
                self.others.set_route_owners(state.name(), decided.won);
                decided.table
            }));
        }
        affected.sort_unstable();
        affected.dedup();
        tables
    }

    /// Resolves contested hosts, and updates the hosts and statuses of other APIs.
    fn translate_other_apis(&mut self, resources: &Resources, last: &Resources) {
        let inputs = Inputs {
            resources,
            settings: &self.settings,
            endpoints: &self.index,
            routers: &self.ports,
            addresses: &self.settings.addresses,
        };
        self.others.translate(&inputs, last);
    }

    /// Puts the changes of each router's Routes, and the host rules of other APIs, into the tables.
    fn assemble(&mut self, changed: Vec<Option<ChangedRoutes>>) {
        for (state, changed) in self.routers.iter_mut().zip(changed) {
            let rules = self.others.host_rules(state.name());
            state.assemble(changed, &rules);
        }
    }

    /// Replaces the tables, and looks up the endpoints of the Services that their routes name. `changed` are the
    /// Services whose slices differ; `None`: any may.
    fn bind_endpoints(&mut self, changed: Option<BTreeSet<ObjectKey>>) {
        let tables = self.routers.iter().map(|state| state.table()).chain(self.others.created());
        let mut tables: Vec<Arc<RouterTable>> = tables.cloned().collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        let index = &self.index;
        match changed {
            None => self.endpoints.renew_all(|key| index.find(key)),
            Some(changed) => changed
                .iter()
                .for_each(|service| self.endpoints.renew(&service.namespace, &service.name, |key| index.find(key))),
        }
        self.endpoints.follow(&self.tables, &tables, |key| index.find(key));
        self.tables = tables;
    }
}

/// Namespaces whose labels differ.
fn relabelled(resources: &Resources, last: &Resources) -> Vec<Arc<str>> {
    let labels = |versions: Option<&Versions<Namespace>>| {
        versions.and_then(|versions| versions.accepted.as_ref()).map(|it| it.meta.labels.clone()).unwrap_or_default()
    };
    let changes = resources.namespaces.changes_since(&last.namespaces);
    changes.filter(|it| labels(it.old) != labels(it.new)).map(|it| it.key.name.clone()).collect()
}

#[cfg(test)]
mod tests;

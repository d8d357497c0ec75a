//! Incremental translation: the cost is proportional to the change.
//!
//! The engine keeps the previous objects and applies the difference. Claims of two Routes can only conflict within a
//! *group*: the Routes of one host, or, where a wildcard Route is selected, all Routes of its domain. The groups of
//! changed Routes are admitted again, from their objects alone; the rest of the table does not change. Other APIs
//! translate changes themselves ([`crate::translator`]). The result does not depend on history: a new engine returns
//! the same for the same objects (`engine/tests/history.rs`).

mod assembly;
mod contests;
mod group_decision;
mod groups;
mod other_apis;
mod rejected_manifests;
mod reuse;
mod route_conditions;
mod route_report;
mod route_revision;
mod router_state;
mod routes;
mod rule_table;
mod secret_users;
mod selection;
mod statuses;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::resources::Resources;
use router_model::object::ObjectKey;
use router_table::table::{Endpoints, RouterTable, RoutingTable};

use crate::contour::incremental::Contour;
use crate::endpoints::EndpointIndex;
use crate::engine::other_apis::OtherApis;
use crate::engine::routes::Routes;
use crate::gateway::incremental::Incremental;
use crate::openshift::controllers::{self, PlannedRouter};
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
    /// Ports of the routers of IngressControllers, for other APIs.
    ports: Vec<RouterPorts>,
    controllers: BTreeMap<ObjectKey, ControllerStatus>,
    routes: Routes,
    others: OtherApis,
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
            resources: None,
            ports: Vec::new(),
            controllers: BTreeMap::new(),
            routes: Routes::default(),
            others: OtherApis::new(apis, settings.domains.closed().collect()),
            tables: Vec::new(),
            endpoints: Endpoints::default(),
            settings,
        }
    }

    /// Translates these objects: the table (with revision 0, the publisher numbers it) and the report.
    pub fn apply(&mut self, resources: &Resources) -> (RoutingTable, StatusReport) {
        let last = self.resources.replace(resources.clone());
        let services = self.apply_slices(resources, last.as_ref());
        let may_differ = last.as_ref().is_none_or(|last| controllers::may_differ(resources, last));
        let routers_differ = may_differ && self.plan(resources);
        let last = last.unwrap_or_default();
        let inputs = Inputs {
            resources,
            settings: &self.settings,
            endpoints: &self.index,
            routers: &self.ports,
            addresses: &self.settings.addresses,
        };
        let relabelled = resources.relabelled_since(&last);
        let changes = Changes { last: &last, routers_differ, relabelled: &relabelled, protocols: &services.protocols };
        self.others.update_claims(&inputs, &changes);
        let changed = self.routes.apply_changes(resources, &changes, &mut self.others);
        self.others.translate(&inputs, &last);
        self.routes.assemble(changed, &self.others, resources);
        self.bind_endpoints(&services.all);
        let report = StatusReport {
            routes: self.routes.report().entries().clone(),
            ingress_controllers: self.controllers.clone(),
            routers: self.routes.router_names().cloned().collect(),
            others: self.others.statuses().clone(),
            conflicts: self.routes.report().conflicts().clone(),
        };
        (RoutingTable { revision: 0, routers: self.tables.clone(), endpoints: self.endpoints.clone() }, report)
    }

    /// Applies changed EndpointSlices to the index. Returns the Services that they belong to; none at the first apply.
    fn apply_slices(&mut self, resources: &Resources, last: Option<&Resources>) -> ChangedServices {
        let mut changes = ChangedServices::default();
        let Some(last) = last else {
            self.index = EndpointIndex::new(resources, self.settings.endpoint_addresses);
            return changes;
        };
        for changed in resources.endpoint_slices.in_force_since(&last.endpoint_slices) {
            let (services, protocols) = self.index.replace(changed.old.cloned(), changed.new.cloned());
            changes.all.extend(services);
            changes.protocols.extend(protocols);
        }
        changes
    }

    /// Plans the routers again. True if their ports differ.
    fn plan(&mut self, resources: &Resources) -> bool {
        let plan = controllers::plan(resources, &self.settings);
        self.controllers = plan.statuses;
        let ports: Vec<RouterPorts> = plan.routers.iter().map(PlannedRouter::ports).collect();
        self.routes.set_routers(plan.routers, &mut self.others);
        let differ = ports != self.ports;
        self.ports = ports;
        differ
    }

    /// Replaces the tables, and looks up the endpoints of the Services that their routes name. `changed` are the
    /// Services whose slices differ.
    fn bind_endpoints(&mut self, changed: &BTreeSet<ObjectKey>) {
        let mut tables: Vec<Arc<RouterTable>> = self.routes.tables().chain(self.others.created()).cloned().collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        let index = &self.index;
        for service in changed {
            self.endpoints.renew(&service.namespace, &service.name, |key| index.find(key));
        }
        self.endpoints.follow(&self.tables, &tables, |key| index.find(key));
        self.tables = tables;
    }
}

#[cfg(test)]
mod tests;

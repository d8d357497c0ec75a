//! Routes on all routers, and their statuses. The cost is proportional to the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::resources::Resources;
use router_model::names::RouterName;
use router_model::object::ObjectKey;
use router_table::table::RouterTable;

use crate::engine::assembly::ChangedRoutes;
use crate::engine::other_apis::OtherApis;
use crate::engine::route_report::RouteReport;
use crate::engine::route_revision::{RouteChanges, RouteRevision};
use crate::engine::router_state::RouterState;
use crate::engine::secret_users::SecretUsers;
use crate::openshift::compile;
use crate::openshift::controllers::PlannedRouter;
use crate::translator::Changes;

/// The routers of IngressControllers with their Routes.
#[derive(Debug, Default)]
pub struct Routes {
    /// By name.
    routers: Vec<RouterState>,
    secret_users: SecretUsers,
    /// Routes whose newest version is rejected.
    rejected: BTreeSet<ObjectKey>,
    report: RouteReport,
    /// Routes whose status may differ.
    affected: Vec<ObjectKey>,
}

impl Routes {
    /// The names of the routers.
    pub fn router_names(&self) -> impl Iterator<Item = &RouterName> {
        self.routers.iter().map(RouterState::name)
    }

    /// The tables of the routers.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<RouterTable>> {
        self.routers.iter().map(RouterState::table)
    }

    /// Status entries and conflicts.
    pub fn report(&self) -> &RouteReport {
        &self.report
    }

    /// Replaces the routers. Those that admit Routes as before remain.
    pub fn set_routers(&mut self, routers: Vec<PlannedRouter>, others: &mut OtherApis) {
        let names: BTreeSet<RouterName> = routers.iter().map(|router| router.name.clone()).collect();
        let ids = compile::router_ids(&names, &BTreeSet::new());
        let mut before: BTreeMap<RouterName, RouterState> =
            self.routers.drain(..).map(|state| (state.name().clone(), state)).collect();
        for router in routers {
            let id = ids.get(&router.name).copied().unwrap_or_default();
            let kept = before.get_mut(&router.name).is_some_and(|state| state.configure(id, &router));
            let kept = if kept { before.remove(&router.name) } else { None };
            self.routers.push(kept.unwrap_or_else(|| RouterState::new(id, router)));
        }
        for (name, removed) in &before {
            self.affected.extend(removed.selected().cloned());
            others.set_route_owners(name, removed.won().map(|host| (host.clone(), None)));
        }
        if !before.is_empty() || self.routers.iter().any(RouterState::is_new) {
            self.affected.extend(self.rejected.iter().cloned());
        }
    }

    /// Applies changed Routes and changes that they depend on: Secrets, labels of namespaces, claims of other APIs.
    /// Returns the changes of each router's table; `None` if there are none.
    pub fn apply_changes(
        &mut self,
        resources: &Resources,
        changes: &Changes<'_>,
        others: &mut OtherApis,
    ) -> Vec<Option<ChangedRoutes>> {
        let last = changes.last;
        for change in resources.routes.changes_since(&last.routes) {
            self.affected.push(change.key.clone());
            if change.new.is_some_and(|versions| versions.rejected.is_some()) {
                self.rejected.insert(change.key.clone());
            } else {
                self.rejected.remove(change.key);
            }
        }
        let mut routes: Vec<RouteRevision<'_>> = resources.routes.in_force_since(&last.routes).collect();
        self.secret_users.update(&routes);
        // Rejected versions too: a Route says of its Secret whether it is missing or invalid.
        let secrets = resources.secrets.changes_since(&last.secrets);
        let users: BTreeSet<ObjectKey> = secrets.flat_map(|secret| self.secret_users.of(secret.key)).collect();
        let unchanged = users.iter().filter(|user| routes.binary_search_by(|change| change.key.cmp(user)).is_err());
        let unchanged = unchanged.filter_map(|user| resources.routes.get(user));
        let unchanged =
            unchanged.map(|route| RouteRevision { key: &route.meta.key, old: Some(route), new: Some(route) });
        let unchanged: Vec<RouteRevision<'_>> = unchanged.collect();
        routes.extend(unchanged);
        for namespace in changes.relabelled {
            let in_namespace = self.rejected.iter().filter(|key| key.namespace == *namespace);
            self.affected.extend(in_namespace.cloned());
        }
        let all: Vec<RouteRevision<'_>> = if self.routers.iter().any(RouterState::is_new) {
            let all = resources.routes.iter();
            all.map(|route| RouteRevision { key: &route.meta.key, old: None, new: Some(route) }).collect()
        } else {
            Vec::new()
        };
        let mut tables = Vec::with_capacity(self.routers.len());
        for state in &mut self.routers {
            let routes = if state.is_new() { &all } else { &routes };
            let changes = RouteChanges { routes, namespaces: changes.relabelled };
            let claims = others.claims_on(state.name());
            let decided = state.apply_changes(changes, claims, resources, &mut self.affected);
            tables.push(decided.map(|decided| {
                others.set_route_owners(state.name(), decided.won);
                decided.table
            }));
        }
        tables
    }

    /// Puts the changes of each router's Routes, and the host rules of other APIs, into the tables. Updates the
    /// statuses.
    pub fn assemble(&mut self, changed: Vec<Option<ChangedRoutes>>, others: &OtherApis, resources: &Resources) {
        for (state, changed) in self.routers.iter_mut().zip(changed) {
            let rules = others.host_rules(state.name());
            state.assemble(changed, &rules);
        }
        let mut affected = std::mem::take(&mut self.affected);
        // Few sorted runs follow each other: merging them is linear.
        affected.sort();
        affected.dedup();
        self.report.update(affected, resources, &self.routers);
    }
}

//! State of one router in the engine: its routes by group, and the decisions on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use router_api::openshift::ingress_controller::WildcardAdmission;
use router_api::openshift::route::{Route, WildcardPolicy};
use router_api::resources::{RejectedManifest, Resources};
use router_model::kind::Kind;
use router_model::names::{HostMatch, RouteId, RouterName};
use router_model::object::{ObjectKey, ObjectRef};
use router_model::parallel;
use router_model::persistent::{KeyedMap, OrderedMap};
use router_table::table::{HostIndex, RouterTable};

use super::assembly::{Assembled, ChangedRoutes, HostRulesTable};
use super::group_decision::GroupDecider;
use super::groups::{GroupEntry, has_routes, routes_of};
use crate::engine::route_conditions::RouteConditions;
use crate::engine::route_revision::{RouteChanges, RouteRevision};
use crate::engine::selection::RouteSelection;
use crate::openshift::claims::cross_api::OtherApiClaims;
use crate::openshift::claims::host::effective_host;
use crate::openshift::controllers::PlannedRouter;
use crate::status::condition::{Condition, invalid_manifest};
use crate::status::host_conflict::HostOwner;
use crate::status::ingress::{Ingress, IngressEntry, RouterIdentity};
use crate::status::report::Conflict;

/// A router with its selected routes.
#[derive(Debug)]
pub struct RouterState {
    router: PlannedRouter,
    identity: Arc<RouterIdentity>,
    assembled: Assembled,
    /// Every selected route, by group.
    groups: OrderedMap<GroupEntry, ()>,
    /// Number of selected wildcard routes by domain; empty unless the router admits them.
    wildcards: HashMap<String, usize>,
    selection: RouteSelection,
    /// Conditions of selected routes, except those that are admitted without remarks.
    conditions: HashMap<ObjectKey, Box<RouteConditions>>,
    /// Claims of other APIs on hosts of this router.
    other_claims: OtherApiClaims,
    /// Hosts that other APIs claim and a Route owns, by group.
    won: BTreeMap<Arc<str>, Vec<HostMatch>>,
    /// True before the first call of [`RouterState::apply_changes`].
    is_new: bool,
}

/// Decisions that differ.
#[derive(Debug, Default)]
pub struct AdmissionChanges {
    /// Changes of the table.
    pub table: ChangedRoutes,
    /// Hosts that other APIs claim and that a Route now owns, or no longer owns (`None`).
    pub won: BTreeMap<HostMatch, Option<HostOwner>>,
}

impl RouterState {
    /// A router without routes.
    pub fn new(id: u32, router: PlannedRouter) -> Self {
        RouterState {
            identity: Arc::new(RouterIdentity {
                name: router.name.clone(),
                canonical_hostname: router.canonical_hostname().into(),
                admitted: Arc::new([Condition::new("Admitted", true, "", "")]),
            }),
            assembled: Assembled::new(empty_table(id, &router)),
            selection: RouteSelection::new(router.route_selector.clone(), router.namespace_selector.clone()),
            router,
            groups: OrderedMap::default(),
            wildcards: HashMap::new(),
            conditions: HashMap::new(),
            other_claims: OtherApiClaims::default(),
            won: BTreeMap::new(),
            is_new: true,
        }
    }

    /// Changes the settings that no decision on a Route depends on. Returns false, and changes nothing, if other
    /// settings differ, too.
    pub fn configure(&mut self, id: u32, router: &PlannedRouter) -> bool {
        let PlannedRouter {
            name,
            policy,
            namespace_selector,
            route_selector,
            traffic,
            http_port: _,
            https_port: _,
            default_certificate: _,
            served: _,
            tls_fault: _,
        } = router;
        let before = (&self.router.name, &self.router.policy, &self.router.traffic);
        let selectors = (&self.router.namespace_selector, &self.router.route_selector);
        if (name, policy, traffic) != before || (namespace_selector, route_selector) != selectors {
            return false;
        }
        self.assembled.configure(empty_table(id, router));
        self.router = router.clone();
        true
    }

    /// True before the first call of [`RouterState::apply_changes`].
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The routes that it selects.
    pub fn selected(&self) -> impl Iterator<Item = &ObjectKey> {
        self.groups.entries().map(|(entry, ())| &entry.route.meta.key)
    }

    /// The router's name.
    pub fn name(&self) -> &RouterName {
        &self.router.name
    }

    /// The router's table.
    pub fn table(&self) -> &Arc<RouterTable> {
        self.assembled.table()
    }

    /// Updates the table by the changes of [`RouterState::apply_changes`] and the host rules of other APIs.
    pub fn assemble(&mut self, changed: Option<ChangedRoutes>, rules: &HostRulesTable) {
        self.assembled.assemble(changed, rules);
    }

    /// Hosts that other APIs claim and a Route owns.
    pub fn won(&self) -> impl Iterator<Item = &HostMatch> {
        self.won.values().flatten()
    }

    /// True if the router selects this route, which an earlier change contained.
    pub fn selects(&self, route: &Route) -> bool {
        self.selection.selects(route)
    }

    /// The entries of a route that this router alone selects, if it is admitted without remarks.
    pub fn plain_ingress(&self, route: &Route) -> Option<Ingress> {
        let is_plain = route.wildcard_policy == WildcardPolicy::None && !self.conditions.contains_key(&route.meta.key);
        is_plain.then(|| Ingress::admitted(self.served_host(route), self.identity.clone()))
    }

    /// The status entry of a route; `None` if the router does not select it.
    pub fn entry(&self, route: &Route) -> Option<IngressEntry> {
        if !self.selects(route) {
            return None;
        }
        let own = self.conditions.get(&route.meta.key);
        let conditions = own.map_or(&self.identity.admitted, |own| &own.conditions);
        Some(self.identity.entry(&self.host_of(route), route.wildcard_policy, Arc::clone(conditions)))
    }

    /// The status entry of a route without a valid version; `None` if the router does not select it.
    pub fn rejected_entry(
        &self,
        key: &ObjectKey,
        rejected: &RejectedManifest,
        resources: &Resources,
    ) -> Option<IngressEntry> {
        let is_selected = self.selection.may_select(key, rejected, resources);
        let conditions = || Arc::new([invalid_manifest(rejected)]);
        is_selected.then(|| self.identity.entry(&rejected.host(), rejected.wildcard_policy(), conditions()))
    }

    /// The conflict that a route lost, if any.
    pub fn conflict(&self, route: &Route) -> Option<Conflict> {
        let own = self.conditions.get(&route.meta.key)?;
        let condition = own.conditions.first()?;
        Some(Conflict {
            router: self.router.name.clone(),
            host: self.host_of(route).to_string(),
            winner: own.winner.clone()?,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        })
    }

    fn host_of(&self, route: &Route) -> Arc<str> {
        effective_host(route, &self.router.policy.domain)
    }

    /// The same; shares the text with the table if the host is there.
    fn served_host(&self, route: &Route) -> Arc<str> {
        let host = self.host_of(route);
        match self.table().routes.get(&route.meta.key.route_id()).map(|route| &route.host) {
            Some(HostMatch::Exact(name)) if *name.text() == host => name.text().clone(),
            _ => host,
        }
    }

    /// Applies changed routes, namespaces and claims of other APIs, and admits the routes of every group that these
    /// affect again. Adds the routes whose status may differ to `affected`. `None` if no group is affected.
    pub fn apply_changes(
        &mut self,
        changes: RouteChanges<'_>,
        other_claims: OtherApiClaims,
        resources: &Resources,
        affected: &mut Vec<ObjectKey>,
    ) -> Option<AdmissionChanges> {
        self.is_new = false;
        let selected = self.selection.apply_changes(changes, resources, affected);
        let regrouped = self.count_wildcards(&selected);
        let (mut dirty_groups, mut removed) = (Vec::new(), Vec::new());
        for old in selected.iter().filter_map(|change| change.old) {
            dirty_groups.push(self.remove_from_group(old, &regrouped));
            removed.push(old.meta.key.route_id());
        }
        for domain in &regrouped {
            self.regroup(domain, &mut dirty_groups);
        }
        let mut added: Vec<GroupEntry> =
            selected.iter().filter_map(|change| change.new).map(|route| self.group_entry(route.clone())).collect();
        added.sort_unstable();
        dirty_groups.extend(added.iter().map(|entry| entry.group.clone()));
        self.groups.extend(added.into_iter().map(|entry| (entry, ())));
        let older = std::mem::replace(&mut self.other_claims, other_claims);
        let contested = self.other_claims.changed_since(&older).filter_map(|host| self.group_of_host(host));
        dirty_groups.extend(contested.filter(|group| has_routes(&self.groups, group)));
        dirty_groups.sort_unstable();
        dirty_groups.dedup();
        if dirty_groups.is_empty() { None } else { Some(self.decide(dirty_groups, removed, resources, affected)) }
    }

    /// Counts selected wildcard routes. Returns the domains that got their first or lost their last one.
    fn count_wildcards(&mut self, changes: &[RouteRevision<'_>]) -> BTreeSet<String> {
        if self.router.policy.wildcards != WildcardAdmission::WildcardsAllowed {
            return BTreeSet::new();
        }
        let mut had_some: BTreeMap<String, bool> = BTreeMap::new();
        for (route, step) in changes.iter().flat_map(|change| [(change.old, -1), (change.new, 1)]) {
            let Some(route) = route.filter(|route| route.wildcard_policy == WildcardPolicy::Subdomain) else {
                continue;
            };
            let domain = domain_of(&self.host_of(route)).to_owned();
            had_some.entry(domain.clone()).or_insert_with(|| self.wildcards.contains_key(&domain));
            let count = self.wildcards.entry(domain.clone()).or_default();
            *count = count.saturating_add_signed(step);
            if *count == 0 {
                self.wildcards.remove(&domain);
            }
        }
        let differs = |(domain, had_some): &(String, bool)| self.wildcards.contains_key(domain) != *had_some;
        had_some.into_iter().filter(differs).map(|(domain, _)| domain).collect()
    }

    fn group_of(&self, route: &Route) -> Arc<str> {
        let host = self.host_of(route);
        let domain = domain_of(&host);
        if self.wildcards.contains_key(domain) { format!("*.{domain}").into() } else { host }
    }

    /// The group whose routes may claim a host that another API claims; `None` if no route can.
    fn group_of_host(&self, host: &HostMatch) -> Option<Arc<str>> {
        let grouped = |domain: &str| self.wildcards.contains_key(domain).then(|| format!("*.{domain}").into());
        match host {
            HostMatch::Exact(name) => grouped(domain_of(name.as_str())).or_else(|| Some(name.text().clone())),
            HostMatch::Wildcard(domain) | HostMatch::Suffix(domain) => grouped(domain.as_str()),
            HostMatch::Any => None,
        }
    }

    fn group_entry(&self, route: Arc<Route>) -> GroupEntry {
        GroupEntry { group: self.group_of(&route), route }
    }

    /// Removes a route from its group, and returns the group. Routes of `regrouped` domains are still in the group that
    /// they had before.
    fn remove_from_group(&mut self, route: &Arc<Route>, regrouped: &BTreeSet<String>) -> Arc<str> {
        self.conditions.remove(&route.meta.key);
        let host = self.host_of(route);
        let domain = domain_of(&host);
        let was_by_domain = self.wildcards.contains_key(domain) != regrouped.contains(domain);
        let group = if was_by_domain { format!("*.{domain}").into() } else { host };
        let entry = GroupEntry { group, route: route.clone() };
        self.groups.remove(&entry);
        entry.group
    }

    /// Moves the routes of a domain to the groups they now belong to.
    fn regroup(&mut self, domain: &str, dirty_groups: &mut Vec<Arc<str>>) {
        let is_moving = |entry: &&GroupEntry| domain_of(&entry.group) == domain;
        let moving: Vec<GroupEntry> =
            self.groups.entries().map(|(entry, ())| entry).filter(is_moving).cloned().collect();
        for entry in moving {
            self.groups.remove(&entry);
            dirty_groups.push(entry.group);
            let entry = self.group_entry(entry.route);
            dirty_groups.push(entry.group.clone());
            self.groups.insert(entry, ());
        }
    }

    /// Admits the routes of groups again. Their previous hosts are removed from the table, and so are the `removed`
    /// routes.
    fn decide(
        &mut self,
        dirty_groups: Vec<Arc<str>>,
        removed: Vec<RouteId>,
        resources: &Resources,
        affected: &mut Vec<ObjectKey>,
    ) -> AdmissionChanges {
        let mut changed = ChangedRoutes { removed, ..ChangedRoutes::default() };
        let mut won = BTreeMap::new();
        if !self.table().routes.is_empty() {
            let deciding = dirty_groups.iter().flat_map(|group| routes_of(&self.groups, group));
            changed.removed.extend(deciding.map(|route| route.meta.key.route_id()));
        }
        let decider = GroupDecider {
            policy: &self.router.policy,
            traffic: &self.router.traffic,
            groups: &self.groups,
            secrets: &resources.secrets,
            other_claims: &self.other_claims,
        };
        let decided = parallel::map_all(&dirty_groups, |group| decider.decide(group));
        for (group, decided) in dirty_groups.into_iter().zip(decided) {
            for host in self.won.remove(&group).into_iter().flatten() {
                // A route of another group may own it now.
                won.entry(host).or_insert(None);
            }
            if !decided.won.is_empty() {
                self.won.insert(group, decided.won.iter().map(|(host, _)| host.clone()).collect());
            }
            won.extend(decided.won.into_iter().map(|(host, route)| (host, Some(owner(&route, resources)))));
            for (key, conditions) in decided.conditions {
                affected.push(key.clone());
                match conditions {
                    Some(conditions) => drop(self.conditions.insert(key, conditions)),
                    None => drop(self.conditions.remove(&key)),
                }
            }
            changed.hosts.extend(decided.hosts);
            changed.routes.extend(decided.routes);
        }
        AdmissionChanges { table: changed, won }
    }
}

/// The table of a router without hosts and routes.
fn empty_table(id: u32, router: &PlannedRouter) -> RouterTable {
    RouterTable {
        name: router.name.clone(),
        id,
        domain: router.policy.domain.clone(),
        http_port: Some(router.http_port),
        https_port: Some(router.https_port),
        default_certificate: router.default_certificate.clone(),
        policy: Arc::clone(&router.served),
        hosts: HostIndex::default(),
        routes: KeyedMap::default(),
        common_allow: None,
    }
}

/// A Route as the owner of a host.
fn owner(route: &ObjectKey, resources: &Resources) -> HostOwner {
    let created = resources.routes.get(route).map(|route| route.meta.created).unwrap_or_default();
    HostOwner { object: ObjectRef { kind: Kind::Route, key: route.clone() }, created }
}

/// The domain whose wildcard covers a host; empty for a single label.
fn domain_of(host: &str) -> &str {
    host.split_once('.').map_or("", |(_, domain)| domain)
}

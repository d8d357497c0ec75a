//! One router as the engine keeps it: its routes by group, and the decisions on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use router_api::openshift::ingress_controller::WildcardAdmission;
use router_api::openshift::route::{Route, WildcardPolicy};
use router_api::resources::{RejectedManifest, Resources};
use router_model::kind::Kind;
use router_model::names::{HostMatch, RouteId, RouterName};
use router_model::object::{ObjectKey, ObjectRef, Seniority};
use router_model::persistent::OrderedMap;
use router_table::table::{HostIndex, RouterTable};

use super::assembly::{Assembled, ChangedRoutes, HostRulesTable};
use super::groups::{GroupEntry, has_routes, routes_of};
use crate::engine::route_conditions::RouteConditions;
use crate::engine::route_revision::{RouteChanges, RouteRevision};
use crate::engine::selection::Selection;
use crate::openshift::claims::cross_api::OtherApiClaims;
use crate::openshift::claims::host::effective_host;
use crate::openshift::claims::{Admission, admit};
use crate::openshift::compile;
use crate::openshift::compile::Shadow;
use crate::openshift::controllers::PlannedRouter;
use crate::openshift::serve::resolve;
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
    members: OrderedMap<GroupEntry, ()>,
    /// Selected wildcard routes by domain; empty unless the router admits them.
    wildcards: HashMap<String, usize>,
    selection: Selection,
    /// Conditions of selected routes, except those that are admitted without remarks.
    verdicts: HashMap<ObjectKey, Box<RouteConditions>>,
    /// Claims of other APIs on hosts of this router.
    foreign: OtherApiClaims,
    /// The hosts of these that a Route has, by group.
    won: BTreeMap<Arc<str>, Vec<HostMatch>>,
    /// Whether it has seen no routes yet.
    is_new: bool,
}

/// Decisions that differ.
#[derive(Debug, Default)]
pub struct Decided {
    /// Changes of the table.
    pub table: ChangedRoutes,
    /// Hosts that other APIs claim and a Route has from now on, or no longer (`None`).
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
            selection: Selection::new(router.route_selector.clone(), router.namespace_selector.clone()),
            router,
            members: OrderedMap::default(),
            wildcards: HashMap::new(),
            verdicts: HashMap::new(),
            foreign: OtherApiClaims::default(),
            won: BTreeMap::new(),
            is_new: true,
        }
    }

    /// Changes the settings that no decision on a Route depends on. Returns false, and changes nothing, if other settings
    /// differ, too.
    pub fn configure(&mut self, id: u32, router: &PlannedRouter) -> bool {
        let decisive = |router: &PlannedRouter| {
            let PlannedRouter { name, policy, namespace_selector, route_selector, traffic, .. } = router;
            (name.clone(), policy.clone(), namespace_selector.clone(), route_selector.clone(), *traffic)
        };
        if decisive(&self.router) != decisive(router) {
            return false;
        }
        self.assembled.configure(empty_table(id, router));
        self.router = router.clone();
        true
    }

    /// Whether it has seen no routes yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The routes that it selects.
    pub fn selected(&self) -> impl Iterator<Item = &ObjectKey> {
        self.members.entries().map(|(member, ())| &member.route.meta.key)
    }

    /// The router's name.
    pub fn name(&self) -> &RouterName {
        &self.router.name
    }

    /// What it serves.
    pub fn table(&self) -> &Arc<RouterTable> {
        self.assembled.table()
    }

    /// Puts what [`RouterState::follow`] decided, and the host rules of other APIs, into the table.
    pub fn assemble(&mut self, changed: Option<ChangedRoutes>, rules: &HostRulesTable) {
        self.assembled.assemble(changed, rules);
    }

    /// Hosts that other APIs claim and a Route has.
    pub fn won(&self) -> impl Iterator<Item = &HostMatch> {
        self.won.values().flatten()
    }

    /// Whether the router selects a route that it has met.
    pub fn selects(&self, route: &Route) -> bool {
        self.selection.selects(route)
    }

    /// The entries of a route that this router alone selects, if it is admitted without remarks.
    pub fn plain_ingress(&self, route: &Route) -> Option<Ingress> {
        let is_plain = route.wildcard_policy == WildcardPolicy::None && !self.verdicts.contains_key(&route.meta.key);
        is_plain.then(|| Ingress::admitted(self.served_host(route), self.identity.clone()))
    }

    /// The status entry of a route; `None` if the router does not select it.
    pub fn entry(&self, route: &Route) -> Option<IngressEntry> {
        if !self.selects(route) {
            return None;
        }
        let verdict = self.verdicts.get(&route.meta.key);
        let conditions = verdict.map_or(&self.identity.admitted, |verdict| &verdict.conditions);
        Some(self.identity.entry(&self.host_of(route), route.wildcard_policy, Arc::clone(conditions)))
    }

    /// The status entry of a route without a valid version; `None` if the router does not select it.
    pub fn refused_entry(
        &self,
        key: &ObjectKey,
        refused: &RejectedManifest,
        resources: &Resources,
    ) -> Option<IngressEntry> {
        let is_selected = self.selection.may_select(key, refused, resources);
        let conditions = || Arc::new([invalid_manifest(refused)]);
        is_selected.then(|| self.identity.entry(&refused.host(), refused.wildcard_policy(), conditions()))
    }

    /// Whom a route lost to, if it did.
    pub fn conflict(&self, route: &Route) -> Option<Conflict> {
        let verdict = self.verdicts.get(&route.meta.key)?;
        let condition = verdict.conditions.first()?;
        Some(Conflict {
            router: self.router.name.clone(),
            host: self.host_of(route).to_string(),
            winner: verdict.winner.clone()?,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        })
    }

    fn host_of(&self, route: &Route) -> Arc<str> {
        effective_host(route, &self.router.policy.domain)
    }

    /// The same, shared with the table where that has it.
    fn served_host(&self, route: &Route) -> Arc<str> {
        let host = self.host_of(route);
        match self.table().routes.get(&route.meta.key.route_id()).map(|route| &route.host) {
            Some(HostMatch::Exact(name)) if *name.text() == host => name.text().clone(),
            _ => host,
        }
    }

    /// Follows changed routes, namespaces and claims of other APIs, and decides anew every group that these affect. Adds
    /// the routes whose status may differ to `touched`. `None` if there is nothing to decide.
    pub fn follow(
        &mut self,
        changes: RouteChanges<'_>,
        foreign: OtherApiClaims,
        resources: &Resources,
        touched: &mut Vec<ObjectKey>,
    ) -> Option<Decided> {
        self.is_new = false;
        let selected = self.selection.follow(changes, resources, touched);
        let regrouped = self.count_wildcards(&selected);
        let (mut dirty, mut gone) = (Vec::new(), Vec::new());
        for old in selected.iter().filter_map(|change| change.old) {
            dirty.push(self.leave(old, &regrouped));
            gone.push(old.meta.key.route_id());
        }
        for domain in &regrouped {
            self.regroup(domain, &mut dirty);
        }
        let mut joining: Vec<GroupEntry> =
            selected.iter().filter_map(|change| change.new).map(|route| self.member(route.clone())).collect();
        joining.sort_unstable();
        dirty.extend(joining.iter().map(|member| member.group.clone()));
        self.members.extend(joining.into_iter().map(|member| (member, ())));
        let older = std::mem::replace(&mut self.foreign, foreign);
        let contested = self.foreign.changed_since(&older).filter_map(|host| self.group_of_host(host));
        dirty.extend(contested.filter(|group| has_routes(&self.members, group)));
        dirty.sort_unstable();
        dirty.dedup();
        if dirty.is_empty() { None } else { Some(self.decide(dirty, gone, resources, touched)) }
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

    /// The group whose routes may ask for a host that another API claims; `None` if no route can.
    fn group_of_host(&self, host: &HostMatch) -> Option<Arc<str>> {
        let grouped = |domain: &str| self.wildcards.contains_key(domain).then(|| format!("*.{domain}").into());
        match host {
            HostMatch::Exact(name) => grouped(domain_of(name.as_str())).or_else(|| Some(name.text().clone())),
            HostMatch::Wildcard(domain) | HostMatch::Suffix(domain) => grouped(domain.as_str()),
            HostMatch::Any => None,
        }
    }

    fn member(&self, route: Arc<Route>) -> GroupEntry {
        GroupEntry { group: self.group_of(&route), route }
    }

    /// Takes a route out of its group, which is returned. `regrouped` domains have it under the key that they had
    /// before.
    fn leave(&mut self, route: &Arc<Route>, regrouped: &BTreeSet<String>) -> Arc<str> {
        self.verdicts.remove(&route.meta.key);
        let host = self.host_of(route);
        let domain = domain_of(&host);
        let was_by_domain = self.wildcards.contains_key(domain) != regrouped.contains(domain);
        let group = if was_by_domain { format!("*.{domain}").into() } else { host };
        let member = GroupEntry { group, route: route.clone() };
        self.members.remove(&member);
        member.group
    }

    /// Moves the routes of a domain to the groups they now belong to.
    fn regroup(&mut self, domain: &str, dirty: &mut Vec<Arc<str>>) {
        let is_moving = |member: &&GroupEntry| domain_of(&member.group) == domain;
        let moving: Vec<GroupEntry> =
            self.members.entries().map(|(member, ())| member).filter(is_moving).cloned().collect();
        for member in moving {
            self.members.remove(&member);
            dirty.push(member.group);
            let member = self.member(member.route);
            dirty.push(member.group.clone());
            self.members.insert(member, ());
        }
    }

    /// Decides groups anew. Their previous hosts leave the table, and so do the routes that are `gone`.
    fn decide(
        &mut self,
        dirty: Vec<Arc<str>>,
        gone: Vec<RouteId>,
        resources: &Resources,
        touched: &mut Vec<ObjectKey>,
    ) -> Decided {
        let mut changed = ChangedRoutes { gone, ..ChangedRoutes::default() };
        let mut won = BTreeMap::new();
        if !self.table().routes.is_empty() {
            let deciding = dirty.iter().flat_map(|group| routes_of(&self.members, group));
            changed.gone.extend(deciding.map(|route| route.meta.key.route_id()));
        }
        for group in dirty {
            let members = routes_of(&self.members, &group);
            let admission = admit(&self.router.policy, &members, &resources.secrets, &self.foreign);
            let Admission { decisions, won: won_now } = admission;
            for host in self.won.remove(&group).into_iter().flatten() {
                // Another group may have it by now.
                won.entry(host).or_insert(None);
            }
            if !won_now.is_empty() {
                self.won.insert(group, won_now.iter().map(|(host, _)| host.clone()).collect());
            }
            won.extend(won_now.into_iter().map(|(host, route)| (host, Some(owner(&route, resources)))));
            let admitted = decisions.iter().filter_map(|decision| decision.outcome.as_ref().ok());
            let resolved: Vec<_> = admitted.map(|admitted| Arc::new(resolve(admitted, &self.router.traffic))).collect();
            let virtual_hosts: Vec<_> = compile::virtual_hosts(&resolved).into_iter().map(Arc::new).collect();
            let seniority = |shadow: &Shadow<'_>| {
                let meta = |id: &RouteId| {
                    let all = decisions.iter().map(|decision| &decision.route.meta);
                    all.into_iter().find(|meta| meta.key.route_id() == *id)
                };
                meta(&shadow.by.id).zip(meta(&shadow.route.id)).map(|(by, route)| by.seniority(route))
            };
            let shadows: BTreeMap<&RouteId, (Shadow<'_>, Seniority)> = virtual_hosts
                .iter()
                .flat_map(|host| compile::shadows(host))
                .filter_map(|shadow| seniority(&shadow).map(|seniority| (&shadow.route.id, (shadow, seniority))))
                .collect();
            for decision in decisions {
                let key = decision.route.meta.key.clone();
                touched.push(key.clone());
                let shadow = shadows.get(&key.route_id());
                match RouteConditions::of(decision, shadow) {
                    Some(verdict) => drop(self.verdicts.insert(key, Box::new(verdict))),
                    None => drop(self.verdicts.remove(&key)),
                }
            }
            changed.hosts.extend(virtual_hosts);
            changed.routes.extend(resolved.into_iter().map(|route| (route.id.clone(), route)));
        }
        Decided { table: changed, won }
    }
}

/// The table of a router that serves nothing.
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
        routes: OrderedMap::default(),
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

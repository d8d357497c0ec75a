//! One router as the engine keeps it: its routes by group, and what was made of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use router_api::openshift::ingress_controller::WildcardAdmission;
use router_api::openshift::route::{Route, WildcardPolicy};
use router_api::resources::{RejectedManifest, Resources};
use router_model::names::{HostMatch, RouteId, RouterName};
use router_model::object::{ObjectKey, Seniority};
use router_model::persistent::OrderedMap;
use router_table::table::{HostIndex, RouterTable};

use super::assembly::{Assembled, ChangedRoutes, HostRulesTable};
use super::groups::{GroupEntry, has_routes, routes_of};
use crate::engine::route_conditions::RouteConditions;
use crate::engine::route_revision::RouteRevision;
use crate::openshift::claims::cross_api::OtherApiClaims;
use crate::openshift::claims::host::effective_host;
use crate::openshift::claims::{Admission, admit};
use crate::openshift::compile;
use crate::openshift::compile::Shadow;
use crate::openshift::controllers::PlannedRouter;
use crate::openshift::serve::resolve;
use crate::status::condition::{Condition, invalid_manifest};
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
    /// Whether a namespace is selected, for those of the routes that came; empty when all are.
    namespaces: HashMap<Arc<str>, bool>,
    /// What became of selected routes, but for those that are admitted and about which there is nothing more to say.
    verdicts: HashMap<ObjectKey, Box<RouteConditions>>,
    /// What objects of other kinds want here.
    foreign: Arc<OtherApiClaims>,
    /// By group, the hosts among these that a Route has, and which.
    won: BTreeMap<Arc<str>, Vec<(HostMatch, ObjectKey)>>,
}

impl RouterState {
    /// A router without routes.
    pub fn new(id: u32, router: PlannedRouter) -> Self {
        let table = RouterTable {
            name: router.name.clone(),
            id,
            domain: router.policy.domain.clone(),
            http_port: Some(router.http_port),
            https_port: Some(router.https_port),
            default_certificate: router.default_certificate.clone(),
            policy: Arc::clone(&router.served),
            hosts: HostIndex::default(),
            routes: Default::default(),
        };
        RouterState {
            identity: Arc::new(RouterIdentity {
                name: router.name.clone(),
                canonical_hostname: router.canonical_hostname().into(),
                admitted: Arc::new([Condition::new("Admitted", true, "", "")]),
            }),
            router,
            assembled: Assembled::new(table),
            members: OrderedMap::default(),
            wildcards: HashMap::new(),
            namespaces: HashMap::new(),
            verdicts: HashMap::new(),
            foreign: Arc::default(),
            won: BTreeMap::new(),
        }
    }

    /// The router's name.
    pub fn name(&self) -> &RouterName {
        &self.router.name
    }

    /// What it serves.
    pub fn table(&self) -> &Arc<RouterTable> {
        self.assembled.table()
    }

    /// Takes over into the table what [`RouterState::follow`] has decided, and what objects of other kinds serve.
    pub fn assemble(&mut self, changed: Option<ChangedRoutes>, rules: &HostRulesTable) {
        self.assembled.assemble(changed, rules);
    }

    /// Hosts that objects of other kinds want and a Route has, with the Route.
    pub fn won(&self) -> impl Iterator<Item = &(HostMatch, ObjectKey)> {
        self.won.values().flatten()
    }

    /// Whether the router selects a route that it has met (docs/openshift.md#shards).
    pub fn selects(&self, route: &Route) -> bool {
        self.router.route_selector.matches(&route.meta.labels)
            && (self.router.namespace_selector.is_empty()
                || self.namespaces.get(&route.meta.key.namespace).copied().unwrap_or_default())
    }

    /// What a route is told that this router alone selects, where that is only that it is served.
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

    /// The status entry of a route that cannot be read; `None` if the router does not select it. Where its labels cannot
    /// be read either, every router may be meant.
    pub fn refused_entry(
        &self,
        key: &ObjectKey,
        refused: &RejectedManifest,
        resources: &Resources,
    ) -> Option<IngressEntry> {
        let (routes, namespaces) = (&self.router.route_selector, &self.router.namespace_selector);
        let is_selected = (routes.is_empty() || refused.labels().is_none_or(|labels| routes.matches(&labels)))
            && (namespaces.is_empty() || namespaces.matches(&resources.namespace_labels(&key.namespace)));
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

    /// Takes over changed routes and what other kinds want, and decides every group anew that these are in. Adds the routes
    /// whose verdict may have changed to `touched`. Returns what changes of the table; `None`: nothing.
    pub fn follow(
        &mut self,
        changes: &[RouteRevision<'_>],
        foreign: &Arc<OtherApiClaims>,
        resources: &Resources,
        touched: &mut Vec<ObjectKey>,
    ) -> Option<ChangedRoutes> {
        self.meet_namespaces(changes, resources);
        let selected: Vec<RouteRevision<'_>> = changes
            .iter()
            .map(|change| RouteRevision {
                old: change.old.filter(|route| self.selects(route)),
                new: change.new.filter(|route| self.selects(route)),
            })
            .filter(|change| change.old.is_some() || change.new.is_some())
            .collect();
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
        let older = std::mem::replace(&mut self.foreign, Arc::clone(foreign));
        if !Arc::ptr_eq(&older, foreign) {
            let contested = foreign.changed_since(&older).filter_map(|host| self.group_of_host(host));
            dirty.extend(contested.filter(|group| has_routes(&self.members, group)));
        }
        dirty.sort_unstable();
        dirty.dedup();
        if dirty.is_empty() { None } else { Some(self.decide(dirty, gone, resources, touched)) }
    }

    /// Looks at the namespaces of new routes. Namespaces do not change during the life of `self`.
    fn meet_namespaces(&mut self, changes: &[RouteRevision<'_>], resources: &Resources) {
        let selector = &self.router.namespace_selector;
        if selector.is_empty() {
            return;
        }
        for route in changes.iter().filter_map(|change| change.new) {
            let namespace = &route.meta.key.namespace;
            if !self.namespaces.contains_key(namespace) {
                let is_selected = selector.matches(&resources.namespace_labels(namespace));
                self.namespaces.insert(namespace.clone(), is_selected);
            }
        }
    }

    /// Counts selected wildcard routes; the domains that got their first or lost their last one.
    fn count_wildcards(&mut self, changes: &[RouteRevision<'_>]) -> BTreeSet<String> {
        let mut regrouped = BTreeSet::new();
        if self.router.policy.wildcards != WildcardAdmission::WildcardsAllowed {
            return regrouped;
        }
        let before: BTreeSet<String> = self.wildcards.keys().cloned().collect();
        for (route, step) in changes.iter().flat_map(|change| [(change.old, -1), (change.new, 1)]) {
            let Some(route) = route.filter(|route| route.wildcard_policy == WildcardPolicy::Subdomain) else {
                continue;
            };
            let domain = domain_of(&self.host_of(route)).to_owned();
            let count = self.wildcards.entry(domain.clone()).or_default();
            *count = count.saturating_add_signed(step);
            if *count == 0 {
                self.wildcards.remove(&domain);
            }
            regrouped.insert(domain);
        }
        regrouped.retain(|domain| before.contains(domain) != self.wildcards.contains_key(domain));
        regrouped
    }

    fn group_of(&self, route: &Route) -> Arc<str> {
        let host = self.host_of(route);
        let domain = domain_of(&host);
        if self.wildcards.contains_key(domain) { format!("*.{domain}").into() } else { host }
    }

    /// The group whose routes may want what objects of another kind want; `None` where no route can.
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

    /// Decides groups anew. What they have had leaves the table, and so do the routes that are `gone`.
    fn decide(
        &mut self,
        dirty: Vec<Arc<str>>,
        gone: Vec<RouteId>,
        resources: &Resources,
        touched: &mut Vec<ObjectKey>,
    ) -> ChangedRoutes {
        let mut changed = ChangedRoutes { gone, ..ChangedRoutes::default() };
        if !self.table().routes.is_empty() {
            let deciding = dirty.iter().flat_map(|group| routes_of(&self.members, group));
            changed.gone.extend(deciding.map(|route| route.meta.key.route_id()));
        }
        for group in dirty {
            let members = routes_of(&self.members, &group);
            let Admission { decisions, won } = admit(&self.router.policy, &members, &resources.secrets, &self.foreign);
            if won.is_empty() {
                self.won.remove(&group);
            } else {
                self.won.insert(group, won);
            }
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
        changed
    }
}

/// The domain whose wildcard covers a host; empty for a single label.
fn domain_of(host: &str) -> &str {
    host.split_once('.').map_or("", |(_, domain)| domain)
}

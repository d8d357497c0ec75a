//! One router as the engine keeps it: its routes by group, and what was made of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::RouteChange;
use crate::admit::{Decision, admit, effective_host};
use crate::compile::{self, Shadow};
use crate::controllers::Router;
use crate::model::{RouteId, RouterName};
use crate::object::{Kind, ObjectKey, ObjectRef};
use crate::parse::{Route, WildcardAdmission, WildcardPolicy};
use crate::resolve::{EndpointIndex, allowlist, resolve};
use crate::resources::Resources;
use crate::status::{Condition, Conflict, IngressEntry};
use crate::table::{HostIndex, ResolvedRoute, RouterTable};

/// A router with its selected routes.
#[derive(Debug)]
pub struct Served {
    router: Router,
    canonical: Arc<str>,
    /// The conditions of a route that is served.
    admitted: Arc<[Condition]>,
    table: Arc<RouterTable>,
    groups: HashMap<Box<str>, Group>,
    /// Selected wildcard routes by domain; empty unless the router admits them.
    wildcards: HashMap<String, usize>,
    /// Every selected route; `None` is what most get: admitted, and nothing more to say.
    verdicts: HashMap<ObjectKey, Option<Box<Verdict>>>,
}

/// Routes that may contend, and what stands in the table because of them.
#[derive(Debug, Default)]
struct Group {
    members: Vec<Arc<Route>>,
    served: Box<[Arc<ResolvedRoute>]>,
}

/// What became of a selected route.
#[derive(Debug)]
struct Verdict {
    conditions: Arc<[Condition]>,
    /// The older route that has what this one wanted.
    winner: Option<ObjectKey>,
}

impl Served {
    /// A router without routes.
    pub fn new(id: u32, router: Router) -> Self {
        let table = RouterTable {
            name: router.name.clone(),
            id,
            domain: router.policy.domain.clone(),
            http_port: router.http_port,
            https_port: router.https_port,
            default_certificate: router.default_certificate.clone(),
            hosts: HostIndex::default(),
            routes: Default::default(),
        };
        Served {
            canonical: router.canonical_hostname().into(),
            admitted: Arc::new([Condition::new("Admitted", true, "", "")]),
            router,
            table: Arc::new(table),
            groups: HashMap::new(),
            wildcards: HashMap::new(),
            verdicts: HashMap::new(),
        }
    }

    /// The router's name.
    pub fn name(&self) -> &RouterName {
        &self.router.name
    }

    /// What it serves.
    pub fn table(&self) -> &Arc<RouterTable> {
        &self.table
    }

    /// The status entry of a route; `None` if the router does not select it.
    pub fn entry(&self, route: &Route) -> Option<IngressEntry> {
        let conditions = match self.verdicts.get(&route.meta.key)? {
            Some(verdict) => &verdict.conditions,
            None => &self.admitted,
        };
        let host = effective_host(route, &self.router.policy.domain);
        Some(self.ingress_entry(host, route.wildcard_policy.as_str(), Arc::clone(conditions)))
    }

    /// Whom a route lost to, if it did.
    pub fn conflict(&self, route: &Route) -> Option<Conflict> {
        let verdict = self.verdicts.get(&route.meta.key)?.as_ref()?;
        let condition = verdict.conditions.first()?;
        Some(Conflict {
            router: self.router.name.clone(),
            host: effective_host(route, &self.router.policy.domain),
            winner: ObjectRef { kind: Kind::Route, key: verdict.winner.clone()? },
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        })
    }

    /// A status entry of this router.
    pub fn ingress_entry(
        &self,
        host: String,
        wildcard_policy: &'static str,
        conditions: Arc<[Condition]>,
    ) -> IngressEntry {
        IngressEntry {
            host,
            router_name: self.router.name.clone(),
            router_canonical_hostname: self.canonical.clone(),
            wildcard_policy,
            conditions,
        }
    }

    /// Takes over changed routes, and decides every group anew that they or the `affected` routes (whose endpoints
    /// changed) are in. Adds the routes whose verdict may have changed to `touched`.
    pub fn follow(
        &mut self,
        changes: &[RouteChange<'_>],
        affected: &[&Arc<Route>],
        resources: &Resources,
        endpoints: &EndpointIndex,
        touched: &mut Vec<ObjectKey>,
    ) {
        let mut is_selected = self.selector(resources);
        let selected: Vec<RouteChange<'_>> = changes
            .iter()
            .map(|change| RouteChange {
                old: change.old.filter(|route| is_selected(route)),
                new: change.new.filter(|route| is_selected(route)),
            })
            .filter(|change| change.old.is_some() || change.new.is_some())
            .collect();
        let regrouped = self.count_wildcards(&selected);
        let mut dirty = Vec::new();
        for change in &selected {
            if let Some(old) = change.old {
                self.leave(old, &regrouped, &mut dirty);
            }
        }
        for domain in &regrouped {
            self.regroup(domain, &mut dirty);
        }
        for change in &selected {
            if let Some(new) = change.new {
                self.join(new, &mut dirty);
            }
        }
        for route in affected.iter().filter(|route| self.verdicts.contains_key(&route.meta.key)) {
            dirty.push(self.group_of(route));
        }
        dirty.sort_unstable();
        dirty.dedup();
        self.decide(dirty, resources, endpoints, touched);
    }

    /// Whether the router selects a route (openshift.md c). Namespaces do not change during the life of `self`.
    fn selector(&self, resources: &Resources) -> impl FnMut(&Arc<Route>) -> bool + use<> {
        let (routes, namespaces) = (self.router.route_selector.clone(), self.router.namespace_selector.clone());
        let mut known: HashMap<Arc<str>, bool> = HashMap::new();
        let resources = resources.clone();
        move |route| {
            let namespace = &route.meta.key.namespace;
            routes.matches(&route.meta.labels)
                && (namespaces.is_empty()
                    || *known
                        .entry(namespace.clone())
                        .or_insert_with(|| namespaces.matches(&resources.namespace_labels(namespace))))
        }
    }

    /// Counts selected wildcard routes; the domains that got their first or lost their last one.
    fn count_wildcards(&mut self, changes: &[RouteChange<'_>]) -> BTreeSet<String> {
        let mut regrouped = BTreeSet::new();
        if self.router.policy.wildcards != WildcardAdmission::WildcardsAllowed {
            return regrouped;
        }
        let before: BTreeSet<String> = self.wildcards.keys().cloned().collect();
        for (route, step) in changes.iter().flat_map(|change| [(change.old, -1), (change.new, 1)]) {
            let Some(route) = route.filter(|route| route.wildcard_policy == WildcardPolicy::Subdomain) else {
                continue;
            };
            let domain = domain_of(&effective_host(route, &self.router.policy.domain)).to_owned();
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

    fn group_of(&self, route: &Route) -> String {
        let host = effective_host(route, &self.router.policy.domain);
        let domain = domain_of(&host);
        if self.wildcards.contains_key(domain) { format!("*.{domain}") } else { host }
    }

    /// Takes a route out of its group. `regrouped` domains have it under the key that they had before.
    fn leave(&mut self, route: &Arc<Route>, regrouped: &BTreeSet<String>, dirty: &mut Vec<String>) {
        self.verdicts.remove(&route.meta.key);
        let host = effective_host(route, &self.router.policy.domain);
        let domain = domain_of(&host);
        let was_by_domain = self.wildcards.contains_key(domain) != regrouped.contains(domain);
        let key = if was_by_domain { format!("*.{domain}") } else { host };
        if let Some(group) = self.groups.get_mut(&*key) {
            group.members.retain(|member| member.meta.key != route.meta.key);
            dirty.push(key);
        }
    }

    fn join(&mut self, route: &Arc<Route>, dirty: &mut Vec<String>) {
        let key = self.group_of(route);
        match self.groups.get_mut(&*key) {
            Some(group) => group.members.push(route.clone()),
            None => {
                let group = Group { members: vec![route.clone()], served: Box::default() };
                self.groups.insert(key.as_str().into(), group);
            }
        }
        dirty.push(key);
    }

    /// Moves the routes of a domain to the groups they now belong to.
    fn regroup(&mut self, domain: &str, dirty: &mut Vec<String>) {
        let keys: Vec<String> =
            self.groups.keys().filter(|key| domain_of(key) == domain).map(|key| key.to_string()).collect();
        let mut moving = Vec::new();
        for key in keys {
            if let Some(group) = self.groups.get_mut(&*key) {
                moving.append(&mut group.members);
            }
            dirty.push(key);
        }
        for route in moving {
            self.join(&route, dirty);
        }
    }

    /// Decides groups anew. What all of them had leaves the table before anything enters, as routes may have moved.
    fn decide(
        &mut self,
        dirty: Vec<String>,
        resources: &Resources,
        endpoints: &EndpointIndex,
        touched: &mut Vec<ObjectKey>,
    ) {
        if dirty.is_empty() {
            return;
        }
        let mut hosts = self.table.hosts.clone();
        let mut routes = self.table.routes.clone();
        for key in &dirty {
            let Some(group) = self.groups.get_mut(key.as_str()) else { continue };
            for route in std::mem::take(&mut group.served) {
                hosts.remove(&route.host);
                routes.remove(&route.id);
            }
        }
        for key in dirty {
            let Some(group) = self.groups.get_mut(&*key) else { continue };
            if group.members.is_empty() {
                self.groups.remove(&*key);
                continue;
            }
            group.members.shrink_to_fit();
            group.members.sort_by(|a, b| a.meta.age().cmp(&b.meta.age()));
            let decisions = admit(&self.router.policy, &group.members, &resources.secrets);
            let admitted = decisions.iter().filter_map(|decision| decision.outcome.as_ref().ok());
            let resolved: Vec<_> = admitted.map(|admitted| Arc::new(resolve(admitted, endpoints))).collect();
            let virtual_hosts: Vec<_> = compile::virtual_hosts(&resolved).into_iter().map(Arc::new).collect();
            let shadows: BTreeMap<&RouteId, Shadow<'_>> = virtual_hosts
                .iter()
                .flat_map(|host| compile::shadows(host))
                .map(|shadow| (&shadow.route.id, shadow))
                .collect();
            for decision in decisions {
                touched.push(decision.route.meta.key.clone());
                let shadow = shadows.get(&decision.route.meta.key.route_id());
                self.verdicts.insert(decision.route.meta.key.clone(), verdict(decision, shadow));
            }
            group.served = resolved.iter().cloned().collect();
            for host in virtual_hosts {
                hosts.insert(host);
            }
            for route in resolved {
                routes.insert(route.id.clone(), route);
            }
        }
        let RouterTable { name, id, domain, http_port, https_port, default_certificate, .. } = &*self.table;
        self.table = Arc::new(RouterTable {
            name: name.clone(),
            id: *id,
            domain: domain.clone(),
            http_port: *http_port,
            https_port: *https_port,
            default_certificate: default_certificate.clone(),
            hosts,
            routes,
        });
    }
}

/// The domain whose wildcard covers a host; empty for a single label.
fn domain_of(host: &str) -> &str {
    host.split_once('.').map_or("", |(_, domain)| domain)
}

fn verdict(decision: Decision, shadow: Option<&Shadow<'_>>) -> Option<Box<Verdict>> {
    let (condition, winner) = match decision.outcome {
        Err(rejection) => {
            let condition = Condition::new("Admitted", false, rejection.reason.as_str(), rejection.message);
            (condition, rejection.winner)
        }
        Ok(_) => (remark(&decision.route, shadow)?, shadow.map(|shadow| shadow.by.id.object_key())),
    };
    Some(Box::new(Verdict { conditions: Arc::new([condition]), winner }))
}

/// Admitted is True with empty reason and message (openshift.md a.11), except where something is worth saying.
fn remark(route: &Route, shadow: Option<&Shadow<'_>>) -> Option<Condition> {
    if let Some(list) = allowlist(&route.meta.annotations).filter(|list| list.nets.is_empty()) {
        let message = format!("annotation {} has no valid address, so nobody may connect", list.annotation);
        return Some(Condition::new("Admitted", true, "NobodyAllowed", message));
    }
    let shadow = shadow?;
    let schemes: Vec<_> = shadow.schemes.iter().copied().collect();
    let by = if shadow.by.id.namespace == shadow.route.id.namespace {
        format!("route {}", shadow.by.id.name)
    } else {
        "a route in another namespace".to_owned()
    };
    let message = format!(
        "shadowed over {}: {by} has path {:?}, which covers the same requests, and is older",
        schemes.join(" and "),
        shadow.by.path()
    );
    Some(Condition::new("Admitted", true, "Shadowed", message))
}

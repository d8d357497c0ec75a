//! Hosts and statuses of the APIs other than Routes, as the engine keeps them. The cost is proportional to the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::resources::Resources;
use router_model::names::{HostMatch, Hostname, RouterName};
use router_model::object::ObjectRef;
use router_model::one_or_many::OneOrMany;
use router_model::persistent::{KeyedMap, OrderedMap};
use router_table::policy::RouterPolicy;
use router_table::rule::HostRules;
use router_table::table::{HostIndex, RouterTable, VirtualHost};

use super::assembly::{Assembled, HostRulesTable};
use super::contests::Contests;
use super::rule_table::RuleTable;
use super::statuses::ObjectStatuses;
use crate::openshift::claims::cross_api::OtherApiClaims;
use crate::openshift::compile;
use crate::status::host_conflict::HostOwner;
use crate::status::object_status::ObjectStatus;
use crate::translator::{Changes, Delta, Inputs, RouterPorts, Translator};

/// The APIs other than Routes, with their claims, hosts and statuses.
#[derive(Debug)]
pub struct OtherApis {
    apis: Vec<Api>,
    contests: Contests,
    /// Host rules by router; none is empty.
    host_rules: BTreeMap<RouterName, RuleTable>,
    /// Routers created for ports that no IngressController has.
    created: BTreeMap<RouterName, Assembled>,
    statuses: ObjectStatuses,
    /// Routers of IngressControllers.
    routers: BTreeSet<RouterName>,
    /// Hosts that every router closes.
    denied: BTreeSet<HostMatch>,
    /// Routers on which they are closed.
    closed: BTreeSet<RouterName>,
}

#[derive(Debug)]
struct Api {
    translator: Box<dyn Translator>,
    /// The routers to be created, and the delegated domains, that it returned last.
    routers: Vec<RouterPorts>,
    domains: BTreeSet<(RouterName, Hostname)>,
}

/// Virtual hosts that differ, by router; the last change of a host counts.
type ChangedHosts = BTreeMap<RouterName, Vec<(HostMatch, Option<VirtualHost>)>>;

impl OtherApis {
    /// These APIs, without objects. If objects of two APIs are equally old, the first API gets the host. Every router
    /// closes the hosts `denied`.
    pub fn new(translators: Vec<Box<dyn Translator>>, denied: BTreeSet<HostMatch>) -> Self {
        let api = |translator| Api { translator, routers: Vec::new(), domains: BTreeSet::new() };
        OtherApis {
            contests: Contests::new(translators.len()),
            apis: translators.into_iter().map(api).collect(),
            host_rules: BTreeMap::new(),
            created: BTreeMap::new(),
            statuses: ObjectStatuses::default(),
            routers: BTreeSet::new(),
            denied,
            closed: BTreeSet::new(),
        }
    }

    /// True if nothing is claimed, served or reported.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        let Self { contests, host_rules, created, statuses, .. } = self;
        contests.is_empty() && host_rules.is_empty() && created.is_empty() && statuses.all().is_empty()
    }

    /// Statuses of objects.
    pub fn statuses(&self) -> &OrderedMap<ObjectRef, Arc<ObjectStatus>> {
        self.statuses.all()
    }

    /// The routers created for ports that no IngressController has.
    pub fn created(&self) -> impl Iterator<Item = &Arc<RouterTable>> {
        self.created.values().map(Assembled::table)
    }

    /// The claims that Routes of a router compete with.
    pub fn claims_on(&self, router: &RouterName) -> OtherApiClaims {
        self.contests.claims_on(router)
    }

    /// The host rules of a router.
    pub fn host_rules(&self, router: &RouterName) -> HostRulesTable {
        self.host_rules.get(router).map(|rules| rules.table().clone()).unwrap_or_default()
    }

    /// Updates the claims: the first step of an apply.
    pub fn update_claims(&mut self, inputs: &Inputs<'_>, changes: &Changes<'_>) {
        for (i, api) in self.apis.iter_mut().enumerate() {
            self.contests.claim(i, api.translator.claims(inputs, changes));
        }
    }

    /// Adds, replaces and removes (`None`) Routes that own contested hosts of a router: the second step.
    pub fn set_route_owners(
        &mut self,
        router: &RouterName,
        changes: impl IntoIterator<Item = (HostMatch, Option<HostOwner>)>,
    ) {
        self.contests.set_route_owners(router, changes);
    }

    /// Resolves the contests, and updates hosts and statuses: the last step.
    pub fn translate(&mut self, inputs: &Inputs<'_>, last: &Resources) {
        let changed = self.contests.resolve();
        let (mut hosts, mut statuses) = (ChangedHosts::new(), Vec::new());
        let (mut routers_differ, mut domains_differ) = (false, false);
        let none = BTreeMap::new();
        for (i, (api, changed)) in self.apis.iter_mut().zip(&changed).enumerate() {
            let lost = self.contests.lost(i).unwrap_or(&none);
            let delta = api.translator.translate(inputs, lost, changed);
            let Delta { hosts: served, statuses: reported, routers, domains } = delta;
            for (at, host) in served {
                debug_assert!(host.is_none() || self.contests.owns(i, &at), "{} of {} is not claimed", at.1, at.0);
                // Whatever an API returns: no host is served that another API has.
                if host.is_some() && lost.contains_key(&at) {
                    continue;
                }
                hosts.entry(at.0).or_default().push((at.1, host));
            }
            statuses.extend(reported);
            if let Some(routers) = routers.filter(|routers| *routers != api.routers) {
                (api.routers, routers_differ) = (routers, true);
            }
            if let Some(domains) = domains.filter(|domains| *domains != api.domains) {
                (api.domains, domains_differ) = (domains, true);
            }
        }
        let names: BTreeSet<RouterName> = inputs.routers.iter().map(|router| router.name.clone()).collect();
        if names != self.routers {
            (self.routers, routers_differ) = (names, true);
        }
        if routers_differ {
            self.create_routers(&inputs.settings.cluster_domain);
        }
        // If a host passes to another API, that one sets it.
        hosts.values_mut().for_each(|changed| changed.sort_by_key(|(_, host)| host.is_some()));
        self.close(&mut hosts);
        self.update_hosts(hosts);
        if domains_differ {
            self.set_domains();
        }
        self.host_rules.retain(|_, rules| !rules.is_empty());
        for (name, router) in &mut self.created {
            let rules = self.host_rules.get(name).map(|rules| rules.table().clone()).unwrap_or_default();
            router.assemble(None, &rules);
        }
        self.statuses.update(statuses, inputs.resources, last);
    }

    /// Creates and removes routers; one whose name remains keeps its hosts.
    fn create_routers(&mut self, domain: &str) {
        let needed: BTreeMap<RouterName, RouterPorts> =
            self.apis.iter().flat_map(|api| &api.routers).map(|router| (router.name.clone(), router.clone())).collect();
        let names: BTreeSet<RouterName> = needed.keys().cloned().collect();
        let ids = compile::router_ids(&self.routers, &names);
        let mut before = std::mem::take(&mut self.created);
        for (name, ports) in needed {
            let table = RouterTable {
                name: name.clone(),
                id: ids.get(&name).copied().unwrap_or_default(),
                domain: domain.to_owned(),
                http_port: ports.http,
                https_port: ports.https,
                default_certificate: None,
                policy: Arc::new(RouterPolicy { gate: ports.gate, ..RouterPolicy::default() }),
                hosts: HostIndex::default(),
                routes: KeyedMap::default(),
                common_allow: None,
            };
            let router = match before.remove(&name) {
                Some(mut router) => {
                    router.configure(table);
                    router
                }
                None => Assembled::new(table),
            };
            self.created.insert(name, router);
        }
    }

    /// Closes denied hosts on every router, and removes the entries of routers that no longer exist.
    fn close(&mut self, hosts: &mut ChangedHosts) {
        if self.denied.is_empty() {
            return;
        }
        let routers: BTreeSet<RouterName> = self.routers.iter().chain(self.created.keys()).cloned().collect();
        for (router, changed) in &mut *hosts {
            if self.closed.contains(router) && routers.contains(router) {
                changed.retain(|(host, _)| !self.denied.contains(host));
            }
        }
        for router in self.closed.symmetric_difference(&routers) {
            let is_closed = routers.contains(router);
            let host = |host: &HostMatch| (host.clone(), is_closed.then(|| denied(host.clone(), router)));
            hosts.entry(router.clone()).or_default().extend(self.denied.iter().map(host));
        }
        self.closed = routers;
    }

    fn update_hosts(&mut self, hosts: ChangedHosts) {
        for (router, changed) in hosts {
            self.host_rules.entry(router).or_default().update(changed);
        }
    }

    /// Sets the delegated domains of every router.
    fn set_domains(&mut self) {
        let mut domains: BTreeMap<RouterName, BTreeSet<Hostname>> =
            self.host_rules.keys().map(|router| (router.clone(), BTreeSet::new())).collect();
        for (router, domain) in self.apis.iter().flat_map(|api| &api.domains) {
            domains.entry(router.clone()).or_default().insert(domain.clone());
        }
        for (router, domains) in domains {
            self.host_rules.entry(router).or_default().set_domains(domains);
        }
    }
}

/// A host that is not served, nor covered by a wider one. It has its own entry in the table and in the kernel's maps.
fn denied(host: HostMatch, router: &RouterName) -> VirtualHost {
    VirtualHost {
        host,
        passthrough: None,
        terminated: OneOrMany::default(),
        cleartext: OneOrMany::default(),
        certificate: None,
        rules: Some(Box::new(HostRules::denied(router))),
    }
}

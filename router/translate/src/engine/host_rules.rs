//! What objects of other kinds than Route serve, as the engine keeps it ([`crate::translator`]).
//!
//! Their claims are made from all of their objects at once, and so is what they serve: there are few of them beside
//! Routes. What says the same as before stays the same, so that whoever follows the table sees only what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::resources::Resources;
use router_model::for_kinds;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouterName};
use router_model::object::{ObjectKey, ObjectRef};
use router_model::one_or_many::OneOrMany;
use router_model::persistent::OrderedMap;
use router_table::rule::HostRules;
use router_table::table::{HostIndex, RouterTable, VirtualHost};

use super::assembly::{Assembled, HostRulesTable};
use super::rejected_manifests;
use crate::engine::reuse::{Reuse, routes_of};
use crate::openshift::claims::cross_api::{OtherApiClaim, OtherApiClaims, contested};
use crate::openshift::compile;
use crate::settings::Settings;
use crate::status::host_conflict::HostOwner;
use crate::status::object_status::ObjectStatus;
use crate::translator::{ApiTranslation, HostClaim, LostHosts, RouterPorts};

/// See the module.
#[derive(Debug, Default)]
pub struct HostContests {
    /// Who wants what, by router and host in its contested form, with the place of the API in the list of them.
    claims: BTreeMap<(RouterName, HostMatch), Claimed>,
    /// For each API, what it wants and another one, or a Route, has.
    lost: Vec<LostHosts>,
    /// The claims by router, as Routes meet them.
    foreign: BTreeMap<RouterName, Arc<OtherApiClaims>>,
    /// What each API wants.
    wants: Vec<Vec<(RouterName, HostMatch)>>,
    /// What is served, by router.
    served: BTreeMap<RouterName, HostRulesTable>,
    /// Routers of one port that were made for them.
    made: BTreeMap<RouterName, Assembled>,
    /// What objects are told.
    told: OrderedMap<ObjectRef, Arc<ObjectStatus>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Claimed {
    api: usize,
    claim: OtherApiClaim,
}

/// Whether there is an object of a kind that may want a host.
pub fn are_wanted(resources: &Resources) -> bool {
    macro_rules! any {
        ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
            $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
            $(any!(@$status resources.$collection))||*
        };
        // All kinds whose status has conditions of their own API serve hosts, or bear on them.
        (@conditions $objects:expr) => { !$objects.is_empty() };
        (@$other:ident $objects:expr) => { false };
    }
    for_kinds!(any)
}

/// Whether anything differs that sites are made of. Routes are not, and EndpointSlices bear on what they say of
/// protocols alone ([`EndpointIndex::replace`](crate::endpoints::EndpointIndex::replace)).
pub fn may_differ(new: &Resources, old: &Resources) -> bool {
    macro_rules! any {
        ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
            $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
            $(any!(@$collection new.$collection, old.$collection))||*
        };
        (@routes $new:expr, $old:expr) => { false };
        (@endpoint_slices $new:expr, $old:expr) => { false };
        (@$other:ident $new:expr, $old:expr) => { $new.changes_since(&$old).next().is_some() };
    }
    for_kinds!(any)
}

impl HostContests {
    /// Whether nothing is wanted, served or said.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.served.is_empty() && self.made.is_empty() && self.told.is_empty()
    }

    /// What objects are told.
    pub fn told(&self) -> &OrderedMap<ObjectRef, Arc<ObjectStatus>> {
        &self.told
    }

    /// The routers that were made.
    pub fn made(&self) -> impl Iterator<Item = &Arc<RouterTable>> {
        self.made.values().map(Assembled::table)
    }

    /// What Routes of a router meet.
    pub fn foreign(&self, router: &RouterName) -> Arc<OtherApiClaims> {
        self.foreign.get(router).cloned().unwrap_or_default()
    }

    /// Takes over what each API wants. Of two APIs the one with the older object has a host; of equally old ones the
    /// first.
    pub fn claim(&mut self, wants: Vec<Vec<HostClaim>>) {
        self.claims.clear();
        self.wants.clear();
        for (api, wants) in wants.into_iter().enumerate() {
            let mut wanted = BTreeSet::new();
            for HostClaim { router, host, owner, age } in wants {
                let at = (router.clone(), contested(&host));
                wanted.insert((router, host));
                if self.claims.get(&at).is_none_or(|other| age < other.claim.age) {
                    self.claims.insert(at, Claimed { api, claim: OtherApiClaim { owner, age } });
                }
            }
            self.wants.push(wanted.into_iter().collect());
        }
        let mut foreign: BTreeMap<RouterName, OtherApiClaims> = BTreeMap::new();
        for ((router, host), claimed) in &self.claims {
            foreign.entry(router.clone()).or_default().add(host.clone(), claimed.claim.clone());
        }
        // Those that are the same stay the same, and Routes need not be asked again.
        let kept = |(router, claims): (RouterName, OtherApiClaims)| {
            let before = self.foreign.get(&router).filter(|before| ***before == claims);
            let claims = before.map_or_else(|| Arc::new(claims), Arc::clone);
            (router, claims)
        };
        self.foreign = foreign.into_iter().map(kept).collect();
    }

    /// Takes over which of the hosts a Route has. Returns whether another one now has anything that an API wants.
    pub fn contest(&mut self, won: &BTreeMap<(RouterName, HostMatch), ObjectKey>, resources: &Resources) -> bool {
        let winner = |api: usize, (router, host): &(RouterName, HostMatch)| {
            let at = (router.clone(), contested(host));
            match (won.get(&at), self.claims.get(&at)) {
                (Some(route), _) => {
                    let created = resources.routes.get(route).map(|route| route.meta.created).unwrap_or_default();
                    Some(HostOwner { object: ObjectRef { kind: Kind::Route, key: route.clone() }, created })
                }
                (None, Some(claimed)) if claimed.api != api => {
                    let claim = &claimed.claim;
                    Some(HostOwner { object: claim.owner.clone(), created: claim.age.created() })
                }
                _ => None,
            }
        };
        let lost_by = |(api, wants): (usize, &Vec<(RouterName, HostMatch)>)| {
            wants.iter().filter_map(|at| Some((at.clone(), winner(api, at)?))).collect()
        };
        let lost: Vec<LostHosts> = self.wants.iter().enumerate().map(lost_by).collect();
        let differs = lost != self.lost;
        self.lost = lost;
        differs
    }

    /// For each API, what it wants and another one, or a Route, has.
    pub fn lost(&self) -> &[LostHosts] {
        &self.lost
    }

    /// What is served on a router.
    pub fn served(&self, router: &RouterName) -> HostRulesTable {
        self.served.get(router).cloned().unwrap_or_default()
    }

    /// Takes over what the APIs serve and say, and closes denied domains. `routers` are those of IngressControllers.
    pub fn settle(
        &mut self,
        settled: Vec<ApiTranslation>,
        resources: &Resources,
        routers: &BTreeSet<RouterName>,
        settings: &Settings,
    ) {
        let (mut made, mut hosts, mut told) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut delegated: BTreeMap<RouterName, BTreeSet<Hostname>> = BTreeMap::new();
        for ((settled, lost), wants) in settled.into_iter().zip(&self.lost).zip(&self.wants) {
            let ApiTranslation { routers, hosts: served, domains, statuses } = settled;
            made.extend(routers.into_iter().map(|router| (router.name.clone(), router)));
            for (router, host) in served {
                let at = (router, host.host.clone());
                // Whatever an API does: nobody serves what is another's.
                let is_its_own = wants.binary_search(&at).is_ok() && !lost.contains_key(&at);
                debug_assert!(is_its_own, "{} of router {} is served without a claim", at.1, at.0);
                if is_its_own {
                    hosts.entry(at.0).or_insert_with(Vec::new).push(host);
                }
            }
            for (router, domain) in domains {
                // A router on which nothing is served has domains all the same.
                hosts.entry(router.clone()).or_insert_with(Vec::new);
                delegated.entry(router).or_default().insert(domain);
            }
            told.extend(statuses);
        }
        let closed: Vec<HostMatch> = settings.domains.closed().collect();
        for router in routers.iter().chain(made.keys()).filter(|_| !closed.is_empty()) {
            let closed = closed.iter().map(|host| denied(host.clone(), router));
            hosts.entry(router.clone()).or_insert_with(Vec::new).extend(closed);
        }
        self.keep_hosts(hosts, delegated);
        self.make_routers(made, routers, &settings.cluster_domain);
        rejected_manifests::tell(resources, &mut told);
        self.tell(told);
    }

    fn keep_hosts(
        &mut self,
        hosts: BTreeMap<RouterName, Vec<VirtualHost>>,
        mut delegated: BTreeMap<RouterName, BTreeSet<Hostname>>,
    ) {
        let before = std::mem::take(&mut self.served);
        let nothing = HostRulesTable::default();
        for (router, hosts) in hosts {
            let before = before.get(&router).unwrap_or(&nothing);
            let mut kept = Reuse::new(&before.routes);
            let hosts: OrderedMap<HostMatch, Arc<VirtualHost>> = hosts
                .into_iter()
                .map(|host| {
                    let at = host.host.clone();
                    let host = kept.host(host, before.hosts.get(&at));
                    (at, host)
                })
                .collect();
            let routes = hosts.values().flat_map(|host| routes_of(host));
            let routes = routes.map(|route| (route.id.clone(), Arc::clone(route))).collect();
            let domains = Arc::new(delegated.remove(&router).unwrap_or_default());
            self.served.insert(router, HostRulesTable { hosts, routes, domains });
        }
    }

    fn make_routers(&mut self, made: BTreeMap<RouterName, RouterPorts>, routers: &BTreeSet<RouterName>, domain: &str) {
        let names: BTreeSet<RouterName> = made.keys().cloned().collect();
        let ids = compile::router_ids(routers, &names);
        let mut before = std::mem::take(&mut self.made);
        for (name, ports) in made {
            let id = ids.get(&name).copied().unwrap_or_default();
            let is_same = |table: &Arc<RouterTable>| {
                (table.id, table.http_port, table.https_port, &*table.domain) == (id, ports.http, ports.https, domain)
            };
            let router = before.remove(&name).filter(|router| is_same(router.table()));
            let mut router = router.unwrap_or_else(|| {
                Assembled::new(RouterTable {
                    name: name.clone(),
                    id,
                    domain: domain.to_owned(),
                    http_port: ports.http,
                    https_port: ports.https,
                    default_certificate: None,
                    policy: Arc::default(),
                    hosts: HostIndex::default(),
                    routes: OrderedMap::default(),
                })
            });
            router.assemble(None, &self.served(&name));
            self.made.insert(name, router);
        }
    }

    fn tell(&mut self, told: BTreeMap<ObjectRef, ObjectStatus>) {
        let kept = |(object, told): (ObjectRef, ObjectStatus)| {
            let before = self.told.get(&object).filter(|before| ***before == told);
            let told = before.map_or_else(|| Arc::new(told), Arc::clone);
            (object, told)
        };
        self.told = told.into_iter().map(kept).collect();
    }
}

/// A host that nothing serves, and that no wider host has either: it has its place in the table and in the kernel's maps.
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

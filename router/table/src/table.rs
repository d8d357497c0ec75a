//! The routing table: one immutable snapshot, the source of the kernel maps, the proxy and the status report.

mod cluster;
mod endpoints;
mod hosts;
mod resolved_route;
mod route_kind;

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

pub use cluster::{Cluster, NO_ENDPOINTS, WeightedService};
pub use endpoints::{Endpoint, Endpoints, EndpointsKey, PortChoice, User};
pub use hosts::HostTable;
use ipnet::IpNet;
pub use resolved_route::{Derived, RareSettings, ResolvedRoute};
pub use route_kind::{HttpTls, InsecurePolicy, Reencrypt, RouteKind};
use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouterName};
use router_model::one_or_many::OneOrMany;
use router_model::persistent::{Difference, KeyedMap};

use crate::policy::RouterPolicy;
use crate::rule::HostRules;

/// Everything that serving needs, at one revision.
#[derive(Debug, Default)]
pub struct RoutingTable {
    /// Incremented by one with every published table.
    pub revision: u64,
    /// The routers by name: one per admitted IngressController, and one per port that only Gateways have.
    pub routers: Vec<Arc<RouterTable>>,
    /// The endpoints of all services that routes refer to.
    pub endpoints: Endpoints,
}

/// A route in an older and a newer table; the same route if only its endpoints differ.
#[derive(Clone, Copy, Debug)]
pub struct RouteChange<'t> {
    /// The router and the route in the older table; `None` if it is new.
    pub old: Option<(&'t RouterTable, &'t Arc<ResolvedRoute>)>,
    /// The same in the newer table; `None` if it was removed.
    pub new: Option<(&'t RouterTable, &'t Arc<ResolvedRoute>)>,
}

impl RoutingTable {
    /// Routes that are the same as in an older table, but with other endpoints.
    pub fn rebound_since<'t>(&'t self, older: &'t Self) -> Vec<&'t User> {
        let is_same = |user: &&User| {
            let before = older.router(&user.router).and_then(|router| router.routes.get(&user.route.id));
            before.is_some_and(|before| Arc::ptr_eq(before, &user.route))
        };
        let mut rebound: Vec<&User> = self.endpoints.changes_since(&older.endpoints).filter(is_same).collect();
        rebound.sort_by(|a, b| (&a.router, &a.route.id).cmp(&(&b.router, &b.route.id)));
        rebound.dedup_by(|a, b| (&a.router, &a.route.id) == (&b.router, &b.route.id));
        rebound
    }

    /// The routes that differ from those of an older table, or whose endpoints do. Cost is proportional to the
    /// difference.
    pub fn route_changes<'t>(&'t self, older: &'t Self) -> impl Iterator<Item = RouteChange<'t>> {
        let kept = self.routers.iter().filter_map(|router| Some((router, older.router(&router.name)?)));
        let changed = kept.flat_map(|(now, then)| {
            let changes = now.routes.changes_since(&then.routes);
            changes.map(|change| RouteChange {
                old: change.old.map(|route| (&**then, route)),
                new: change.new.map(|route| (&**now, route)),
            })
        });
        let of = |router: &'t RouterTable| router.routes.values().map(move |route| (router, route));
        let come = self.routers.iter().filter(|router| older.router(&router.name).is_none());
        let come = come.flat_map(move |router| of(router)).map(|new| RouteChange { old: None, new: Some(new) });
        let gone = older.routers.iter().filter(|router| self.router(&router.name).is_none());
        let gone = gone.flat_map(move |router| of(router)).map(|old| RouteChange { old: Some(old), new: None });
        let rebound = self.rebound_since(older).into_iter().filter_map(|user| {
            let (then, now) = (older.router(&user.router)?, self.router(&user.router)?);
            Some(RouteChange { old: Some((then, &user.route)), new: Some((now, &user.route)) })
        });
        changed.chain(come).chain(gone).chain(rebound)
    }

    /// The router of this name.
    pub fn router(&self, name: &RouterName) -> Option<&Arc<RouterTable>> {
        self.routers.iter().find(|router| router.name == *name)
    }
}

/// One router: its listeners and what it serves.
#[derive(Debug)]
pub struct RouterTable {
    /// The IngressController's name.
    pub name: RouterName,
    /// Scope of its map keys; stable for a name while the set of routers does not change.
    pub id: u32,
    /// `status.domain`, which is appended to `spec.subdomain`; also the name of the generated default certificate.
    pub domain: String,
    /// Port for clear text; at least one of the two ports is set.
    pub http_port: Option<u16>,
    /// Port for TLS.
    pub https_port: Option<u16>,
    /// Certificate for SNI without a route's certificate; `None`: the agent's self-signed one.
    pub default_certificate: Option<Certificate>,
    /// Settings for the traffic of all routes.
    pub policy: Arc<RouterPolicy>,
    /// The virtual hosts.
    pub hosts: HostIndex,
    /// Every admitted route: for `get`, the kernel maps and the counters.
    pub routes: KeyedMap<ResolvedRoute>,
    /// The allow-list that every one of `routes` has ([`RareSettings::allow`]), sorted and aggregated; `None`: they have
    /// none, or different ones, or there is no route.
    pub common_allow: Option<Arc<[IpNet]>>,
}

impl RouterTable {
    /// The sources whose packets the XDP gate lets pass; `None`: all that it does not deny.
    pub fn gate_allow(&self) -> Option<&Arc<[IpNet]>> {
        let policy = self.policy.gate.as_deref()?;
        policy.allow.as_ref().or(self.common_allow.as_ref().filter(|_| policy.rejects_unlisted))
    }

    /// The same router with other hosts and routes.
    pub fn with(&self, hosts: HostIndex, routes: KeyedMap<ResolvedRoute>) -> Self {
        RouterTable {
            name: self.name.clone(),
            id: self.id,
            domain: self.domain.clone(),
            http_port: self.http_port,
            https_port: self.https_port,
            default_certificate: self.default_certificate.clone(),
            policy: Arc::clone(&self.policy),
            hosts,
            routes,
            common_allow: self.common_allow.clone(),
        }
    }
}

/// Virtual hosts by exact name and by wildcard domain.
#[derive(Clone, Debug, Default)]
pub struct HostIndex {
    /// Exact hosts, by name.
    pub exact: HostTable,
    /// One-label wildcards, by the domain after `*.`.
    pub wildcard: HostTable,
    /// Wildcards of one label or more, by the domain after `*.`.
    pub suffix: HostTable,
    /// The virtual host for every name.
    pub any: Option<Arc<VirtualHost>>,
    /// Domains that delegate their names: unclaimed names in them are not found (404).
    pub domains: Arc<BTreeSet<Hostname>>,
}

impl HostIndex {
    /// Whether an unclaimed host is not found (404): if only hosts with rules are served, as in Gateway API, or in a
    /// domain that delegates its names. Otherwise it is unavailable (503), as in OpenShift.
    pub fn finds_nothing(&self, host: Option<&Hostname>) -> bool {
        let around = iter::successors(host.and_then(Hostname::parent), |domain| Some(domain.split_once('.')?.1));
        self.has_only_other_kinds() || around.into_iter().any(|domain| self.domains.contains(domain))
    }

    /// Whether any virtual host belongs to an object of another kind than Route.
    pub fn has_other_kinds(&self) -> bool {
        let named = [&self.exact, &self.wildcard, &self.suffix];
        named.iter().any(|hosts| hosts.of_other_kinds() > 0)
            || self.any.as_ref().is_some_and(|any| any.is_of_other_kind())
    }

    /// Whether there are virtual hosts, and none belongs to Routes.
    pub fn has_only_other_kinds(&self) -> bool {
        let named = [&self.exact, &self.wildcard, &self.suffix];
        let has_routes = named.iter().any(|hosts| hosts.of_routes() > 0);
        self.has_other_kinds() && !has_routes && self.any.as_ref().is_none_or(|any| any.is_of_other_kind())
    }

    /// The entry of exactly this match.
    pub fn entry(&self, host: &HostMatch) -> Option<&Arc<VirtualHost>> {
        match host {
            HostMatch::Exact(name) => self.exact.get(name),
            HostMatch::Wildcard(domain) => self.wildcard.get(domain),
            HostMatch::Suffix(domain) => self.suffix.get(domain),
            HostMatch::Any => self.any.as_ref(),
        }
    }

    /// Adds virtual hosts, replacing the entries of their hosts.
    pub fn extend(&mut self, hosts: Vec<Arc<VirtualHost>>) {
        let (mut exact, mut wildcard, mut suffix) = (Vec::new(), Vec::new(), Vec::new());
        for host in hosts {
            match host.host {
                HostMatch::Exact(_) => exact.push(host),
                HostMatch::Wildcard(_) => wildcard.push(host),
                HostMatch::Suffix(_) => suffix.push(host),
                HostMatch::Any => self.any = Some(host),
            }
        }
        self.exact.extend(exact);
        self.wildcard.extend(wildcard);
        self.suffix.extend(suffix);
    }

    /// Removes a host.
    pub fn remove(&mut self, host: &HostMatch) {
        match host {
            HostMatch::Exact(name) => self.exact.remove(name),
            HostMatch::Wildcard(domain) => self.wildcard.remove(domain),
            HostMatch::Suffix(domain) => self.suffix.remove(domain),
            HostMatch::Any => self.any = None,
        };
    }

    /// Every virtual host: exact ones by name, then one-label wildcards by domain, then other wildcards by domain, then
    /// the one for every name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<VirtualHost>> {
        self.exact.values().chain(self.wildcard.values()).chain(self.suffix.values()).chain(&self.any)
    }

    /// The exact hosts and one-label wildcards, the only ones that the kernel has, that differ from an older version of
    /// this index: the virtual host before and after. Cost is proportional to the difference.
    pub fn changes_since<'h>(
        &'h self,
        older: &'h Self,
    ) -> impl Iterator<Item = Difference<'h, Hostname, Arc<VirtualHost>>> {
        self.exact.changes_since(&older.exact).chain(self.wildcard.changes_since(&older.wildcard))
    }
}

/// All routes of one host. Fields are in declaration order, as in [`ResolvedRoute`].
#[derive(Debug, PartialEq, Eq)]
#[repr(C)]
pub struct VirtualHost {
    /// The host.
    pub host: HostMatch,
    /// The host's rules. Then it has no Routes: `terminated`, `cleartext` and `certificate` are empty, and only a
    /// stream can be passed through.
    pub rules: Option<Box<HostRules>>,
    /// Routes of clear-text requests, longest path first.
    pub cleartext: OneOrMany<Arc<ResolvedRoute>>,
    /// Edge and re-encrypt routes, for requests over TLS, longest path first.
    pub terminated: OneOrMany<Arc<ResolvedRoute>>,
    /// The passthrough route, if one is admitted; `terminated` is then empty (docs/openshift.md#claims).
    pub passthrough: Option<Arc<ResolvedRoute>>,
    /// The certificate for this host: that of the first terminated route with one.
    pub certificate: Option<Certificate>,
}

impl VirtualHost {
    /// Whether the host belongs to Routes.
    pub fn is_of_routes(&self) -> bool {
        self.rules.is_none() && self.passthrough.as_ref().is_none_or(|route| route.id.kind == Kind::Route)
    }

    /// Whether the host belongs to an object of another kind; a denied domain belongs to none.
    pub fn is_of_other_kind(&self) -> bool {
        !self.is_of_routes() && self.rules.as_ref().is_none_or(|host_rules| !host_rules.is_denied())
    }

    /// The route of every clear-text request of this host, whatever the request and the client.
    pub fn plain_cleartext(&self) -> Option<&Arc<ResolvedRoute>> {
        match &*self.cleartext {
            [route] if route.is_plain && self.rules.is_none() => Some(route),
            _ => None,
        }
    }

    /// The route of every clear-text request of this host, if no request has to be parsed: the kernel may then forward
    /// whole connections unmodified to an endpoint of the route. Conditions: it is the only clear-text route, has no
    /// path, redirect or re-encryption, its forwarding headers are set to `Never`, cookie affinity is off
    /// (`disable_cookies`), and it has no changes of headers or requests and no limits. A client's `Proxy` and `X-SSL…`
    /// fields are then not removed.
    pub fn steerable_cleartext(&self) -> Option<&ResolvedRoute> {
        let [route] = &*self.cleartext else { return None };
        (ResolvedRoute::is_plain(&route.kind, None) && route.is_left_alone()).then_some(&**route)
    }
}

#[cfg(test)]
mod tests;

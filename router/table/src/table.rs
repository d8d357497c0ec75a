//! The routing table: one immutable snapshot that the kernel maps, the proxy and the status report are made from.

mod cluster;
mod endpoints;
mod hosts;
mod kind;

use std::any::Any;
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, iter};

pub use cluster::{Cluster, NO_ENDPOINTS, ServiceEndpoints};
use cluster::{ROUTE_SHARES, RULE_SHARES};
pub use endpoints::{Endpoint, Endpoints, EndpointsKey, PortChoice, User};
pub use hosts::Hosts;
use ipnet::IpNet;
pub use kind::{HttpTls, InsecurePolicy, Reencrypt, RouteKind};
use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouteId, RouterName};
use router_model::one_or_many::OneOrMany;
use router_model::persistent::{Changed, Sorted};

use crate::policy::forwarded::ForwardedHeaders;
use crate::policy::{RoutePolicy, RouterPolicy};
use crate::rule::{HostRules, RulePolicy};

/// Everything that traffic needs, at one revision.
#[derive(Debug, Default)]
pub struct RoutingTable {
    /// Grows by one with every table that the agent publishes.
    pub revision: u64,
    /// The routers by name: one per admitted IngressController, and one per port that only Gateways have.
    pub routers: Vec<Arc<RouterTable>>,
    /// The endpoints of all services that routes name.
    pub endpoints: Endpoints,
}

/// A route as an older and a newer table have it: the same one where only its endpoints differ.
#[derive(Clone, Copy, Debug)]
pub struct RouteChange<'t> {
    /// Its router and the route in the older table.
    pub old: Option<(&'t RouterTable, &'t Arc<ResolvedRoute>)>,
    /// The same in the newer table.
    pub new: Option<(&'t RouterTable, &'t Arc<ResolvedRoute>)>,
}

impl RoutingTable {
    /// Routes that are the same in an older table, and whose endpoints are not.
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

    /// Where routes or their endpoints differ from those of an older table. Costs what differs.
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
    /// Scope of its map keys; stable for the same name while the set of routers does not change.
    pub id: u32,
    /// `status.domain`, what `spec.subdomain` is joined to; also the name of the generated default certificate.
    pub domain: String,
    /// Port for clear text; at least one of the two is there.
    pub http_port: Option<u16>,
    /// Port for TLS.
    pub https_port: Option<u16>,
    /// Certificate for SNI that no route has a certificate for; `None`: the agent's self-signed one.
    pub default_certificate: Option<Certificate>,
    /// What is done to the traffic of all routes.
    pub policy: Arc<RouterPolicy>,
    /// What is served, by host.
    pub hosts: HostIndex,
    /// Every admitted route, by id, for `get`, the kernel maps and the counters.
    pub routes: Sorted<RouteId, Arc<ResolvedRoute>>,
}

impl RouterTable {
    /// The same router with other content.
    pub fn with(&self, hosts: HostIndex, routes: Sorted<RouteId, Arc<ResolvedRoute>>) -> Self {
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
        }
    }
}

/// Virtual hosts by exact name and by wildcard domain.
#[derive(Clone, Debug, Default)]
pub struct HostIndex {
    /// By name.
    pub exact: Hosts,
    /// By the domain that `*.` stands in front of, for one label.
    pub wildcard: Hosts,
    /// By the domain that `*.` stands in front of, for one label or more.
    pub suffix: Hosts,
    /// What serves every name.
    pub any: Option<Arc<VirtualHost>>,
    /// Domains that delegate their names: what nobody has in them is not found.
    pub domains: Arc<BTreeSet<Hostname>>,
}

impl HostIndex {
    /// Whether a host that nobody has is not found (404): where only sites are served, as Gateway API says, and inside of
    /// a domain that delegates its names. Elsewhere it is not available (503), as OpenShift says.
    pub fn finds_nothing(&self, host: Option<&Hostname>) -> bool {
        let around = iter::successors(host.and_then(Hostname::parent), |domain| Some(domain.split_once('.')?.1));
        self.has_only_sites() || around.into_iter().any(|domain| self.domains.contains(domain))
    }

    /// Whether any virtual host is of an object of another kind than Route.
    pub fn has_sites(&self) -> bool {
        let named = [&self.exact, &self.wildcard, &self.suffix];
        named.iter().any(|hosts| hosts.of_sites() > 0) || self.any.as_ref().is_some_and(|any| any.is_of_site())
    }

    /// Whether there are virtual hosts, and none of them is of Routes.
    pub fn has_only_sites(&self) -> bool {
        let named = [&self.exact, &self.wildcard, &self.suffix];
        let has_routes = named.iter().any(|hosts| hosts.of_routes() > 0);
        self.has_sites() && !has_routes && self.any.as_ref().is_none_or(|any| any.is_of_site())
    }

    /// The entry for exactly this match.
    pub fn entry(&self, host: &HostMatch) -> Option<&Arc<VirtualHost>> {
        match host {
            HostMatch::Exact(name) => self.exact.get(name),
            HostMatch::Wildcard(domain) => self.wildcard.get(domain),
            HostMatch::Suffix(domain) => self.suffix.get(domain),
            HostMatch::Any => self.any.as_ref(),
        }
    }

    /// Puts virtual hosts in the place of whatever their hosts had.
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

    /// Takes a host out.
    pub fn remove(&mut self, host: &HostMatch) {
        match host {
            HostMatch::Exact(name) => self.exact.remove(name),
            HostMatch::Wildcard(domain) => self.wildcard.remove(domain),
            HostMatch::Suffix(domain) => self.suffix.remove(domain),
            HostMatch::Any => self.any = None,
        };
    }

    /// Every virtual host: exact ones by name, then wildcards by domain, those of one label first, then what serves every name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<VirtualHost>> {
        self.exact.values().chain(self.wildcard.values()).chain(self.suffix.values()).chain(&self.any)
    }

    /// Where exact hosts and wildcards of one label differ from an older version of this index, which is all that the
    /// kernel knows: the virtual host before and after. Costs what differs.
    pub fn changes_since<'h>(
        &'h self,
        older: &'h Self,
    ) -> impl Iterator<Item = Changed<'h, Hostname, Arc<VirtualHost>>> {
        self.exact.changes_since(&older.exact).chain(self.wildcard.changes_since(&older.wildcard))
    }
}

/// All routes of one host. Fields lie as those of [`ResolvedRoute`].
#[derive(Debug, PartialEq, Eq)]
#[repr(C)]
pub struct VirtualHost {
    /// The host.
    pub host: HostMatch,
    /// What rules say of the host. Then there are no Routes: `terminated`, `cleartext` and `certificate` are empty, and
    /// only a connection can be passed through.
    pub site: Option<Box<HostRules>>,
    /// What clear-text requests are matched against, longest path first.
    pub cleartext: OneOrMany<Arc<ResolvedRoute>>,
    /// Edge and re-encrypt routes, longest path first: what TLS requests are matched against.
    pub terminated: OneOrMany<Arc<ResolvedRoute>>,
    /// The passthrough route, if one is admitted; then `terminated` is empty (docs/openshift.md#claims).
    pub passthrough: Option<Arc<ResolvedRoute>>,
    /// The certificate for this host: that of its first terminated route that has one.
    pub certificate: Option<Certificate>,
}

impl VirtualHost {
    /// Whether Routes have the host, and not objects of another kind.
    pub fn is_of_routes(&self) -> bool {
        self.site.is_none() && self.passthrough.as_ref().is_none_or(|route| route.id.kind == Kind::Route)
    }

    /// Whether an object of another kind has the host; a denied domain is nobody's.
    pub fn is_of_site(&self) -> bool {
        !self.is_of_routes() && self.site.as_ref().is_none_or(|site| !site.is_denied())
    }

    /// The route that every clear-text request of this host is forwarded to, whatever it asks for and whoever asks.
    pub fn plain_cleartext(&self) -> Option<&Arc<ResolvedRoute>> {
        match &*self.cleartext {
            [route] if route.is_plain && self.site.is_none() => Some(route),
            _ => None,
        }
    }

    /// The route that every clear-text request of this host belongs to, where nothing needs single requests to be
    /// read: then a connection may be carried whole to an endpoint of the route, as its bytes are. There must be one
    /// clear-text route, without path, redirect or re-encryption, whose forwarding headers are `Never` set and whose
    /// affinity by cookie is off (`disable_cookies`), and neither work on headers or requests nor limits may be asked
    /// for. A client's `Proxy` and `X-SSL…` fields are then not taken out.
    pub fn steerable_cleartext(&self) -> Option<&ResolvedRoute> {
        let [route] = &*self.cleartext else { return None };
        (ResolvedRoute::is_plain(&route.kind, None) && route.is_left_alone()).then_some(&**route)
    }
}

/// An admitted route, ready to serve. Made by `compile` alone. Its fields lie as they are written, those first that every
/// request reads: of many hosts none is in the processor's cache when it is asked for.
#[derive(Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ResolvedRoute {
    /// What whoever serves the route works out from it.
    pub derived: Derived,
    /// What else the route asks for; most routes share the default.
    pub policy: Arc<RoutePolicy>,
    /// What a rule does with its requests; `None` for a Route.
    pub rule: Option<Box<RulePolicy>>,
    /// What happens to the forwarding headers of requests.
    pub forwarded: ForwardedHeaders,
    /// `router.sluice.dev/proxy-protocol: v2`: a PROXY v2 header goes before what a client sends; passthrough only.
    pub proxy_protocol: bool,
    /// Something is asked for that takes reading every request; always false for passthrough.
    pub request_work: bool,
    /// Its connections must not be steered by the kernel, which could not keep what is asked for.
    pub relay_only: bool,
    /// Every clear-text request for the host goes to the route, whoever sends it, unless a longer path takes it, and on in
    /// clear text: known from `kind` and `allow`, which need not be looked at then. Where it is false, they must be.
    pub is_plain: bool,
    /// Where its connections or requests go: in the line beside the first one, which processors fetch together.
    pub cluster: Cluster,
    /// What kind of route, with what only that kind may have.
    pub kind: RouteKind,
    /// `haproxy.router.openshift.io/ip_allowlist`: who may connect. `None`: everyone; empty: nobody.
    pub allow: Option<Box<[IpNet]>>,
    /// How long a passthrough connection, or one after an upgrade, may be silent; `None`: the default (1 h).
    pub tunnel_timeout: Option<Duration>,
    /// Which Route.
    pub id: RouteId,
    /// Effective host on this router.
    pub host: HostMatch,
}

/// A slot for what is worked out from a route when it is first needed, and gone with this version of the route. A table
/// of 100,000 routes changes often, and few of them are asked for in between.
#[derive(Default)]
pub struct Derived(OnceLock<Box<dyn Any + Send + Sync>>);

impl Derived {
    /// What is in the slot, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// What is in the slot, made if it is empty. `None` when somebody else has put another type there.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

/// What is derived follows from the route's other fields: it does not count when routes are compared.
impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Derived {}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Derived").field(&self.0.get().is_some()).finish()
    }
}

const _: () = assert!(size_of::<ResolvedRoute>() <= 240, "with its counts, four lines of a cache");
const _: () = assert!(offset_of!(ResolvedRoute, cluster) == 48, "where the second line begins, behind the counts");

impl ResolvedRoute {
    /// Whether it is made of a rule of an object of another kind, and is no Route: services keep their shares then,
    /// whether or not there is an endpoint to serve them.
    pub fn is_of_rule(&self) -> bool {
        self.id.kind != Kind::Route
    }

    /// How TLS is spoken with its endpoints, where backends do not say so themselves.
    pub fn reencrypt(&self) -> Option<&Reencrypt> {
        match &self.kind {
            _ if self.is_plain => None,
            RouteKind::Http { tls: Some(HttpTls { reencrypt, .. }), .. } => reencrypt.as_ref(),
            _ => None,
        }
    }

    /// Whether the services of one of its clusters keep their shares, whatever becomes of their endpoints: a rule's, where
    /// there are several or one fails. Elsewhere the others have the share of one that has no endpoint.
    pub fn keeps_shares(&self, cluster: &Cluster) -> bool {
        let shares = || cluster.services.iter().filter(|service| service.weight > 0);
        self.is_of_rule() && (shares().count() > 1 || shares().any(|service| service.failure().is_some()))
    }

    /// Whether its connections must not be steered by the kernel: [`ResolvedRoute::relay_only`], or it is a rule's and
    /// one of its services has a share that no endpoint can serve. The kernel would give that share to the others.
    pub fn needs_relay(&self, endpoints: &Endpoints) -> bool {
        let is_lost = |service: &ServiceEndpoints| service.weight > 0 && !service.is_usable(endpoints);
        self.relay_only || (self.is_of_rule() && self.cluster.services.iter().any(is_lost))
    }

    /// Endpoints that have a share, with it: of Routes as [`Cluster::endpoint_weights`] rounds it, of rules as good as
    /// exact.
    pub fn weighted_endpoints<'e>(&self, endpoints: &'e Endpoints) -> Vec<(&'e Endpoint, u32)> {
        self.cluster.weighted_endpoints(endpoints, if self.is_of_rule() { RULE_SHARES } else { ROUTE_SHARES })
    }

    /// Its clusters: its own, and those that copies of its requests go to.
    pub fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        let mirrors = self.rule.iter().flat_map(|rule| rule.mirrors.iter().map(|mirror| &mirror.cluster));
        iter::once(&self.cluster).chain(mirrors)
    }

    /// The services of all its clusters.
    pub fn services(&self) -> impl Iterator<Item = &ServiceEndpoints> {
        self.clusters().flat_map(|cluster| cluster.services.iter())
    }

    /// Whether nothing that the route itself asks for takes reading single requests.
    pub fn is_left_alone(&self) -> bool {
        self.forwarded == ForwardedHeaders::Never && !self.request_work && !self.relay_only
    }

    /// The path; empty for passthrough.
    pub fn path(&self) -> &str {
        match &self.kind {
            RouteKind::Http { path, .. } => path.as_str(),
            RouteKind::Passthrough { .. } => "",
        }
    }

    /// Backend name as OpenShift's maps spell it, e.g. `be_edge_http:shop:cart`.
    pub fn backend_name(&self) -> String {
        let prefix = match &self.kind {
            RouteKind::Passthrough { .. } => "be_tcp",
            RouteKind::Http { tls: None, .. } => "be_http",
            RouteKind::Http { tls: Some(HttpTls { reencrypt: None, .. }), .. } => "be_edge_http",
            RouteKind::Http { tls: Some(_), .. } => "be_secure",
        };
        format!("{prefix}:{}:{}", self.id.namespace, self.id.name)
    }

    /// What [`ResolvedRoute::is_plain`] is for a route with this kind and these sources.
    pub fn is_plain(kind: &RouteKind, allow: Option<&[IpNet]>) -> bool {
        let goes_on = |tls: &HttpTls| tls.insecure == InsecurePolicy::Allow && tls.reencrypt.is_none();
        let RouteKind::Http { path, tls } = kind else { return false };
        path.as_str().is_empty() && tls.as_ref().is_none_or(goes_on) && allow.is_none()
    }

    /// Whether this source address may use the route.
    pub fn admits_source(&self, source: IpAddr) -> bool {
        let is_listed = |nets: &[IpNet]| {
            let source = source.to_canonical();
            nets.iter().any(|net| net.contains(&source))
        };
        self.is_plain || self.allow.as_deref().is_none_or(is_listed)
    }
}

#[cfg(test)]
mod tests;

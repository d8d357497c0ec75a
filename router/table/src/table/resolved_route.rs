//! An admitted route.

use std::any::Any;
use std::mem::offset_of;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, iter};

use ipnet::IpNet;
use router_model::kind::Kind;
use router_model::names::{HostMatch, RouteId};
use router_model::persistent::Keyed;

use super::cluster::{Cluster, ROUTE_SHARES, RULE_SHARES, WeightedService};
use super::endpoints::{Endpoint, Endpoints};
use super::route_kind::{HttpTls, InsecurePolicy, Reencrypt, RouteKind};
use crate::policy::RoutePolicy;
use crate::policy::forwarded::ForwardedHeaders;
use crate::rule::RulePolicy;

/// An admitted route, ready to serve; made by `compile` alone. Fields are in declaration order, those first that every
/// request reads: with many hosts, a route is usually not in the processor's cache.
#[derive(Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ResolvedRoute {
    /// Values that the data path derives from the route.
    pub derived: Derived,
    /// Further settings; most routes share the default.
    pub policy: Arc<RoutePolicy>,
    /// Settings of a rule; `None` for a Route. Most rules share the default.
    pub rule: Option<Arc<RulePolicy>>,
    /// Handling of the forwarding headers of requests.
    pub forwarded: ForwardedHeaders,
    /// `router.sluice.dev/proxy-protocol: v2`: a PROXY v2 header precedes the client's bytes; passthrough only.
    pub proxy_protocol: bool,
    /// Whether a setting requires reading every request; always false for passthrough.
    pub request_work: bool,
    /// Whether the kernel must not steer its connections, because it does not implement a setting.
    pub relay_only: bool,
    /// Whether every clear-text request for the host, from any client, is forwarded to the route in clear text, unless
    /// a route with a longer path matches. If it is true, it replaces reading `kind` and `allow`.
    pub is_plain: bool,
    /// Target of its connections or requests; in the second cache line, which processors fetch with the first.
    pub cluster: Cluster,
    /// Kind of route, with the settings that only that kind has.
    pub kind: RouteKind,
    /// Settings that few routes have; `None` if it has none of them.
    pub rare: Option<Box<RareSettings>>,
    /// Identifier of the route.
    pub id: RouteId,
    /// Effective host on this router.
    pub host: HostMatch,
}

impl Keyed for ResolvedRoute {
    type Key = RouteId;

    fn key(&self) -> &RouteId {
        &self.id
    }
}

/// Settings that few routes have: 100,000 routes without them take no memory for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RareSettings {
    /// `haproxy.router.openshift.io/ip_allowlist`: permitted source networks. `None`: all; empty: none.
    pub allow: Option<Box<[IpNet]>>,
    /// Idle timeout of a passthrough connection, or of one after an upgrade; `None`: the router's.
    pub tunnel_timeout: Option<Duration>,
}

impl RareSettings {
    /// The settings of a route; `None` if they are the default.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != RareSettings::default()).then(|| Box::new(self))
    }
}

/// A slot for values derived from a route on first use, and dropped with this version of the route. A table of 100,000
/// routes changes often, and few routes are used in between.
#[derive(Default)]
pub struct Derived(OnceLock<Box<dyn Any + Send + Sync>>);

impl Derived {
    /// The value in the slot, if it has this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// The value in the slot, created if the slot is empty. `None` if the slot has a value of another type.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

/// Derived values follow from the route's other fields, so they are not compared.
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

const _: () = assert!(size_of::<ResolvedRoute>() <= 208, "with its counts, a size class of the allocator");
const _: () = assert!(offset_of!(ResolvedRoute, cluster) == 48, "where the second line begins, behind the counts");

impl ResolvedRoute {
    /// Whether it is derived from a rule of an object of another kind than Route: then services keep their shares,
    /// whether or not an endpoint can serve them.
    pub fn is_of_rule(&self) -> bool {
        self.id.kind != Kind::Route
    }

    /// TLS to its endpoints, for backends without TLS settings of their own.
    pub fn reencrypt(&self) -> Option<&Reencrypt> {
        match &self.kind {
            _ if self.is_plain => None,
            RouteKind::Http { tls: Some(HttpTls { reencrypt, .. }), .. } => reencrypt.as_ref(),
            _ => None,
        }
    }

    /// Whether the services of one of its clusters keep their shares regardless of their endpoints: for a rule with
    /// several services or a failing one. Otherwise the share of a service without endpoints is divided among the
    /// others.
    pub fn keeps_shares(&self, cluster: &Cluster) -> bool {
        let shares = || cluster.services.iter().filter(|service| service.weight > 0);
        self.is_of_rule() && (shares().count() > 1 || shares().any(|service| service.failure().is_some()))
    }

    /// Whether the kernel must not steer its connections: [`ResolvedRoute::relay_only`], or it is a rule's and a
    /// service has a share that no endpoint can serve. The kernel would give that share to the others.
    pub fn needs_relay(&self, endpoints: &Endpoints) -> bool {
        let is_lost = |service: &WeightedService| service.weight > 0 && !service.is_usable(endpoints);
        self.relay_only || (self.is_of_rule() && self.cluster.services.iter().any(is_lost))
    }

    /// Endpoints with their shares: for Routes rounded as by [`Cluster::endpoint_weights`], for rules practically
    /// exact.
    pub fn weighted_endpoints<'e>(&self, endpoints: &'e Endpoints) -> Vec<(&'e Endpoint, u32)> {
        self.cluster.weighted_endpoints(endpoints, if self.is_of_rule() { RULE_SHARES } else { ROUTE_SHARES })
    }

    /// Its own cluster and those of its mirrors.
    pub fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        let mirrors = self.rule.iter().flat_map(|rule| rule.mirrors.iter().map(|mirror| &mirror.cluster));
        iter::once(&self.cluster).chain(mirrors)
    }

    /// The services of all its clusters.
    pub fn services(&self) -> impl Iterator<Item = &WeightedService> {
        self.clusters().flat_map(|cluster| cluster.services.iter())
    }

    /// Whether no setting of the route requires reading requests.
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

    /// Backend name in OpenShift's maps, e.g. `be_edge_http:shop:cart`.
    pub fn backend_name(&self) -> String {
        let prefix = match &self.kind {
            RouteKind::Passthrough { .. } => "be_tcp",
            RouteKind::Http { tls: None, .. } => "be_http",
            RouteKind::Http { tls: Some(HttpTls { reencrypt: None, .. }), .. } => "be_edge_http",
            RouteKind::Http { tls: Some(_), .. } => "be_secure",
        };
        format!("{prefix}:{}:{}", self.id.namespace, self.id.name)
    }

    /// The value of [`ResolvedRoute::is_plain`] for this kind and allow-list.
    pub fn is_plain(kind: &RouteKind, allow: Option<&[IpNet]>) -> bool {
        let goes_on = |tls: &HttpTls| tls.insecure == InsecurePolicy::Allow && tls.reencrypt.is_none();
        let RouteKind::Http { path, tls } = kind else { return false };
        path.as_str().is_empty() && tls.as_ref().is_none_or(goes_on) && allow.is_none()
    }

    /// The allow-list, if it has one ([`RareSettings::allow`]).
    pub fn allow(&self) -> Option<&[IpNet]> {
        self.rare.as_ref()?.allow.as_deref()
    }

    /// Its own timeout of tunnels ([`RareSettings::tunnel_timeout`]).
    pub fn tunnel_timeout(&self) -> Option<Duration> {
        self.rare.as_ref()?.tunnel_timeout
    }

    /// Whether the allow-list admits this source address.
    pub fn admits_source(&self, source: IpAddr) -> bool {
        let is_listed = |nets: &[IpNet]| {
            let source = source.to_canonical();
            nets.iter().any(|net| net.contains(&source))
        };
        self.is_plain || self.allow().is_none_or(is_listed)
    }
}

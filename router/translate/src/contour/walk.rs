//! Walks the delegations of a host, from the root down, and collects rules and violations.

mod http_proxy;
mod ingress_route;
mod tcp;
pub mod tcp_target;

use std::collections::BTreeMap;
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, RouteSpec, Strategy, Violation};
use router_model::object::{ObjectKey, ObjectRef};
use router_table::matchers::RequestMatcher;
use router_table::rule::Mirror;
use router_table::table::WeightedService;

use super::backends::Backends;
use crate::contour::claims::types::{Claim, proxy};

/// Maximum number of proxies on a path from a root to a leaf.
const MAX_DEPTH: usize = 64;
/// Maximum number of visits below one host; a proxy counts once for each path that leads to it.
const MAX_VISITS: usize = 2_000;
/// The same below all roots of one namespace: a visit takes about 1 KiB.
pub const MAX_NAMESPACE_VISITS: usize = 100_000;

/// One path from a root to a proxy, and the violations found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyVisit {
    /// The proxy.
    pub object: ObjectRef,
    /// The path, root first and the proxy last; for a subdomain it begins with the domain's root.
    pub path: Vec<PathElement>,
    /// The host.
    pub host: Arc<str>,
    /// Violations.
    pub faults: Vec<Violation>,
    /// Warnings, for the proxy's own status.
    pub warnings: Vec<Violation>,
    /// True if one of its rules is served on this path.
    pub serves: bool,
}

/// A proxy on a path, and the entry of its parent that leads to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathElement {
    /// The proxy.
    pub object: ObjectRef,
    /// Index of that entry.
    pub entry: usize,
    /// A route's `match`, an include's conditions, a subdomain, or `tcpproxy`; empty for the first.
    pub via: Arc<str>,
}

/// A [`PathElement`] during the walk.
#[derive(Clone, Copy, Debug)]
pub struct PathHop<'r> {
    proxy: &'r Arc<ContourProxy>,
    via: &'r str,
    entry: usize,
}

/// A rule as collected, before rules are sorted and built.
#[derive(Debug)]
pub struct CollectedRule<'r> {
    /// Its conditions.
    pub matcher: RequestMatcher,
    /// The proxy that defines it.
    pub proxy: &'r Arc<ContourProxy>,
    /// Its origin, for `explain`.
    pub origin: String,
    /// Also served in clear text, if the host has TLS.
    pub permit_insecure: bool,
    /// Its action.
    pub action: RuleAction<'r>,
}

/// Action on requests.
#[derive(Debug)]
pub enum RuleAction<'r> {
    /// Forward, redirect or respond, as the route says.
    Route(&'r RouteSpec, RouteTarget),
    /// Respond with this status code.
    Answer(u16, Option<&'r RouteSpec>),
}

/// Destination of a route's requests.
#[derive(Debug, Default)]
pub struct RouteTarget {
    /// The services; empty if the route redirects or responds.
    pub services: Vec<WeightedService>,
    /// Mirrors.
    pub mirrors: Vec<Mirror>,
    /// Balancing of endpoints.
    pub strategy: Strategy,
    /// Replacement of the matched prefix.
    pub rewrite: Option<Arc<str>>,
}

/// A walk below one host.
pub struct DelegationWalk<'r> {
    backends: Backends<'r>,
    host: Arc<str>,
    /// For a subdomain: the root of its domain.
    domain_root: Option<ObjectRef>,
    /// The rules found, in order.
    pub rules: Vec<CollectedRule<'r>>,
    /// The proxies visited, by path.
    pub visits: BTreeMap<Vec<PathElement>, ProxyVisit>,
    /// Number of visits; a proxy counts once for each path that leads to it.
    pub visit_count: usize,
    /// Maximum of `visit_count`.
    max_visits: usize,
}

impl<'r> DelegationWalk<'r> {
    /// A walk below a host; `earlier_visits` is the number of visits below hosts before it with roots of its namespace.
    pub fn new(backends: Backends<'r>, claim: &Claim, earlier_visits: usize) -> Self {
        let domain_root = claim.domain.as_ref().map(|_| claim.root.clone());
        let host = Arc::clone(&claim.name);
        let max_visits = MAX_NAMESPACE_VISITS.saturating_sub(earlier_visits).min(MAX_VISITS);
        let (rules, visits) = (Vec::new(), BTreeMap::new());
        DelegationWalk { backends, host, domain_root, rules, visits, visit_count: 0, max_visits }
    }

    /// The path to the proxy where a host begins.
    pub fn start(proxy: &'r Arc<ContourProxy>) -> [PathHop<'r>; 1] {
        [PathHop { proxy, via: "", entry: 0 }]
    }

    /// Collects the routes from this proxy on.
    pub fn routes(&mut self, start: &'r Arc<ContourProxy>) {
        let path = Self::start(start);
        if super::backends::is_ingress_route(start) {
            self.ingress_route(&path, "");
        } else {
            self.http_proxy(&path, &RequestMatcher::default());
        }
    }

    /// The visit of the last proxy of a path.
    pub fn visit(&mut self, path: &[PathHop<'r>]) -> Option<&mut ProxyVisit> {
        let domain_root =
            self.domain_root.iter().map(|root| PathElement { object: root.clone(), via: Arc::default(), entry: 0 });
        let elements = path.iter().map(|hop| {
            let is_subdomain = hop.via.is_empty() && self.domain_root.is_some();
            let via = if is_subdomain { Arc::clone(&self.host) } else { hop.via.into() };
            PathElement { object: hop.proxy.object(), via, entry: hop.entry }
        });
        let whole: Vec<PathElement> = domain_root.chain(elements).collect();
        let object = whole.last()?.object.clone();
        let host = Arc::clone(&self.host);
        let (faults, warnings) = (Vec::new(), Vec::new());
        let visit = || ProxyVisit { object, path: whole.clone(), host, faults, warnings, serves: false };
        Some(self.visits.entry(whole.clone()).or_insert_with(visit))
    }

    /// Adds violations to the visit of a path's last proxy.
    pub fn add_faults(&mut self, path: &[PathHop<'r>], faults: impl IntoIterator<Item = Violation>) {
        if let Some(visit) = self.visit(path) {
            add(&mut visit.faults, faults);
        }
    }

    /// Records whether a rule of a path's last proxy is served.
    fn set_serves(&mut self, path: &[PathHop<'r>], serves: bool) {
        if let Some(visit) = self.visit(path) {
            visit.serves = serves;
        }
    }

    /// Adds warnings to the visit of a path's last proxy.
    fn add_warnings(&mut self, path: &[PathHop<'r>], warnings: &[Violation]) {
        if let Some(visit) = self.visit(path).filter(|_| !warnings.is_empty()) {
            add(&mut visit.warnings, warnings.iter().cloned());
        }
    }

    /// The target of a delegation, or why the walk does not continue there.
    fn step(&mut self, path: &[PathHop<'r>], target: &ObjectKey) -> DelegationStep<'r> {
        let Some(last) = path.last() else { return DelegationStep::Missing };
        let target = ObjectRef { kind: last.proxy.kind, key: target.clone() };
        let Some(next) = proxy(self.backends.resources, &target) else { return DelegationStep::Missing };
        if path.iter().any(|hop| hop.proxy.meta.key == next.meta.key) {
            let keys = path.iter().map(|hop| hop.proxy).chain([next]).map(|proxy| proxy.meta.key.to_string());
            return DelegationStep::Cycle(keys.collect::<Vec<_>>().join(" -> "));
        }
        if next.virtual_host.is_some() {
            return DelegationStep::Root;
        }
        self.visit_count += 1;
        if path.len() >= MAX_DEPTH || self.visit_count > self.max_visits {
            return DelegationStep::TooMany(format!(
                "too many delegations below {}: use at most {MAX_DEPTH} in a row, {MAX_VISITS} in all, and \
                 {MAX_NAMESPACE_VISITS} below all roots of a namespace",
                self.host
            ));
        }
        DelegationStep::To(next)
    }

    fn origin(&self, path: &[PathHop<'r>], place: impl std::fmt::Display) -> String {
        let proxies = self.domain_root.iter().cloned().chain(path.iter().map(|hop| hop.proxy.object()));
        format!("{}/{place}", proxies.map(|object| object.to_string()).collect::<Vec<_>>().join(" ▸ "))
    }
}

fn add(known: &mut Vec<Violation>, faults: impl IntoIterator<Item = Violation>) {
    for fault in faults {
        if !known.contains(&fault) {
            known.push(fault);
        }
    }
}

enum DelegationStep<'r> {
    To(&'r Arc<ContourProxy>),
    Missing,
    Root,
    Cycle(String),
    TooMany(String),
}

/// Violations of a proxy that do not depend on the path.
pub fn own_faults(proxy: &ContourProxy) -> Vec<Violation> {
    let mut faults = proxy.faults.clone();
    if !proxy.subdomains.is_empty() {
        let message = "Spec.Subdomains needs a Spec.VirtualHost.Fqdn that begins with a dot, such as .example.com";
        faults.push(Violation::new("VirtualHostError", "FQDNNotValid", message));
    }
    faults
}

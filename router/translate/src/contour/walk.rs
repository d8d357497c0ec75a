//! Walks from the root of a host down its delegations, and collects rules and violations.

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
use router_table::table::ServiceEndpoints;

use super::backends::Backends;
use crate::contour::claims::types::{Claim, Vertices};

/// Maximum number of proxies on a path from a root to a leaf.
const MAX_DEPTH: usize = 64;
/// Maximum number of visits below one host; a proxy counts once for each path that leads to it.
const MAX_VISITS: usize = 2_000;
/// The same below all roots of one namespace: a visit takes about 1 KiB.
const MAX_NAMESPACE_VISITS: usize = 100_000;

/// One path from a root to a proxy, and the violations found there.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The proxy.
    pub object: ObjectRef,
    /// The path, root first and the proxy last; for a subdomain it begins with the domain's root.
    pub path: Vec<Passed>,
    /// The host.
    pub host: Arc<str>,
    /// Violations.
    pub faults: Vec<Violation>,
    /// Warnings, for the proxy's own status.
    pub warnings: Vec<Violation>,
    /// True if one of its rules is served there.
    pub serves: bool,
}

/// A proxy on a path, and the entry of its parent that led there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passed {
    /// The proxy.
    pub object: ObjectRef,
    /// Index of that entry.
    pub entry: usize,
    /// A route's `match`, an include's conditions, a subdomain, or `tcpproxy`; empty for the first.
    pub via: Arc<str>,
}

/// A [`Passed`] during the walk.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'r> {
    vertex: &'r Arc<ContourProxy>,
    via: &'r str,
    entry: usize,
}

/// A rule before it is sorted and built.
#[derive(Debug)]
pub struct Flat<'r> {
    /// Its conditions.
    pub matcher: RequestMatcher,
    /// The proxy that defines it.
    pub vertex: &'r Arc<ContourProxy>,
    /// Its origin, for `explain`.
    pub origin: String,
    /// Also served in clear text, if the host has TLS.
    pub permit_insecure: bool,
    /// Its action.
    pub serve: Serve<'r>,
}

/// Action on requests.
#[derive(Debug)]
pub enum Serve<'r> {
    /// Forward, redirect or respond, as the route says.
    Route(&'r RouteSpec, Target),
    /// Respond with this status code.
    Answer(u16, Option<&'r RouteSpec>),
}

/// Destination of a route's requests.
#[derive(Debug, Default)]
pub struct Target {
    /// The services; empty if the route redirects or responds.
    pub services: Vec<ServiceEndpoints>,
    /// Mirrors.
    pub mirrors: Vec<Mirror>,
    /// Balancing of endpoints.
    pub strategy: Strategy,
    /// Replacement of the matched prefix.
    pub rewrite: Option<Arc<str>>,
}

/// A walk below one host.
pub struct Walk<'m, 'r> {
    vertices: &'m Vertices<'r>,
    backends: Backends<'r>,
    host: Arc<str>,
    before: Option<ObjectRef>,
    /// The rules found, in order.
    pub rules: Vec<Flat<'r>>,
    /// The proxies visited, by path.
    pub visits: BTreeMap<Vec<Passed>, Visit>,
    /// Number of visits; a proxy counts once for each path that leads to it.
    pub entered: usize,
    /// Maximum number of visits.
    most: usize,
}

impl<'m, 'r> Walk<'m, 'r> {
    /// A walk below a host; `entered` visits were already made below roots of its namespace.
    pub fn new(vertices: &'m Vertices<'r>, backends: Backends<'r>, claim: &Claim<'r>, entered: usize) -> Self {
        let before = claim.entry.map(|_| claim.root.object());
        let host = Arc::clone(&claim.name);
        let most = MAX_NAMESPACE_VISITS.saturating_sub(entered).min(MAX_VISITS);
        Walk { vertices, backends, host, before, rules: Vec::new(), visits: BTreeMap::new(), entered: 0, most }
    }

    /// The path to the proxy where a host begins.
    pub fn start(vertex: &'r Arc<ContourProxy>) -> [Hop<'r>; 1] {
        [Hop { vertex, via: "", entry: 0 }]
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
    pub fn visit(&mut self, path: &[Hop<'r>]) -> Option<&mut Visit> {
        let before = self.before.iter().map(|root| Passed { object: root.clone(), via: Arc::default(), entry: 0 });
        let passed = path.iter().map(|hop| {
            let is_subdomain = hop.via.is_empty() && self.before.is_some();
            let via = if is_subdomain { Arc::clone(&self.host) } else { hop.via.into() };
            Passed { object: hop.vertex.object(), via, entry: hop.entry }
        });
        let whole: Vec<Passed> = before.chain(passed).collect();
        let object = whole.last()?.object.clone();
        let host = Arc::clone(&self.host);
        let (faults, warnings) = (Vec::new(), Vec::new());
        let visit = || Visit { object, path: whole.clone(), host, faults, warnings, serves: false };
        Some(self.visits.entry(whole.clone()).or_insert_with(visit))
    }

    /// Adds violations to the visit of a path's last proxy.
    pub fn note(&mut self, path: &[Hop<'r>], faults: impl IntoIterator<Item = Violation>) {
        if let Some(visit) = self.visit(path) {
            add(&mut visit.faults, faults);
        }
    }

    /// Records whether a rule of a path's last proxy is served.
    fn serves(&mut self, path: &[Hop<'r>], serves: bool) {
        if let Some(visit) = self.visit(path) {
            visit.serves = serves;
        }
    }

    /// Adds warnings to the visit of a path's last proxy.
    fn warn(&mut self, path: &[Hop<'r>], warnings: &[Violation]) {
        if let Some(visit) = self.visit(path).filter(|_| !warnings.is_empty()) {
            add(&mut visit.warnings, warnings.iter().cloned());
        }
    }

    /// The target of a delegation, or why the walk does not continue there.
    fn step(&mut self, path: &[Hop<'r>], target: &ObjectKey) -> Step<'r> {
        let Some(last) = path.last() else { return Step::Missing };
        let Some(&next) = self.vertices.get(&ObjectRef { kind: last.vertex.kind, key: target.clone() }) else {
            return Step::Missing;
        };
        if path.iter().any(|hop| hop.vertex.meta.key == next.meta.key) {
            let keys = path.iter().map(|hop| hop.vertex).chain([next]).map(|vertex| vertex.meta.key.to_string());
            return Step::Cycle(keys.collect::<Vec<_>>().join(" -> "));
        }
        if next.virtual_host.is_some() {
            return Step::Root;
        }
        self.entered += 1;
        if path.len() >= MAX_DEPTH || self.entered > self.most {
            return Step::TooMany(format!(
                "too many delegations below {}: use at most {MAX_DEPTH} in a row, {MAX_VISITS} in all, and \
                 {MAX_NAMESPACE_VISITS} below all roots of a namespace",
                self.host
            ));
        }
        Step::To(next)
    }

    fn origin(&self, path: &[Hop<'r>], place: impl std::fmt::Display) -> String {
        let vertices = self.before.iter().cloned().chain(path.iter().map(|hop| hop.vertex.object()));
        format!("{}/{place}", vertices.map(|object| object.to_string()).collect::<Vec<_>>().join(" ▸ "))
    }
}

fn add(known: &mut Vec<Violation>, faults: impl IntoIterator<Item = Violation>) {
    for fault in faults {
        if !known.contains(&fault) {
            known.push(fault);
        }
    }
}

enum Step<'r> {
    To(&'r Arc<ContourProxy>),
    Missing,
    Root,
    Cycle(String),
    TooMany(String),
}

/// Violations of a proxy that do not depend on the path.
pub fn own_faults(vertex: &ContourProxy) -> Vec<Violation> {
    let mut faults = vertex.faults.clone();
    if !vertex.subdomains.is_empty() {
        let message = "Spec.Subdomains needs a Spec.VirtualHost.Fqdn that begins with a dot, such as .example.com";
        faults.push(Violation::new("VirtualHostError", "FQDNNotValid", message));
    }
    faults
}

//! From the vertex where a host begins, along its delegations, to rules: what each says, and what each is told.

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

/// Most vertices on the way from a root to a leaf.
const MAX_DEPTH: usize = 64;
/// Most vertices below one host, each counted once for every way that leads to it.
const MAX_VISITS: usize = 2_000;
/// The same below all hosts of the roots of one namespace: what is kept of each is some 1 KiB.
const MAX_NAMESPACE_VISITS: usize = 100_000;

/// One way from a root to a vertex, and what is wrong with the vertex there.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The vertex.
    pub object: ObjectRef,
    /// The way, root first, the vertex last; a subdomain's begins with the domain's root.
    pub path: Vec<Passed>,
    /// The host.
    pub host: Arc<str>,
    /// What is wrong.
    pub faults: Vec<Violation>,
    /// What is odd, for the status of the vertex itself.
    pub warnings: Vec<Violation>,
    /// A rule of it serves there.
    pub serves: bool,
}

/// A vertex on a way, and the entry of the one before it that led there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passed {
    /// The vertex.
    pub object: ObjectRef,
    /// Place of that entry.
    pub entry: usize,
    /// A route's `match`, an include's conditions, a subdomain, or `tcpproxy`; empty for the first.
    pub via: Arc<str>,
}

/// The same while the way is being walked.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'r> {
    vertex: &'r Arc<ContourProxy>,
    via: &'r str,
    entry: usize,
}

/// A rule before it is made ready to serve.
#[derive(Debug)]
pub struct Flat<'r> {
    /// What a request must be like.
    pub matcher: RequestMatcher,
    /// The vertex that has it.
    pub vertex: &'r Arc<ContourProxy>,
    /// Where it comes from, for `explain`.
    pub origin: String,
    /// It is served in clear text as well, where the host has TLS.
    pub permit_insecure: bool,
    /// What is done.
    pub serve: Serve<'r>,
}

/// What is done with requests.
#[derive(Debug)]
pub enum Serve<'r> {
    /// What a route says.
    Route(&'r RouteSpec, Target),
    /// They are answered with this status.
    Answer(u16, Option<&'r RouteSpec>),
}

/// Where requests of a route go.
#[derive(Debug, Default)]
pub struct Target {
    /// The services; none: the route redirects or answers.
    pub services: Vec<ServiceEndpoints>,
    /// Who gets copies.
    pub mirrors: Vec<Mirror>,
    /// How endpoints are chosen.
    pub strategy: Strategy,
    /// What stands in the place of the prefix.
    pub rewrite: Option<Arc<str>>,
}

/// A walk below one host.
pub struct Walk<'m, 'r> {
    vertices: &'m Vertices<'r>,
    backends: Backends<'r>,
    host: Arc<str>,
    before: Option<ObjectRef>,
    /// The rules that were found, in order.
    pub rules: Vec<Flat<'r>>,
    /// The vertices that were passed.
    pub visits: BTreeMap<Vec<Passed>, Visit>,
    /// How many were entered, each counted once for every way that leads to it.
    pub entered: usize,
    /// How many may be.
    most: usize,
}

impl<'m, 'r> Walk<'m, 'r> {
    /// A walk below a host, when so many vertices have been entered below the roots of its namespace.
    pub fn new(vertices: &'m Vertices<'r>, backends: Backends<'r>, claim: &Claim<'r>, entered: usize) -> Self {
        let before = claim.entry.map(|_| claim.root.object());
        let host = Arc::clone(&claim.name);
        let most = MAX_NAMESPACE_VISITS.saturating_sub(entered).min(MAX_VISITS);
        Walk { vertices, backends, host, before, rules: Vec::new(), visits: BTreeMap::new(), entered: 0, most }
    }

    /// The way to the vertex that a host begins with.
    pub fn start(vertex: &'r Arc<ContourProxy>) -> [Hop<'r>; 1] {
        [Hop { vertex, via: "", entry: 0 }]
    }

    /// Reads the routes from this vertex on.
    pub fn routes(&mut self, start: &'r Arc<ContourProxy>) {
        let path = Self::start(start);
        if super::backends::is_ingress_route(start) {
            self.ingress_route(&path, "");
        } else {
            self.http_proxy(&path, &RequestMatcher::default());
        }
    }

    /// What is known of the way to the last vertex of a path.
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

    /// Notes what is wrong with the last vertex of a path.
    pub fn note(&mut self, path: &[Hop<'r>], faults: impl IntoIterator<Item = Violation>) {
        if let Some(visit) = self.visit(path) {
            add(&mut visit.faults, faults);
        }
    }

    /// Notes whether a rule of the last vertex of a path serves.
    fn serves(&mut self, path: &[Hop<'r>], serves: bool) {
        if let Some(visit) = self.visit(path) {
            visit.serves = serves;
        }
    }

    /// Notes what is odd about the last vertex of a path.
    fn warn(&mut self, path: &[Hop<'r>], warnings: &[Violation]) {
        if let Some(visit) = self.visit(path).filter(|_| !warnings.is_empty()) {
            add(&mut visit.warnings, warnings.iter().cloned());
        }
    }

    /// The vertex that is delegated to, with what keeps the way from going on there.
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

/// What is wrong with a vertex wherever it stands.
pub fn own_faults(vertex: &ContourProxy) -> Vec<Violation> {
    let mut faults = vertex.faults.clone();
    if !vertex.subdomains.is_empty() {
        let message = "Spec.Subdomains needs a Spec.VirtualHost.Fqdn that begins with a dot, such as .example.com";
        faults.push(Violation::new("VirtualHostError", "FQDNNotValid", message));
    }
    faults
}

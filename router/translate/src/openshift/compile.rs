//! Compiles resolved routes into virtual hosts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::names::{HostMatch, RouterName};
use router_model::one_or_many::OneOrMany;
use router_table::table::{HttpTls, InsecurePolicy, ResolvedRoute, RouteKind, VirtualHost};

use crate::fnv1a::fnv1a;

/// The virtual hosts of routes given oldest first: of two routes for the same requests, the older one serves.
pub fn virtual_hosts(routes: &[Arc<ResolvedRoute>]) -> Vec<VirtualHost> {
    let mut by_host: BTreeMap<&HostMatch, Vec<&Arc<ResolvedRoute>>> = BTreeMap::new();
    for route in routes {
        by_host.entry(&route.host).or_default().push(route);
    }
    by_host.into_iter().map(|(host, routes)| virtual_host(host, routes)).collect()
}

fn virtual_host(host: &HostMatch, mut sorted: Vec<&Arc<ResolvedRoute>>) -> VirtualHost {
    // A stable sort keeps the order of age for equal lengths; `""` and `/` cover the same requests and count as equal.
    sorted.sort_by_key(|route| Reverse(route.path().len().max(1)));
    let select = |wanted: fn(&ResolvedRoute) -> bool| -> OneOrMany<Arc<ResolvedRoute>> {
        sorted.iter().filter(|route| wanted(route)).map(|route| Arc::clone(route)).collect()
    };
    let terminated = select(is_terminated);
    let certificate = terminated.iter().find_map(|route| match &route.kind {
        RouteKind::Http { tls: Some(tls), .. } => tls.certificate.clone(),
        _ => None,
    });
    VirtualHost {
        host: host.clone(),
        passthrough: sorted.iter().find(|route| is_passthrough(route)).map(|route| Arc::clone(route)),
        terminated,
        cleartext: select(answers_cleartext),
        certificate,
        rules: None,
    }
}

fn is_passthrough(route: &ResolvedRoute) -> bool {
    matches!(route.kind, RouteKind::Passthrough { .. })
}

fn is_terminated(route: &ResolvedRoute) -> bool {
    matches!(route.kind, RouteKind::Http { tls: Some(_), .. })
}

fn answers_cleartext(route: &ResolvedRoute) -> bool {
    match &route.kind {
        RouteKind::Passthrough { redirect } => *redirect,
        RouteKind::Http { tls: None, .. } => true,
        RouteKind::Http { tls: Some(HttpTls { insecure, .. }), .. } => *insecure != InsecurePolicy::None,
    }
}

/// A route that receives no request of a scheme, because an older one has the same host and covers the same paths.
#[derive(Debug)]
pub struct Shadow<'t> {
    /// The younger route.
    pub route: &'t ResolvedRoute,
    /// The older route, which serves.
    pub by: &'t ResolvedRoute,
    /// `http`, `https` or both.
    pub schemes: BTreeSet<&'static str>,
}

/// The shadowed routes of a host: `""` and `/` are two claims, but cover the same requests
/// (docs/openshift.md#shadowed-path).
pub fn shadows(host: &VirtualHost) -> Vec<Shadow<'_>> {
    let mut shadows: Vec<Shadow<'_>> = Vec::new();
    for (scheme, routes) in [("http", &host.cleartext), ("https", &host.terminated)] {
        let [.., by, route] = &**routes else { continue };
        if by.path().len() > 1 {
            continue;
        }
        match shadows.iter_mut().find(|shadow| shadow.route.id == route.id && shadow.by.id == by.id) {
            Some(shadow) => drop(shadow.schemes.insert(scheme)),
            None => shadows.push(Shadow { route, by, schemes: BTreeSet::from([scheme]) }),
        }
    }
    shadows
}

/// Ids of routers from their names: the FNV-1a hash, or the next free number on a collision; never 0. Ids of `names`
/// are stable while that set does not change, whatever is in `more` (routers created for ports of Gateways).
pub fn router_ids(names: &BTreeSet<RouterName>, more: &BTreeSet<RouterName>) -> BTreeMap<RouterName, u32> {
    let mut taken = BTreeSet::new();
    names
        .iter()
        .chain(more.difference(names))
        .map(|name| {
            let mut id = fnv1a(name.0.as_bytes());
            while id == 0 || !taken.insert(id) {
                id = id.wrapping_add(1);
            }
            (name.clone(), id)
        })
        .collect()
}

#[cfg(test)]
mod tests;

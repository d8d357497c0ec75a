//! Claims on one host (docs/openshift.md#claims). Routes come in order of age, so an existing claim is always the older
//! one.

use std::collections::HashMap;

use router_api::openshift::ingress_controller::NamespaceOwnership;
use router_api::openshift::route::Route;
use router_model::names::HostMatch;

use crate::status::host_conflict::{HostConflict, WinningClaim};

/// Claims on a router's hosts.
pub struct HostClaims<'r> {
    by_host: HashMap<HostMatch, Holders<'r>>,
}

/// The admitted Routes of one host.
struct Holders<'r> {
    /// The oldest; with Strict ownership, the host belongs to its namespace.
    owner: &'r Route,
    /// The youngest.
    newest: &'r Route,
    /// By path; `""` and `/` are distinct paths.
    by_path: HashMap<&'r str, &'r Route>,
    has_tls: bool,
    has_passthrough: bool,
}

impl<'r> HostClaims<'r> {
    /// No claims, with capacity for this many hosts.
    pub fn with_capacity(hosts: usize) -> Self {
        HostClaims { by_host: HashMap::with_capacity(hosts) }
    }

    /// Checks a Route's claim against those of the host.
    ///
    /// # Errors
    /// The conflict with the Route that has the claim.
    pub fn check(
        &self,
        route: &Route,
        host: &str,
        host_match: &HostMatch,
        ownership: NamespaceOwnership,
    ) -> Result<(), Box<HostConflict>> {
        let Some(holders) = self.by_host.get(host_match) else { return Ok(()) };
        let same_path = holders.by_path.get(route.traffic.path()).copied();
        if same_path.is_none() && !collides_by_tls(route, holders) && may_share(route, holders.owner, ownership) {
            return Ok(());
        }
        let holder = same_path.unwrap_or(holders.newest);
        Err(Box::new(HostConflict {
            host: host.to_owned(),
            winner: holder.meta.key.route_id().object(),
            loser: route.meta.key.route_id().object(),
            held: WinningClaim::Host(holder.meta.seniority(&route.meta)),
        }))
    }

    /// True if a Route has a claim on the host.
    pub fn is_held(&self, host_match: &HostMatch) -> bool {
        self.by_host.contains_key(host_match)
    }

    /// Adds the claim of a Route that has passed every check.
    pub fn hold(&mut self, route: &'r Route, host_match: &HostMatch) {
        let holders = self.by_host.entry(host_match.clone()).or_insert_with(|| Holders {
            owner: route,
            newest: route,
            by_path: HashMap::new(),
            has_tls: false,
            has_passthrough: false,
        });
        holders.newest = route;
        holders.by_path.insert(route.traffic.path(), route);
        holders.has_tls |= route.traffic.has_tls();
        holders.has_passthrough |= route.traffic.is_passthrough();
    }
}

/// A ClientHello has no path, so a passthrough Route cannot share a host's TLS with any other Route.
fn collides_by_tls(route: &Route, holders: &Holders<'_>) -> bool {
    let (has_tls, passthrough) = (route.traffic.has_tls(), route.traffic.is_passthrough());
    has_tls && holders.has_tls && (passthrough || holders.has_passthrough)
}

fn may_share(route: &Route, owner: &Route, ownership: NamespaceOwnership) -> bool {
    ownership == NamespaceOwnership::InterNamespaceAllowed || owner.meta.key.namespace == route.meta.key.namespace
}

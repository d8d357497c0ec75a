//! Claims on one host (docs/openshift.md#claims). Routes are offered in order of age, so whoever holds a claim comes
//! first.

use std::collections::HashMap;

use router_api::openshift::ingress_controller::NamespaceOwnership;
use router_api::openshift::route::Route;
use router_model::names::HostMatch;

use crate::status::host_conflict::{Held, HostConflict};

/// Who holds which hosts on a router.
pub struct HostClaims<'r> {
    by_host: HashMap<HostMatch, Holders<'r>>,
}

/// The admitted routes of one host.
struct Holders<'r> {
    /// The oldest; under Strict the host belongs to its namespace.
    owner: &'r Route,
    /// The youngest.
    newest: &'r Route,
    /// By path; `""` and `/` are two paths.
    by_path: HashMap<&'r str, &'r Route>,
    has_tls: bool,
    has_passthrough: bool,
}

impl<'r> HostClaims<'r> {
    /// Nobody holds anything yet; there is room for so many hosts.
    pub fn with_capacity(hosts: usize) -> Self {
        HostClaims { by_host: HashMap::with_capacity(hosts) }
    }

    /// Whether the route may have the host beside those who hold it.
    ///
    /// # Errors
    /// The conflict with the route that is in the way.
    pub fn check(
        &self,
        route: &Route,
        host: &str,
        host_match: &HostMatch,
        ownership: NamespaceOwnership,
    ) -> Result<(), HostConflict> {
        let Some(holders) = self.by_host.get(host_match) else { return Ok(()) };
        let same_path = holders.by_path.get(route.traffic.path()).copied();
        if same_path.is_none() && !collides_by_tls(route, holders) && may_share(route, holders.owner, ownership) {
            return Ok(());
        }
        let holder = same_path.unwrap_or(holders.newest);
        Err(HostConflict {
            host: host.to_owned(),
            winner: holder.meta.key.route_id().object(),
            loser: route.meta.key.route_id().object(),
            held: Held::Host(holder.meta.seniority(&route.meta)),
        })
    }

    /// Whether somebody holds the host.
    pub fn is_held(&self, host_match: &HostMatch) -> bool {
        self.by_host.contains_key(host_match)
    }

    /// Notes a route that has passed every check.
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

/// Before a ClientHello is decrypted there is no path: a passthrough route cannot share a host's TLS with anybody.
fn collides_by_tls(route: &Route, holders: &Holders<'_>) -> bool {
    let (has_tls, passthrough) = (route.traffic.has_tls(), route.traffic.is_passthrough());
    has_tls && holders.has_tls && (passthrough || holders.has_passthrough)
}

fn may_share(route: &Route, owner: &Route, ownership: NamespaceOwnership) -> bool {
    ownership == NamespaceOwnership::InterNamespaceAllowed || owner.meta.key.namespace == route.meta.key.namespace
}

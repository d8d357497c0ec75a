//! Claims across a host and its parent domain, if wildcard Routes are allowed (docs/openshift.md#wildcard-claims).
//! Routes come in order of age, so an existing claim is always the older one.

use std::collections::{BTreeMap, HashMap};

use router_api::openshift::ingress_controller::NamespaceOwnership;
use router_api::openshift::route::{Route, WildcardPolicy};

use crate::status::host_conflict::{HostConflict, WinningClaim};

/// Claims on a router's hosts and wildcards.
#[derive(Default)]
pub struct WildcardClaims<'r> {
    exact: HashMap<String, ExactClaims<'r>>,
    domains: HashMap<String, DomainClaims<'r>>,
}

/// Namespaces with a claim, each with its oldest Route there.
type Namespaces<'r> = BTreeMap<&'r str, &'r Route>;

/// Exact Routes of one host.
#[derive(Default)]
struct ExactClaims<'r> {
    namespaces: Namespaces<'r>,
    by_path: HashMap<&'r str, &'r Route>,
}

/// Routes below one parent domain.
#[derive(Default)]
struct DomainClaims<'r> {
    exact_namespaces: Namespaces<'r>,
    wildcard_namespaces: Namespaces<'r>,
    wildcards_by_path: HashMap<&'r str, &'r Route>,
}

impl<'r> WildcardClaims<'r> {
    /// Checks a Route's host or wildcard against the claims below the same domain.
    ///
    /// # Errors
    /// The conflict with the Route that has the claim.
    pub fn check(&self, route: &Route, host: &str, ownership: NamespaceOwnership) -> Result<(), Box<HostConflict>> {
        let is_wildcard = route.wildcard_policy == WildcardPolicy::Subdomain;
        let (namespace, path) = (&*route.meta.key.namespace, route.traffic.path());
        let strict = ownership == NamespaceOwnership::Strict;
        let foreign = |namespaces: &Namespaces<'r>| {
            let others =
                namespaces.iter().filter(|(other, _)| strict && **other != namespace).map(|(_, holder)| *holder);
            others.min_by(|a, b| a.meta.age().cmp(&b.meta.age()))
        };
        let conflict = |holder: &Route, held| {
            Err(Box::new(HostConflict {
                host: host.to_owned(),
                winner: holder.meta.key.route_id().object(),
                loser: route.meta.key.route_id().object(),
                held,
            }))
        };

        if let Some(claims) = self.exact.get(host).filter(|_| !is_wildcard)
            && let Some(holder) = foreign(&claims.namespaces).or_else(|| claims.by_path.get(path).copied())
        {
            return conflict(holder, WinningClaim::HostOfDomain);
        }
        let domain = parent(host);
        let Some(claims) = self.domains.get(domain) else { return Ok(()) };
        let of_exact = || foreign(&claims.exact_namespaces).filter(|_| is_wildcard);
        if let Some(holder) = foreign(&claims.wildcard_namespaces).or_else(of_exact) {
            return conflict(holder, WinningClaim::HostOfDomain);
        }
        match claims.wildcards_by_path.get(path).copied().filter(|_| is_wildcard) {
            Some(holder) => conflict(holder, WinningClaim::Wildcard(domain.to_owned())),
            None => Ok(()),
        }
    }

    /// Adds the claim of a Route that has passed every check.
    pub fn hold(&mut self, route: &'r Route, host: &str) {
        let (namespace, path) = (&*route.meta.key.namespace, route.traffic.path());
        let domain = self.domains.entry(parent(host).to_owned()).or_default();
        if route.wildcard_policy == WildcardPolicy::Subdomain {
            domain.wildcard_namespaces.entry(namespace).or_insert(route);
            domain.wildcards_by_path.insert(path, route);
        } else {
            domain.exact_namespaces.entry(namespace).or_insert(route);
            let exact = self.exact.entry(host.to_owned()).or_default();
            exact.namespaces.entry(namespace).or_insert(route);
            exact.by_path.insert(path, route);
        }
    }
}

/// The domain of a host's wildcard; empty for a single label.
fn parent(host: &str) -> &str {
    host.split_once('.').map_or("", |(_, parent)| parent)
}

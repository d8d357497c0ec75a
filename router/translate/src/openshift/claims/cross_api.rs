//! Claims of other APIs on a router's hosts. Across APIs, the oldest claim wins the entire host.

use std::sync::Arc;

use router_api::openshift::route::Route;
use router_model::names::HostMatch;
use router_model::persistent::OrderedMap;

use crate::status::host_conflict::{HostConflict, HostOwner};
use crate::translator::HostClaim;

/// The strongest claim of other APIs on each host of a router, by the host's [`contested`] form.
#[derive(Clone, Debug, Default)]
pub struct OtherApiClaims(OrderedMap<HostMatch, Arc<HostClaim>>);

/// The conflict of a claim with a younger route that asks for the host.
pub(super) fn conflict(claim: &HostClaim, route: &Route, host: &str) -> HostConflict {
    let owner = HostOwner { object: claim.owner(), created: claim.age.created() };
    owner.conflict(host.to_owned(), route.meta.key.route_id().object(), route.meta.created)
}

impl OtherApiClaims {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets or removes (`None`) the strongest claims on hosts, given in their [`contested`] form.
    pub fn update(&mut self, changes: impl IntoIterator<Item = (HostMatch, Option<Arc<HostClaim>>)>) {
        let mut set = Vec::new();
        for (host, claim) in changes {
            match claim {
                Some(claim) => set.push((host, claim)),
                None => drop(self.0.remove(&host)),
            }
        }
        self.0.extend(set);
    }

    /// The claim on a host, and the host in its [`contested`] form.
    pub fn on(&self, host: &HostMatch) -> Option<(HostMatch, &HostClaim)> {
        if self.is_empty() {
            return None;
        }
        let host = contested(host);
        let claim = self.0.get(&host)?;
        Some((host, claim))
    }

    /// Hosts whose claims differ from those of an older version. The cost is proportional to the difference.
    pub fn changed_since<'c>(&'c self, older: &'c Self) -> impl Iterator<Item = &'c HostMatch> {
        self.0.changes_since(&older.0).map(|changed| changed.key)
    }
}

/// The host as APIs contest it: a wildcard is one host, whether it covers one label (Routes, HTTPProxies) or any number
/// (Gateways).
pub fn contested(host: &HostMatch) -> HostMatch {
    match host {
        HostMatch::Wildcard(domain) => HostMatch::Suffix(domain.clone()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;

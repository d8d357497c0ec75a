//! Claims of other APIs on a router's hosts. Across APIs, the oldest claim wins the entire host.

use std::collections::BTreeMap;

use router_api::openshift::route::Route;
use router_model::names::HostMatch;
use router_model::object::ObjectRef;

use crate::owned_age::OwnedAge;
use crate::status::host_conflict::{HostConflict, HostOwner};

/// Claims of other APIs on a router's hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherApiClaims(BTreeMap<HostMatch, OtherApiClaim>);

/// The claim of an object of another API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherApiClaim {
    /// The oldest object.
    pub owner: ObjectRef,
    /// Its age.
    pub age: OwnedAge,
}

impl OtherApiClaim {
    /// The conflict with a younger route that asks for the host.
    pub(super) fn conflict(&self, route: &Route, host: &str) -> HostConflict {
        let owner = HostOwner { object: self.owner.clone(), created: self.age.created() };
        owner.conflict(host.to_owned(), route.meta.key.route_id().object(), route.meta.created)
    }
}

impl OtherApiClaims {
    /// Adds a claim on a host in its [`contested`] form; the older claim wins, the first of equally old ones.
    pub fn add(&mut self, host: HostMatch, claim: OtherApiClaim) {
        match self.0.get(&host) {
            Some(other) if other.age <= claim.age => {}
            _ => drop(self.0.insert(host, claim)),
        }
    }

    /// The claim on a host, and the host in its [`contested`] form.
    pub fn on(&self, host: &HostMatch) -> Option<(HostMatch, &OtherApiClaim)> {
        if self.0.is_empty() {
            return None;
        }
        let host = contested(host);
        let claim = self.0.get(&host)?;
        Some((host, claim))
    }

    /// The claims, by host.
    pub fn iter(&self) -> impl Iterator<Item = (&HostMatch, &OtherApiClaim)> {
        self.0.iter()
    }

    /// Hosts whose claims differ from those of an older version.
    pub fn changed_since<'c>(&'c self, older: &'c Self) -> impl Iterator<Item = &'c HostMatch> {
        let gone = older.0.keys().filter(|host| !self.0.contains_key(host));
        self.0.iter().filter(|(host, claim)| older.0.get(host) != Some(claim)).map(|(host, _)| host).chain(gone)
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

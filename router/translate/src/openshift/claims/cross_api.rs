//! Claims of objects of other kinds on a router's hosts. Between kinds the older claim has a host, whole.

use std::collections::BTreeMap;

use router_api::openshift::route::Route;
use router_model::names::HostMatch;
use router_model::object::ObjectRef;

use crate::owned_age::OwnedAge;
use crate::status::host_conflict::{HostConflict, HostOwner};

/// What objects of other kinds want on a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherApiClaims(BTreeMap<HostMatch, OtherApiClaim>);

/// Who wants a host, of the kinds other than Route.
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
    /// Notes a claim on a host in its [`contested`] form; of two the older one counts, and of equally old ones the first.
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

    /// The hosts whose claims differ from those of an older version.
    pub fn changed_since<'c>(&'c self, older: &'c Self) -> impl Iterator<Item = &'c HostMatch> {
        let gone = older.0.keys().filter(|host| !self.0.contains_key(host));
        self.0.iter().filter(|(host, claim)| older.0.get(host) != Some(claim)).map(|(host, _)| host).chain(gone)
    }
}

/// What objects of different kinds contend for: a wildcard, of one label as Routes and HTTPProxies mean it or of any
/// number as Gateways do, is one host.
pub fn contested(host: &HostMatch) -> HostMatch {
    match host {
        HostMatch::Wildcard(domain) => HostMatch::Suffix(domain.clone()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;

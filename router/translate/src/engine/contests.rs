//! Resolves hosts that several APIs claim: the API of the oldest object wins; if objects are equally old, Routes win,
//! then the first API. The cost is proportional to the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::names::{HostMatch, RouterName};

use crate::openshift::claims::cross_api::{OtherApiClaims, contested};
use crate::status::host_conflict::HostOwner;
use crate::translator::{HostClaim, LostHosts, RouterHost};

/// The claims of APIs on hosts, by the index of the API.
#[derive(Debug)]
pub struct Contests {
    /// Claims by router and contested host, the strongest first.
    claims: BTreeMap<RouterHost, Vec<Claimed>>,
    /// The strongest claim on each host, which Routes of the router compete with.
    strongest: BTreeMap<RouterName, OtherApiClaims>,
    /// Claimed hosts that a Route owns.
    route_owners: BTreeMap<RouterHost, HostOwner>,
    /// For each API, its claimed hosts that another API or a Route owns.
    lost: Vec<LostHosts>,
    /// Contested hosts whose claims or Route differ since the last call of [`Contests::resolve`].
    changed: BTreeSet<RouterHost>,
}

#[derive(Debug)]
struct Claimed {
    api: usize,
    host: HostMatch,
    claim: Arc<HostClaim>,
}

/// The strongest claims on contested hosts, in the order in which they changed; `None` for a host without claims.
type StrongestClaims = Vec<(HostMatch, Option<Arc<HostClaim>>)>;

impl Claimed {
    fn precedes(&self, other: &Self) -> bool {
        (&self.claim.age, self.api, &self.host) < (&other.claim.age, other.api, &other.host)
    }
}

impl Contests {
    /// Contests of this number of APIs, without claims.
    pub fn new(apis: usize) -> Self {
        Contests {
            claims: BTreeMap::new(),
            strongest: BTreeMap::new(),
            route_owners: BTreeMap::new(),
            lost: vec![LostHosts::new(); apis],
            changed: BTreeSet::new(),
        }
    }

    /// True if there are no claims.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The claims that Routes of a router compete with.
    pub fn claims_on(&self, router: &RouterName) -> OtherApiClaims {
        self.strongest.get(router).cloned().unwrap_or_default()
    }

    /// Adds, replaces and removes (`None`) claims of an API.
    pub fn claim(&mut self, api: usize, changes: Vec<(RouterHost, Option<Arc<HostClaim>>)>) {
        let is_first_of_all = self.claims.is_empty();
        let mut strongest: BTreeMap<RouterName, StrongestClaims> = BTreeMap::new();
        for ((router, host), claim) in changes {
            let at = (router, contested(&host));
            let claims = self.claims.entry(at.clone()).or_insert_with(|| Vec::with_capacity(1));
            let known = claims.iter().position(|known| (known.api, &known.host) == (api, &host));
            let is_same = known.and_then(|i| claims.get(i)).map(|known| &known.claim) == claim.as_ref();
            if !is_same {
                known.into_iter().for_each(|i| drop(claims.remove(i)));
                if let Some(claim) = claim {
                    let new = Claimed { api, host, claim };
                    claims.insert(claims.partition_point(|other| other.precedes(&new)), new);
                }
                let first = claims.first().map(|first| Arc::clone(&first.claim));
                strongest.entry(at.0.clone()).or_default().push((at.1.clone(), first));
                // Nobody loses the first claim on a host that no Route has.
                let is_first = known.is_none() && claims.len() == 1;
                if !is_first || self.route_owners.contains_key(&at) {
                    self.changed.insert(at.clone());
                }
            }
            if claims.is_empty() {
                self.claims.remove(&at);
            }
        }
        if is_first_of_all {
            // Nodes that grew by insertions in order are half empty.
            self.claims = std::mem::take(&mut self.claims).into_iter().collect();
        }
        for (router, strongest) in strongest {
            let known = self.strongest.entry(router.clone()).or_default();
            // The last change of a host counts.
            known.update(strongest.into_iter().collect::<BTreeMap<_, _>>());
            if known.is_empty() {
                self.strongest.remove(&router);
            }
        }
    }

    /// Adds, replaces and removes (`None`) Routes that own contested hosts of a router; the last entry of a host
    /// counts.
    pub fn set_route_owners(
        &mut self,
        router: &RouterName,
        changes: impl IntoIterator<Item = (HostMatch, Option<HostOwner>)>,
    ) {
        let changes: BTreeMap<HostMatch, Option<HostOwner>> = changes.into_iter().collect();
        for (host, owner) in changes {
            let at = (router.clone(), host);
            if self.route_owners.get(&at) != owner.as_ref() {
                match owner {
                    Some(owner) => drop(self.route_owners.insert(at.clone(), owner)),
                    None => drop(self.route_owners.remove(&at)),
                }
                self.changed.insert(at);
            }
        }
    }

    /// Resolves the contests that differ. Returns for each API the hosts whose entry in [`Contests::lost`] differs.
    pub fn resolve(&mut self) -> Vec<Vec<RouterHost>> {
        let mut changed: Vec<Vec<RouterHost>> = vec![Vec::new(); self.lost.len()];
        for (router, host) in std::mem::take(&mut self.changed) {
            // A contested wildcard also contests the wildcard of one label.
            let wildcard = match &host {
                HostMatch::Suffix(domain) => Some(HostMatch::Wildcard(domain.clone())),
                _ => None,
            };
            let contested = (router, host);
            let claims = self.claims.get(&contested).map_or(&[][..], Vec::as_slice);
            let route_owner = self.route_owners.get(&contested);
            for host in [Some(contested.1.clone()), wildcard].into_iter().flatten() {
                let at = (contested.0.clone(), host);
                for (api, changed) in changed.iter_mut().enumerate() {
                    let Some(lost) = self.lost.get_mut(api) else { continue };
                    let owner = owner(claims, route_owner, api, &at.1);
                    if lost.get(&at) != owner.as_ref() {
                        match owner {
                            Some(owner) => drop(lost.insert(at.clone(), owner)),
                            None => drop(lost.remove(&at)),
                        }
                        changed.push(at.clone());
                    }
                }
            }
        }
        changed
    }

    /// The hosts that an API claims and that another API or a Route owns.
    pub fn lost(&self, api: usize) -> Option<&LostHosts> {
        self.lost.get(api)
    }

    /// True if an API claims a host and owns it.
    pub fn owns(&self, api: usize, at: &RouterHost) -> bool {
        let claims = self.claims.get(&(at.0.clone(), contested(&at.1)));
        let is_claimed = claims.is_some_and(|claims| claims.iter().any(|it| it.api == api && it.host == at.1));
        is_claimed && self.lost.get(api).is_some_and(|lost| !lost.contains_key(at))
    }
}

/// The Route or the object of another API that owns a host which this API claims. `claims` are those on the contested
/// host, and `won` is the Route that has it.
fn owner(claims: &[Claimed], won: Option<&HostOwner>, api: usize, host: &HostMatch) -> Option<HostOwner> {
    claims.iter().find(|claimed| claimed.api == api && claimed.host == *host)?;
    if won.is_some() {
        return won.cloned();
    }
    let first = claims.first().filter(|first| first.api != api)?;
    Some(HostOwner { object: first.claim.owner(), created: first.claim.age.created() })
}

#[cfg(test)]
mod tests;

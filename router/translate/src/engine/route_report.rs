//! Status entries of Routes, and conflicts that prevent Routes from being served. The cost is proportional to the
//! change.

use std::sync::Arc;

use router_api::openshift::route::Route;
use router_api::resources::{Resources, Versions};
use router_model::object::ObjectKey;
use router_model::parallel;
use router_model::persistent::OrderedMap;

use crate::engine::router_state::RouterState;
use crate::status::condition::last_accepted_serves;
use crate::status::ingress::{Ingress, IngressEntry};
use crate::status::report::Conflict;

/// Status entries and conflicts by Route.
#[derive(Debug, Default)]
pub struct RouteReport {
    entries: OrderedMap<ObjectKey, Ingress>,
    conflicts: OrderedMap<ObjectKey, Arc<[Conflict]>>,
}

impl RouteReport {
    /// `status.ingress[]` of every Route.
    pub fn entries(&self) -> &OrderedMap<ObjectKey, Ingress> {
        &self.entries
    }

    /// The conflicts of Routes that have any.
    pub fn conflicts(&self) -> &OrderedMap<ObjectKey, Arc<[Conflict]>> {
        &self.conflicts
    }

    /// Updates the status entries and conflicts of these Routes.
    pub fn update(&mut self, keys: Vec<ObjectKey>, resources: &Resources, routers: &[RouterState]) {
        let found = parallel::map_all(&keys, |key| {
            let versions = resources.routes.versions_of(key)?;
            let conflicts =
                versions.accepted.iter().flat_map(|route| routers.iter().filter_map(|router| router.conflict(route)));
            let conflicts: Vec<Conflict> = conflicts.collect();
            Some((ingress(key, versions, resources, routers), conflicts))
        });
        let mut reports = Vec::with_capacity(keys.len());
        for (key, found) in keys.into_iter().zip(found) {
            let Some((ingress, conflicts)) = found else {
                self.entries.remove(&key);
                self.conflicts.remove(&key);
                continue;
            };
            if conflicts.is_empty() {
                self.conflicts.remove(&key);
            } else {
                self.conflicts.insert(key.clone(), conflicts.into());
            }
            reports.push((key, ingress));
        }
        self.entries.extend(reports);
    }
}

/// The status entries of a route, in order of router.
fn ingress(key: &ObjectKey, versions: &Versions<Route>, resources: &Resources, routers: &[RouterState]) -> Ingress {
    let accepted = versions.accepted.as_deref();
    if let (Some(route), None) = (accepted, &versions.rejected) {
        let mut selecting = routers.iter().filter(|router| router.selects(route));
        if let (Some(only), None) = (selecting.next(), selecting.next())
            && let Some(ingress) = only.plain_ingress(route)
        {
            return ingress;
        }
    }
    let mut entries: Vec<IngressEntry> = Vec::new();
    for router in routers {
        match (accepted, &versions.rejected) {
            (Some(route), rejected) => {
                let Some(mut entry) = router.entry(route) else { continue };
                if let Some(rejected) = rejected {
                    let more = [last_accepted_serves(rejected)];
                    entry.conditions = entry.conditions.iter().cloned().chain(more).collect();
                }
                entries.push(entry);
            }
            (None, Some(rejected)) => entries.extend(router.rejected_entry(key, rejected, resources)),
            (None, None) => {}
        }
    }
    Ingress::new(entries)
}

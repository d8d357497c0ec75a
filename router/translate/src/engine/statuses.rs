//! Statuses of objects of other kinds than Route and IngressController: the translators' statuses, combined with
//! conditions of rejected versions. The cost is proportional to the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::ObjectRef;
use router_model::persistent::{OrderedMap, last_of_each};

use crate::engine::rejected_manifests;
use crate::status::object_status::ObjectStatus;

/// Statuses by object.
#[derive(Debug, Default)]
pub struct ObjectStatuses {
    all: OrderedMap<ObjectRef, Arc<ObjectStatus>>,
    /// Objects whose newest version is rejected, with the status that the API returns for the last valid one.
    rejected: BTreeMap<ObjectRef, Option<Arc<ObjectStatus>>>,
}

impl ObjectStatuses {
    /// All statuses.
    pub fn all(&self) -> &OrderedMap<ObjectRef, Arc<ObjectStatus>> {
        &self.all
    }

    /// Sets and removes (`None`) statuses, and applies changes of rejected versions. The last change of an object
    /// counts.
    pub fn update(
        &mut self,
        changes: impl IntoIterator<Item = (ObjectRef, Option<ObjectStatus>)>,
        resources: &Resources,
        last: &Resources,
    ) {
        let mut combined: BTreeSet<ObjectRef> = BTreeSet::new();
        for (object, is_rejected) in rejected_manifests::changes(resources, last) {
            match (is_rejected, self.rejected.contains_key(&object)) {
                (true, true) => {
                    combined.insert(object);
                }
                (true, false) => {
                    self.rejected.insert(object.clone(), self.all.get(&object).cloned());
                    combined.insert(object);
                }
                (false, true) => match self.rejected.remove(&object).flatten() {
                    Some(of_api) => self.all.insert(object, of_api),
                    None => drop(self.all.remove(&object)),
                },
                (false, false) => {}
            }
        }
        let mut set = Vec::new();
        for (object, status) in last_of_each(changes.into_iter().collect(), |(object, _)| object) {
            if let Some(of_api) = self.rejected.get_mut(&object) {
                *of_api = status.map(Arc::new);
                combined.insert(object);
                continue;
            }
            match status {
                Some(status) if self.all.get(&object).is_none_or(|before| **before != status) => {
                    set.push((object, Arc::new(status)));
                }
                Some(_) => {}
                None => drop(self.all.remove(&object)),
            }
        }
        self.all.extend(set);
        // These decide whether a rejected Gateway or route is ours.
        let gateways_differ = resources.gateways.in_force_since(&last.gateways).next().is_some()
            || resources.gateway_classes.in_force_since(&last.gateway_classes).next().is_some();
        if gateways_differ {
            const KINDS: [Kind; 4] = [Kind::Gateway, Kind::HttpRoute, Kind::GrpcRoute, Kind::TlsRoute];
            combined.extend(self.rejected.keys().filter(|object| KINDS.contains(&object.kind)).cloned());
        }
        for object in combined {
            let of_api = self.rejected.get(&object).and_then(Option::as_deref).cloned();
            match rejected_manifests::status(resources, &object, of_api) {
                Some(status) if self.all.get(&object).is_some_and(|before| **before == status) => {}
                Some(status) => self.all.insert(object, Arc::new(status)),
                None => drop(self.all.remove(&object)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use router_model::object::ObjectKey;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_of_several_changes_of_an_object_counts() {
        let object = ObjectRef { kind: Kind::HttpProxy, key: ObjectKey::new("a", "root") };
        let status = |text: &str| Some(ObjectStatus::new(&json!({ "currentStatus": text }), Vec::new()));
        let (mut statuses, nothing) = (ObjectStatuses::default(), Resources::default());
        for (changes, last) in [
            (vec![status("valid"), status("invalid")], status("invalid")),
            (vec![status("valid"), status("invalid")], status("invalid")),
            (vec![status("valid"), None], None),
            (vec![None, status("valid")], status("valid")),
        ] {
            let changes = changes.into_iter().map(|change| (object.clone(), change));
            statuses.update(changes, &nothing, &nothing);
            assert_eq!(statuses.all().get(&object).map(|status| ObjectStatus::clone(status)), last);
        }
    }
}

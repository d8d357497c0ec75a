//! The status of every object whose status Sluice writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use router_api::gateway_api::types::CONTROLLER_NAME;
use router_model::kind::Kind;
use router_model::names::RouterName;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::persistent::OrderedMap;
use serde_json::{Value, json};

use crate::status::controller::ControllerStatus;
use crate::status::ingress::{Ingress, IngressEntry};
use crate::status::merge::{Ownership, merge};
use crate::status::object_status::ObjectStatus;

/// The status of every object whose status Sluice writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusReport {
    /// `status.ingress[]` of every Route, in order of router; empty if no router selects the route.
    pub routes: OrderedMap<ObjectKey, Ingress>,
    /// Status of every IngressController.
    pub ingress_controllers: BTreeMap<ObjectKey, ControllerStatus>,
    /// The routers whose entries are ours.
    pub routers: BTreeSet<RouterName>,
    /// Status of objects of other kinds.
    pub others: OrderedMap<ObjectRef, Arc<ObjectStatus>>,
    /// Routes that lost all or some of their requests to an older object. For operators: unlike the statuses, this
    /// names routes of other namespaces.
    pub conflicts: OrderedMap<ObjectKey, Arc<[Conflict]>>,
}

/// Types of our conditions in a Route's entries, in an IngressController's status, and in statuses of other kinds.
const OF_ROUTES: [&str; 3] = ["Admitted", "ManifestValid", "UnservableInFutureVersions"];
const OF_CONTROLLERS: [&str; 4] = ["Admitted", "Available", "Degraded", "ManifestValid"];
const OF_OTHERS: [&str; 14] = [
    "Accepted",
    "Attached",
    "Conflicted",
    "InsecureFrontendValidationMode",
    "ManifestValid",
    "NotSupported",
    "OverlappingTLSConfig",
    "PartiallyInvalid",
    "Programmed",
    "Ready",
    "ResolvedRefs",
    "Scheduled",
    "SupportedVersion",
    "Valid",
];

/// Lists of statuses of other kinds that several controllers share, and the member of their entries that names the
/// owner.
const LISTS: [&str; 2] = ["parents", "ancestors"];
const OWNER: &str = "controllerName";

impl StatusReport {
    /// A stored status without our entries, for an object that the report does not have any more. Lists stay: their
    /// definitions require them, and an empty one may be another controller's.
    pub fn released(current: &Value, now: Timestamp) -> Value {
        let is_ours = |name: &str| name == CONTROLLER_NAME;
        let owned = Ownership { lists: &LISTS, owner: OWNER, is_ours: &is_ours, conditions: &[] };
        let mut merged = merge(&json!({}), &owned, Some(current), None, now);
        if let Some(members) = merged.as_object_mut() {
            for name in LISTS.into_iter().chain(["conditions"]).filter(|name| current.get(name).is_some()) {
                members.entry(name).or_insert_with(|| json!([]));
            }
        }
        merged
    }

    /// The `status` to be stored for an object ([`merge`]); `None` if the report has none.
    pub fn merged(
        &self,
        object: &ObjectRef,
        current: Option<&Value>,
        written: Option<&Value>,
        now: Timestamp,
    ) -> Option<Value> {
        let merged = |ours: &Value, owned: &Ownership<'_>| Some(merge(ours, owned, current, written, now));
        match object.kind {
            Kind::Route => {
                let entries = self.routes.get(&object.key)?.to_vec();
                let entries: Vec<Value> = entries.iter().map(IngressEntry::value).collect();
                let ours = if entries.is_empty() { json!({}) } else { json!({ "ingress": entries }) };
                let is_ours = |name: &str| self.routers.iter().any(|router| &*router.0 == name);
                let conditions = &OF_ROUTES;
                merged(&ours, &Ownership { lists: &["ingress"], owner: "routerName", is_ours: &is_ours, conditions })
            }
            Kind::IngressController => {
                let ours = self.ingress_controllers.get(&object.key)?.value();
                let conditions = &OF_CONTROLLERS;
                merged(&ours, &Ownership { lists: &[], owner: "", is_ours: &|_| false, conditions })
            }
            _ => {
                let ours = &self.others.get(object)?.status();
                let is_ours = |name: &str| name == CONTROLLER_NAME;
                let owned = Ownership { lists: &LISTS, owner: OWNER, is_ours: &is_ours, conditions: &OF_OTHERS };
                merged(ours, &owned)
            }
        }
    }
}

/// A route that lost to an older object on a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The router.
    pub router: RouterName,
    /// The loser's effective host on the router.
    pub host: String,
    /// The owner of the host.
    pub winner: ObjectRef,
    /// `reason` of the loser's Admitted condition.
    pub reason: String,
    /// Its `message`, which names no foreign namespace.
    pub message: String,
}

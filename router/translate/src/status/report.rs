//! The status of every object whose status Sluice writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::names::RouterName;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::persistent::Sorted;

use crate::status::controller::ControllerStatus;
use crate::status::ingress::Ingress;
use crate::status::object_status::ObjectStatus;

/// The status of every object whose status Sluice writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusReport {
    /// `status.ingress[]` of every Route, in order of router; empty for a route that no router selects.
    pub routes: Sorted<ObjectKey, Ingress>,
    /// Status of every IngressController.
    pub ingress_controllers: BTreeMap<ObjectKey, ControllerStatus>,
    /// The routers that entries are written for.
    pub routers: BTreeSet<RouterName>,
    /// What objects of other kinds are told.
    pub others: Sorted<ObjectRef, Arc<ObjectStatus>>,
    /// Routes that an older object keeps from being served, or from some of their requests. For operators: unlike the
    /// statuses, this names routes of other namespaces.
    pub conflicts: Sorted<ObjectKey, Arc<[Conflict]>>,
}

/// A route that lost to an older object on a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The router.
    pub router: RouterName,
    /// What the loser wanted: its effective host there.
    pub host: String,
    /// Who has it.
    pub winner: ObjectRef,
    /// `reason` of the loser's Admitted condition.
    pub reason: String,
    /// Its `message`, which names no foreign namespace.
    pub message: String,
}

//! What Sluice reports about objects, without times; `merge` adds those.

mod ingress;
mod merge;
mod others;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::admit::RejectReason;
use crate::sites::Told;
use router_api::openshift::ingress_controller::IngressController;
use router_api::resources::Refused;
use router_model::names::RouterName;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::persistent::Sorted;

pub use ingress::{Ingress, RouterIdentity};
pub use merge::{Merged, merge_controller, merge_route, same_but_times};
pub use others::merge_other;

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
    pub others: Sorted<ObjectRef, Arc<Told>>,
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

/// One entry of a Route's `status.ingress[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressEntry {
    /// Effective host on the router; empty when there is none.
    pub host: String,
    /// The router.
    pub router_name: RouterName,
    /// `router-<name>.<domain>`.
    pub router_canonical_hostname: Arc<str>,
    /// `None` or `Subdomain`.
    pub wildcard_policy: &'static str,
    /// Admitted, and ManifestValid when a newer version is refused.
    pub conditions: Arc<[Condition]>,
}

/// Status of an IngressController.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerStatus {
    /// Effective domain; empty when the manifest is refused.
    pub domain: String,
    /// Ports for HTTP and HTTPS; `None` when the manifest is refused.
    pub ports: Option<(u16, u16)>,
    /// Effective `routeAdmission`: namespace ownership and wildcard policy.
    pub route_admission: Option<(&'static str, &'static str)>,
    /// `spec.namespaceSelector`, repeated.
    pub namespace_selector: Option<Value>,
    /// `spec.routeSelector`, repeated.
    pub route_selector: Option<Value>,
    /// Admitted, Available, Degraded, and ManifestValid when a newer version is refused.
    pub conditions: Vec<Condition>,
}

impl ControllerStatus {
    /// The status of a controller whose manifest is good; conditions follow.
    pub fn new(controller: &IngressController, domain: String, ports: (u16, u16)) -> Self {
        let manifest = controller.manifest.value();
        let spec = |name: &str| manifest.pointer(&format!("/spec/{name}")).cloned();
        ControllerStatus {
            domain,
            ports: Some(ports),
            route_admission: Some((controller.namespace_ownership.as_str(), controller.wildcard_admission.as_str())),
            namespace_selector: spec("namespaceSelector"),
            route_selector: spec("routeSelector"),
            conditions: Vec::new(),
        }
    }

    /// The status of a controller that has no good version.
    pub fn refused(condition: Condition) -> Self {
        ControllerStatus {
            domain: String::new(),
            ports: None,
            route_admission: None,
            namespace_selector: None,
            route_selector: None,
            conditions: vec![condition],
        }
    }

    /// The members of `status` without the conditions, as the API writes them.
    fn members(&self) -> Vec<(&'static str, Value)> {
        let mut members = Vec::new();
        if !self.domain.is_empty() {
            members.push(("domain", json!(self.domain)));
        }
        if let Some((http, https)) = self.ports {
            let network = json!({ "httpPort": http, "httpsPort": https });
            members.push(("endpointPublishingStrategy", json!({ "type": "HostNetwork", "hostNetwork": network })));
        }
        members.extend(self.namespace_selector.clone().map(|selector| ("namespaceSelector", selector)));
        if let Some((ownership, wildcards)) = self.route_admission {
            let admission = json!({ "namespaceOwnership": ownership, "wildcardPolicy": wildcards });
            members.push(("routeAdmission", admission));
        }
        members.extend(self.route_selector.clone().map(|selector| ("routeSelector", selector)));
        members
    }
}

/// A condition, without the time of its last transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `type`.
    pub kind: &'static str,
    /// `status`: True or False.
    pub holds: bool,
    /// `reason`; may be empty.
    pub reason: String,
    /// `message`; may be empty.
    pub message: String,
}

impl Condition {
    /// A condition.
    pub fn new(kind: &'static str, holds: bool, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Condition { kind, holds, reason: reason.into(), message: message.into() }
    }

    /// `status` as the API writes it.
    pub fn status(&self) -> &'static str {
        if self.holds { "True" } else { "False" }
    }
}

/// The condition of an object whose newest version is refused, and that has no earlier one.
pub fn invalid_manifest(refused: &Refused) -> Condition {
    Condition::new("Admitted", false, RejectReason::InvalidManifest.as_str(), refused.problem.clone())
}

/// The condition of an object whose newest version is refused while an earlier one is in force.
pub fn last_good_serves(refused: &Refused) -> Condition {
    let message = format!("{}; the last good version goes on serving", refused.problem);
    Condition::new("ManifestValid", false, "InvalidManifest", message)
}

#[cfg(test)]
mod tests;

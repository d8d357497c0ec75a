//! Immutable fields.

use router_model::field::{FieldPath, Findings};

use crate::defaults::Defaults;
use crate::object::Object;
use crate::openshift::ingress_controller::IngressController;
use crate::openshift::route::Route;

/// Checks an update: each changed immutable field is an error. Objects of different kinds or names are not compared.
pub fn check_update(old: &Object, new: &Object, defaults: &Defaults) -> Findings {
    let mut findings = Findings::default();
    if old.key() == new.key() {
        match (old, new) {
            (Object::Route(old), Object::Route(new)) => check_route(old, new, &mut findings),
            (Object::IngressController(old), Object::IngressController(new)) => {
                check_controller(old, new, defaults, &mut findings);
            }
            _ => {}
        }
    }
    findings
}

pub(crate) fn check_route(old: &Route, new: &Route, findings: &mut Findings) {
    if old.wildcard_policy != new.wildcard_policy {
        let message = format!(
            "Invalid value: {:?}: field is immutable; write {} again, or delete the route and create it anew",
            new.wildcard_policy.as_str(),
            old.wildcard_policy.as_str()
        );
        findings.error(FieldPath::of(&["spec", "wildcardPolicy"]), message);
    }
}

pub(crate) fn check_controller(
    old: &IngressController,
    new: &IngressController,
    defaults: &Defaults,
    findings: &mut Findings,
) {
    // The cluster's default domain may be written out or left out.
    let effective =
        |controller: &IngressController| controller.domain.clone().unwrap_or_else(|| defaults.cluster_domain.clone());
    let (before, after) = (effective(old), effective(new));
    if before != after {
        let message = format!(
            "Invalid value: {after:?}: field is immutable; write {before:?} again, or create another IngressController"
        );
        findings.error(FieldPath::of(&["spec", "domain"]), message);
    }
}

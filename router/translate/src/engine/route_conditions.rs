//! Conditions of Routes that are rejected, or admitted with a remark.

use std::sync::Arc;

use router_api::openshift::route::Route;
use router_model::object::{ObjectRef, Seniority};

use crate::openshift::claims::AdmissionDecision;
use crate::openshift::compile::Shadow;
use crate::status::condition::Condition;
use crate::status::host_conflict;

/// Conditions of a selected route.
#[derive(Debug)]
pub struct RouteConditions {
    /// The conditions for its status.
    pub conditions: Arc<[Condition]>,
    /// The older object that owns the host, or covers the requests, that this one claims.
    pub winner: Option<ObjectRef>,
}

impl RouteConditions {
    /// The conditions for a decision; `None`, as for most routes, if it is admitted without remarks.
    pub fn of(decision: AdmissionDecision, shadow: Option<&(Shadow<'_>, Seniority)>) -> Option<Self> {
        let (condition, winner) = match decision.outcome {
            Err(rejection) => {
                let condition = Condition::new("Admitted", false, rejection.reason.as_str(), rejection.message);
                (condition, rejection.winner)
            }
            Ok(_) => (remark(&decision.route, shadow)?, shadow.map(|(shadow, _)| shadow.by.id.object())),
        };
        Some(RouteConditions { conditions: Arc::new([condition]), winner })
    }
}

/// Admitted is True with empty reason and message (docs/openshift.md#admitted), unless there is a remark.
fn remark(route: &Route, shadow: Option<&(Shadow<'_>, Seniority)>) -> Option<Condition> {
    if let Some(list) = route.allow_list().filter(|list| list.nets.is_empty()) {
        let message = format!("annotation {} has no valid address, so nobody may connect", list.annotation);
        return Some(Condition::new("Admitted", true, "NobodyAllowed", message));
    }
    let (shadow, seniority) = shadow?;
    let schemes: Vec<_> = shadow.schemes.iter().copied().collect();
    let by = host_conflict::name(&shadow.by.id.object(), &shadow.route.id.object());
    let message = format!(
        "shadowed over {}: {by} has path {:?}, which covers the same requests, and {}",
        schemes.join(" and "),
        shadow.by.path(),
        seniority.words()
    );
    Some(Condition::new("Admitted", true, "Shadowed", message))
}

//! What is said about a route beyond that it is served.

use std::sync::Arc;

use router_api::openshift::route::Route;
use router_model::object::{ObjectRef, Seniority};

use crate::openshift::claims::AdmissionDecision;
use crate::openshift::compile::Shadow;
use crate::status::condition::Condition;
use crate::status::host_conflict;

/// What became of a selected route.
#[derive(Debug)]
pub struct RouteConditions {
    /// What the route is told.
    pub conditions: Arc<[Condition]>,
    /// The older object that has what this one wanted.
    pub winner: Option<ObjectRef>,
}

impl RouteConditions {
    /// What there is to say about a decision; `None` for what most get: admitted, and nothing more.
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

/// Admitted is True with empty reason and message (docs/openshift.md#admitted), except where something is worth saying.
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

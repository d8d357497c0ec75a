//! The route's allow-list, applied to the client of the query.

use router_api::openshift::route::annotations::allowlist::ALLOWLIST;
use router_table::flag::Flag;
use router_table::table::ResolvedRoute;

use super::outcome::{QueryContext, QueryOutcome};
use crate::explain::explanation::{ClientAdmission, Explanation, ExplanationStep};
use crate::explain::facts::Facts;

/// Adds the allow-list step, if there is a list. Returns false, with the verdict set, if the list rejects the client of
/// the query, or every client.
pub fn admits(facts: Facts<'_>, context: &QueryContext<'_>, route: &ResolvedRoute, out: &mut Explanation) -> bool {
    let from = context.request.client();
    if route.allow().is_none() && from.is_none() {
        return true;
    }
    let client = from.map(|address| {
        let by = route.allow().into_iter().flatten().find(|network| network.contains(&address));
        ClientAdmission { address, admitted: route.admits_source(address), by: by.map(ToString::to_string) }
    });
    let rejected = client.as_ref().filter(|client| !client.admitted).map(|client| client.address);
    let answer = QueryOutcome::from(context.refused(403, Flag::SourceNotAllowed));
    let allow = route.allow().map(|networks| networks.iter().map(ToString::to_string).collect());
    out.steps.push(ExplanationStep::Filter { allow, client });
    if matches!(route.allow(), Some([])) {
        out.verdict =
            format!("Route {} has it, but its allow-list has no valid address, so nobody may connect", route.id);
        out.fix = Some("write IP addresses or networks, such as 10.0.0.0/8, into the route's allow-list".to_owned());
        out.outcome.push(answer);
        return false;
    }
    let Some(address) = rejected else {
        if from.is_none() {
            out.outcome.push(answer.when("the client's address is not in the allow-list"));
        }
        return true;
    };
    out.outcome.push(answer);
    let how = if context.is_stream { "the connection is reset" } else { "403" };
    let object = facts.resources.routes.get(&route.id.object_key());
    let annotation = object.and_then(|object| object.allow_list()).map_or(ALLOWLIST, |list| list.annotation);
    out.verdict = format!("{how}: Route {} has it, but {address} is not in its allow-list", route.id);
    out.fix = Some(format!("add {address} to the annotation {annotation} of Route {}", route.id));
    false
}

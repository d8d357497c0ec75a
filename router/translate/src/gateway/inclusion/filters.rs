//! Filters and time-outs of a parent and its child, one after the other.

use std::sync::Arc;
use std::time::Duration;

use router_api::gateway_api::types::{Filter, GatewayRoute};

use crate::gateway::inclusion::types::AuthoredFilter;

/// How many copies of a request are sent at most.
const MOST_MIRRORS: usize = 8;

/// The parent's filters, then those of a rule of a child.
///
/// # Errors
/// Why they cannot stand in one rule.
pub fn chain(
    above: &[AuthoredFilter],
    route: &Arc<GatewayRoute>,
    filters: &[Filter],
) -> Result<Vec<AuthoredFilter>, String> {
    let has = |is: fn(&Filter) -> bool| (above.iter().any(|one| is(&one.filter)), filters.iter().any(is));
    if let (true, true) = has(moves) {
        return Err("URLRewrite or RequestRedirect, and its parent has URLRewrite".to_owned());
    }
    if let (true, true) = has(|filter| matches!(filter, Filter::Cors(_))) {
        return Err("CORS, and its parent has CORS".to_owned());
    }
    let own = filters.iter().map(|filter| AuthoredFilter { author: route.clone(), filter: filter.clone() });
    let chain: Vec<_> = above.iter().cloned().chain(own).collect();
    let mirrors = chain.iter().filter(|one| matches!(one.filter, Filter::Mirror(_))).count();
    if !above.is_empty() && mirrors > MOST_MIRRORS {
        return Err(format!("{mirrors} RequestMirror filters with its parent's; {MOST_MIRRORS} may be"));
    }
    Ok(chain)
}

/// Whether a filter changes where a request goes: only one in a rule can.
pub fn moves(filter: &Filter) -> bool {
    matches!(filter, Filter::Rewrite(_) | Filter::Redirect(_))
}

/// The shorter of two limits; zero is none.
pub fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    let limit = |limit: Option<Duration>| limit.filter(|limit| !limit.is_zero());
    match (limit(one), limit(other)) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

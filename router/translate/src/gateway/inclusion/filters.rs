//! Combines the filters and time-outs of a parent with those of its child.

use std::sync::Arc;
use std::time::Duration;

use router_api::gateway_api::types::{Filter, GatewayRoute};

use crate::gateway::inclusion::types::AuthoredFilter;

/// Maximum number of RequestMirror filters in an effective rule.
const MAX_MIRRORS: usize = 8;

/// The parent's filters, followed by those of a child's rule.
///
/// # Errors
/// Which filters conflict.
pub fn chain(
    above: &[AuthoredFilter],
    route: &Arc<GatewayRoute>,
    filters: &[Filter],
) -> Result<Vec<AuthoredFilter>, String> {
    let has = |is: fn(&Filter) -> bool| (above.iter().any(|one| is(&one.filter)), filters.iter().any(is));
    if let (true, true) = has(changes_destination) {
        return Err("URLRewrite or RequestRedirect, and its parent has URLRewrite".to_owned());
    }
    if let (true, true) = has(|filter| matches!(filter, Filter::Cors(_))) {
        return Err("CORS, and its parent has CORS".to_owned());
    }
    let own = filters.iter().map(|filter| AuthoredFilter { author: route.clone(), filter: filter.clone() });
    let chain: Vec<_> = above.iter().cloned().chain(own).collect();
    let mirrors = chain.iter().filter(|one| matches!(one.filter, Filter::Mirror(_))).count();
    if !above.is_empty() && mirrors > MAX_MIRRORS {
        return Err(format!("{mirrors} RequestMirror filters with its parent's; at most {MAX_MIRRORS} are allowed"));
    }
    Ok(chain)
}

/// True for filters that change a request's destination; a rule can have only one.
pub fn changes_destination(filter: &Filter) -> bool {
    matches!(filter, Filter::Rewrite(_) | Filter::Redirect(_))
}

/// The shorter of two time-outs; zero means no time-out.
pub fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    let limit = |limit: Option<Duration>| limit.filter(|limit| !limit.is_zero());
    match (limit(one), limit(other)) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

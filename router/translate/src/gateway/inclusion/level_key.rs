//! Sort key of a match within its level.

use std::cmp::Reverse;

use router_api::gateway_api::types::GatewayRoute;
use router_model::object::{Created, ObjectKey};
use router_table::matchers::{PathMatcher, RequestMatcher};

/// Precedence of a match within its level, hostnames aside; smaller comes first. In order: exact paths, regular
/// expressions, prefixes (longer first); a method; number of headers; number of query parameters; the older route (one
/// without `creationTimestamp` is the youngest); namespace and name; position in the route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelKey {
    pub(super) rank: MatchRank,
    pub(super) position: (usize, usize),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MatchRank {
    path: (u8, Reverse<usize>),
    method: Reverse<bool>,
    headers: Reverse<usize>,
    query: Reverse<usize>,
    route: (Created, ObjectKey),
}

impl LevelKey {
    /// The key of match `alternative` of rule `rule`.
    pub fn new(route: &GatewayRoute, rule: usize, alternative: usize, matcher: &RequestMatcher) -> Self {
        let rank = MatchRank {
            path: match &matcher.path {
                PathMatcher::Exact(path) => (0, Reverse(path.len())),
                PathMatcher::Regex(regex) => (1, Reverse(regex.as_str().len())),
                PathMatcher::Prefix(path) => (2, Reverse(path.len())),
            },
            method: Reverse(matcher.method.is_some()),
            headers: Reverse(matcher.headers.len()),
            query: Reverse(matcher.query.len()),
            route: (route.meta.created, route.meta.key.clone()),
        };
        LevelKey { rank, position: (rule, alternative) }
    }
}

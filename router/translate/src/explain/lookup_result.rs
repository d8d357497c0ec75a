//! Result of looking up a request or a server name in the table.

use std::sync::Arc;

use router_table::decide::RequestDecision;
use router_table::rule::Rule;
use router_table::table::ResolvedRoute;

/// The table's result.
pub enum LookupResult<'t> {
    /// Passthrough.
    Passthrough(&'t Arc<ResolvedRoute>),
    /// TLS is terminated, and the content forwarded as TCP.
    Tcp(&'t Arc<ResolvedRoute>),
    /// Only for a server name: TLS is terminated here. `false`: no route terminates TLS for it.
    Handshake(bool),
    /// A decision on a request.
    Request(RequestDecision<'t>),
    /// The request is invalid for every route; the status code.
    Invalid(u16),
}

impl<'t> LookupResult<'t> {
    /// The matching rule.
    pub fn rule(&self) -> Option<&'t Arc<Rule>> {
        match *self {
            LookupResult::Request(RequestDecision::Forward { rule, .. } | RequestDecision::Refuse { rule, .. }) => rule,
            LookupResult::Request(RequestDecision::RuleRedirect { rule, .. } | RequestDecision::Preflight(rule)) => {
                Some(rule)
            }
            _ => None,
        }
    }

    /// The matching Route, or the resolved route of a rule.
    pub fn route(&self) -> Option<&'t Arc<ResolvedRoute>> {
        match *self {
            LookupResult::Passthrough(route) | LookupResult::Tcp(route) => Some(route),
            LookupResult::Request(RequestDecision::Forward { route, .. } | RequestDecision::RedirectToHttps(route)) => {
                Some(route)
            }
            LookupResult::Request(RequestDecision::Refuse { route, .. }) => route,
            _ => self.rule().map(|rule| &rule.route),
        }
    }
}

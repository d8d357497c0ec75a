//! The table's result for a request or a server name.

use std::sync::Arc;

use router_table::decide::Decision;
use router_table::rule::Rule;
use router_table::table::ResolvedRoute;

/// The table's result.
pub enum Found<'t> {
    /// Passthrough.
    Passthrough(&'t Arc<ResolvedRoute>),
    /// TLS is terminated, and the content forwarded as TCP.
    Tcp(&'t Arc<ResolvedRoute>),
    /// Only for a server name: TLS is terminated here. `false`: no route asks for it.
    Handshake(bool),
    /// A decision on a request.
    Request(Decision<'t>),
    /// The request is invalid for every route; the status code.
    Invalid(u16),
}

impl<'t> Found<'t> {
    /// The matching rule.
    pub fn rule(&self) -> Option<&'t Arc<Rule>> {
        match *self {
            Found::Request(Decision::Forward { rule, .. } | Decision::Refuse { rule, .. }) => rule,
            Found::Request(Decision::RuleRedirect { rule, .. } | Decision::Preflight(rule)) => Some(rule),
            _ => None,
        }
    }

    /// The matching Route, or the resolved route of a rule.
    pub fn route(&self) -> Option<&'t Arc<ResolvedRoute>> {
        match *self {
            Found::Passthrough(route) | Found::Tcp(route) => Some(route),
            Found::Request(Decision::Forward { route, .. } | Decision::RedirectToHttps(route)) => Some(route),
            Found::Request(Decision::Refuse { route, .. }) => route,
            _ => self.rule().map(|rule| &rule.route),
        }
    }
}

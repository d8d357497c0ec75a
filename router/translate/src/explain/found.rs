//! What the table has for a request or a server name.

use std::sync::Arc;

use router_table::decide::Decision;
use router_table::rule::Rule;
use router_table::table::ResolvedRoute;

/// What the table says.
pub enum Found<'t> {
    /// The stream is passed on as it is.
    Passthrough(&'t Arc<ResolvedRoute>),
    /// TLS is taken off, and bytes are forwarded.
    Tcp(&'t Arc<ResolvedRoute>),
    /// Only a server name was asked for, and TLS for it ends here; `false`: by nobody's wish.
    Handshake(bool),
    /// A request is decided about.
    Request(Decision<'t>),
    /// A request that is refused whoever would have it.
    Invalid(u16),
}

impl<'t> Found<'t> {
    /// The rule that has it.
    pub fn rule(&self) -> Option<&'t Arc<Rule>> {
        match *self {
            Found::Request(Decision::Forward { rule, .. } | Decision::Refuse { rule, .. }) => rule,
            Found::Request(Decision::RuleRedirect { rule, .. } | Decision::Preflight(rule)) => Some(rule),
            _ => None,
        }
    }

    /// The Route, or what is made of a rule.
    pub fn route(&self) -> Option<&'t Arc<ResolvedRoute>> {
        match *self {
            Found::Passthrough(route) | Found::Tcp(route) => Some(route),
            Found::Request(Decision::Forward { route, .. } | Decision::RedirectToHttps(route)) => Some(route),
            Found::Request(Decision::Refuse { route, .. }) => route,
            _ => self.rule().map(|rule| &rule.route),
        }
    }
}

//! Redirects of Gateway API rules and HTTPProxies (HTTPRequestRedirectFilter).

use std::sync::Arc;

use router_model::names::Hostname;

/// `HTTPRequestRedirectFilter`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redirect {
    /// `scheme`: `http` or `https`.
    pub scheme: Option<Arc<str>>,
    /// `hostname`.
    pub hostname: Option<Hostname>,
    /// `path`.
    pub path: Option<PathModifier>,
    /// `port`.
    pub port: Option<u16>,
    /// `statusCode`, 302 by default.
    pub status: u16,
}

/// `HTTPPathModifier`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathModifier {
    /// `ReplaceFullPath`.
    Full(Arc<str>),
    /// `ReplacePrefixMatch`: the replacement of the matched prefix.
    Prefix(Arc<str>),
}

//! Conditions of rules on requests, for all APIs.

use std::sync::Arc;

use crate::pattern::Pattern;

/// Conditions on a request; all of them must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestMatcher {
    /// `path`.
    pub path: PathMatcher,
    /// `method`.
    pub method: Option<Arc<str>>,
    /// `headers`, names in lower case; of entries with the same name the first applies.
    pub headers: NamedMatchers,
    /// `queryParams`; of entries with the same name the first applies.
    pub query: NamedMatchers,
}

/// Conditions on header fields or query parameters, by name.
pub type NamedMatchers = Vec<(Arc<str>, ValueMatcher)>;

/// `HTTPPathMatch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatcher {
    /// `PathPrefix`, by element: `/`, or such as `/a/b` without a trailing slash.
    Prefix(Arc<str>),
    /// `Exact`.
    Exact(Arc<str>),
    /// `RegularExpression`: the whole path must match.
    Regex(Pattern),
}

impl Default for PathMatcher {
    fn default() -> Self {
        PathMatcher::Prefix("/".into())
    }
}

/// `HTTPHeaderMatch`, `HTTPQueryParamMatch`: the condition on a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueMatcher {
    /// `Exact`: this value.
    Exact(Arc<str>),
    /// `RegularExpression`: the whole value must match.
    Regex(Pattern),
}

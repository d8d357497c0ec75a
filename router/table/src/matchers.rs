//! What a request must be like: conditions of rules, in all APIs that have them.

use std::sync::Arc;

use crate::pattern::Pattern;

/// What a request must be like; all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestMatcher {
    /// `path`.
    pub path: PathMatcher,
    /// `method`.
    pub method: Option<Arc<str>>,
    /// `headers`, names in lower case; the first of a name counts.
    pub headers: Vec<(Arc<str>, ValueMatcher)>,
    /// `queryParams`; the first of a name counts.
    pub query: Vec<(Arc<str>, ValueMatcher)>,
}

/// `HTTPPathMatch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatcher {
    /// `PathPrefix`, by element: `/` or `/a/b` without a slash at its end.
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

/// `HTTPHeaderMatch`, `HTTPQueryParamMatch`: what a value must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueMatcher {
    /// This value.
    Exact(Arc<str>),
    /// The whole value must match.
    Regex(Pattern),
}

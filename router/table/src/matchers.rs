//! What a request must be like: conditions of rules, in all APIs that have them.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

/// What a request must be like; all of it.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug)]
pub enum PathMatcher {
    /// `PathPrefix`, by element: `/` or `/a/b` without a slash at its end.
    Prefix(Arc<str>),
    /// `Exact`.
    Exact(Arc<str>),
    /// `RegularExpression`: the whole path must match.
    Regex(Regex),
}

impl Default for PathMatcher {
    fn default() -> Self {
        PathMatcher::Prefix("/".into())
    }
}

/// `HTTPHeaderMatch`, `HTTPQueryParamMatch`: what a value must be.
#[derive(Clone, Debug)]
pub enum ValueMatcher {
    /// This value.
    Exact(Arc<str>),
    /// The whole value must match.
    Regex(Regex),
}

/// Most memory of one compiled expression, in bytes.
const MAX_EXPRESSION: usize = 1 << 20;

const START: &str = "^(?:";
const END: &str = ")$";

/// An expression that the whole of a text must match.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn expression(text: &str, ignore_case: bool) -> Result<Regex, String> {
    let build = |text: &str| {
        let mut builder = RegexBuilder::new(text);
        builder.size_limit(MAX_EXPRESSION).dfa_size_limit(MAX_EXPRESSION);
        builder.case_insensitive(ignore_case).dot_matches_new_line(true).build()
    };
    // By itself first: what is unbalanced must not become good by the anchors.
    build(text).and_then(|_| build(&format!("{START}{text}{END}"))).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the expression is too large; write a shorter one".to_owned(),
        _ => format!("{text:?} is not a valid regular expression; use RE2 syntax"),
    })
}

/// The text that an expression of [`expression`] was made of.
pub fn written(expression: &Regex) -> &str {
    expression.as_str().strip_prefix(START).and_then(|text| text.strip_suffix(END)).unwrap_or_default()
}

/// Whether two conditions ask for the same.
pub fn same(one: &ValueMatcher, other: &ValueMatcher) -> bool {
    match (one, other) {
        (ValueMatcher::Exact(one), ValueMatcher::Exact(other)) => one == other,
        (ValueMatcher::Regex(one), ValueMatcher::Regex(other)) => one.as_str() == other.as_str(),
        _ => false,
    }
}

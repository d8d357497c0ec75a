//! Combines the matches of a parent and its child.

use std::sync::Arc;

use router_model::kind::Kind;
use router_table::matchers::{NamedMatchers, PathMatcher, RequestMatcher, ValueMatcher};

/// Why two matches cannot be combined, as a message for the child; must not reveal the parent's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// No request can match both.
    Empty(String),
    /// The combination is not supported.
    Unsupported(String),
}

/// The conjunction of two matches, the parent's conditions first so that the child cannot replace them. A child's path
/// continues its parent's; services and methods of GRPCRoutes have the same meaning at every level.
pub fn combine(kind: Kind, parent: &RequestMatcher, child: &RequestMatcher) -> Result<RequestMatcher, Mismatch> {
    let method = match (&parent.method, &child.method) {
        (Some(one), Some(other)) if one != other => {
            return Err(Mismatch::Empty(format!("its parent does not take method {other}")));
        }
        (one, other) => one.as_ref().or(other.as_ref()).cloned(),
    };
    Ok(RequestMatcher {
        path: match kind {
            Kind::GrpcRoute => intersect_calls(&parent.path, &child.path)?,
            _ => path(&parent.path, &child.path)?,
        },
        method,
        headers: first_of_each(&parent.headers, &child.headers),
        query: first_of_each(&parent.query, &child.query),
    })
}

fn path(parent: &PathMatcher, child: &PathMatcher) -> Result<PathMatcher, Mismatch> {
    Ok(match (parent, child) {
        (PathMatcher::Prefix(parent), PathMatcher::Prefix(child)) => PathMatcher::Prefix(join(parent, child)),
        (PathMatcher::Prefix(parent), PathMatcher::Exact(child)) => PathMatcher::Exact(join(parent, child)),
        (PathMatcher::Prefix(parent), PathMatcher::Regex(child)) if is_root(parent) => {
            PathMatcher::Regex(child.clone())
        }
        (PathMatcher::Prefix(_), PathMatcher::Regex(_)) => {
            return Err(Mismatch::Unsupported(
                "a path of type RegularExpression below a path; write PathPrefix or Exact".to_owned(),
            ));
        }
        (PathMatcher::Exact(parent), PathMatcher::Prefix(child)) if is_root(child) => {
            PathMatcher::Exact(parent.clone())
        }
        (PathMatcher::Exact(_), PathMatcher::Prefix(child) | PathMatcher::Exact(child)) => {
            return Err(Mismatch::Empty(format!("path {child} below an exact path")));
        }
        (PathMatcher::Exact(_), PathMatcher::Regex(_)) => {
            return Err(Mismatch::Unsupported(
                "a path of type RegularExpression below an exact path; write no path".to_owned(),
            ));
        }
        (PathMatcher::Regex(_), _) => {
            return Err(Mismatch::Unsupported(
                "a slot whose path is of type RegularExpression; write PathPrefix or Exact there".to_owned(),
            ));
        }
    })
}

/// The gRPC calls that match both.
fn intersect_calls(parent: &PathMatcher, child: &PathMatcher) -> Result<PathMatcher, Mismatch> {
    use PathMatcher::{Exact, Prefix, Regex};
    let is_within = |call: &str, service: &str| {
        call.strip_prefix(service).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let (narrower, holds) = match (parent, child) {
        (Prefix(any), _) if is_root(any) => (child, true),
        (_, Prefix(any)) if is_root(any) => (parent, true),
        (Prefix(one), Prefix(other) | Exact(other)) => (child, is_within(other, one)),
        (Exact(one), Prefix(other)) => (parent, is_within(one, other)),
        (Exact(one), Exact(other)) => (child, one == other),
        (Regex(regex), Exact(call)) => (child, regex.is_match(call)),
        (Exact(call), Regex(regex)) => (parent, regex.is_match(call)),
        (Regex(one), Regex(other)) if one == other => (child, true),
        (Regex(_), Regex(_) | Prefix(_)) | (Prefix(_), Regex(_)) => {
            let message =
                "a method without its service, or a RegularExpression, below another; write service and method";
            return Err(Mismatch::Unsupported(message.to_owned()));
        }
    };
    let text = |path: &PathMatcher| match path {
        Prefix(text) | Exact(text) => text.to_string(),
        Regex(regex) => regex.as_str().to_owned(),
    };
    match holds {
        true => Ok(narrower.clone()),
        false => Err(Mismatch::Empty(format!("its parent does not take {}", text(child)))),
    }
}

/// Concatenates paths: `/a` and `/b` give `/a/b`; `/` on either side changes nothing.
fn join(parent: &Arc<str>, child: &Arc<str>) -> Arc<str> {
    let trimmed = parent.strip_suffix('/').unwrap_or(parent);
    match (trimmed, is_root(child)) {
        ("", _) => child.clone(),
        (_, true) => trimmed.into(),
        (_, false) => format!("{trimmed}{child}").into(),
    }
}

fn is_root(path: &str) -> bool {
    path == "/"
}

/// The first condition for each name, parent's first: the API defines this within one list; here it applies to the
/// concatenated lists.
fn first_of_each(parent: &NamedMatchers, child: &NamedMatchers) -> NamedMatchers {
    let mut all = NamedMatchers::with_capacity(parent.len() + child.len());
    for condition in parent.iter().chain(child) {
        if all.iter().all(|(name, _)| *name != condition.0) {
            all.push(condition.clone());
        }
    }
    all
}

/// A canonical text, equal for equivalent matches.
pub fn canonical(matcher: &RequestMatcher) -> String {
    let value = |matcher: &ValueMatcher| match matcher {
        ValueMatcher::Exact(value) => format!("={value:?}"),
        ValueMatcher::Regex(regex) => format!("~{:?}", regex.as_str()),
    };
    let list = |conditions: &NamedMatchers| {
        let mut texts: Vec<_> =
            conditions.iter().map(|(name, matcher)| format!("{name:?}{}", value(matcher))).collect();
        texts.sort();
        texts
    };
    let path = match &matcher.path {
        PathMatcher::Prefix(path) => format!("prefix {path:?}"),
        PathMatcher::Exact(path) => format!("exact {path:?}"),
        PathMatcher::Regex(regex) => format!("regex {:?}", regex.as_str()),
    };
    format!("{path} {:?} {:?} {:?}", matcher.method, list(&matcher.headers), list(&matcher.query))
}

#[cfg(test)]
mod tests;

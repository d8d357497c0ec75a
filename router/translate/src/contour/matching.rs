//! Combines the conditions of includes and routes, from the root to the leaf.

use std::sync::Arc;

use router_table::matchers::{NamedMatchers, PathMatcher, RequestMatcher, ValueMatcher};
use router_table::pattern::expression;

/// True if two sets of conditions are syntactically equal, and so match the same requests.
pub fn identical(one: &RequestMatcher, other: &RequestMatcher) -> bool {
    let lists = |one: &[(Arc<str>, ValueMatcher)], other: &[(Arc<str>, ValueMatcher)]| {
        one.len() == other.len() && one.iter().all(|item| other.contains(item))
    };
    one.path == other.path
        && one.method == other.method
        && lists(&one.headers, &other.headers)
        && lists(&one.query, &other.query)
}

/// Why conditions cannot be combined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionConflict {
    /// Two conditions on this header conflict.
    Header(Arc<str>),
    /// Two conditions on this query parameter conflict.
    Query(Arc<str>),
    /// The joined expression is too large, or could match outside the prefix.
    Path(String),
}

/// Combines a parent's conditions with a child's. The child's path is appended to the parent's prefix.
///
/// # Errors
/// [`ConditionConflict`]: a child cannot replace its parent's conditions.
pub fn join(parent: &RequestMatcher, child: &RequestMatcher) -> Result<RequestMatcher, ConditionConflict> {
    let prefix = match &parent.path {
        PathMatcher::Prefix(prefix) | PathMatcher::Exact(prefix) => prefix,
        // Only a leaf can have a regex path, and a leaf has no children.
        PathMatcher::Regex(_) => {
            return Err(ConditionConflict::Path("an include cannot have a regex condition".to_owned()));
        }
    };
    let path = match &child.path {
        PathMatcher::Prefix(path) => PathMatcher::Prefix(join_paths(prefix, path)),
        PathMatcher::Exact(path) => PathMatcher::Exact(format!("{}{path}", prefix.trim_end_matches('/')).into()),
        PathMatcher::Regex(regex) if **prefix == *"/" => PathMatcher::Regex(regex.clone()),
        PathMatcher::Regex(regex) => {
            let inner = regex.text();
            if !begins_with_slash(inner) {
                let message = format!(
                    "regex condition {inner}: below the prefix {prefix} each alternative must begin with a slash that is \
                     always there"
                );
                return Err(ConditionConflict::Path(message));
            }
            let text = format!("{}(?:{inner})", regex::escape(prefix));
            PathMatcher::Regex(expression(&text, false).map_err(ConditionConflict::Path)?)
        }
    };
    Ok(RequestMatcher {
        path,
        method: match (&parent.method, &child.method) {
            (Some(parent), Some(child)) if parent != child => return Err(ConditionConflict::Header(":method".into())),
            (parent, child) => parent.clone().or_else(|| child.clone()),
        },
        headers: join_values(&parent.headers, &child.headers).map_err(ConditionConflict::Header)?,
        query: join_values(&parent.query, &child.query).map_err(ConditionConflict::Query)?,
    })
}

/// True if every match of the expression begins with a slash. Behind the prefix `/a`, `/?b` would match `/ab`, which is
/// outside the prefix. If the answer is not obvious from the text, it is false.
fn begins_with_slash(expression: &str) -> bool {
    // Inside a class or a comment, a parenthesis does not group; every `|` is then taken to separate alternatives.
    let is_plain = !expression.contains(['[', '#']);
    let (mut depth, mut escaped, mut from, mut branches) = (0_u32, false, 0, Vec::new());
    for (at, byte) in expression.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'|' if depth == 0 || !is_plain => {
                branches.push(expression.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
    }
    branches.push(expression.get(from..).unwrap_or_default());
    branches
        .into_iter()
        .all(|branch| branch.strip_prefix('/').is_some_and(|rest| !rest.trim_start().starts_with(['?', '*', '{'])))
}

/// Concatenates paths: `/a` and `/b` give `/a/b`; `/` adds nothing.
fn join_paths(prefix: &Arc<str>, path: &Arc<str>) -> Arc<str> {
    match (&**prefix, &**path) {
        ("/", _) => Arc::clone(path),
        (_, "/") => Arc::clone(prefix),
        _ => format!("{prefix}{path}").into(),
    }
}

fn join_values(
    parent: &[(Arc<str>, ValueMatcher)],
    child: &[(Arc<str>, ValueMatcher)],
) -> Result<NamedMatchers, Arc<str>> {
    let mut joined = parent.to_vec();
    for (name, matcher) in child {
        match parent.iter().find(|(known, _)| known == name) {
            Some((_, known)) if known != matcher => return Err(Arc::clone(name)),
            Some(_) => {}
            None => joined.push((Arc::clone(name), matcher.clone())),
        }
    }
    Ok(joined)
}

/// True if a path, or a prefix, is below a prefix, segment by segment.
pub fn is_under(path: &str, prefix: &str) -> bool {
    let with_end = |text: &str| format!("{}/", text.trim_end_matches('/'));
    prefix.is_empty() || with_end(path).starts_with(&with_end(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_compared_by_segment() {
        for (path, prefix, under) in [
            ("/a", "", true),
            ("/a", "/", true),
            ("/a", "/a", true),
            ("/a/", "/a", true),
            ("/a", "/a/", true),
            ("/a/b", "/a", true),
            ("/ab", "/a", false),
            ("/a", "/a/b", false),
            ("/", "/a", false),
        ] {
            assert_eq!(is_under(path, prefix), under, "{path} {prefix}");
        }
    }

    #[test]
    fn a_childs_path_is_appended_to_its_parents() {
        let prefix = |text: &str| PathMatcher::Prefix(text.into());
        let cases: [(&str, PathMatcher, &str); 7] = [
            ("/", prefix("/"), "prefix /"),
            ("/a", prefix("/"), "prefix /a"),
            ("/", prefix("/b"), "prefix /b"),
            ("/a", prefix("/b"), "prefix /a/b"),
            ("/a", PathMatcher::Exact("/b".into()), "exact /a/b"),
            ("/", PathMatcher::Exact("/".into()), "exact /"),
            ("/a.b", PathMatcher::Regex(expression("/[0-9]+", false).expect("valid")), "regex ^(?:/a\\.b(?:/[0-9]+))$"),
        ];
        for (parent, child, expected) in cases {
            let parent = RequestMatcher { path: prefix(parent), ..RequestMatcher::default() };
            let child = RequestMatcher { path: child, ..RequestMatcher::default() };
            let joined = match join(&parent, &child).expect("no conflict").path {
                PathMatcher::Prefix(path) => format!("prefix {path}"),
                PathMatcher::Exact(path) => format!("exact {path}"),
                PathMatcher::Regex(regex) => format!("regex {}", regex.as_str()),
            };
            assert_eq!(joined, expected);
        }
    }

    #[test]
    fn an_expression_stays_below_its_prefix() {
        for (text, stays) in [
            ("/.*", true),
            ("/+x", true),
            ("/", true),
            ("/a|/b(c|d)?", true),
            ("/(a|b)", true),
            ("/\\(|/b", true),
            ("/?b", false),
            ("/*b", false),
            ("/{0}b", false),
            ("/a|b", false),
            ("/a|", false),
            ("/\\(|b", false),
            ("/[(]|b)?", false),
            ("/[(]|b", false),
            ("/(?x)#(\n|b", false),
            ("/(?x) ?b", false),
        ] {
            let parent = RequestMatcher { path: PathMatcher::Prefix("/a".into()), ..RequestMatcher::default() };
            let Ok(regex) = expression(text, false) else {
                assert!(!stays, "{text} is no expression");
                continue;
            };
            let child = RequestMatcher { path: PathMatcher::Regex(regex), ..RequestMatcher::default() };
            let joined = join(&parent, &child);
            assert_eq!(joined.is_ok(), stays, "{text}");
            if let Ok(joined) = joined {
                assert!(["/ab", "/aa", "/a0"].iter().all(|path| !joined.path.matches(path)), "{text}");
            }
        }
    }

    #[test]
    fn a_child_cannot_replace_its_parents_conditions() {
        let header = |value: &str| RequestMatcher {
            headers: vec![("x-team".into(), ValueMatcher::Exact(value.into()))],
            ..RequestMatcher::default()
        };
        assert_eq!(join(&header("a"), &header("a")).expect("the same").headers.len(), 1);
        assert!(matches!(join(&header("a"), &header("b")), Err(ConditionConflict::Header(name)) if *name == *"x-team"));
    }
}

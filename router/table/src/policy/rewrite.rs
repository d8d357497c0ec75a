//! `haproxy.router.openshift.io/rewrite-target`: replaces the route's path in requests.
//!
//! OpenShift's router used to insert the value into HAProxy's configuration verbatim, and still interprets it like
//! that: `#` ends the value *and* drops the part of a request's path after the route's, quotes are removed, a backslash
//! makes the next character literal, and a percent sign may be doubled.

/// The target of a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteTarget {
    /// Begins with `/`.
    path: Box<str>,
    /// Whether the part of a request's path after the route's is appended.
    keeps_rest: bool,
}

impl RewriteTarget {
    /// Parses a value.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if !text.starts_with('/') {
            return Err("must begin with /; write a path such as /");
        }
        let (text, keeps_rest) = match unescaped(text, '#').next() {
            Some(at) => (text[..at].trim_end(), false),
            None => (text, true),
        };
        if text.contains("\\\\") {
            return Err("has two backslashes in a row, which stand for nothing in a path; remove them");
        }
        let path = literal(text);
        if path.contains('?') {
            return Err("has a '?', and a request's query stays as it is; write a path alone");
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && !b"#<>`".contains(&byte)) {
            return Err("has a character that no path has; write it percent-encoded, such as %20 for a space");
        }
        Ok(RewriteTarget { path: path.into(), keeps_rest })
    }

    /// The forwarded path for a request path that `route_path` covers: the target, then the part after the route's
    /// path. A target `/` also replaces one slash of that part.
    pub fn rewrite(&self, route_path: &str, path: &str) -> String {
        if !self.keeps_rest {
            return self.path.to_string();
        }
        let rest = path.strip_prefix(route_path).unwrap_or(path);
        let rest = if *self.path == *"/" { rest.strip_prefix('/').unwrap_or(rest) } else { rest };
        format!("{}{rest}", self.path)
    }

    /// The target path, without quotes and escapes.
    pub fn as_str(&self) -> &str {
        &self.path
    }
}

/// Positions of `wanted` that are not escaped by a backslash.
fn unescaped(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let mut escaped = false;
    text.char_indices().filter_map(move |(at, c)| {
        let was_escaped = escaped;
        escaped = c == '\\' && !was_escaped;
        (c == wanted && !was_escaped).then_some(at)
    })
}

/// The text without unescaped quotes and without backslashes; an even number of adjacent percent signs is halved.
fn literal(text: &str) -> String {
    let mut quotes: Vec<usize> = unescaped(text, '"').chain(unescaped(text, '\'')).collect();
    quotes.sort_unstable();
    let mut path = String::with_capacity(text.len());
    let mut percents = 0;
    for (_, c) in text.char_indices().filter(|(at, _)| quotes.binary_search(at).is_err()) {
        if c == '%' {
            percents += 1;
            continue;
        }
        push_percents(&mut path, std::mem::take(&mut percents));
        if c != '\\' {
            path.push(c);
        }
    }
    push_percents(&mut path, percents);
    path
}

fn push_percents(path: &mut String, count: usize) {
    let kept = if count.is_multiple_of(2) { count / 2 } else { count };
    path.extend(std::iter::repeat_n('%', kept));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_openshifts_documentation() {
        let cases = [
            ("/foo", "/foo", "/", "/"),
            ("/foo", "/foo/", "/", "/"),
            ("/foo", "/foo/bar", "/", "/bar"),
            ("/foo", "/foo/bar/", "/", "/bar/"),
            ("/foo", "/foo", "/bar", "/bar"),
            ("/foo", "/foo/", "/bar", "/bar/"),
            ("/foo", "/foo/bar", "/baz", "/baz/bar"),
            ("/foo", "/foo/bar/", "/baz", "/baz/bar/"),
            ("/foo/", "/foo/", "/", "/"),
            ("/foo/", "/foo/bar", "/", "/bar"),
            ("", "/", "/", "/"),
            ("", "/foo", "/", "/foo"),
            ("", "//foo", "/", "//foo"),
            ("", "/foo", "/bar", "/bar/foo"),
            ("/foo", "/foo//x", "/", "//x"),
            ("/foo", "/foo/x", "/bar#", "/bar"),
            ("/foo", "/foo/x", "/bar # why", "/bar"),
        ];
        for (route, request, target, expected) in cases {
            assert_eq!(RewriteTarget::parse(target).unwrap().rewrite(route, request), expected, "{route} {target}");
        }
    }

    #[test]
    fn values_are_taken_as_the_configuration_took_them() {
        let cases = [
            ("/%foo", "/%foo"),
            ("/%%foo", "/%foo"),
            ("/%%%foo", "/%%%foo"),
            ("/%%%%foo", "/%%foo"),
            ("/%20foo%20", "/%20foo%20"),
            ("/'foo'foo\\'", "/foofoo'"),
            ("/\"foo\"foo\\\"", "/foofoo\""),
            ("/\\foo\\", "/foo"),
            ("/foo#foo", "/foo"),
        ];
        for (text, path) in cases {
            assert_eq!(RewriteTarget::parse(text).unwrap().as_str(), path, "{text}");
        }
        for bad in ["", "foo", "%foo", "\\/foo", "/a\\\\b", "/a?b", "/a b", "/a\\#b", "/ä", "/a\nb", "/a\r\nX: y", "/<"]
        {
            assert!(RewriteTarget::parse(bad).is_err(), "{bad:?}");
        }
    }
}

//! Matching of requests by a rule's conditions (Gateway API: HTTPRouteMatch). Allocates only for a regular expression
//! over a query parameter that contains `%`, and for a repeated field.

use std::borrow::Cow;
use std::sync::Arc;

use crate::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use crate::path_form::PathForm;
use crate::rule::Rule;

/// Read access to a request.
pub trait Request {
    /// The method as sent.
    fn method(&self) -> &str;

    /// The path without query as sent: nothing is decoded, and neither `.` nor `//` is resolved.
    fn path(&self) -> &str;

    /// The path in this form.
    fn path_in(&self, form: PathForm) -> Cow<'_, str> {
        form.of(self.path())
    }

    /// The query as sent.
    fn query(&self) -> Option<&str>;

    /// The value of the fields with this name, which is in lower case, combined as in [`joined`].
    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>>;
}

/// Combines the values of all fields with one name: a repeated field is equivalent to one with comma-separated values
/// (RFC 9110 §5.3), without blanks as in Envoy. Values of `cookie` are joined by `; ` (RFC 9113 §8.2.3).
pub fn joined<'v>(name: &str, values: impl IntoIterator<Item = &'v [u8]>) -> Option<Cow<'v, [u8]>> {
    let mut values = values.into_iter();
    let mut value = Cow::Borrowed(values.next()?);
    let separator: &[u8] = if name == "cookie" { b"; " } else { b"," };
    for further in values {
        let whole = value.to_mut();
        whole.extend_from_slice(separator);
        whole.extend_from_slice(further);
    }
    Some(value)
}

/// A `GET` of this path, without query and fields.
impl Request for str {
    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        self
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn header(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

impl Rule {
    /// Whether the rule matches a request.
    pub fn takes(&self, request: &(impl Request + ?Sized)) -> bool {
        self.matcher.matches(self.path_form, request)
    }

    /// Whether the rule matches a request's path, whatever its other conditions.
    pub fn takes_path(&self, request: &(impl Request + ?Sized)) -> bool {
        self.matcher.path.matches(&request.path_in(self.path_form))
    }
}

impl RequestMatcher {
    /// Whether all conditions match, with the request's path in this form. Of several entries for one header or
    /// parameter the first applies, and likewise the first of several values of a parameter in the request.
    pub fn matches(&self, form: PathForm, request: &(impl Request + ?Sized)) -> bool {
        self.path.matches(&request.path_in(form))
            && self.takes_method(request)
            && firsts(&self.headers).all(|(name, wanted)| has_field(request, name, wanted))
            && firsts(&self.query).all(|(name, wanted)| has_parameter(request, name, wanted))
    }

    /// The conditions that do not match, except the path.
    pub fn unmet(&self, request: &(impl Request + ?Sized)) -> Vec<Unmet<'_>> {
        let method = self.method.as_deref().filter(|_| !self.takes_method(request)).map(Unmet::Method);
        let headers = firsts(&self.headers).filter(|(name, wanted)| !has_field(request, name, wanted));
        let query = firsts(&self.query).filter(|(name, wanted)| !has_parameter(request, name, wanted));
        let headers = headers.map(|(name, wanted)| Unmet::Header(name, wanted));
        let query = query.map(|(name, wanted)| Unmet::Parameter(name, wanted));
        method.into_iter().chain(headers).chain(query).collect()
    }

    fn takes_method(&self, request: &(impl Request + ?Sized)) -> bool {
        self.method.as_deref().is_none_or(|method| method == request.method())
    }
}

fn has_field(request: &(impl Request + ?Sized), name: &str, wanted: &ValueMatcher) -> bool {
    request.header(name).is_some_and(|value| wanted.is(&value))
}

fn has_parameter(request: &(impl Request + ?Sized), name: &str, wanted: &ValueMatcher) -> bool {
    let value = request.query().and_then(|query| parameter(query, name));
    value.is_some_and(|value| wanted.is_decoded(value))
}

/// A condition that a request does not meet.
#[derive(Clone, Copy, Debug)]
pub enum Unmet<'m> {
    /// This method.
    Method(&'m str),
    /// This field with this value.
    Header(&'m str, &'m ValueMatcher),
    /// This query parameter with this value.
    Parameter(&'m str, &'m ValueMatcher),
}

impl PathMatcher {
    /// Whether a path matches; compared byte by byte.
    pub fn matches(&self, path: &str) -> bool {
        match self {
            PathMatcher::Prefix(prefix) => is_under(path, prefix),
            PathMatcher::Exact(exact) => path == &**exact,
            PathMatcher::Regex(regex) => regex.is_match(path),
        }
    }
}

/// Whether a path begins with the elements of a prefix; a trailing slash of the prefix is ignored.
pub fn is_under(path: &str, prefix: &str) -> bool {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl ValueMatcher {
    fn is(&self, value: &[u8]) -> bool {
        match self {
            ValueMatcher::Exact(exact) => exact.as_bytes() == value,
            ValueMatcher::Regex(regex) => std::str::from_utf8(value).is_ok_and(|value| regex.is_match(value)),
        }
    }

    fn is_decoded(&self, value: &str) -> bool {
        match self {
            ValueMatcher::Exact(exact) => reads(value, exact),
            ValueMatcher::Regex(regex) => as_text(value).is_some_and(|value| regex.is_match(&value)),
        }
    }
}

/// The first entry of each name.
fn firsts(entries: &[(Arc<str>, ValueMatcher)]) -> impl Iterator<Item = (&str, &ValueMatcher)> {
    let is_first = |at: usize, name: &str| !entries.iter().take(at).any(|(earlier, _)| **earlier == *name);
    let numbered = entries.iter().enumerate().filter(move |(at, (name, _))| is_first(*at, name));
    numbered.map(|(_, (name, wanted))| (&**name, wanted))
}

/// The first value of a query parameter, still encoded. A parameter without `=` has an empty value.
fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.into_iter().find(|(written, _)| reads(written, name)).map(|(_, value)| value)
}

/// Whether an encoded text decodes to `text`.
fn reads(encoded: &str, text: &str) -> bool {
    if encoded.contains('%') { decoded(encoded).eq(text.bytes()) } else { encoded == text }
}

fn as_text(encoded: &str) -> Option<Cow<'_, str>> {
    if !encoded.contains('%') {
        return Some(encoded.into());
    }
    String::from_utf8(decoded(encoded).collect()).ok().map(Cow::from)
}

/// Percent-decoded bytes (RFC 3986 §2.1). A `%` without two hexadecimal digits after it is literal, and so is `+`,
/// which means a space only in HTML forms.
fn decoded(text: &str) -> impl Iterator<Item = u8> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        if let [b'%', high, low, after @ ..] = rest
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            rest = after;
            return Some(high << 4 | low);
        }
        let (first, after) = rest.split_first()?;
        rest = after;
        Some(*first)
    })
}

//! `matches[]` of HTTPRoutes and GRPCRoutes.

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_table::matchers::{NamedMatchers, PathMatcher, RequestMatcher, ValueMatcher};
use router_table::pattern::{Flags, Pattern};
use serde_json::Value;

use super::read::{self, Unsupported};
use crate::fields::Fields;

/// Maximum number of `headers`, and of `queryParams`, of a match.
const MAX_VALUES: usize = 16;
/// Maximum length of a path, and of a query parameter's value, in bytes.
const MAX_PATH: usize = 1024;
/// Maximum size of a compiled regular expression, in bytes. Enough for hand-written ones; rejects `(\w{100}){100}`.
const MAX_EXPRESSION: usize = 1 << 18;
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
const ONE_OR_EXPRESSION: [&str; 2] = ["Exact", "RegularExpression"];

/// An item of an HTTPRoute's `matches`; `None` if it has errors, or an unsupported regular expression.
pub fn http(
    item: &Value,
    path: FieldPath,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Option<RequestMatcher> {
    let mut fields = Fields::of(Some(item), path, findings);
    let path = http_path(fields.mapping("path", findings), unsupported, findings);
    let method = read::word(&mut fields, "method", &METHODS, findings);
    let headers = values(&mut fields, &HEADERS, unsupported, findings);
    let query = values(&mut fields, &QUERY, unsupported, findings);
    fields.finish(findings);
    Some(RequestMatcher { path: path?, method: method.map(Arc::from), headers: headers?, query: query? })
}

/// An item of a GRPCRoute's `matches`, in terms of HTTP (gRPC over HTTP/2: `POST /<service>/<method>`).
pub fn grpc(
    item: &Value,
    path: FieldPath,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Option<RequestMatcher> {
    let mut fields = Fields::of(Some(item), path, findings);
    let path = grpc_path(fields.mapping("method", findings), unsupported, findings);
    let headers = values(&mut fields, &HEADERS, unsupported, findings);
    fields.finish(findings);
    Some(RequestMatcher { path: path?, headers: headers?, ..any_grpc() })
}

/// Matches every call.
pub fn any_grpc() -> RequestMatcher {
    RequestMatcher { method: Some("POST".into()), ..RequestMatcher::default() }
}

fn http_path(mut fields: Fields<'_>, unsupported: &mut Unsupported, findings: &mut Findings) -> Option<PathMatcher> {
    let kind = read::word(&mut fields, "type", &["Exact", "PathPrefix", "RegularExpression"], findings);
    let at = fields.path("value");
    let text = fields.text("value", findings).unwrap_or_default();
    fields.finish(findings);
    if !read::fits(text, MAX_PATH, at.clone(), findings) {
        return None;
    }
    if kind? == "RegularExpression" {
        return expression(text, at, unsupported).map(PathMatcher::Regex);
    }
    if let Some(fault) = path_fault(text) {
        findings.error(at, format!("Invalid value: {text:?}: {fault}"));
        return None;
    }
    if kind? == "Exact" {
        return Some(PathMatcher::Exact(text.into()));
    }
    Some(match text.trim_end_matches('/') {
        "" => PathMatcher::default(),
        prefix => PathMatcher::Prefix(prefix.into()),
    })
}

/// The fault of a path of type Exact or PathPrefix, if any.
fn path_fault(path: &str) -> Option<String> {
    if !path.starts_with('/') {
        return Some(format!("a path begins with a slash; write \"/{path}\""));
    }
    let within = ["//", "/./", "/../", "%2f", "%2F", "#"].into_iter().find(|part| path.contains(part));
    let at_end = ["/..", "/."].into_iter().find(|part| path.ends_with(part));
    if let Some(part) = within.or(at_end) {
        return Some(format!("must not contain {part:?}; remove it"));
    }
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'%', [one, two, after @ ..]) if one.is_ascii_hexdigit() && two.is_ascii_hexdigit() => after,
            (byte, after) if byte.is_ascii_alphanumeric() || b"-/._~!$&'()*+,;=:@".contains(byte) => after,
            _ => {
                return Some("has a character that no path has; use % and two hexadecimal digits for it".to_owned());
            }
        };
    }
    None
}

fn grpc_path(mut fields: Fields<'_>, unsupported: &mut Unsupported, findings: &mut Findings) -> Option<PathMatcher> {
    if !fields.is_present() {
        return Some(PathMatcher::default());
    }
    let kind = read::word(&mut fields, "type", &ONE_OR_EXPRESSION, findings);
    let is_exact = kind == Some("Exact");
    let (service_at, method_at) = (fields.path("service"), fields.path("method"));
    let service = fields.text("service", findings);
    let method = fields.text("method", findings);
    fields.finish(findings);
    if service.is_none() && method.is_none() {
        findings.error(service_at, "Required value: write service, method or both");
        return None;
    }
    let mut is_good = true;
    let words = |text: &str| text.split('.').all(is_identifier);
    for (text, at, is_name) in [
        (service, &service_at, service.is_some_and(|text| words(text.strip_prefix('.').unwrap_or(text)))),
        (method, &method_at, method.is_some_and(is_identifier)),
    ] {
        let Some(text) = text else { continue };
        is_good &= read::fits(text, MAX_PATH, at.clone(), findings);
        if is_exact && !is_name {
            let example = if *at == service_at { "shop.v1.Cart" } else { "AddItem" };
            let message =
                format!("Invalid value: {text:?}: is not a valid Protocol Buffers name; write one such as {example}");
            findings.error(at.clone(), message);
            is_good = false;
        }
    }
    if kind.is_none() || !is_good {
        return None;
    }
    let any = "[^/]+".to_owned();
    match (service, method) {
        (Some(service), Some(method)) if is_exact => Some(PathMatcher::Exact(format!("/{service}/{method}").into())),
        (Some(service), None) if is_exact => Some(PathMatcher::Prefix(format!("/{service}").into())),
        (_, Some(method)) if is_exact => {
            expression(&format!("/{any}/{method}"), method_at, unsupported).map(PathMatcher::Regex)
        }
        _ => {
            // Each is compiled on its own, so that an unpaired bracket cannot reach into the other.
            let mut part = |text: Option<&str>, at: FieldPath| match text {
                None => Some(any.clone()),
                Some(text) => expression(text, at, unsupported).map(|_| format!("(?:{text})")),
            };
            let (service, method) = (part(service, service_at.clone()), part(method, method_at));
            expression(&format!("/{}/{}", service?, method?), service_at, unsupported).map(PathMatcher::Regex)
        }
    }
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// The differences between `headers` and `queryParams`.
struct ValueRules {
    list: &'static str,
    /// Whether names are case-insensitive.
    folds_case: bool,
    /// Reads `value`.
    value: for<'v> fn(&mut Fields<'v>, &mut Findings) -> Option<&'v str>,
}

const HEADERS: ValueRules = ValueRules { list: "headers", folds_case: true, value: read::header_value };
const QUERY: ValueRules = ValueRules {
    list: "queryParams",
    folds_case: false,
    value: |entry, findings| read::required_within(entry, "value", "a value, in quotes", MAX_PATH, findings),
};

/// Reads one of the two lists; `None` if it has an unsupported regular expression.
fn values(
    fields: &mut Fields<'_>,
    rules: &ValueRules,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Option<NamedMatchers> {
    let (mut values, mut is_good, mut written) = (NamedMatchers::new(), true, Vec::new());
    for (path, item) in read::list(fields, rules.list, 0, MAX_VALUES, findings) {
        let mut entry = Fields::of(Some(item), path.clone(), findings);
        let kind = read::word(&mut entry, "type", &ONE_OR_EXPRESSION, findings);
        let name = read::token(&mut entry, findings);
        let value = (rules.value)(&mut entry, findings);
        entry.finish(findings);
        let (Some(kind), Some(name), Some(value)) = (kind, name, value) else { continue };
        if written.contains(&name) {
            findings.error(path.key("name"), format!("Duplicate value: {name:?}; keep one of them"));
            continue;
        }
        written.push(name);
        let key: Arc<str> = if rules.folds_case { name.to_ascii_lowercase().into() } else { name.into() };
        if values.iter().any(|(known, _)| *known == key) {
            let message = format!("is not looked at: {key:?} stands further up in another case; remove it");
            findings.warn(path.key("name"), message);
            continue;
        }
        let matcher = match kind {
            "Exact" => Some(ValueMatcher::Exact(value.into())),
            _ => expression(value, path.key("value"), unsupported).map(ValueMatcher::Regex),
        };
        is_good &= matcher.is_some();
        values.extend(matcher.map(|matcher| (key, matcher)));
    }
    is_good.then_some(values)
}

/// An expression that the whole text must match. The API server takes any text; what cannot be used is refused later.
fn expression(text: &str, at: FieldPath, unsupported: &mut Unsupported) -> Option<Pattern> {
    match Pattern::new(text, Flags::default(), MAX_EXPRESSION) {
        Ok(expression) => Some(expression),
        Err(regex::Error::CompiledTooBig(_)) => {
            unsupported.add(at, "the expression is too large; write a shorter one, or smaller numbers of repetitions");
            None
        }
        Err(_) => {
            unsupported.add(
                at,
                format!("{text:?} is not a valid regular expression (RE2 syntax); correct it, or write another type"),
            );
            None
        }
    }
}

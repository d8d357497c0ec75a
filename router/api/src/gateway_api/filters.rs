//! `filters` of rules and backends.

mod cors;
mod headers;

use std::sync::Arc;

use router_model::field::Findings;
use router_model::kind::Kind;

use super::read::{self, Unsupported};
use super::references;
use crate::fields::Fields;
use crate::gateway_api::types::{Filter, MirrorFilter, UrlRewrite};
use crate::redirect::{PathModifier, Redirect};

const MAX_FILTERS: usize = 16;
/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 1024;

const REQUEST_HEADERS: &str = "RequestHeaderModifier";
const RESPONSE_HEADERS: &str = "ResponseHeaderModifier";
const MIRROR: &str = "RequestMirror";
const REDIRECT: &str = "RequestRedirect";
const REWRITE: &str = "URLRewrite";
const EXTENSION: &str = "ExtensionRef";
const CORS: &str = "CORS";
const EXTERNAL_AUTH: &str = "ExternalAuth";

/// `type`s with their members. A GRPCRoute has only the first four.
const TYPES: [(&str, &str); 8] = [
    (REQUEST_HEADERS, "requestHeaderModifier"),
    (RESPONSE_HEADERS, "responseHeaderModifier"),
    (MIRROR, "requestMirror"),
    (EXTENSION, "extensionRef"),
    (REDIRECT, "requestRedirect"),
    (REWRITE, "urlRewrite"),
    (CORS, "cors"),
    (EXTERNAL_AUTH, "externalAuth"),
];

/// Parent of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiltersParent {
    /// A rule.
    Rule,
    /// A backend, which supports header filters only.
    Backend,
}

/// Reads `filters`. Unsupported ones are left out and reported.
pub fn list(
    holder: &mut Fields<'_>,
    kind: Kind,
    parent: FiltersParent,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Vec<Filter> {
    let types = if kind == Kind::GrpcRoute { TYPES.get(..4).unwrap_or_default() } else { &TYPES };
    let (mut filters, mut seen) = (Vec::new(), Vec::new());
    for (path, item) in read::list(holder, "filters", 0, MAX_FILTERS, findings) {
        let mut fields = Fields::of(Some(item), path.clone(), findings);
        let Some((name, member)) = type_of(&mut fields, types, findings) else { continue };
        if seen.contains(&name) && !matches!(name, MIRROR | EXTENSION) {
            findings.error(path.key("type"), format!("Duplicate value: {name:?}; keep one filter of this type"));
        }
        seen.push(name);
        let mut content = fields.mapping(member, findings);
        fields.finish(findings);
        if parent == FiltersParent::Backend && !matches!(name, REQUEST_HEADERS | RESPONSE_HEADERS | EXTENSION) {
            unsupported.add(
                path.key("type"),
                format!("{name} is not done for single backends; write it in the rule's filters"),
            );
        }
        filters.extend(filter(name, &mut content, unsupported, findings));
        content.finish(findings);
    }
    if seen.contains(&REDIRECT) && seen.contains(&REWRITE) {
        let message = "Forbidden: RequestRedirect and URLRewrite exclude each other; keep one of them";
        findings.error(holder.path("filters"), message);
    }
    filters
}

/// The type of a filter with its member, if it has exactly that member.
fn type_of(
    fields: &mut Fields<'_>,
    types: &[(&'static str, &'static str)],
    findings: &mut Findings,
) -> Option<(&'static str, &'static str)> {
    let names: Vec<&'static str> = types.iter().map(|(name, _)| *name).collect();
    let name = read::required_word(fields, "type", &names, findings)?;
    let mut found = None;
    for &(known, member) in types {
        let is_present = fields.value(member).is_some();
        if known == name && is_present {
            found = Some((known, member));
        } else if known == name {
            findings
                .error(fields.path(member), format!("Required value: type {name} needs it; write what it is to do"));
        } else if is_present {
            let message =
                format!("Forbidden: the type is {name}; remove it, or write type: {known} in a filter of its own");
            findings.error(fields.path(member), message);
        }
    }
    found
}

fn filter(
    name: &str,
    fields: &mut Fields<'_>,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Option<Filter> {
    match name {
        REQUEST_HEADERS => Some(Filter::RequestHeaders(headers::modifier(fields, true, unsupported, findings))),
        RESPONSE_HEADERS => Some(Filter::ResponseHeaders(headers::modifier(fields, false, unsupported, findings))),
        MIRROR => mirror(fields, findings).map(Filter::Mirror),
        REDIRECT => redirect(fields, unsupported, findings).map(Filter::Redirect),
        REWRITE => {
            let hostname = read::host(fields, "hostname", findings);
            let path = path_modifier(fields, unsupported, findings);
            Some(Filter::Rewrite(UrlRewrite { hostname, path }))
        }
        CORS => Some(Filter::Cors(cors::cors(fields, findings))),
        EXTENSION => references::local(fields, findings).map(Filter::Extension),
        _ => {
            fields.ignore(&["protocol", "backendRef", "grpc", "http", "forwardBody"]);
            let message = "requests are not authorised by another service; remove the filter";
            unsupported.add(fields.path("protocol"), message);
            None
        }
    }
}

fn mirror(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<MirrorFilter> {
    let mut reference = fields.mapping("backendRef", findings);
    if !reference.is_present() {
        findings.error(fields.path("backendRef"), "Required value: write a reference to a Service");
        return None;
    }
    let backend = references::backend(&mut reference, findings);
    reference.finish(findings);
    let percent = fields.number("percent", 0, 100, findings).and_then(|number| u32::try_from(number).ok());
    let mut fraction = fields.mapping("fraction", findings);
    let share = if fraction.is_present() {
        let at = fraction.path("numerator");
        if fraction.value("numerator").is_none() {
            findings.error(at.clone(), "Required value: write a number, such as 5 (of denominator 100)");
        }
        let most = i64::from(i32::MAX);
        let numerator = fraction.number("numerator", 0, most, findings);
        let denominator = fraction.number("denominator", 1, most, findings);
        if numerator.zip(denominator).is_some_and(|(part, whole)| part > whole) {
            findings.error(at, "Invalid value: is greater than the denominator; write at most the denominator");
        }
        numerator.zip(denominator).and_then(|(part, whole)| Some((part.try_into().ok()?, whole.try_into().ok()?)))
    } else {
        Some(percent.map_or((1, 1), |percent| (percent, 100)))
    };
    if percent.is_some() && fraction.is_present() {
        findings
            .error(fields.path("percent"), "Forbidden: percent and fraction exclude each other; remove one of them");
    }
    fraction.finish(findings);
    let (object, port) = backend?;
    Some(MirrorFilter { object, port, share: share? })
}

fn redirect(fields: &mut Fields<'_>, unsupported: &mut Unsupported, findings: &mut Findings) -> Option<Redirect> {
    const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
    let scheme = read::word(fields, "scheme", &["http", "https"], findings).map(Arc::from);
    let hostname = read::host(fields, "hostname", findings);
    let path = path_modifier(fields, unsupported, findings);
    let port = read::port(fields, "port", findings);
    let at = fields.path("statusCode");
    let status = fields.number("statusCode", 0, 999, findings).and_then(|number| u16::try_from(number).ok())?;
    if !STATUSES.contains(&status) {
        findings.error(at, format!("Unsupported value: {status}; write 301, 302, 303, 307 or 308"));
        return None;
    }
    Some(Redirect { scheme, hostname, path, port, status })
}

/// `path` of a redirect or rewrite: `type`, and the member of that type.
fn path_modifier(
    holder: &mut Fields<'_>,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Option<PathModifier> {
    const MEMBERS: [(&str, &str); 2] =
        [("ReplaceFullPath", "replaceFullPath"), ("ReplacePrefixMatch", "replacePrefixMatch")];
    let mut fields = holder.mapping("path", findings);
    if !fields.is_present() {
        return None;
    }
    let kind = read::required_word(&mut fields, "type", &MEMBERS.map(|(kind, _)| kind), findings);
    let mut found = None;
    for (known, member) in MEMBERS {
        let at = fields.path(member);
        let text = read::maybe_empty(&mut fields, member, findings);
        match (kind == Some(known), text) {
            (true, None) => {
                findings.error(at, format!("Required value: type {known} needs it; write a path, such as /new"))
            }
            (false, Some(_)) if kind.is_some() => {
                findings.error(at, format!("Forbidden: remove it, or write type: {known}"));
            }
            (true, Some(text)) if read::fits(text, MAX_PATH, at.clone(), findings) => found = Some((known, at, text)),
            _ => {}
        }
    }
    fields.finish(findings);
    let (kind, at, text) = found?;
    let is_prefix = kind == "ReplacePrefixMatch";
    // The API does not restrict the text; it becomes part of a request line or of a Location field.
    let is_path = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\"<>\\^`{|}".contains(&byte));
    if !is_path || !(text.starts_with('/') || (is_prefix && text.is_empty())) {
        unsupported.add(
            at,
            format!("{text:?} is not a valid path; write one that begins with a slash and has no ?, # or space"),
        );
        return None;
    }
    Some(if is_prefix { PathModifier::Prefix(text.into()) } else { PathModifier::Full(text.into()) })
}

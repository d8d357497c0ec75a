//! `httpHeaders` and what else concerns HTTP as a whole (openshift.md e).

use std::sync::Arc;

use crate::field::Findings;
use crate::parse::fields::Fields;
use crate::parse::headers::{self, HeaderActions};

/// Longest name or format of `uniqueId`, in bytes.
const MAX_UNIQUE_ID: usize = 1024;

/// What is done to HTTP of all routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpPolicy {
    /// `httpHeaders.forwardedHeaderPolicy`.
    pub forwarded: ForwardedHeaders,
    /// `httpHeaders.uniqueId`.
    pub unique_id: Option<UniqueId>,
    /// `httpHeaders.headerNameCaseAdjustments`: names in the spelling that HTTP/1 peers get.
    pub case_adjustments: Vec<Arc<str>>,
    /// `httpHeaders.actions`. On requests they come before a route's, on responses after it.
    pub actions: HeaderActions,
    /// `httpErrorCodePages.name`: a ConfigMap with the pages for 503 and 404.
    pub error_pages: Option<Arc<str>>,
    /// `httpCompression.mimeTypes`.
    pub compress: Vec<Arc<str>>,
    /// `httpEmptyRequestsPolicy: Ignore`: connections without a request are not answered.
    pub ignore_empty_requests: bool,
    /// `idleConnectionTerminationPolicy: Deferred`.
    pub defer_idle_termination: bool,
    /// `closedClientConnectionPolicy: Abort`.
    pub abort_closed_clients: bool,
}

/// What happens to `X-Forwarded-*` and `Forwarded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeaders {
    /// What the client sent stays, and the router adds its own.
    #[default]
    Append,
    /// The router's own stand alone.
    Replace,
    /// The router's own, where the client sent none.
    IfNone,
    /// None of the router's.
    Never,
}

/// A header that identifies each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueId {
    /// Header name.
    pub name: Arc<str>,
    /// HAProxy's log format; empty: its default.
    pub format: Arc<str>,
}

/// Reads the members of `spec` that make an [`HttpPolicy`]. After an error the default stands in its place.
pub fn parse(spec: &mut Fields<'_>, findings: &mut Findings) -> HttpPolicy {
    let mut fields = spec.mapping("httpHeaders", findings);
    let forwarded = forwarded(&mut fields, findings);
    let unique_id = unique_id(fields.mapping("uniqueId", findings), findings);
    let case_adjustments = case_adjustments(&mut fields, findings);
    let actions = headers::actions(&mut fields, findings);
    fields.finish(findings);
    let mut pages = spec.mapping("httpErrorCodePages", findings);
    let error_pages = pages.text("name", findings).map(Arc::from);
    pages.finish(findings);
    HttpPolicy {
        forwarded,
        unique_id,
        case_adjustments,
        actions,
        error_pages,
        compress: compress(spec.mapping("httpCompression", findings), findings),
        ignore_empty_requests: is_second(spec, "httpEmptyRequestsPolicy", ["Respond", "Ignore"], findings),
        defer_idle_termination: is_second(spec, "idleConnectionTerminationPolicy", ["Immediate", "Deferred"], findings),
        abort_closed_clients: is_second(spec, "closedClientConnectionPolicy", ["Continue", "Abort"], findings),
    }
}

/// Whether the second of two values is written; the first is the default.
fn is_second(spec: &mut Fields<'_>, name: &'static str, values: [&str; 2], findings: &mut Findings) -> bool {
    let text = spec.text(name, findings);
    if let Some(other) = text.filter(|text| !values.contains(text)) {
        let message = format!("Unsupported value: {other:?}; write {} or {}", values[0], values[1]);
        findings.error(spec.path(name), message);
    }
    text == Some(values[1])
}

fn forwarded(fields: &mut Fields<'_>, findings: &mut Findings) -> ForwardedHeaders {
    match fields.text("forwardedHeaderPolicy", findings) {
        None | Some("Append") => ForwardedHeaders::Append,
        Some("Replace") => ForwardedHeaders::Replace,
        Some("IfNone") => ForwardedHeaders::IfNone,
        Some("Never") => ForwardedHeaders::Never,
        Some(other) => {
            let message = format!("Unsupported value: {other:?}; write Append, Replace, IfNone or Never");
            findings.error(fields.path("forwardedHeaderPolicy"), message);
            ForwardedHeaders::default()
        }
    }
}

fn unique_id(mut fields: Fields<'_>, findings: &mut Findings) -> Option<UniqueId> {
    let name = fields.text("name", findings);
    let format = fields.text("format", findings).unwrap_or_default();
    if let Some(bad) = name.filter(|name| !headers::is_token(name) || name.len() > MAX_UNIQUE_ID) {
        let message = format!("Invalid value: {bad:?}: is no header name; write one such as X-Request-Id");
        findings.error(fields.path("name"), message);
    }
    if name.is_none() && !format.is_empty() {
        findings.error(fields.path("name"), "Required value: write the header's name, or remove the format");
    }
    if format.len() > MAX_UNIQUE_ID {
        let message = format!("Too long: has {} bytes; use at most {MAX_UNIQUE_ID}", format.len());
        findings.error(fields.path("format"), message);
    }
    fields.finish(findings);
    Some(UniqueId { name: name?.into(), format: format.into() })
}

fn case_adjustments(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for (path, name) in fields.texts("headerNameCaseAdjustments", findings) {
        if headers::is_token(name) {
            names.push(name.into());
        } else {
            findings
                .error(path, format!("Invalid value: {name:?}: is no header name; write one such as Cache-Control"));
        }
    }
    names
}

fn compress(mut fields: Fields<'_>, findings: &mut Findings) -> Vec<Arc<str>> {
    let mut types: Vec<Arc<str>> = Vec::new();
    for (path, text) in fields.texts("mimeTypes", findings) {
        let is_type = text.split(';').next().and_then(|name| name.trim().split_once('/'));
        let is_token = |text: &str| text == "*" || headers::is_token(text);
        if is_type.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype)) {
            types.push(text.into());
        } else {
            findings.error(path, format!("Invalid value: {text:?}: is no media type; write one such as text/html"));
        }
    }
    fields.finish(findings);
    types
}

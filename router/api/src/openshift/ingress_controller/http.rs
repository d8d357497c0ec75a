//! `httpHeaders` and other HTTP settings (docs/openshift.md#fields-of-ingresscontrollers).

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::header_actions::HeaderActions;
use router_table::policy::unique_id::UniqueId;

use super::unique_id;
use crate::fields::Fields;
use crate::header_names;
use crate::openshift::header_actions;

/// HTTP settings of all routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpPolicy {
    /// `httpHeaders.forwardedHeaderPolicy`.
    pub forwarded: ForwardedHeaders,
    /// `httpHeaders.uniqueId`.
    pub unique_id: Option<UniqueId>,
    /// `httpHeaders.headerNameCaseAdjustments`: header names in the case that HTTP/1 peers get.
    pub case_adjustments: Vec<Arc<str>>,
    /// `httpHeaders.actions`. Applied before a route's on requests, after them on responses.
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
    /// Fields with unsupported values.
    pub without_effect: Vec<FieldPath>,
}

/// Reads the members of `spec` about HTTP. An invalid value counts as the default.
pub fn parse(spec: &mut Fields<'_>, findings: &mut Findings) -> HttpPolicy {
    let mut fields = spec.mapping("httpHeaders", findings);
    let forwarded = forwarded(&mut fields, findings);
    let mut without_effect = Vec::new();
    let unique_id = unique_id::parse(fields.mapping("uniqueId", findings), &mut without_effect, findings);
    let case_adjustments = case_adjustments(&mut fields, findings);
    let actions = header_actions::actions(&mut fields, findings);
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
        without_effect,
    }
}

/// Whether an enumeration of two values has the second; the first is the default.
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

fn case_adjustments(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for (path, name) in fields.texts("headerNameCaseAdjustments", findings) {
        if header_names::is_token(name) {
            names.push(name.into());
        } else {
            findings.error(
                path,
                format!("Invalid value: {name:?}: is not a valid header name; write one such as Cache-Control"),
            );
        }
    }
    names
}

fn compress(mut fields: Fields<'_>, findings: &mut Findings) -> Vec<Arc<str>> {
    let mut types: Vec<Arc<str>> = Vec::new();
    for (path, text) in fields.texts("mimeTypes", findings) {
        let is_type = text.split(';').next().and_then(|name| name.trim().split_once('/'));
        let is_token = |text: &str| text == "*" || header_names::is_token(text);
        if is_type.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype)) {
            types.push(text.into());
        } else {
            findings.error(
                path,
                format!("Invalid value: {text:?}: is not a valid media type; write one such as text/html"),
            );
        }
    }
    fields.finish(findings);
    types
}

//! Header actions of Routes and IngressControllers (docs/openshift.md#header-actions): `httpHeaders.actions`.

use crate::header_names::OWN;
use crate::header_names::is_token;
use std::collections::HashSet;
use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_table::policy::header_actions::{HeaderAction, HeaderActions, HeaderChange};
use router_table::policy::header_value::{HeaderValue, MessageDirection};
use serde_json::Value;

use crate::fields::{Fields, no_text};

/// Maximum number of actions on requests, and on responses.
const MAX_ACTIONS: usize = 20;
/// Maximum length of a header name, in bytes.
const MAX_NAME: usize = 255;
/// Maximum length of a value as written, in bytes.
const MAX_VALUE: usize = 16_384;
/// Headers that have their own settings, or that a router must not change.
const FORBIDDEN: [(&str, &str); 4] = [
    (
        "strict-transport-security",
        "it has a setting of its own, the annotation haproxy.router.openshift.io/hsts_header",
    ),
    ("proxy", "it is always removed from requests (HTTPoxy)"),
    ("cookie", "a router's session cookies would be lost"),
    ("set-cookie", "a router's session cookies would be lost"),
];

/// Reads `actions`, a member of `httpHeaders`.
pub(crate) fn actions(http_headers: &mut Fields<'_>, findings: &mut Findings) -> HeaderActions {
    let mut fields = http_headers.mapping("actions", findings);
    let request = list(&mut fields, "request", MessageDirection::Request, findings);
    let response = list(&mut fields, "response", MessageDirection::Response, findings);
    fields.finish(findings);
    HeaderActions { request, response }
}

fn list(
    fields: &mut Fields<'_>,
    name: &'static str,
    direction: MessageDirection,
    findings: &mut Findings,
) -> Vec<HeaderAction> {
    let items = fields.list(name, findings);
    if items.len() > MAX_ACTIONS {
        findings.error(fields.path(name), format!("has {} items; use at most {MAX_ACTIONS}", items.len()));
        return Vec::new();
    }
    let mut names = HashSet::new();
    let mut actions = Vec::new();
    for (path, item) in items {
        let Some(action) = action(item, &path, direction, findings) else { continue };
        // As in the API server: names that differ only in case are different names.
        if !names.insert(action.name.clone()) {
            let message = format!("Duplicate value: {:?}; keep one action for each header", action.name);
            findings.error(path.key("name"), message);
        }
        actions.push(action);
    }
    actions
}

fn action(
    item: &Value,
    path: &FieldPath,
    direction: MessageDirection,
    findings: &mut Findings,
) -> Option<HeaderAction> {
    let mut fields = Fields::of(Some(item), path.clone(), findings);
    let name = header_name(&mut fields, findings);
    let mut action = fields.mapping("action", findings);
    fields.finish(findings);
    let kind = action.text("type", findings);
    let mut set = action.mapping("set", findings);
    let change = match kind {
        Some("Set") if !set.is_present() => {
            findings.error(action.path("set"), "Required value: write set.value, or write type: Delete");
            None
        }
        Some("Set") => header_value(&mut set, direction, findings).map(HeaderChange::Set),
        Some("Delete") if set.is_present() => {
            findings.error(action.path("set"), "Forbidden: Delete takes no value; remove set, or write type: Set");
            None
        }
        Some("Delete") => Some(HeaderChange::Delete),
        Some(other) => {
            findings.error(action.path("type"), format!("Unsupported value: {other:?}; write Set or Delete"));
            None
        }
        None => {
            findings.error(action.path("type"), "Required value: write Set or Delete");
            None
        }
    };
    if kind == Some("Set") {
        set.finish(findings);
    }
    action.finish(findings);
    Some(HeaderAction { name: name?, change: change? })
}

fn header_name(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<Arc<str>> {
    let path = fields.path("name");
    let Some(name) = fields.text("name", findings) else {
        findings.error(path, "Required value: write the name of a header");
        return None;
    };
    let message = if let Some((_, why)) = FORBIDDEN.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
        format!("Forbidden: {name:?} cannot be changed here: {why}; remove the action")
    } else if name.len() > MAX_NAME {
        format!("Too long: has {} bytes; use at most {MAX_NAME}", name.len())
    } else if !is_token(name) {
        format!(
            "Invalid value: {name:?}: is not a valid header name; use letters, digits and !#$%&'*+-.^_`|~ (RFC 9110 5.6.2)"
        )
    } else {
        if OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            findings.warn(path, "the action has no effect: the router writes this field itself; remove the action");
        }
        return Some(name.into());
    };
    findings.error(path, message);
    None
}

fn header_value(set: &mut Fields<'_>, direction: MessageDirection, findings: &mut Findings) -> Option<HeaderValue> {
    let path = set.path("value");
    match set.value("value") {
        None => findings.error(path, "Required value: write the header's value; to remove a header write type: Delete"),
        Some(Value::String(text)) if text.is_empty() => {
            findings.error(path, "Required value: write the header's value; to remove a header write type: Delete");
        }
        Some(Value::String(text)) if text.len() > MAX_VALUE => {
            findings.error(path, format!("Too long: has {} bytes; use at most {MAX_VALUE}", text.len()));
        }
        Some(Value::String(text)) => match HeaderValue::parse(text, direction) {
            Ok(value) => return Some(value),
            Err(fault) => findings.error(path, format!("Invalid value: {:?}: {fault}", shortened(text))),
        },
        Some(other) => findings.error(path, no_text(other)),
    }
    None
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;

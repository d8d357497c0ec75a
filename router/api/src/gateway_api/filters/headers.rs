//! `requestHeaderModifier`, `responseHeaderModifier`.

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_table::header_modifier::HeaderModifier;
use serde_json::Value;

use crate::fields::{Fields, describe};
use crate::gateway_api::read;
use crate::gateway_api::read::Unsupported;
use crate::header_names::{OWN, is_token};

/// Maximum number of headers in each list of a modifier.
const MAX_HEADERS: usize = 16;

/// Reads `requestHeaderModifier` or `responseHeaderModifier`.
pub fn modifier(
    fields: &mut Fields<'_>,
    is_request: bool,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> HeaderModifier {
    let set = header_list(fields, "set", findings);
    let add = header_list(fields, "add", findings);
    let mut remove: Vec<(FieldPath, Arc<str>)> = Vec::new();
    for (path, item) in read::list(fields, "remove", 0, MAX_HEADERS, findings) {
        match item {
            Value::String(name) if !is_token(name) => {
                findings.warn(
                    path,
                    format!("{name:?} is not a valid header name, so there is nothing to remove; remove it"),
                );
            }
            Value::String(name) if remove.iter().any(|(_, known)| name.eq_ignore_ascii_case(known)) => {
                findings.error(path, format!("Duplicate value: {name:?}; keep one of them"));
            }
            Value::String(name) => remove.push((path, name.to_ascii_lowercase().into())),
            other => findings.error(path, format!("is {}; write a text", describe(other))),
        }
    }
    for (path, _, value) in set.iter().chain(&add) {
        if !is_field_value(value) {
            let message =
                "is not a valid header value (RFC 9110 5.5); use visible ASCII characters, and spaces between them";
            unsupported.add(path.key("value"), message);
        }
    }
    let named = set.iter().chain(&add).map(|(path, name, _)| (path.key("name"), name));
    for (path, name) in named.chain(remove.iter().map(|(path, name)| (path.clone(), name))) {
        if OWN.contains(&&**name) {
            unsupported
                .add(path, format!("{name} belongs to one connection, and the router writes it itself; remove it"));
        } else if is_request && &**name == "host" {
            unsupported.add(path, "Host is not changed as a header; use a URLRewrite filter with hostname");
        }
    }
    let pairs = |list: Vec<Header>| list.into_iter().map(|(_, name, value)| (name, value)).collect();
    HeaderModifier { set: pairs(set), add: pairs(add), remove: remove.into_iter().map(|(_, name)| name).collect() }
}

/// Path, name and value of a header.
type Header = (FieldPath, Arc<str>, Arc<str>);

/// `set` or `add`, names in lower case, each once.
fn header_list(fields: &mut Fields<'_>, list: &'static str, findings: &mut Findings) -> Vec<Header> {
    let (mut headers, mut written): (Vec<Header>, Vec<&str>) = (Vec::new(), Vec::new());
    for (path, item) in read::list(fields, list, 0, MAX_HEADERS, findings) {
        let mut entry = Fields::of(Some(item), path.clone(), findings);
        let name = read::token(&mut entry, findings);
        let value = read::header_value(&mut entry, findings);
        entry.finish(findings);
        let (Some(name), Some(value)) = (name, value) else { continue };
        let key = name.to_ascii_lowercase();
        if written.contains(&name) {
            findings.error(path.key("name"), format!("Duplicate value: {name:?}; keep one of them"));
        } else if headers.iter().any(|(_, known, _)| **known == *key) {
            let message = format!("is not done: {key:?} stands further up in another case; remove it");
            findings.warn(path.key("name"), message);
        } else {
            headers.push((path, key.into(), value.into()));
        }
        written.push(name);
    }
    headers
}

/// Whether a text can be sent as a field value: visible ASCII characters with spaces or tabs between them. Recipients
/// interpret other bytes differently.
fn is_field_value(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t';
    text.bytes().all(is_inner) && text.trim() == text
}

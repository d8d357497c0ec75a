//! References to other objects.

use std::sync::Arc;

use router_model::dns_names;
use router_model::field::{FieldPath, Findings};
use serde_json::Value;

use super::read;
use crate::fields::Fields;
use crate::gateway_api::types::{ObjectReference, ParentRef};

/// Maximum number of `parentRefs`.
const MAX_PARENTS: usize = 32;

/// A reference with an optional namespace: `group`, `kind`, `namespace`, `name`. Groups and kinds have their defaults.
pub fn object(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<ObjectReference> {
    let group = group(fields, findings);
    let kind = kind(fields, findings);
    let namespace = namespace(fields, findings);
    let name = read::required(fields, "name", "the name of the object", findings);
    Some(ObjectReference { group: group?, kind: kind?, namespace, name: name?.into() })
}

/// A reference to an object of the same namespace, without defaults: `group`, `kind`, `name`.
pub fn local(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<ObjectReference> {
    if fields.value("group").is_none() {
        findings.error(fields.path("group"), "Required value: write the group of the kind, \"\" for the core group");
    }
    let group = group(fields, findings);
    let kind = kind(fields, findings);
    let name = read::required(fields, "name", "the name of the object", findings);
    Some(ObjectReference { group: group?, kind: kind?, namespace: None, name: name?.into() })
}

/// `group`; empty for the core group.
pub fn group(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<Arc<str>> {
    let group = read::maybe_empty(fields, "group", findings)?;
    if let Some(fault) = dns_names::subdomain_fault(group).filter(|_| !group.is_empty()) {
        findings.error(fields.path("group"), format!("Invalid value: {group:?}: {fault}"));
        return None;
    }
    Some(group.into())
}

/// `kind`.
pub fn kind(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<Arc<str>> {
    let kind = read::required(fields, "kind", "the kind of the object", findings)?;
    let bytes = kind.as_bytes();
    let is_word = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    if !is_word || kind.len() > dns_names::MAX_LABEL {
        findings.error(
            fields.path("kind"),
            format!("Invalid value: {kind:?}: is not a valid kind; write one such as Service"),
        );
        return None;
    }
    Some(kind.into())
}

/// `namespace`.
pub fn namespace(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<Arc<str>> {
    let namespace = fields.text("namespace", findings)?;
    if let Some(fault) = dns_names::label_fault(namespace) {
        findings.error(fields.path("namespace"), format!("Invalid value: {namespace:?}: {fault}"));
        return None;
    }
    Some(namespace.into())
}

/// `BackendObjectReference`: a reference with a `port`, which a Service needs.
pub fn backend(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<(ObjectReference, Option<u16>)> {
    let object = object(fields, findings);
    let before = findings.errors.len();
    let port = read::port(fields, "port", findings);
    let object = object?;
    let is_service = object.group.is_empty() && &*object.kind == "Service";
    if is_service && port.is_none() && findings.errors.len() == before {
        findings
            .error(fields.path("port"), "Required value: a Service needs it; write the number of the Service's port");
    }
    Some((object, port))
}

/// `parentRefs`.
pub fn parents(spec: &mut Fields<'_>, findings: &mut Findings) -> Vec<ParentRef> {
    let mut parents: Vec<ParentRef> = Vec::new();
    for (path, item) in read::list(spec, "parentRefs", 0, MAX_PARENTS, findings) {
        let Some(parent) = parent(item, &path, findings) else { continue };
        let twin = parents.iter().find(|known| {
            let is_split =
                known.section.is_some() != parent.section.is_some() || known.port.is_some() != parent.port.is_some();
            known.object == parent.object
                && (is_split || (known.section == parent.section && known.port == parent.port))
        });
        if let Some(twin) = twin {
            let message = if *twin == parent {
                "Duplicate value: the same parent stands here twice; remove one, or write another sectionName or port"
            } else {
                "names a parent that stands here twice; write a sectionName, or a port, in both"
            };
            findings.error(path, message);
        }
        parents.push(parent);
    }
    parents
}

fn parent(item: &Value, path: &FieldPath, findings: &mut Findings) -> Option<ParentRef> {
    let mut fields = Fields::of(Some(item), path.clone(), findings);
    let object = object(&mut fields, findings);
    let section = read::section(&mut fields, "sectionName", findings);
    let port = read::port(&mut fields, "port", findings);
    fields.finish(findings);
    Some(ParentRef { object: object?, section, port })
}

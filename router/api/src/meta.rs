//! `metadata` of all kinds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use router_model::dns_names;
use router_model::field::Findings;
use router_model::kind::Kind;
use router_model::object::{Created, Meta, ObjectKey, Origin};
use serde_json::Value;

use super::fields::Fields;

/// Namespace of namespaced objects without one, as for `kubectl`.
pub const DEFAULT_NAMESPACE: &str = "default";

const IGNORED: &[&str] = &[
    "generateName",
    "managedFields",
    "ownerReferences",
    "finalizers",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "clusterName",
];

/// `metadata.annotations`. Objects keep the parsed values only.
pub type Annotations = BTreeMap<String, String>;

/// Reads `metadata`; `None` if the object has no name, so that it cannot be identified.
pub fn parse(
    object: &mut Fields<'_>,
    kind: Kind,
    origin: Origin,
    findings: &mut Findings,
) -> Option<(Meta, Annotations)> {
    let mut fields = object.mapping("metadata", findings);
    let name = fields.text("name", findings);
    match name {
        None => findings.error(fields.path("name"), "Required value: write the object's name"),
        Some(name) => {
            if let Some(fault) = dns_names::subdomain_fault(name) {
                findings.error(fields.path("name"), format!("Invalid value: {name:?}: {fault}"));
            }
        }
    }
    let namespace = match (kind.is_namespaced(), fields.text("namespace", findings)) {
        (false, None) => "",
        (false, Some(_)) => {
            findings.warn(fields.path("namespace"), format!("a {kind} has no namespace, ignored; remove it"));
            ""
        }
        (true, namespace) => namespace.unwrap_or(DEFAULT_NAMESPACE),
    };
    if let Some(fault) = dns_names::label_fault(namespace).filter(|_| kind.is_namespaced()) {
        findings.error(fields.path("namespace"), format!("Invalid value: {namespace:?}: {fault}"));
    }
    let created = fields.text("creationTimestamp", findings).and_then(|text| match text.parse::<Timestamp>() {
        Ok(time) => Some(time),
        Err(_) => {
            findings.error(
                fields.path("creationTimestamp"),
                format!("Invalid value: {text:?}; write a time such as 2024-05-01T12:00:00Z (RFC 3339)"),
            );
            None
        }
    });
    let generation = fields.number("generation", 0, i64::MAX, findings).unwrap_or_default();
    let meta = Meta {
        key: ObjectKey::new(namespace, name.unwrap_or_default()),
        labels: fields.text_map("labels", findings).into_iter().collect(),
        created: Created(created),
        uid: fields.text("uid", findings).unwrap_or_default().into(),
        generation,
        origin,
    };
    let annotations = fields.text_map("annotations", findings);
    // Unused, but its type is checked.
    fields.text("resourceVersion", findings);
    fields.ignore(IGNORED);
    fields.finish(findings);
    name.map(|_| (meta, annotations))
}

/// Sets the default namespace in a manifest without one.
pub(crate) fn set_namespace(value: &mut Value, key: &ObjectKey) {
    if key.namespace.is_empty() {
        return;
    }
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        metadata.insert("namespace".to_owned(), Value::String(key.namespace.to_string()));
    }
}

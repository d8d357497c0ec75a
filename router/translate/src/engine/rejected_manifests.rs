//! Statuses of objects of other kinds than Route whose newest version is rejected.

use router_api::contour;
use router_api::gateway_api::types::CONTROLLER_NAME;
use router_api::resources::{RejectedManifest, Resources, Versions};
use router_model::for_kinds;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::{Value, json};

use crate::gateway::conditions;
use crate::status::condition::{Condition, invalid_manifest, last_accepted_serves};
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Objects whose versions differ, and whose newest version is rejected now (true) or was before. Covers the kinds that
/// have conditions of their own API.
pub fn changes(resources: &Resources, last: &Resources) -> Vec<(ObjectRef, bool)> {
    let mut found = Vec::new();
    macro_rules! each {
        ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
            $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
            $(each!(@$status Kind::$kind, resources.$collection.changes_since(&last.$collection));)*
        };
        (@conditions $kind:expr, $changes:expr) => {
            found.extend($changes.filter_map(|changed| {
                let is_rejected = changed.new.is_some_and(|versions| versions.rejected.is_some());
                let was_rejected = changed.old.is_some_and(|versions| versions.rejected.is_some());
                let object = || ObjectRef { kind: $kind, key: changed.key.clone() };
                (is_rejected || was_rejected).then(|| (object(), is_rejected))
            }))
        };
        (@$other:ident $kind:expr, $changes:expr) => {};
    }
    for_kinds!(each);
    found
}

/// The status of an object whose newest version is rejected. `of_api` is that of its last valid version.
pub fn status(resources: &Resources, object: &ObjectRef, of_api: Option<ObjectStatus>) -> Option<ObjectStatus> {
    macro_rules! of_kind {
        ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
            $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
            match object.kind {
                $(Kind::$kind => combined(resources, object, resources.$collection.versions_of(&object.key)?, of_api),)*
            }
        };
    }
    for_kinds!(of_kind)
}

fn combined<T>(
    resources: &Resources,
    object: &ObjectRef,
    versions: &Versions<T>,
    of_api: Option<ObjectStatus>,
) -> Option<ObjectStatus> {
    let Some(rejected) = &versions.rejected else { return of_api };
    let manifest = rejected.manifest.value();
    if versions.accepted.is_some() {
        let of_api = of_api?;
        let mut status = of_api.status();
        add(&mut status, &last_accepted_serves(rejected), generation(&manifest));
        return Some(ObjectStatus::new(&status, of_api.rows.into()));
    }
    match rejected_status(resources, object.kind, &object.key, &manifest, rejected) {
        Some(status) => {
            let condition = invalid_manifest(rejected);
            let row = ParentStatus { reason: condition.reason, message: condition.message, ..ParentStatus::default() };
            Some(ObjectStatus::new(&status, vec![row]))
        }
        None => of_api,
    }
}

/// The status of an object without a valid version; `None` if the object is another controller's, or the status of its
/// kind has no field for the message.
fn rejected_status(
    resources: &Resources,
    kind: Kind,
    key: &ObjectKey,
    manifest: &Value,
    rejected: &RejectedManifest,
) -> Option<Value> {
    let generation = generation(manifest);
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let accepted = |reason: &str| {
        json!([{ "type": "Accepted", "status": "False", "reason": reason, "message": rejected.problem,
            "observedGeneration": generation }])
    };
    match kind {
        Kind::GatewayClass if text("/spec/controllerName") == Some(CONTROLLER_NAME) => {
            Some(json!({ "conditions": accepted("Unsupported") }))
        }
        Kind::Gateway => {
            let class = resources.gateway_classes.get(&ObjectKey::new("", text("/spec/gatewayClassName")?))?;
            (*class.controller == *CONTROLLER_NAME).then(|| json!({ "conditions": accepted("Invalid") }))
        }
        Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute => {
            let parents = manifest.pointer("/spec/parentRefs")?.as_array()?;
            let ours: Vec<Value> = parents
                .iter()
                .filter(|parent| is_ours(resources, &key.namespace, parent))
                .map(|parent| {
                    json!({ "parentRef": parent, "controllerName": CONTROLLER_NAME,
                        "conditions": accepted("UnsupportedValue") })
                })
                .collect();
            (!ours.is_empty()).then(|| json!({ "parents": ours }))
        }
        Kind::IngressRoute | Kind::HttpProxy if !contour::is_foreign(manifest) => {
            Some(json!({ "currentStatus": "invalid", "description": rejected.problem }))
        }
        Kind::RouteSlot => Some(json!({ "conditions": accepted("Invalid") })),
        _ => None,
    }
}

/// True if a `parentRefs[]` entry, as written, names a Gateway of ours.
fn is_ours(resources: &Resources, namespace: &str, parent: &Value) -> bool {
    let text = |name: &str| parent.get(name).and_then(Value::as_str);
    let (Some(name), "Gateway") = (text("name"), text("kind").unwrap_or("Gateway")) else { return false };
    let gateway = resources.gateways.get(&ObjectKey::new(text("namespace").unwrap_or(namespace), name));
    let class = gateway.and_then(|gateway| resources.gateway_classes.get(&ObjectKey::new("", &gateway.class)));
    class.is_some_and(|class| *class.controller == *CONTROLLER_NAME)
}

fn generation(manifest: &Value) -> i64 {
    manifest.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
}

/// Adds a condition to every list of our conditions; Contour's statuses have a description instead.
fn add(status: &mut Value, condition: &Condition, generation: i64) {
    let Some(members) = status.as_object_mut() else { return };
    let condition_value = json!(conditions::condition(condition, generation));
    if let Some(Value::String(description)) = members.get_mut("description") {
        *description = format!("{description}; {}", condition.message);
        return;
    }
    if let Some(Value::Array(parents)) = members.get_mut("parents") {
        let conditions = parents.iter_mut().filter_map(|parent| parent.get_mut("conditions")?.as_array_mut());
        conditions.for_each(|conditions| conditions.push(condition_value.clone()));
        return;
    }
    if let Some(Value::Array(conditions)) = members.get_mut("conditions") {
        conditions.push(condition_value);
    }
}

#[cfg(test)]
mod tests;

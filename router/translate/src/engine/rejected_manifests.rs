//! What objects of other kinds than Route are told when their newest version is refused.

use std::collections::BTreeMap;

use router_api::contour;
use router_api::gateway_api::types::CONTROLLER_NAME;
use router_api::resources::{Objects, RejectedManifest, Resources};
use router_model::for_kinds;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::{Value, json};

use crate::gateway::conditions;
use crate::status::condition::{Condition, invalid_manifest, last_good_serves};
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Adds what is to be said about refused versions to what objects are told.
pub fn tell(resources: &Resources, told: &mut BTreeMap<ObjectRef, ObjectStatus>) {
    macro_rules! each {
        ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
            $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
            $(each!(@$status of_kind(resources, Kind::$kind, &resources.$collection, told));)*
        };
        (@conditions $tell:expr) => { $tell };
        (@$other:ident $tell:expr) => {};
    }
    for_kinds!(each);
}

fn of_kind<T>(resources: &Resources, kind: Kind, objects: &Objects<T>, told: &mut BTreeMap<ObjectRef, ObjectStatus>) {
    for (key, versions) in objects.versions() {
        let Some(refused) = &versions.rejected else { continue };
        let object = ObjectRef { kind, key: key.clone() };
        if versions.accepted.is_none() {
            let manifest = refused.manifest.value();
            if let Some(status) = refused_status(resources, kind, key, &manifest, refused) {
                let condition = invalid_manifest(refused);
                let row =
                    ParentStatus { reason: condition.reason, message: condition.message, ..ParentStatus::default() };
                told.insert(object, ObjectStatus { status, rows: vec![row] });
            }
        } else if let Some(told) = told.get_mut(&object) {
            add(&mut told.status, &last_good_serves(refused), generation(&refused.manifest.value()));
        }
    }
}

/// The status of an object that has no good version; `None` where it is another controller's business, or there is no
/// place to say it.
fn refused_status(
    resources: &Resources,
    kind: Kind,
    key: &ObjectKey,
    manifest: &Value,
    refused: &RejectedManifest,
) -> Option<Value> {
    let generation = generation(manifest);
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let accepted = |reason: &str| {
        json!([{ "type": "Accepted", "status": "False", "reason": reason, "message": refused.problem,
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
            Some(json!({ "currentStatus": "invalid", "description": refused.problem }))
        }
        Kind::RouteSlot => Some(json!({ "conditions": accepted("Invalid") })),
        _ => None,
    }
}

/// Whether a `parentRefs[]` entry, as it was written, names a Gateway of ours.
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

/// Adds a condition wherever the status has conditions of ours; a status of Contour's has words.
fn add(status: &mut Value, condition: &Condition, generation: i64) {
    let Some(members) = status.as_object_mut() else { return };
    let written = conditions::condition(condition, generation);
    if let Some(Value::String(description)) = members.get_mut("description") {
        *description = format!("{description}; {}", condition.message);
        return;
    }
    if let Some(Value::Array(parents)) = members.get_mut("parents") {
        let conditions = parents.iter_mut().filter_map(|parent| parent.get_mut("conditions")?.as_array_mut());
        conditions.for_each(|conditions| conditions.push(written.clone()));
        return;
    }
    if let Some(Value::Array(conditions)) = members.get_mut("conditions") {
        conditions.push(written);
    }
}

#[cfg(test)]
mod tests;
